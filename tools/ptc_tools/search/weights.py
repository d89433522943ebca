"""What a match in each field is worth, and how far a long text is marked down: the parameters of BM25F.

The defaults were chosen on half of a real catalog's services, with two kinds of questions (benchmarks/search.py);
a catalog whose names say nothing may want others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from ptc_tools.errors import RegistrationError

FIELDS = ("name", "namespace", "title", "description", "parameters")


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each field (0 leaves it out), `k1` (how soon repeating a word adds nothing) and, for each
    field, `b` (0: its length does not matter; 1: it counts in full). Raises `RegistrationError`.

    `joined` is what a word is worth that the query writes as two ("auto scaling"), `related` another verb for the
    same (`delete` for "remove"), `guessed` one that is not in the catalog and was read as its nearest neighbour
    there; all against 1 for a word as it is written.
    """

    name: float = 4.0
    namespace: float = 4.0
    title: float = 1.3
    description: float = 0.5
    parameters: float = 0.1
    k1: float = 0.9
    b_name: float = 0.9
    b_namespace: float = 0.0
    b_title: float = 0.8
    b_description: float = 0.3
    b_parameters: float = 0.75
    joined: float = 0.1
    related: float = 0.2
    guessed: float = 0.6

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
                raise RegistrationError(
                    f"search weights: {each.name} must be a number, 0 or more; got {value!r}"
                )
            if each.name.startswith("b_") and value > 1:
                raise RegistrationError(f"search weights: {each.name} must be at most 1, got {value!r}")
        if not any(getattr(self, name) for name in FIELDS):
            raise RegistrationError("search weights: every field has weight 0: nothing could be found")

    @property
    def of_fields(self) -> tuple[tuple[float, float], ...]:
        """(weight, b) in the order of `FIELDS`."""
        return tuple((getattr(self, name), getattr(self, f"b_{name}")) for name in FIELDS)
