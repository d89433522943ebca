"""Time, randomness and output as one program sees them: all from the journal's header and the host's frames.

The clock stands still while the program computes and moves when a frame arrives; each look at it adds a
microsecond, so that two looks differ. The same header and the same frames give the same world.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from ptc_sandbox.guest.channel import Channel

_FLUSH_BYTES = 4096
_FLUSH_NS = 2_000_000


class World:
    """Implements `ptc_sandbox.guest.environment.Environment` for one program."""

    def __init__(self, channel: Channel, wait_until: Callable[[int], None]) -> None:
        self._channel = channel
        self._seed = 0
        self._epoch_us = 0
        self._wait_until = wait_until
        self._clock_us = 0
        self._random: random.Random | None = None
        self._bytes: random.Random | None = None
        self._output: list[str] = []
        self._output_size = 0
        self._flushed_ns = 0

    def begin(self, seed: int, epoch_us: int) -> None:
        """Set the world by the journal's header, before the program runs."""
        self._seed = seed
        self._epoch_us = epoch_us

    # -- the clock -----------------------------------------------------------------------------------

    @property
    def clock_us(self) -> int:
        """Microseconds since the program started, without counting as a look."""
        return self._clock_us

    def advance(self, clock_us: int) -> None:
        """A frame arrived that says what time it is. The clock never goes back."""
        if clock_us > self._clock_us:
            self._clock_us = clock_us

    def now_us(self) -> int:
        self._clock_us += 1
        return self._epoch_us + self._clock_us

    def monotonic_us(self) -> int:
        self._clock_us += 1
        return self._clock_us

    def sleep(self, seconds: float) -> None:
        """Block until the host's clock has moved on by `seconds`."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self._wait_until(self._clock_us + round(min(seconds, 1e9) * 1e6))

    # -- randomness ----------------------------------------------------------------------------------

    @property
    def random(self) -> random.Random:
        if self._random is None:
            self._random = random.Random(self._seed)  # noqa: S311 -- meant to be reproducible
        return self._random

    def random_bytes(self, n: int) -> bytes:
        """Bytes from a stream of their own: `random.seed()` in a program does not move it."""
        if self._bytes is None:
            self._bytes = random.Random(f"bytes:{self._seed}")  # noqa: S311
        return self._bytes.randbytes(n)

    # -- output --------------------------------------------------------------------------------------

    def write_output(self, text: str) -> None:
        """Collect printed text. It leaves now and then, so that a killed program's output is known too.

        Raises UnicodeEncodeError for a lone surrogate, as printing it on a terminal does.
        """
        if not text:
            return
        if not text.isascii():
            text.encode()
        self._output.append(text)
        self._output_size += len(text)
        if self._output_size >= _FLUSH_BYTES or time.perf_counter_ns() - self._flushed_ns > _FLUSH_NS:
            self.flush_output()
            self._channel.flush()
            self._flushed_ns = time.perf_counter_ns()

    def flush_output(self) -> None:
        """Queue what was printed as frames. A character may take six bytes there."""
        if not self._output:
            return
        text = "".join(self._output)
        self._output.clear()
        self._output_size = 0
        for start in range(0, len(text), _FLUSH_BYTES * 2):
            self._channel.put(["out", text[start : start + _FLUSH_BYTES * 2]])
