"""What the peer's "model" says: the parts of a turn, what a turn may look at, and the seam to a script.

The peer has no model. It plays a script, turn by turn; `ptc.testing.ScriptedModel` is the usual one, and
anything with its one method will do. Parts are plain values; the peer gives them ids and a place on the wire.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

from ptc_tools.call import JsonObject, JsonValue

Phase: TypeAlias = Literal["commentary", "final_answer"]
NOTHING: Mapping[str, JsonValue] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Say:
    """A message of the assistant. `phase` None leaves the field out, as older models do."""

    text: str
    phase: Phase | None = "final_answer"
    status: Literal["completed", "incomplete"] = "completed"


@dataclass(frozen=True, slots=True)
class Refuse:
    """A message that holds a refusal."""

    text: str


@dataclass(frozen=True, slots=True)
class Reason:
    """A reasoning item; it belongs to the part that follows it in the turn."""

    summary: str = ""


@dataclass(frozen=True, slots=True)
class CallTool:
    """A call of one tool. `arguments` is an object, or text that goes out as it is (malformed JSON, say).

    `kind` is the item's type. `extra` are more fields of the item: `async`, a forged `caller`, whatever.
    """

    name: str
    arguments: Mapping[str, JsonValue] | str = field(default_factory=lambda: NOTHING)
    namespace: str | None = None
    kind: Literal["function_call", "custom_tool_call"] = "function_call"
    call_id: str | None = None
    extra: Mapping[str, JsonValue] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True)
class WriteProgram:
    """A program for `programmatic_tool_calling`: Python here, where the hosted service's is JavaScript.

    `calls_later` leaves the program alone in its response, and its calls come in the next;
    `result_alone` does so with its output: both happen on the wire, and a client must go on.
    """

    code: str
    calls_later: bool = False
    result_alone: bool = False


@dataclass(frozen=True, slots=True)
class SearchTools:
    """A tool search, executed by whom the request says: the client answers it, or the peer itself does.

    `finds`: qualified names that the peer's own search gives, None to go by the words of the arguments.
    """

    arguments: Mapping[str, JsonValue] = field(default_factory=lambda: NOTHING)
    finds: tuple[str, ...] | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class SendItem:
    """Any other item, as it is, with an id of the peer's unless it has one: of a type nobody knows, say."""

    item: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Stop:
    """The response ends here with another status than `completed`."""

    status: Literal["incomplete", "failed"]
    code: str
    message: str = ""


Part: TypeAlias = Say | Refuse | Reason | CallTool | WriteProgram | SearchTools | SendItem | Stop


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What the scripted model may look at to choose its turn. `turn` counts from 0 in each conversation.

    JSON comes as `Any` here: a script picks values out of what it knows to be there.
    """

    turn: int
    model: str
    items: tuple[JsonObject, ...]
    instructions: str | None = None
    tools: tuple[JsonObject, ...] = ()
    tool_choice: Any = None
    extra: Mapping[str, JsonValue] = field(default_factory=lambda: NOTHING)

    def has_tool(self, name: str) -> bool:
        """Whether a tool of this name, or this type for those without a name, is in the request."""
        for tool in self.tools:
            members = tool.get("tools") if tool.get("type") == "namespace" else None
            inner = members if isinstance(members, list) else []
            if tool.get("name", tool.get("type")) == name:
                return True
            if any(isinstance(member, dict) and member.get("name") == name for member in inner):
                return True
        return False

    @property
    def user_text(self) -> str:
        """The text of the user's last message."""
        for item in reversed(self.items):
            if item.get("role") == "user":
                return _text(item.get("content"))
        return ""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The text of every output of a direct call since the user's last message, in order."""
        found: list[str] = []
        for item in self._since_user():
            direct = not isinstance(caller := item.get("caller"), dict) or caller.get("type") != "program"
            if str(item.get("type")).endswith("_call_output") and direct:
                found.append(_text(item.get("output")))
        return tuple(found)

    @property
    def found(self) -> tuple[str, ...]:
        """Qualified names of the tools that the last tool search found, in its order."""
        for item in reversed(self.items):
            if item.get("type") == "tool_search_output":
                return tuple(_names_of(item.get("tools"), None))
        return ()

    @property
    def program_result(self) -> str:
        """What the last program gave: its `program_output`, or the same from a code tool's output.

        It is what the program printed, and then the value of its last expression.
        """
        for item in reversed(self._since_user()):
            if item.get("type") == "program_output":
                return str(item["result"])
        return _of_code_tool(self.outputs[-1]) if self.outputs else ""

    def output_of(self, name: str) -> Any:
        """The last output of a direct call of this tool: its JSON, else its text; None if there is none."""
        names = {item.get("call_id"): item.get("name") for item in self.items if "name" in item}
        for item in reversed(self.items):
            if item.get("type") == "function_call_output" and names.get(item.get("call_id")) == name:
                text = _text(item.get("output"))
                try:
                    return json.loads(text)
                except ValueError:
                    return text
        return None

    def _since_user(self) -> Sequence[JsonObject]:
        last = max((n for n, item in enumerate(self.items) if item.get("role") == "user"), default=-1)
        return self.items[last + 1 :]


class Script(Protocol):
    """The seam: what the peer asks for the next turn. It is a function of the request, and keeps no state."""

    def next_turn(self, request: ModelRequest) -> Sequence[Part]:
        """The parts of this turn; raises `ScriptError` where the script has none."""


class ScriptError(Exception):
    """The script has nothing to say, or says something impossible. The text is for who wrote it."""


def _names_of(tools: JsonValue, namespace: str | None) -> list[str]:
    found: list[str] = []
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict) and tool.get("type") == "namespace":
            found += _names_of(tool.get("tools"), str(tool.get("name")))
        elif isinstance(tool, dict):
            found.append(".".join(filter(None, (namespace, str(tool.get("name"))))))
    return found


def _of_code_tool(output: str) -> str:
    """Our code tool says how the program ended as JSON; any other tool's output stays as it is."""
    try:
        told = json.loads(output)
    except ValueError:
        return output
    if not isinstance(told, dict) or "status" not in told:
        return output
    value = told.get("value")
    parts = [str(told.get("output", "")).removesuffix("\n")]
    parts.append(value if isinstance(value, str) else "" if value is None else json.dumps(value))
    parts.append(json.dumps(told["error"]) if "error" in told else "")
    return "\n".join(part for part in parts if part)


def _text(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content)
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(part for part in parts if isinstance(part, str))
