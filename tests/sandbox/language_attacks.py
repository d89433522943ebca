"""Programs that try to get past the language wall. A program stands under `=== kind: name -> outcome`.

The outcome is a code of the wall's (`forbidden_attribute`, …): the program is denied by it. `raises X` means
that the attempt ends in an ordinary exception of the program, `gives X` that it completes with a harmless
value (JSON): the attempt was of no use.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.sandbox.language_attacks_names import NAMES
from tests.sandbox.language_attacks_objects import OBJECTS
from tests.sandbox.language_attacks_values import VALUES


@dataclass(frozen=True, slots=True)
class Attack:
    """One attempt, and what must become of it."""

    kind: str
    name: str
    program: str
    outcome: str

    @property
    def id(self) -> str:
        return f"{self.kind}: {self.name}"


def _parsed(text: str) -> list[Attack]:
    attacks = []
    for part in text.split("\n=== ")[1:]:
        head, _, program = part.partition("\n")
        title, _, outcome = head.partition(" -> ")
        kind, _, name = title.partition(": ")
        attacks.append(Attack(kind, name, program.strip("\n") + "\n", outcome))
    return attacks


ATTACKS = [*_parsed(NAMES), *_parsed(VALUES), *_parsed(OBJECTS)]
