"""`ScriptedModel`: what the peer's model says, turn by turn, in a small readable Python.

A script is a function of the conversation: the peer tells it which turn is due and what was said, so one
script serves any number of conversations, and a peer that was restarted goes on where the history is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, get_args

from ptc.gateway.script import (
    NOTHING,
    CallTool,
    ModelRequest,
    Part,
    Phase,
    Reason,
    Refuse,
    Say,
    ScriptError,
    SearchTools,
    SendItem,
    Stop,
    WriteProgram,
)

__all__ = [
    "ModelRequest",
    "Part",
    "ScriptedModel",
    "Turn",
    "call",
    "commentary",
    "custom_call",
    "failed",
    "incomplete",
    "item",
    "program",
    "reason",
    "refuse",
    "run_code",
    "say",
    "search",
]
from ptc_tools.call import JsonValue

Chosen: TypeAlias = Callable[[ModelRequest], "Part | Sequence[Part]"]
Turn: TypeAlias = Part | Chosen | Sequence[Part | Chosen]
"""One turn: a part, or a function of the request that gives parts; or several of both, in order."""

_PARTS = get_args(Part)

PROGRAMS_TOOL = "programmatic_tool_calling"
CODE_TOOL = "run_program"


class ScriptedModel:
    """Plays `turns`, the first one at the start of every conversation.

        ScriptedModel(
            program("a, b = await asyncio.gather(get_inventory(sku='x'), get_demand(sku='x'))\\na['units']"),
            lambda request: say(f"There are {request.program_result} units."),
        )

    A turn comes once each time the model is to speak: at the start, and after the outputs of its calls or
    the end of its program. `then` is said at every later turn; without it a conversation that goes on
    longer than its script is refused with the error `script_error`. Raises TypeError for what is no turn.
    """

    def __init__(self, *turns: Turn, then: Turn | None = None) -> None:
        for turn in (*turns, *(() if then is None else (then,))):
            for part in turn if isinstance(turn, (list, tuple)) else (turn,):
                _check(part, or_function=True)
        self.turns = turns
        self.then = then

    def next_turn(self, request: ModelRequest) -> Sequence[Part]:
        """The parts of the turn that is due (see `ptc.gateway.script.Script`)."""
        turn = self.turns[request.turn] if request.turn < len(self.turns) else self.then
        if turn is None:
            raise ScriptError(f"it has {len(self.turns)} turns, and turn {request.turn + 1} is due")
        parts: list[Part] = []
        for entry in turn if isinstance(turn, (list, tuple)) else (turn,):
            made = entry(request) if callable(entry) else entry
            parts += made if isinstance(made, (list, tuple)) else (made,)
        for part in parts:
            _check(part, or_function=False)
        return tuple(parts)


def _check(part: object, *, or_function: bool) -> None:
    if not isinstance(part, _PARTS) and not (or_function and callable(part)):
        raise TypeError(
            f"{part!r:.100} is no part of a turn: use say(), call(), program() and the others of ptc.testing"
            + (", or a function of the request that gives them" if or_function else "")
        )


def say(text: str, *, phase: Phase | None = "final_answer", cut: bool = False) -> Say:
    """The answer. `phase` None leaves the field out; `cut` marks the message as incomplete."""
    return Say(text, phase, "incomplete" if cut else "completed")


def commentary(text: str) -> Say:
    """A word on the way, which is not the answer: a turn of it alone is gone on from."""
    return Say(text, "commentary")


def refuse(text: str = "I cannot help with that.") -> Refuse:
    """A refusal."""
    return Refuse(text)


def reason(summary: str = "") -> Reason:
    """A reasoning item, for the part that follows it."""
    return Reason(summary)


def call(
    name: str,
    arguments: Mapping[str, JsonValue] | str | None = None,
    *,
    namespace: str | None = None,
    call_id: str | None = None,
    extra: Mapping[str, JsonValue] = NOTHING,
    **keywords: Any,
) -> CallTool:
    """A direct call: `call("get_inventory", sku="a")`, or `call("get_inventory", '{"sku": ')` as text.

    `extra` adds fields to the item as they are: `async`, a `caller`, one that nobody knows.
    """
    given = arguments if isinstance(arguments, str) else {**(arguments or {}), **keywords}
    return CallTool(name, given, namespace, "function_call", call_id, extra)


def custom_call(name: str, input: str, *, namespace: str | None = None) -> CallTool:
    """A call of a custom tool, with its text."""
    return CallTool(name, input, namespace, "custom_tool_call")


def program(code: str, *, calls_later: bool = False, result_alone: bool = False) -> WriteProgram:
    """A hosted program, in Python. `calls_later` and `result_alone` leave it, and its output, alone in a
    response: the client has to go on by itself."""
    return WriteProgram(code, calls_later, result_alone)


def search(
    query: str | None = None,
    *,
    finds: Sequence[str] | None = None,
    call_id: str | None = None,
    **arguments: JsonValue,
) -> SearchTools:
    """A tool search: `search("open orders")`. The client answers it, or the peer, as the request says.

    `finds`: qualified names of the deferred tools that the peer's own search gives; without it the peer
    goes by words in common. `arguments` are more, or others, than the `query`.
    """
    given = arguments if query is None else {"query": query, **arguments}
    return SearchTools(given, None if finds is None else tuple(finds), call_id)


def run_code(code: str, *, tool: str = CODE_TOOL) -> Callable[[ModelRequest], Part]:
    """The program where the request has the hosted tool, and else a call of the code tool with it.

    One script serves `programs="hosted"` and `programs="local"` that way.
    """

    def turn(request: ModelRequest) -> Part:
        return program(code) if request.has_tool(PROGRAMS_TOOL) else call(tool, code=code)

    return turn


def item(value: Mapping[str, JsonValue]) -> SendItem:
    """Any item, as it is: `item({"type": "from_the_future", "text": "…"})`.

    One of a type that the API does not have is taken back as it was sent, and refused otherwise. Without an
    `id` it gets one that says so; under an id of its own it is known to the peer that sent it, while that runs.
    """
    return SendItem(value)


def incomplete(reason: str = "max_output_tokens") -> Stop:
    """The response ends here with the status `incomplete`."""
    return Stop("incomplete", reason)


def failed(message: str = "The model failed.", code: str = "server_error") -> Stop:
    """The response ends here with the status `failed`."""
    return Stop("failed", code, message)
