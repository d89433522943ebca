"""Which tools a request offers and demands, on the wire and here.

A choice is sent to the service and enforced on what comes back: a call that the choice rules out is
answered with an error and does not run. A forced choice holds for the first request of a run, or until the
demanded tool was really called.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from ptc.errors import ConfigurationError
from ptc.handlers import ANSWERS
from ptc.toolbox import HOSTED_PROGRAMS, Step
from ptc_tools.call import Call, JsonObject, JsonValue, Program

Mode: TypeAlias = Literal["auto", "required", "none"]


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
        until_called = value.get("until_called", False)
        if not isinstance(until_called, bool):
            raise ConfigurationError(f"until_called is {until_called!r}: give True or False")
        wire = cast("JsonObject", {key: part for key, part in value.items() if key != "until_called"})
        return replace(_of_wire(wire) if "type" in wire else _of_words(wire), until_called=until_called)

    def to_json(self) -> JsonObject:
        """Plain JSON; `from_json` is the inverse."""
        allowed: JsonValue = None if self.allowed is None else list(self.allowed)
        return {
            "mode": self.mode,
            "function": self.function,
            "allowed": allowed,
            "wire": self.wire,
            "until_called": self.until_called,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> ToolChoice:
        told = cast("dict[str, Any]", value)
        allowed = None if told["allowed"] is None else tuple(told["allowed"])
        return cls(told["mode"], told["function"], allowed, told["wire"], told["until_called"])

    @property
    def names(self) -> frozenset[str]:
        """The functions that it names, demanded or allowed, qualified or not."""
        named = {self.function, *(self.allowed or ())}
        wire = self.wire or {}
        tools = wire.get("tools")
        for entry in (wire, *(tools if isinstance(tools, list) else ())):
            if isinstance(entry, dict) and entry.get("type") == "function":
                named.add(str(entry.get("name")))
        return frozenset(name for name in named if name is not None)

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
            mode: Mode = "auto" if self.forced else self.mode
            return replace(self, mode=mode, function=None, until_called=False)
        return ToolChoice() if self.forced else self

    def to_wire(self, step: Step) -> JsonValue:
        """The `tool_choice` of a request, or None where the service's default says the same."""
        if self.wire is not None:
            return _wire_of(self.wire, step)
        if self.function is not None:
            return next((target.wire for target in targets_of(self.function, step) if target.wire), None)
        if self.allowed is not None and self.mode != "none":
            tools: list[JsonValue] = []
            for target in self._allowed_targets(step) or ():
                if target.wire is not None and target.wire not in tools:
                    tools.append(target.wire)
            return {"type": "allowed_tools", "mode": self.mode, "tools": tools} if tools else "none"
        return None if self.mode == "auto" else self.mode

    def check(self, step: Step) -> None:
        """Raises ConfigurationError when the choice names a tool that is not offered from the start.

        Later a running tool may take it away: then the choice no longer demands it, and still allows no more.
        """
        for name in (self.function, *(self.allowed or ())):
            if name is not None and not targets_of(name, step):
                raise ConfigurationError(f"tool_choice names {name!r}, which is not among the tools")
        if self.function is not None and len(found := targets_of(self.function, step)) > 1:
            names = ", ".join(target.name for target in found)
            raise ConfigurationError(f"tool_choice names {self.function!r}, which may be {names}: say which")
        if step.programs == "local" and self.mode != "none":
            self._check_callable(step)
        if self.wire is not None and self.wire.get("type") == HOSTED_PROGRAMS and step.programs is None:
            raise ConfigurationError('tool_choice demands a program; set programs="hosted" or "local"')

    def _check_callable(self, step: Step) -> None:
        """Whether the model can call anything of what is left to it, where it is not told of some tools."""
        named = [self.function] if self.function is not None else list(self.allowed or ())
        if named and not any(target.wire for name in named for target in targets_of(name, step)):
            raise ConfigurationError(
                f"tool_choice leaves {', '.join(named)} alone to be called, which only programs may do, and they run "
                f"here: name {step.code_tool!r} in its place, or beside it in allowed_tools"
            )

    def demanded(self, step: Step) -> Target | None:
        """The one tool that is demanded, if there is one and it is there."""
        if self.function is not None:
            return next(iter(targets_of(self.function, step)), None)
        wire = self.to_wire(step)
        if not isinstance(wire, dict) or wire.get("type") == "allowed_tools":
            return None
        return target_of_wire(wire)

    def refusal(
        self, kind: str, call: Call, item: JsonObject, step: Step, already_open: tuple[str, ...]
    ) -> str | None:
        """Why the choice rules a call out, or None. A program open before calls nothing "instead"."""
        if self.mode == "none" and self.wire is None:
            return "no tool may be called in this turn; answer with what there is"
        outside = self._outside(kind, call, item, step)
        if outside is not None:
            return outside
        from_before = isinstance(call.caller, Program) and call.caller.caller_id in already_open
        wanted = self.demanded(step)
        if wanted is None or from_before or wanted.fits(kind, call, item):
            return None
        if wanted.kind == HOSTED_PROGRAMS:
            return None if isinstance(call.caller, Program) else "a program has to be written first"
        return f"{wanted.name} has to be called first"

    def refusal_in_program(self, call: Call, step: Step) -> str | None:
        """Why the choice rules out a call of a program that runs here: it may call what is allowed, too."""
        return self._outside("function_call", call, {}, step)

    def _outside(self, kind: str, call: Call, item: JsonObject, step: Step) -> str | None:
        allowed = self._allowed_targets(step)
        if allowed is None or any(target.fits(kind, call, item) for target in allowed):
            return None
        names = ", ".join(sorted({target.name for target in allowed})) or "none"
        return f"{call.qualified_name} is not among the tools allowed now: {names}"

    def _allowed_targets(self, step: Step) -> list[Target] | None:
        if self.wire is not None:
            wire = _wire_of(self.wire, step)
            if not isinstance(wire, dict) or wire.get("type") != "allowed_tools":
                return None
            tools = wire.get("tools")
            entries = [entry for entry in tools if isinstance(entry, dict)] if isinstance(tools, list) else []
            return [target_of_wire(entry) for entry in entries]
        if self.allowed is None:
            return None
        return [target for name in self.allowed for target in targets_of(name, step)]


@dataclass(frozen=True, slots=True)
class Target:
    """What one name of a choice means: calls of this item type, of this tool or MCP server.

    `wire` is how a request says it, None for a tool that the service is not told of.
    """

    kind: str
    name: str
    namespace: str | None = None
    tool: str | None = None
    server: str | None = None
    any_namespace: bool = False
    wire: JsonObject | None = None

    def fits(self, kind: str, call: Call, item: JsonObject) -> bool:
        """Whether a call is one of it."""
        if kind != self.kind:
            return False
        if self.server is not None and item.get("server_label") != self.server:
            return False
        if kind == "mcp_approval_request":
            return self.tool is None or item.get("name") == self.tool
        if self.tool is None:
            return True
        return call.name == self.tool and (self.any_namespace or call.namespace == self.namespace)

    def among(self, ran: Collection[str]) -> bool:
        """Whether a call of it is among those that ran, by qualified name."""
        if self.any_namespace:
            return any(name.rpartition(".")[2] == self.tool for name in ran)
        return (self.name if self.tool is not None else self.kind) in ran or self.kind in ran


def targets_of(name: str, step: Step) -> list[Target]:
    """What a name means in a step: a qualified name, a bare one, or the type of a tool that has none."""
    functions = [tool.contract for tool in step.functions]
    found = [one for one in functions if one.qualified_name == name]
    found = found or [one for one in functions if one.name == name]
    if found:
        return [_function(one.name, one.namespace, step) for one in found]
    if step.kinds.get(name) == "custom_tool_call":
        return [Target("custom_tool_call", name, tool=name, wire={"type": "custom", "name": name})]
    if name == HOSTED_PROGRAMS and step.code_tool is not None:
        return [_function(step.code_tool, None, step)]
    typed = [definition for definition in step.wire if definition.get("type") == name]
    if name != "mcp":
        return [target_of_wire({"type": name})] if typed else []
    return [
        target_of_wire({"type": name, "server_label": definition.get("server_label")}) for definition in typed
    ]


def target_of_wire(entry: JsonObject) -> Target:
    """What an entry of the API's own forms means; it has no namespaces."""
    kind, name = str(entry.get("type")), entry.get("name")
    tool = name if isinstance(name, str) else None
    if kind in ("function", "custom"):
        item = "function_call" if kind == "function" else "custom_tool_call"
        return Target(item, str(name), tool=tool, any_namespace=True, wire=entry)
    server = entry.get("server_label")
    label = server if isinstance(server, str) else None
    return Target(ANSWERS.get(kind, kind), label or kind, tool=tool, server=label, wire=entry)


def _function(name: str, namespace: str | None, step: Step) -> Target:
    sent = any(_defines(definition, name, namespace) for definition in step.wire)
    wire: JsonObject | None = {"type": "function", "name": name} if sent else None
    qualified = f"{namespace}.{name}" if namespace else name
    return Target("function_call", qualified, namespace=namespace, tool=name, wire=wire)


def _defines(definition: JsonObject, name: str, namespace: str | None) -> bool:
    if namespace is None:
        return definition.get("type") == "function" and definition.get("name") == name
    tools = definition.get("tools")
    return (
        definition.get("type") == "namespace"
        and definition.get("name") == namespace
        and isinstance(tools, list)
        and any(isinstance(tool, dict) and tool.get("name") == name for tool in tools)
    )


def _wire_of(wire: JsonObject, step: Step) -> JsonObject:
    """A form of the API, with the code tool in the place of the programs tool where programs run here."""
    if step.code_tool is None:
        return wire
    if wire.get("type") == HOSTED_PROGRAMS:
        return {"type": "function", "name": step.code_tool}
    tools = wire.get("tools")
    if wire.get("type") != "allowed_tools" or not isinstance(tools, list):
        return wire
    told = [_wire_of(tool, step) if isinstance(tool, dict) else tool for tool in tools]
    return {**wire, "tools": told}


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
    if function is not None and allowed is not None and function not in allowed:
        raise ConfigurationError(
            f"required_function_name {function!r} is not among allowed_tools, so that nothing could be called"
        )
    return ToolChoice(
        mode=cast("Mode", mode),
        function=function if isinstance(function, str) else None,
        allowed=tuple(str(name) for name in allowed) if isinstance(allowed, list) else None,
    )
