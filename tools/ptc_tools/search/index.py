"""The words of a set of tools, counted: an immutable index, from which views for one caller each are made.

It is told documents and holds counts alone; every statistic is exact, whatever was added and removed before. It
never scores (`ptc_tools.search.view` does) and never decides who may see a tool: a view is told that.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable
from typing import cast

from ptc_tools.call import JsonValue
from ptc_tools.errors import DuplicateTool, RegistrationError
from ptc_tools.search.counts import Counted, Posting, Postings
from ptc_tools.search.document import Document
from ptc_tools.search.kept import Kept, Sized
from ptc_tools.search.view import Scored, SearchView
from ptc_tools.search.weights import FIELDS, Weights
from ptc_tools.strict_json import canonical

DEFAULT = Weights()
VIEWS_KEPT = 64
SCORES_KEPT = 64 * 1024 * 1024
"""Bytes of scores that an index keeps, for the words that were asked for last in any of its views."""


class _Entry:
    """A document at its place. Its digest is made when somebody asks for a fingerprint, and then kept."""

    __slots__ = ("_digest", "document", "place")

    def __init__(self, place: int, document: Document) -> None:
        self.place = place
        self.document = document
        self._digest: bytes | None = None

    @property
    def digest(self) -> bytes:
        if self._digest is None:
            of = self.document
            words = [
                of.key,
                of.namespace,
                of.name,
                of.title,
                of.description,
                of.parameters,
                list(of.terms),
                of.about,
            ]
            self._digest = hashlib.sha256(canonical(cast("JsonValue", words))).digest()
        return self._digest


class ToolIndex:
    """Documents counted for search, with unique keys. Raises `DuplicateTool` for two of one key.

    Immutable and safe to share between threads and runs: `with_changes` gives a new index and shares with the
    old one what did not change. `view` gives what may be searched; an index keeps its last 64 views.
    """

    __slots__ = (
        "_entries",
        "_fingerprint",
        "_free",
        "_keys",
        "_lengths",
        "_postings",
        "_scores",
        "_totals",
        "_views",
        "weights",
    )

    def __init__(self, documents: Iterable[Document] = (), *, weights: Weights = DEFAULT) -> None:
        self.weights = weights
        self._entries: dict[str, _Entry] = {}
        self._keys: list[str] = []
        self._free: list[int] = []
        self._lengths: tuple[array[int], ...] = tuple(array("I") for _ in FIELDS)
        self._totals: list[int] = [0] * len(FIELDS)
        postings: dict[str, Posting] = {}
        self._views: Kept[frozenset[str] | None, SearchView] = Kept(VIEWS_KEPT)
        self._scores: Sized[tuple[int, str], Scored] = Sized(SCORES_KEPT)
        self._fingerprint: str | None = None
        for document in documents:
            place, counted = self._place(document)
            for term, packed in counted.terms.items():
                posting = postings.get(term)
                if posting is None:
                    posting = postings[term] = Posting(array("I"), array("Q"))
                posting.places.append(place)
                posting.counts.append(packed)
        self._postings = Postings(postings)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __repr__(self) -> str:
        return f"<ToolIndex of {len(self)} tools, {len(self._postings)} terms>"

    def document(self, key: str) -> Document | None:
        """The document of this key, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry.document

    @property
    def fingerprint(self) -> str:
        """`sha256:…` of the documents, in whatever order they were added, and of the weights."""
        if self._fingerprint is None:
            digest = hashlib.sha256(repr(self.weights).encode())
            for each in sorted(entry.digest for entry in self._entries.values()):
                digest.update(each)
            self._fingerprint = "sha256:" + digest.hexdigest()
        return self._fingerprint

    def view(self, keys: Collection[str] | None = None) -> SearchView:
        """What is searched when only these keys may be seen (None: all): statistics and results are of these alone.

        A key that is not in the index is not in the view either. Asked again for the same keys, it is the same
        view, with what it has worked out.
        """
        wanted = None if keys is None else frozenset(keys)
        return self._views.get(wanted, lambda: self._make_view(wanted))

    def _make_view(self, wanted: frozenset[str] | None) -> SearchView:
        parts = self._postings, self._keys, self._lengths, self.weights
        if wanted is None or self._entries.keys() <= wanted:
            return SearchView(*parts, len(self), self._totals, self._scores)
        member = bytearray(len(self._keys))
        places = [entry.place for key in wanted if (entry := self._entries.get(key)) is not None]
        for place in places:
            member[place] = 1
        totals = [sum(map(lengths.__getitem__, places)) for lengths in self._lengths]
        return SearchView(*parts, len(places), totals, self._scores, bytes(member))

    def with_changes(self, add: Iterable[Document] = (), remove: Iterable[str] = ()) -> ToolIndex:
        """A new index without the tools `remove` names and with those of `add`; a key in both is replaced.

        It costs what the changed tools cost. Raises `RegistrationError` for a key to be removed that is not
        there, `DuplicateTool` for one to be added that is.
        """
        added, removed = list(add), list(dict.fromkeys(remove))
        if not added and not removed:
            return self
        if 4 * (len(added) + len(removed)) > len(self):
            return self._rebuilt(added, removed)
        new = self._copied()
        edits: dict[str, list[tuple[int, int]]] = {}
        for key in removed:
            place, counted = new._vacate(key)
            for term in counted.terms:
                edits.setdefault(term, []).append((place, 0))
        for document in added:
            place, counted = new._place(document)
            for term, packed in counted.terms.items():
                edits.setdefault(term, []).append((place, packed))
        for term, changes in edits.items():
            new._postings.set(term, _edited(new._postings.get(term), changes))
        return new

    def updated(self, documents: Iterable[Document]) -> ToolIndex:
        """An index of exactly these documents; only what differs from this one is counted. For the next step's
        catalog. Raises `DuplicateTool`."""
        return self.with_changes(*self.differences(documents))

    def differences(self, documents: Iterable[Document]) -> tuple[list[Document], list[str]]:
        """What `with_changes` must be told to have exactly these documents. Raises `DuplicateTool`."""
        wanted: dict[str, Document] = {}
        for document in documents:
            if document.key in wanted:
                raise _twice(document.key)
            wanted[document.key] = document
        changed = [new for key, new in wanted.items() if self.document(key) != new]
        gone = [key for key in self._entries if key not in wanted]
        return changed, [*gone, *(new.key for new in changed if new.key in self)]

    def _rebuilt(self, added: list[Document], removed: list[str]) -> ToolIndex:
        for key in removed:
            if key not in self:
                raise _missing(key)
        without = set(removed)
        kept = [entry.document for key, entry in self._entries.items() if key not in without]
        return ToolIndex([*kept, *added], weights=self.weights)

    def _copied(self) -> ToolIndex:
        new = ToolIndex(weights=self.weights)
        new._entries = self._entries.copy()
        new._keys = self._keys.copy()
        new._free = self._free.copy()
        new._lengths = tuple(lengths[:] for lengths in self._lengths)
        new._totals = self._totals.copy()
        new._postings = self._postings.copy()
        return new

    def _place(self, document: Document) -> tuple[int, Counted]:
        """Only while nobody else has the index."""
        if document.key in self._entries:
            raise _twice(document.key)
        counted = Counted.of(document)
        if self._free:
            place = self._free.pop()
            self._keys[place] = document.key
        else:
            place = len(self._keys)
            self._keys.append(document.key)
            for lengths in self._lengths:
                lengths.append(0)
        self._entries[document.key] = _Entry(place, document)
        for field, length in enumerate(counted.lengths):
            self._lengths[field][place] = length
            self._totals[field] += length
        return place, counted

    def _vacate(self, key: str) -> tuple[int, Counted]:
        entry = self._entries.pop(key, None)
        if entry is None:
            raise _missing(key)
        counted = Counted.of(entry.document)
        for field, length in enumerate(counted.lengths):
            self._lengths[field][entry.place] = 0
            self._totals[field] -= length
        self._keys[entry.place] = ""
        self._free.append(entry.place)
        return entry.place, counted


def _edited(posting: Posting | None, changes: list[tuple[int, int]]) -> Posting | None:
    """A copy with these counts at these places, 0 for none; None if nothing is left."""
    places, counts = (array("I"), array("Q")) if posting is None else (posting.places[:], posting.counts[:])
    for place, packed in changes:
        at = bisect_left(places, place)
        there = at < len(places) and places[at] == place
        if there and packed:
            counts[at] = packed
        elif there:
            del places[at], counts[at]
        else:
            places.insert(at, place)
            counts.insert(at, packed)
    return Posting(places, counts) if places else None


def _twice(key: str) -> DuplicateTool:
    return DuplicateTool(f"two tools to be searched are called {key!r}; rename one")


def _missing(key: str) -> RegistrationError:
    return RegistrationError(f"there is no tool {key!r} in the search index to be removed")
