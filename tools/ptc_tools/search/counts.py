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
