"""One request to one response: resumes the programs that are open, then lets the scripted model speak.

It is told a request that passed every rule and gives back the output items. It knows no HTTP, and keeps
nothing between requests: how far a conversation is stands in its history.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from ptc.gateway.definitions import Definition, ToolSet
from ptc.gateway.fingerprint import FINGERPRINT, program_state
from ptc.gateway.history import History, ProgramHistory
from ptc.gateway.ids import MAX_TURNS, OF_A_PROGRAM, Mint, Place
from ptc.gateway.programs import Answered, HostedPrograms, Step
from ptc.gateway.reasoning import encrypt
from ptc.gateway.rejection import Rejected
from ptc.gateway.script import (
    CallTool,
    ModelRequest,
    Part,
    Reason,
    Refuse,
    Say,
    Script,
    ScriptError,
    SearchTools,
    SendItem,
    Stop,
    WriteProgram,
)
from ptc.gateway.seal import Seal
from ptc.gateway.searching import search_call, search_output
from ptc.gateway.verbatim import Verbatim
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue

_MAX_TURNS_IN_ONE_RESPONSE = 32
_PARTS = get_args(Part)


@dataclass(slots=True)
class Reply:
    """The output of one response, and how it ended. `tools`: what the model has, with what it loaded itself."""

    tools: ToolSet
    items: list[JsonObject] = field(default_factory=list)
    status: str = "completed"
    incomplete_reason: str | None = None
    error: JsonObject | None = None
    waiting: bool = False

    @property
    def going_on(self) -> bool:
        return self.status == "completed" and not self.waiting


@dataclass(frozen=True, slots=True)
class Conversation:
    """What one response is made from: the checked history, and the fields the script may look at."""

    history: History
    model: str
    instructions: str | None
    tools: tuple[JsonObject, ...]
    tool_choice: JsonValue
    encrypt_reasoning: bool


class Engine:
    """Makes responses from a script and a sandbox. One engine serves many requests at once."""

    def __init__(
        self, script: Script, programs: HostedPrograms, seal: Seal, verbatim: Verbatim | None = None
    ) -> None:
        self._script = script
        self._programs = programs
        self._seal = seal
        self._mint = Mint(seal)
        self._verbatim = verbatim or Verbatim()

    async def respond(self, talk: Conversation) -> Reply:
        """The response's output; raises `Rejected` where the history is not that of its program."""
        reply = Reply(talk.history.tools)
        for program in talk.history.open_programs:
            await self._resume(program, reply)
        turn = talk.history.next_turn
        for _ in range(_MAX_TURNS_IN_ONE_RESPONSE):
            if not reply.going_on:
                return reply
            parts = self._next_parts(talk, reply, turn)
            if not await self._play(talk, reply, turn, parts):
                return reply
            turn += 1
        raise Rejected("The script never ends its turn.", status=400, code="script_error")

    def _next_parts(self, talk: Conversation, reply: Reply, turn: int) -> Sequence[Part]:
        if turn > MAX_TURNS:
            raise Rejected("The conversation is too long for this peer.", code="context_length_exceeded")
        request = ModelRequest(
            turn=turn,
            model=talk.model,
            items=(*talk.history.items, *reply.items),
            instructions=talk.instructions,
            tools=talk.tools,
            tool_choice=talk.tool_choice,
        )
        try:
            parts = self._script.next_turn(request)
        except ScriptError as error:
            raise Rejected(f"The script cannot go on: {error}", code="script_error") from error
        except Exception as error:  # a turn is the user's own code, and its mistake must be readable
            words = f"The script's turn {turn + 1} raised {type(error).__name__}: {error}"
            raise Rejected(words, code="script_error") from error
        odd = next((part for part in parts if not isinstance(part, _PARTS)), None)
        if odd is not None:  # skipped, it would be missed by nobody but the test that has it
            words = f"The script's turn {turn + 1} has a {type(odd).__name__}, which is no part."
            raise Rejected(words, code="script_error")
        return parts

    async def _play(self, talk: Conversation, reply: Reply, turn: int, parts: Sequence[Part]) -> bool:
        """Emit a turn; returns whether the model speaks again within this response."""
        emit = _Emitter(self._mint, self._verbatim, turn, reply)
        speaks_on = False
        for index, part in enumerate(parts):
            match part:
                case Reason():
                    following = parts[index + 1] if index + 1 < len(parts) else None
                    if following is None or isinstance(following, Reason | Stop):
                        raise Rejected("Reason() needs a part after it.", code="script_error")
                    emit.reasoning(part, self._seal if talk.encrypt_reasoning else None)
                case Say() | Refuse():
                    emit.item(_message(part))
                case CallTool():
                    call_id = part.call_id or self._mint.call_id(turn, secrets.token_hex(12))
                    emit.item(_call(part, call_id, reply.tools))
                    reply.waiting = True
                case SearchTools():
                    speaks_on = self._look_up(talk, emit, part) or speaks_on
                case SendItem():
                    emit.item(dict(part.item))
                    reply.waiting = reply.waiting or _needs_client(part.item)
                case Stop():
                    reply.status = part.status
                    if part.status == "incomplete":
                        reply.incomplete_reason = part.code
                    else:
                        reply.error = {"code": part.code, "message": part.message}
                    return False
                case WriteProgram():
                    speaks_on = await self._write(talk, emit, part) or speaks_on
        return speaks_on and reply.going_on

    def _look_up(self, talk: Conversation, emit: _Emitter, part: SearchTools) -> bool:
        """Emit a search, and what the peer finds where it is asked; returns whether the model speaks on."""
        tools = emit.reply.tools
        if tools.search is None:
            raise Rejected(
                "The script searches for tools, and the request has no 'tool_search' tool.",
                code="script_error",
            )
        if tools.search == "client":
            emit.item(search_call(part, part.call_id or self._mint.call_id(emit.turn, secrets.token_hex(12))))
            emit.reply.waiting = True
            return False
        output = search_output(part, tools, talk.tools)
        emit.item(search_call(part, None))
        emit.item(output)
        found = output["tools"]
        assert isinstance(found, list)
        emit.reply.tools = tools.with_more(found, "tools")
        return True

    async def _write(self, talk: Conversation, emit: _Emitter, part: WriteProgram) -> bool:
        """Emit a program and what comes of it; returns whether the model speaks on."""
        tools = emit.reply.tools
        if not tools.programs:
            raise Rejected(
                "The script writes a program, and the request has no 'programmatic_tool_calling' tool.",
                code="script_error",
            )
        callable_tools = tuple(tools.for_programs())
        call_id = self._mint.call_id(emit.turn, secrets.token_hex(12))
        bare: JsonObject = {"type": "program", "call_id": call_id, "code": part.code}
        item_id = emit.next_id(bare)
        header, step = await self._programs.begin(
            call_id, part.code, callable_tools, self._call_ids(call_id, emit.turn)
        )
        names: list[JsonValue] = [[tool.namespace, tool.name] for tool in callable_tools]
        state = program_state({**bare, "id": item_id}, header, names, model=talk.model)
        state["result_alone"] = part.result_alone
        fingerprint = self._seal.seal(FINGERPRINT, state)
        emit.as_is({**bare, "id": item_id, "fingerprint": fingerprint})
        if part.calls_later:
            emit.reply.waiting = True
            return False
        return self._emit_step(call_id, emit.turn, step, emit.reply) and not part.result_alone

    async def _resume(self, program: ProgramHistory, reply: Reply) -> None:
        names = program.state["tools"]
        assert isinstance(names, list)
        step = await self._programs.resume(
            program.call_id,
            str(program.item["code"]),
            program.state["header"],
            _select(reply.tools, names),
            self._call_ids(program.call_id, program.turn),
            [
                Answered(
                    call_id=exchange.call_id,
                    namespace=str(namespace) if (namespace := exchange.call.get("namespace")) else None,
                    name=str(exchange.call["name"]),
                    arguments=str(exchange.call["arguments"]),
                    output=exchange.output["output"] if exchange.output else None,
                )
                for exchange in program.answered
            ],
        )
        ended = self._emit_step(program.call_id, program.turn, step, reply)
        if ended and program.state.get("result_alone"):
            reply.waiting = True

    def _emit_step(self, program_id: str, turn: int, step: Step, reply: Reply) -> bool:
        """Emit a program's calls, or its output; returns whether it has ended."""
        place = Place(turn, OF_A_PROGRAM, after_reasoning=False)
        if step.finished is None:
            ids = self._call_ids(program_id, turn)
            for call in step.calls:
                item: JsonObject = {"type": "function_call", "call_id": ids(call.number), "name": call.name}
                if call.namespace is not None:
                    item["namespace"] = call.namespace
                item["arguments"] = strict_json.dumps(call.arguments)
                item["status"] = "completed"
                item["caller"] = {"type": "program", "caller_id": program_id}
                nonce = self._mint.nonce(program_id, str(call.number))
                reply.items.append(self._mint.identify(item, place, nonce))
            reply.waiting = True
            return False
        output: JsonObject = {
            "type": "program_output",
            "call_id": program_id,
            "result": step.finished.text,
            "status": "completed" if step.finished.completed else "incomplete",
        }
        reply.items.append(self._mint.identify(output, place, self._mint.nonce(program_id, "output")))
        return True

    def _call_ids(self, program_id: str, turn: int) -> Callable[[int], str]:
        return lambda number: self._mint.call_id(turn, program_id, str(number))


class _Emitter:
    """Gives the items of one turn their ids and appends them to the reply."""

    def __init__(self, mint: Mint, verbatim: Verbatim, turn: int, reply: Reply) -> None:
        self.turn = turn
        self.reply = reply
        self._mint = mint
        self._verbatim = verbatim
        self._nonce = secrets.token_hex(5)
        self._ordinal = 0
        self._reasoned = False

    def next_id(self, item: JsonObject) -> str:
        """Take the next place in the turn; for an item whose content needs its own id."""
        place = Place(self.turn, self._ordinal, self._reasoned)
        self._ordinal += 1
        self._reasoned = False
        return str(self._mint.identify(item, place, self._nonce)["id"])

    def as_is(self, item: JsonObject) -> None:
        self.reply.items.append(item)

    def item(self, item: JsonObject) -> None:
        if item.get("id") is None:
            item_id = self.next_id(item)
            rest = {name: value for name, value in item.items() if name not in ("type", "id")}
            item = {"type": item["type"], "id": item_id, **rest}
        else:
            self._verbatim.remember(item, self.turn)
        self.as_is(item)

    def reasoning(self, part: Reason, seal: Seal | None) -> None:
        summary: JsonValue = [{"type": "summary_text", "text": part.summary}] if part.summary else []
        item: JsonObject = {"type": "reasoning", "summary": summary}
        item_id = self.next_id(item)
        item = {"type": "reasoning", "id": item_id, "summary": summary}
        if seal is not None:
            item["encrypted_content"] = encrypt(seal, item_id)
        self._reasoned = True
        self.as_is(item)


def _message(part: Say | Refuse) -> JsonObject:
    item: JsonObject = {"type": "message", "role": "assistant", "status": "completed"}
    if isinstance(part, Refuse):
        item["content"] = [{"type": "refusal", "refusal": part.text}]
        return item
    item["status"] = part.status
    item["content"] = [{"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}]
    if part.phase is not None:
        item["phase"] = part.phase
    return item


def _call(part: CallTool, call_id: str, tools: ToolSet) -> JsonObject:
    arguments = part.arguments
    text = arguments if isinstance(arguments, str) else strict_json.dumps(dict(arguments))
    item: JsonObject = {"type": part.kind, "call_id": call_id, "name": part.name}
    item["input" if part.kind == "custom_tool_call" else "arguments"] = text
    namespace = part.namespace
    own = tools.get(None, part.name) if namespace is None else None
    if own is not None and own.deferred and own.loaded:  # what was searched for is in no default namespace
        namespace = part.name
    if namespace is not None:
        item["namespace"] = namespace
    if part.kind == "function_call":
        item["status"] = "completed"
    return {**item, **part.extra}


def _needs_client(item: Mapping[str, JsonValue]) -> bool:
    """Whether an item that the script wrote out is one that the client has to answer."""

    kind = item.get("type")
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    return kind in (
        "function_call",
        "custom_tool_call",
        "shell_call",
        "apply_patch_call",
        "computer_call",
        "local_shell_call",
        "mcp_approval_request",
    )


def _select(tools: ToolSet, names: list[JsonValue]) -> list[Definition]:
    """The tools a program was started with: those alone, in their order, so that it runs the same way."""
    wanted = [tuple(entry) for entry in names if isinstance(entry, list)]
    return [tools.definitions[(str(ns) if ns is not None else None, str(name))] for ns, name in wanted]
