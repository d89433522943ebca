"""What one program may use. Every cap is checked by the host, before it allocates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ptc_tools.call import JsonObject
from ptc_tools.strict_json import MAX_DEPTH

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds for one program.

    wall_seconds        from start to result, waits for tools included; ends in SIGKILL
    cpu_seconds         CPU time of the program's process; the kernel ends it
    memory_bytes        what the program's process may allocate beyond what it starts with
    output_bytes        printed text, UTF-8; what is printed up to the limit is kept
    result_bytes        the value, as compact JSON: a text has quotes and escapes there
    argument_bytes      the arguments of one call, as compact JSON
    answer_bytes        a tool's result on its way into the program, as JSON
    depth               levels of lists and objects in whatever crosses, 64 at most; the arguments of a call are
                        an object, which is one level
    values              JSON values in one value or in the arguments of one call, lists and objects included (an
                        empty one counts as two); in all calls, four times that
    calls               calls in all
    ticks               timers that the program waits for (each sleep and timeout is one)
    calls_in_flight     calls at once; more than that wait inside the host, in order
    source_bytes        the program's text, UTF-8
    """

    wall_seconds: float = 60.0
    cpu_seconds: int = 30
    memory_bytes: int = 256 * MIB
    output_bytes: int = 1 * MIB
    result_bytes: int = 4 * MIB
    argument_bytes: int = 256 * 1024
    answer_bytes: int = 16 * MIB
    depth: int = 64
    values: int = 500_000
    calls: int = 1000
    ticks: int = 10_000
    calls_in_flight: int = 64
    source_bytes: int = 256 * 1024

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            whole = name != "wall_seconds"
            if type(value) not in ((int,) if whole else (int, float)) or not 0 < value < 2**53:
                what = "a whole number" if whole else "a number"
                raise ValueError(f"Limits.{name} must be {what} above 0 and below 2**53, not {value!r}")
        if self.depth > MAX_DEPTH:
            raise ValueError(
                f"Limits.depth may be {MAX_DEPTH} at most, not {self.depth}: no tool takes or gives what is deeper"
            )

    def replace(self, **changes: Any) -> Limits:
        """A copy with some bounds changed."""
        return replace(self, **changes)

    def to_json(self) -> JsonObject:
        """The bounds by name, for the record."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def frame_bytes(self) -> int:
        """The largest frame that a child may send: whatever may be in it, and the frame around it."""
        return max(self.argument_bytes, self.result_bytes, self.output_bytes, 64 * 1024) + 4096


SandboxLimits = Limits
"""The name in the public API `ptc`, where `Limits` bounds a run of the Responses loop."""
