"""What the index keeps of a document: how often each term occurs in each field, and how long each field is.

Counts are of one document alone, so that adding or removing a tool touches its own terms and nothing else. No
statistic of the catalog is in them.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from ptc_tools.search.document import Document
from ptc_tools.search.text import LONGEST_CHUNK, LONGEST_WORD, count, stem, terms_of, words_of

# A posting's counts, 12 bits for each field: more occurrences than that say nothing more.
BITS = 12
MOST = (1 << BITS) - 1


@dataclass(frozen=True, slots=True)
class Posting:
    """Where a term occurs: places in ascending order, and the counts in the five fields, packed, for each."""

    places: array[int]
    counts: array[int]


_SHARDS = 1024


class Postings:
    """The postings of all terms, in parts: a copy shares them, and whoever writes to a copy copies one part first."""

    __slots__ = ("_own", "_parts")

    def __init__(self, of: Mapping[str, Posting]) -> None:
        self._parts: list[dict[str, Posting]] = [{} for _ in range(_SHARDS)]
        self._own = set(range(_SHARDS))
        for term, posting in of.items():
            self._parts[hash(term) % _SHARDS][term] = posting

    def copy(self) -> Postings:
        """What this one is from now on may no longer be written to."""
        new = Postings.__new__(Postings)
        new._parts = self._parts.copy()
        new._own = set()
        return new

    def get(self, term: str) -> Posting | None:
        """Where the term occurs; None for nowhere."""
        return self._parts[hash(term) % _SHARDS].get(term)

    def set(self, term: str, posting: Posting | None) -> None:
        """Only while nobody else has this copy."""
        number = hash(term) % _SHARDS
        if number not in self._own:
            self._parts[number] = self._parts[number].copy()
            self._own.add(number)
        if posting is None:
            self._parts[number].pop(term, None)
        else:
            self._parts[number][term] = posting

    def __len__(self) -> int:
        return sum(map(len, self._parts))


@dataclass(frozen=True, slots=True)
class Counted:
    """One document as the index sees it: for each term its packed counts, and the length of each field."""

    terms: Mapping[str, int]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, document: Document) -> Counted:
        texts = (
            document.name,
            f"{document.namespace}\n{document.about}",
            document.headline,
            document.description,
            document.arguments,
        )
        packed: dict[str, int] = {}
        lengths: list[int] = []
        for field, text in enumerate(texts):
            counts = count(text, stop_words=field == 0)  # a name of small words must be found by them
            if field == 0:
                counts.update(_joined(document))
            for term, times in counts.items():
                packed[term] = packed.get(term, 0) + (min(times, MOST) << (BITS * field))
            lengths.append(counts.total())
        return cls(packed, tuple(lengths))


def _joined(document: Document) -> set[str]:
    """Words of its names that stand together, as one: `records.search` in full, and each two of the tool's name.

    A question has its neighbouring words as one too, so the order of words counts where it says most.
    """
    words = words_of(document.name)
    pairs = {stem(one + other)[:LONGEST_WORD] for one, other in pairwise(words)}
    if document.namespace:
        pairs.update(terms_of(f"{document.namespace}.{document.name}"[:LONGEST_CHUNK])[-1:])
    return pairs
