"""What a call is, and who made it: plain values that cross every boundary of the project.

A call is a claim by somebody untrusted. Nothing here decides anything; `ptc_tools.invoke` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
    JsonObject: TypeAlias = dict[str, JsonValue]
else:
    # The same type with a name that refers to itself at run time, for annotations of tools.
    from pydantic import JsonValue

    JsonObject = dict[str, JsonValue]

CallerKind: TypeAlias = Literal["direct", "programmatic"]
"""The words of `allowed_callers`. On the wire a call's `caller` says `program` instead (wire.md, Tools)."""


@dataclass(frozen=True, slots=True)
class Direct:
    """The model itself made the call, outside any program."""

    kind: ClassVar[CallerKind] = "direct"


@dataclass(frozen=True, slots=True)
class Program:
    """A program made the call. `caller_id`: the program's call id (hosted), or the code tool's call's."""

    caller_id: str
    kind: ClassVar[CallerKind] = "programmatic"


Caller: TypeAlias = Direct | Program


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was asked for.

    `arguments` is the JSON text from the wire, not yet parsed (`None` and `""` happen), or the value that a
    strict decoder of ours already made of it. `origin_line` is the line of the program that made the call,
    where that is known. `attempt` counts from 1 and is the invoker's: it says in records which attempt of the
    call is meant, and two attempts are the same call.
    """

    call_id: str
    name: str
    arguments: str | Mapping[str, JsonValue] | None
    caller: Caller = Direct()
    namespace: str | None = None
    origin_line: int | None = None
    attempt: int = field(default=1, compare=False)

    @property
    def qualified_name(self) -> str:
        """`namespace.name`, or the name alone: for messages and logs, never for dispatch."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name
