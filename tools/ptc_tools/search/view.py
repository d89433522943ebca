"""What one caller may search: BM25F over a part of the index, with the statistics of exactly that part.

A view is told which tools are in it and never looks at, counts or returns another: neither a result nor a score
says anything about a tool that is not in the view. Equal parts give equal scores, however they came about.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from ptc_tools.search.counts import BITS, MOST, Posting, Postings
from ptc_tools.search.guesses import guesses
from ptc_tools.search.kept import Sized
from ptc_tools.search.text import Query
from ptc_tools.search.verbs import RELATED
from ptc_tools.search.weights import Weights

LIMIT = 5
_DENSE = 16
"""A term that every sixteenth tool has is kept as an array over all places, which is smaller and quicker then."""
# Bounds are added up in another order than scores, so the last digits may differ.
_SLACK = 1 + 1e-9
_NUMBERS = count()


class Hit(NamedTuple):
    """A tool that was found: its qualified name and its score, which compares within one result only."""

    key: str
    score: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A term's score in each tool that has it: from best to worst, and by place (0 or None: it has it not)."""

    places: array[int]
    scores: array[float]
    at: Callable[[int], float | None]
    size: int
    """Bytes that it takes up, about."""

    @property
    def best(self) -> float:
        return self.scores[0]

    @classmethod
    def of(cls, by_place: dict[int, float], room: int) -> Scored:
        ranked = sorted(by_place, key=by_place.__getitem__, reverse=True)
        scores = array("d", map(by_place.__getitem__, ranked))
        if len(ranked) * _DENSE < room:
            return cls(array("I", ranked), scores, by_place.get, 120 * len(ranked))
        dense = array("d", bytes(8 * room))
        for place, score in by_place.items():
            dense[place] = score
        return cls(array("I", ranked), scores, dense.__getitem__, 12 * len(ranked) + 8 * room)


class SearchView:
    """Searches some tools of an index; made by `ToolIndex.view`. Safe to share between threads."""

    __slots__ = (
        "_kept",
        "_keys",
        "_lengths",
        "_member",
        "_norms",
        "_number",
        "_postings",
        "_size",
        "weights",
    )

    def __init__(
        self,
        postings: Postings,
        keys: Sequence[str],
        lengths: Sequence[array[int]],
        weights: Weights,
        size: int,
        totals: Sequence[int],
        kept: Sized[tuple[int, str], Scored],
        member: bytes | None = None,
    ) -> None:
        self.weights = weights
        self._postings = postings
        self._keys = keys
        self._lengths = lengths
        self._size = size
        self._member = member
        self._norms = tuple(
            _Norms(weight, b, total / size if size else 0.0)
            for (weight, b), total in zip(weights.of_fields, totals, strict=True)
        )
        self._kept = kept
        self._number = next(_NUMBERS)

    def __len__(self) -> int:
        return self._size

    def search(self, query: str, limit: int = LIMIT) -> tuple[Hit, ...]:
        """The best tools for a question, best first, equal ones by name; only those that match at all.

        At most `limit`, which must be positive (`ValueError`).
        """
        check_limit(limit)
        plan = self._plan(Query.read(query))
        found = _best(plan, limit)
        hits = [Hit(self._keys[place], score) for score, place in found]
        hits.sort(key=lambda hit: (-hit.score, hit.key))
        return tuple(hits[:limit])

    @property
    def keys(self) -> list[str]:
        """The key at each place, empty where the view has no tool: for `matches`."""
        if self._member is None:
            return list(self._keys)
        return [key if there else "" for key, there in zip(self._keys, self._member, strict=True)]

    def matches(self, query: str) -> Iterator[tuple[float, array[int], array[float]]]:
        """For who adds up scores himself: each term's worth, the places of the tools that have it, its score there."""
        for worth, scored in self._plan(Query.read(query)):
            yield worth, scored.places, scored.scores

    def _plan(self, query: Query) -> list[tuple[float, Scored]]:
        """The terms that this view has, with what each is worth, the one that can give most first."""
        weights, plan = self.weights, _Plan(self._term)
        for term, times in query.terms.items():
            plan.add(term, times)
        if weights.joined:
            for term in query.joined:
                plan.add(term, weights.joined)
        if weights.related:
            for said in query.terms:
                for term in RELATED.get(said, ()):
                    plan.add(term, weights.related)
        if weights.guessed:
            for term, word in query.unstemmed.items():
                if term in query.terms and term not in plan.terms:
                    for guess in guesses(word, self._has):
                        plan.add(guess, weights.guessed)
        return plan.ordered()

    def _has(self, term: str) -> bool:
        posting = self._postings.get(term)
        if posting is None or self._member is None:
            return posting is not None
        return any(map(self._member.__getitem__, posting.places))

    def _term(self, term: str) -> Scored | None:
        posting = self._postings.get(term)
        if posting is None:
            return None
        scored = self._kept.get((self._number, term))
        if scored is None:
            scored = self._score(posting)
            if scored is not None:
                self._kept.put((self._number, term), scored, scored.size)
        return scored

    def _score(self, posting: Posting) -> Scored | None:
        """BM25F: the weighted, length-normalised counts of the fields are added up before they saturate."""
        pairs = list(zip(posting.places, posting.counts, strict=True))
        if self._member is not None:
            member = self._member
            pairs = [pair for pair in pairs if member[pair[0]]]
        if not pairs:
            return None
        idf = math.log(1 + (self._size - len(pairs) + 0.5) / (len(pairs) + 0.5))
        k1 = self.weights.k1
        fields = list(zip(range(0, BITS * len(self._norms), BITS), self._norms, self._lengths, strict=True))
        by_place: dict[int, float] = {}
        for place, packed in pairs:
            weighted = 0.0
            for shift, norms, lengths in fields:
                if times := packed >> shift & MOST:
                    weighted += times * norms[lengths[place]]
            if weighted > 0:
                by_place[place] = idf * weighted * (k1 + 1) / (weighted + k1)
        if not by_place:
            return None
        return Scored.of(by_place, len(self._keys))


def check_limit(limit: int) -> None:
    """Raises `ValueError` for a limit that is not positive."""
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")


class _Plan:
    """The terms of a question that are there, each with what it is worth: the first that says so decides."""

    __slots__ = ("_scored", "terms")

    def __init__(self, scored: Callable[[str], Scored | None]) -> None:
        self._scored = scored
        self.terms: dict[str, tuple[float, Scored]] = {}

    def add(self, term: str, worth: float) -> None:
        if term not in self.terms and (scored := self._scored(term)) is not None:
            self.terms[term] = worth, scored

    def ordered(self) -> list[tuple[float, Scored]]:
        ranked = [(-worth * scored.best, term) for term, (worth, scored) in self.terms.items()]
        return [self.terms[term] for _, term in sorted(ranked)]


class _Norms(dict[int, float]):
    """What one occurrence is worth in a field of this length, worked out once for each length."""

    __slots__ = ("average", "b", "weight")

    def __init__(self, weight: float, b: float, average: float) -> None:
        super().__init__()
        self.weight = weight
        self.b = b
        self.average = average

    def __missing__(self, length: int) -> float:
        relative = length / self.average if self.average else 1.0
        worth = self[length] = self.weight / (1 - self.b + self.b * relative)
        return worth


def _best(plan: list[tuple[float, Scored]], limit: int) -> list[tuple[float, int]]:
    """At least the `limit` best (score, place), and whatever is equal to the last of them.

    Each tool is scored in full at the first of its terms, terms by falling worth and tools from best to worst, until
    no tool that is left can reach the best ones (MaxScore). Scores are added up in the plan's order.
    """
    bounds = [0.0]
    for worth, scored in reversed(plan):
        bounds.append(bounds[-1] + worth * scored.best * _SLACK)
    bounds.reverse()
    steps = [(worth, scored.at, after) for (worth, scored), after in zip(plan, bounds[1:], strict=True)]
    best: list[float] = []  # a heap: the best scores so far
    found: list[tuple[float, int]] = []
    bar = 0.0
    for number, (worth, scored) in enumerate(plan):
        if bounds[number] < bar:
            break
        rest, left = bounds[number + 1], steps[number + 1 :]
        earlier = [at for _, at, _ in steps[:number]]
        for place, single in zip(scored.places, scored.scores, strict=True):
            score = worth * single
            if score * _SLACK + rest < bar:
                break
            # With an earlier term it was scored there, or was too low there to come near, whatever else it has.
            if earlier and any([at(place) for at in earlier]):  # noqa: C419 - a generator is slower
                continue
            for times, at, after in left:
                if part := at(place):
                    score += times * part
                if score + after < bar:
                    break
            else:
                found.append((score, place))
                if len(best) < limit:
                    heapq.heappush(best, score)
                else:
                    heapq.heapreplace(best, score)
                if len(best) == limit:
                    bar = best[0]
    return [each for each in found if each[0] >= bar]
