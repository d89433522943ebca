"""Finding the tools that a question is about, in catalogs too large to be sent whole.

`ToolIndex` counts words and needs nothing else; a `HybridIndex` adds the meaning of whole sentences. Nothing here
reads a file, runs a tool or decides who may see one: a caller searches a view of what it may see.
"""

from ptc_tools.search.document import Document
from ptc_tools.search.index import ToolIndex
from ptc_tools.search.view import Hit, SearchView
from ptc_tools.search.weights import Weights

__all__ = ["Document", "Hit", "SearchView", "ToolIndex", "Weights"]
