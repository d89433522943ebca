"""Which tools a request offers and demands, on the wire and here.

A choice is sent to the service and enforced on what comes back: a call that the choice rules out is
answered with an error and does not run. A forced choice holds for the first request of a run, or until the
demanded tool was really called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

from ptc.errors import ConfigurationError
from ptc.toolbox import HOSTED_PROGRAMS, Step
from ptc_tools.call import Call, JsonObject, JsonValue, Program

Mode: TypeAlias = Literal["auto", "required", "none"]
_KINDS = {"function_call": "function", "custom_tool_call": "custom"}
_Name: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """What the model must or may call.

    `mode`: `auto`, `required` (some tool) or `none`. `function`: the one function that must be called first.
    `allowed`: the only tools that may be called, by name. `wire`: any other form that the API knows, sent as
    it is. `until_called`: a forced choice stays until a call of the demanded tool has run.
    """

    mode: Mode = "auto"
    function: str | None = None
    allowed: tuple[str, ...] | None = None
    wire: JsonObject | None = None
    until_called: bool = False

    @classmethod
    def of(cls, value: object) -> ToolChoice:
        """Reads a choice: a word, `{"mode": …, "required_function_name": …}`, or a wire form."""
        if value is None:
            return cls()
        if isinstance(value, ToolChoice):
            return value
        if isinstance(value, str):
            if value in ("auto", "required", "none"):
                return cls(mode=cast("Mode", value))
            raise ConfigurationError(
                f'tool_choice {value!r}: give "auto", "required", "none" or a choice object'
            )
        if not isinstance(value, Mapping):
            raise ConfigurationError(f"tool_choice is a {type(value).__name__}; give a word or a dict")
        until_called = value.get("until_called") is True
        wire = cast("JsonObject", {key: part for key, part in value.items() if key != "until_called"})
        return replace(_of_wire(wire) if "type" in wire else _of_words(wire), until_called=until_called)

    @property
    def forced(self) -> bool:
        """Whether the model has no way but to call."""
        if self.wire is not None:
            return self.wire.get("type") != "allowed_tools" or self.wire.get("mode") == "required"
        return self.mode == "required" or self.function is not None

    def relaxed(self) -> ToolChoice:
        """The automatic choice that a forced one goes back to. What was ruled out stays ruled out."""
        if self.wire is not None and self.wire.get("type") == "allowed_tools":
            return replace(self, wire={**self.wire, "mode": "auto"}, until_called=False)
        if self.allowed is not None:
            return replace(self, mode="auto", until_called=False)
        return ToolChoice() if self.forced else self

    def to_wire(self, step: Step) -> JsonValue:
        """The `tool_choice` of a request, or None where the service's default says the same."""
        if self.wire is not None:
            if self.wire.get("type") == HOSTED_PROGRAMS and step.code_tool is not None:
                return {"type": "function", "name": step.code_tool}
            return self.wire
        if self.function is not None:
            return {"type": "function", "name": self.function} if _offers(self.function, step) else None
        if self.allowed is not None and self.mode != "none":
            tools: list[JsonValue] = [entry for name in self.allowed if (entry := _allowed_entry(name, step))]
            return {"type": "allowed_tools", "mode": self.mode, "tools": tools} if tools else "none"
        return None if self.mode == "auto" else self.mode

    def check(self, step: Step) -> None:
        """Raises ConfigurationError when the choice names a tool that is not offered from the start.

        Later a running tool may take it away: then the choice no longer demands it, and still allows no more.
        """
        for name in (self.function, *(self.allowed or ())):
            if name is not None and not _offers(name, step) and _allowed_entry(name, step) is None:
                raise ConfigurationError(f"tool_choice names {name!r}, which is not among the tools")
        if self.wire is not None and self.wire.get("type") == HOSTED_PROGRAMS and step.programs is None:
            raise ConfigurationError('tool_choice demands a program; set programs="hosted" or "local"')

    def demanded(self, step: Step) -> _Name | None:
        """(kind, name) of the one tool that is demanded."""
        if self.function is not None:
            return ("function", self.function) if _offers(self.function, step) else None
        wire = self.to_wire(step)
        if (
            isinstance(wire, dict)
            and wire.get("type") in ("function", "custom")
            and isinstance(wire.get("name"), str)
        ):
            return str(wire["type"]), str(wire["name"])
        return None

    def refusal(self, kind: str, call: Call, step: Step, already_open: tuple[str, ...]) -> str | None:
        """Why the choice rules a call out, or None. A program open before calls nothing "instead"."""
        if self.mode == "none" and self.wire is None:
            return "no tool may be called in this turn; answer with what there is"
        name = (_KINDS.get(kind, kind.removesuffix("_call")), call.name)
        allowed = self._allowed_names(step)
        if allowed is not None and name not in allowed and not _is_code(name, step, allowed):
            names = ", ".join(other for _, other in sorted(allowed)) or "none"
            return f"{call.qualified_name} is not among the tools allowed now: {names}"
        from_before = isinstance(call.caller, Program) and call.caller.caller_id in already_open
        wanted = self.demanded(step)
        if wanted is not None and name != wanted and not from_before:
            return f"{wanted[1]} has to be called first"
        if self.wire is not None and self.wire.get("type") == HOSTED_PROGRAMS and step.code_tool is None:
            return None if isinstance(call.caller, Program) else "a program has to be written first"
        return None

    def _allowed_names(self, step: Step) -> frozenset[_Name] | None:
        wire = self.to_wire(step)
        if self.allowed is not None and wire == "none":
            return frozenset()
        if not isinstance(wire, dict) or wire.get("type") != "allowed_tools":
            return None
        tools = wire.get("tools")
        entries = [entry for entry in tools if isinstance(entry, dict)] if isinstance(tools, list) else []
        return frozenset(
            (str(entry.get("type")), str(entry.get("name") or entry.get("type"))) for entry in entries
        )


def _is_code(name: _Name, step: Step, allowed: frozenset[_Name]) -> bool:
    return name == ("function", step.code_tool) and (HOSTED_PROGRAMS, HOSTED_PROGRAMS) in allowed


def _offers(name: str, step: Step) -> bool:
    return any(tool.contract.name == name for tool in step.functions)


def _allowed_entry(name: str, step: Step) -> JsonObject | None:
    if name in step.kinds and step.kinds[name] == "custom_tool_call":
        return {"type": "custom", "name": name}
    if step.functions.resolve(None, name) is not None:
        return {"type": "function", "name": name}
    if any(definition.get("type") == name for definition in step.wire):
        return {"type": name}
    return None


def _of_wire(wire: JsonObject) -> ToolChoice:
    if wire["type"] == "function" and isinstance(wire.get("name"), str):
        return ToolChoice(function=str(wire["name"]))
    return ToolChoice(wire=wire)


def _of_words(words: JsonObject) -> ToolChoice:
    unknown = set(words) - {"mode", "required_function_name", "allowed_tools"}
    mode = words.get("mode", "auto")
    if unknown or mode not in ("auto", "required", "none"):
        raise ConfigurationError(
            f"tool_choice {words!r}: mode is auto, required or none; unknown: {sorted(unknown)}"
        )
    function, allowed = words.get("required_function_name"), words.get("allowed_tools")
    if function is not None and (mode != "required" or not isinstance(function, str)):
        raise ConfigurationError('required_function_name is a name, and goes with {"mode": "required"}')
    if allowed is not None and not (
        isinstance(allowed, list) and all(isinstance(name, str) for name in allowed)
    ):
        raise ConfigurationError("allowed_tools is a list of names")
    return ToolChoice(
        mode=cast("Mode", mode),
        function=function if isinstance(function, str) else None,
        allowed=tuple(str(name) for name in allowed) if isinstance(allowed, list) else None,
    )
