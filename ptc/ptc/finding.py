"""Finds deferred tools by a question: one index for all runs of a runner, one view for what each step may see.

It is told the tools of a step and never gives another. What is counted stays counted from step to step, so a
catalog that changed a little costs a little. It does no I/O of its own; a hybrid index asks its encoder.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, Self

from ptc_tools.catalog import undescribed
from ptc_tools.contract import Contract
from ptc_tools.search import Document
from ptc_tools.tool import AnyTool

_SPARE = 1_000
"""Documents of tools that no recent step had, which an index keeps beside twice those of the last one."""


class Found(Protocol):
    """What a view gives: `key` is a qualified name."""

    @property
    def key(self) -> str: ...


class View(Protocol):
    """A part of an index that one step may search."""

    def search(self, query: str, limit: int = 5) -> Sequence[Found]:
        """The best first; only what matches at all."""


class SearchIndex(Protocol):
    """What a runner searches with: `ptc.ToolIndex`, `ptc.HybridIndex`, or any other of this shape.

    Immutable; its methods may be called from any thread.
    """

    def with_changes(self, add: Iterable[Document] = (), remove: Iterable[str] = ()) -> Self:
        """An index with these documents, and without those of the keys `remove`."""

    def view(self, keys: Collection[str] | None = None) -> View:
        """What may be searched, by qualified names."""


class Finder:
    """Searches for the runs of one runner, at once if need be."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self._counted: dict[str, tuple[Contract, str]] = {}
        self._lock = threading.Lock()

    def view(self, tools: Mapping[str, AnyTool], namespaces: Mapping[str, str] | None = None) -> View:
        """A view of exactly these tools, by qualified name. What their namespaces are described by is searched
        with them."""
        with self._lock:
            contracts = {key: (tool.contract, _about(tool, namespaces or {})) for key, tool in tools.items()}
            # The same object is the same text; another one may be, and then costs no more than counting it.
            changed = [key for key, told in contracts.items() if not _same(self._counted.get(key), told)]
            gone = [key for key in changed if key in self._counted]
            if len(self._counted) > 2 * len(contracts) + _SPARE:
                gone += [key for key in self._counted if key not in contracts]
            if changed or gone:
                self._index = self._index.with_changes([_document(contracts[key]) for key in changed], gone)
                for key in gone:
                    del self._counted[key]
                self._counted.update((key, contracts[key]) for key in changed)
            index = self._index
        return index.view(contracts.keys())


def document_of(tool: AnyTool, namespaces: Mapping[str, str]) -> Document:
    """What a run searches of a tool, where its namespaces are described so."""
    return _document((tool.contract, _about(tool, namespaces)))


def _about(tool: AnyTool, namespaces: Mapping[str, str]) -> str:
    """What the tool's namespace is described by; what a catalog says of one that nobody described says nothing."""
    namespace = tool.contract.namespace or ""
    about = namespaces.get(namespace, "")
    return "" if about == undescribed(namespace) else about


def _same(counted: tuple[Contract, str] | None, told: tuple[Contract, str]) -> bool:
    return counted is not None and counted[0] is told[0] and counted[1] == told[1]


def _document(told: tuple[Contract, str]) -> Document:
    contract, about = told
    return Document.of(contract, about=about)
