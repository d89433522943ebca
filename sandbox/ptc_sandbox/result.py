"""How a program ended, as a value: what it printed, what it gave, what went wrong, and on what evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ptc_sandbox.journal import Journal
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.outcome import Outcome

Status: TypeAlias = Literal[
    "completed",
    "raised",
    "denied",
    "suspended",
    "cancelled",
    "killed:time",
    "killed:cpu",
    "killed:memory",
    "killed:output",
    "killed:calls",
    "killed:syscall",
    "killed:protocol",
    "crashed",
]
Wall: TypeAlias = Literal["language", "kernel", "host"]


@dataclass(frozen=True, slots=True)
class ProgramError:
    """Why a program did not complete, in words that a model can use: no host path, no traceback.

    `wall` says which wall held, where one did. `code` is stable (`forbidden_import`, `tool_error`, …).
    """

    type: str
    message: str
    line: int | None = None
    excerpt: str | None = None
    code: str | None = None
    wall: Wall | None = None

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.type}: {self.message}{where}"


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One call that the program made. `outcome` is None while it has not been answered."""

    number: int
    call_id: str
    name: str
    namespace: str | None
    arguments: JsonObject
    line: int | None
    outcome: Outcome | None
    started_us: int
    duration_us: int | None


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What became of a program.

    `output` is what it printed until the end, `value` its last expression (None unless completed),
    `evidence` what the status was told by. Times in microseconds, memory in bytes.
    """

    status: Status
    value: JsonValue
    output: str
    error: ProgramError | None
    calls: tuple[ProgramCall, ...]
    journal: Journal
    duration_us: int
    cpu_us: int | None
    peak_memory: int | None
    evidence: str

    @property
    def ok(self) -> bool:
        return self.status == "completed"
