"""How well a search answers a set of questions: recall and nDCG of the first ten, and whether a gain is one.

A question is answered at the rank of the first tool that is right; there is nothing to be had for a second one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.search_catalog import Question

SAMPLES = 10_000
MISSED = 10


@dataclass(frozen=True, slots=True)
class Quality:
    """The rank of the answer for each question, from 0; 10 for one that was not among the first ten."""

    ranks: tuple[int, ...]

    def recall(self, k: int) -> float:
        return sum(rank < k for rank in self.ranks) / len(self.ranks)

    @property
    def ndcg(self) -> float:
        return sum(1 / math.log2(rank + 2) for rank in self.ranks if rank < MISSED) / len(self.ranks)

    @property
    def rest(self) -> str:
        """What stands beside R@5 in the table."""
        return f"{self.recall(1):.3f}/{self.recall(10):.3f}/{self.ndcg:.3f}"


def ranked(search: Callable[[str], Sequence[str]], asked: Iterable[Question]) -> dict[Question, int]:
    """The rank of the answer for each question; 10 for one that was not among the first ten."""
    ranks = {}
    for question in asked:
        found = search(question.text)[:MISSED]
        ranks[question] = next((rank for rank, key in enumerate(found) if key in question.answers), MISSED)
    return ranks


def quality(ranks: Mapping[Question, int], asked: Iterable[Question]) -> Quality:
    """Of those questions that were asked. Raises ValueError if none was: a recall of nothing is no figure."""
    of = tuple(ranks[question] for question in asked if question in ranks)
    if not of:
        raise ValueError("none of these questions was asked")
    return Quality(of)


def lower_bound(ours: Quality, theirs: Quality, k: int) -> float:
    """The lower end of the 95 % bootstrap interval of the gain in R@k, over the questions, in pairs."""
    gains = [(one < k) - (other < k) for one, other in zip(ours.ranks, theirs.ranks, strict=True)]
    source = random.Random(20_027)
    means = sorted(sum(source.choices(gains, k=len(gains))) / len(gains) for _ in range(SAMPLES))
    return means[round(SAMPLES * 0.025)]
