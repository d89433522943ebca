"""The seam between a program and its world: where time, randomness and output come from.

The guest runtime implements it on the journal; nothing in the language wall reads a clock, draws a random
number or writes anything by another way.
"""

from __future__ import annotations

import random
from typing import Protocol


class Environment(Protocol):
    """What one program's world answers. All of it follows from the journal."""

    def now_us(self) -> int:
        """Microseconds since the epoch, UTC."""
        ...

    def monotonic_us(self) -> int:
        """Microseconds since the program started; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Block the whole program for `seconds` (what `time.sleep` does)."""
        ...

    @property
    def random(self) -> random.Random:
        """A generator seeded by the journal."""
        ...

    def random_bytes(self, n: int) -> bytes:
        """`n` bytes from a stream that the program cannot seed (uuid4, secrets)."""
        ...

    def write_output(self, text: str) -> None:
        """Take what the program printed."""
        ...
