"""Finding the tools that a question is about, in catalogs too large to be sent whole.

`ToolIndex` counts words and needs nothing else; a `HybridIndex` adds the meaning of whole sentences. Nothing here
reads a file, runs a tool or decides who may see one: a caller searches a view of what it may see.
"""

from ptc_tools.search.document import Document
from ptc_tools.search.encoders import Encoder, FunctionEncoder, MiniLM
from ptc_tools.search.errors import EncoderError, SearchError, SearchUnavailable
from ptc_tools.search.hybrid import HybridIndex, HybridView
from ptc_tools.search.index import ToolIndex
from ptc_tools.search.vectors import Vectors
from ptc_tools.search.view import Hit, SearchView
from ptc_tools.search.weights import Weights

__all__ = [
    "Document",
    "Encoder",
    "EncoderError",
    "FunctionEncoder",
    "Hit",
    "HybridIndex",
    "HybridView",
    "MiniLM",
    "SearchError",
    "SearchUnavailable",
    "SearchView",
    "ToolIndex",
    "Vectors",
    "Weights",
]
