"""Where the tools of a run come from: toolsets, single tools and registries, read once for each step.

A read gives a whole `StepCatalog`, filtered by policy, or raises a `CatalogError`: never a part of one. It
shares nothing between runs but what cannot change.
"""

from ptc_tools.sources.inprocess import LocalRegistry
from ptc_tools.sources.mcp import McpRegistry, McpServer, McpSession, mcp_toolset
from ptc_tools.sources.reading import SourceLike, Sources, Visibility
from ptc_tools.sources.selecting import RegistryTools, SourceCatalog
from ptc_tools.sources.step import StepCatalog

__all__ = [
    "LocalRegistry",
    "McpRegistry",
    "McpServer",
    "McpSession",
    "RegistryTools",
    "SourceCatalog",
    "SourceLike",
    "Sources",
    "StepCatalog",
    "Visibility",
    "mcp_toolset",
]
