"""The rules that the items of a request's input must keep together (wire.md, rules 3 to 12), sans-I/O.

It is told the input and the tools of one request and gives back what the peer needs to go on: the programs
that are open, their exchanges so far, and the turn of the script that comes next. It runs nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ptc.gateway.definitions import PROGRAMS, ToolSet
from ptc.gateway.ids import OF_A_PROGRAM, Mint, Place, place_of, turn_of_call
from ptc.gateway.rejection import Rejected, invalid, unknown_parameter
from ptc.gateway.seal import BrokenSeal, ForeignSeal, MalformedSeal, Seal
from ptc.gateway.shapes import (
    INPUT_CONTENT,
    ITEMS,
    OUTPUT_CONTENT,
    as_object,
    check_caller,
    check_content,
    check_fields,
    typed,
)
from ptc.gateway.strict_schema import json_type, types_of
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson

FINGERPRINT = "program fingerprint"
ENCRYPTED_REASONING = "encrypted reasoning"

_OUTPUT_OF = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
}
_CALL_OF = {output: call for call, output in _OUTPUT_OF.items()}
# What stands for the user, not for the model: a new model turn cannot begin before such an item.
CLIENT_ITEMS = frozenset({*_CALL_OF, "mcp_approval_response", "additional_tools", "compaction_trigger"})


@dataclass(slots=True)
class Exchange:
    """One call that the input has, and the output that answers it."""

    index: int
    call: JsonObject
    output: JsonObject | None = None

    @property
    def call_id(self) -> str:
        return str(self.call["call_id"])


@dataclass(slots=True)
class ProgramHistory:
    """A program in the input: its sealed state, its calls, and their outputs in the order they were given."""

    item: JsonObject
    state: JsonObject
    exchanges: dict[str, Exchange] = field(default_factory=dict)
    answered: list[Exchange] = field(default_factory=list)
    closed: bool = False

    @property
    def call_id(self) -> str:
        return str(self.item["call_id"])

    @property
    def turn(self) -> int:
        place = place_of(self.item["id"])
        assert place is not None  # the fingerprint covers the id, and only the peer's own are sealed
        return place.turn


@dataclass(frozen=True, slots=True)
class History:
    """The input of a request, found to be in order."""

    items: tuple[JsonObject, ...]
    tools: ToolSet
    open_programs: tuple[ProgramHistory, ...]
    next_turn: int


def read_history(
    items: Sequence[JsonValue],
    tools: ToolSet,
    seal: Seal,
    *,
    known_reasoning: Callable[[str], bool] = lambda _: False,
) -> History:
    """Check the input against every rule; raises `Rejected` for the first that it breaks.

    `known_reasoning` says whether the peer stored a reasoning item of that id: without its encrypted
    content such an item is of use only where it is stored.
    """
    reader = _Reader(tools, seal, known_reasoning)
    checked = [reader.read(value, f"input[{index}]", index) for index, value in enumerate(items)]
    return reader.finish(checked)


class _Reader:
    """Goes through the input once, item by item."""

    def __init__(self, tools: ToolSet, seal: Seal, known_reasoning: Callable[[str], bool]) -> None:
        self.tools = tools
        self.seal = seal
        self.mint = Mint(seal)
        self.known_reasoning = known_reasoning
        self.calls: dict[str, Exchange] = {}
        self.programs: dict[str, ProgramHistory] = {}
        self.item_ids: set[str] = set()
        self.searches: dict[str, bool] = {}
        self.approvals: dict[str, bool] = {}
        self.previous: JsonObject | None = None
        self.next_turn = 0

    def read(self, value: JsonValue, where: str, index: int) -> JsonObject:
        item = as_object(value, where)
        kind = self._kind(item, where)
        ours = self._check_shape(item, kind, where)
        self._check_id(item, where)
        self._check_reasoning_order(item, where)
        self._note_turn(item)
        if kind == "message":
            self._message(item, where)
        elif kind == "reasoning":
            self._reasoning(item, where)
        elif kind == "program":
            self._program(item, where)
        elif kind == "program_output":
            self._program_output(item, where)
        elif kind in _OUTPUT_OF:
            self._call(item, where, index, ours)
        elif kind in _CALL_OF:
            self._output(item, kind, where)
        elif kind in ("tool_search_call", "tool_search_output", "additional_tools"):
            self._tools_item(item, kind, where)
        elif kind in ("mcp_approval_request", "mcp_approval_response"):
            self._approval(item, kind, where)
        elif "caller" in item:
            check_caller(item["caller"], f"{where}.caller", extra_fields_are_ours=ours)
            self._owner(item.get("caller"), where)
        self.previous = item
        return item

    def finish(self, items: list[JsonObject]) -> History:
        if self.previous is not None and self.previous.get("type") == "reasoning":
            raise self._without_following(self.previous)
        for exchange in self.calls.values():
            if exchange.output is None:
                name = str(exchange.call["type"]).replace("_", " ")
                raise invalid(
                    "input",
                    f"No tool output found for {name} {exchange.call_id}.",
                    code="missing_tool_output",
                )
        for call_id, answered in self.searches.items():
            if not answered:
                raise invalid("input", f"No tool output found for tool search call {call_id}.")
        if self.programs and not self.tools.programs:
            raise invalid(
                "tools",
                f"The input has a 'program' item, so 'tools' must have the '{PROGRAMS}' tool.",
                code="missing_required_tool",
            )
        still_open = tuple(program for program in self.programs.values() if not program.closed)
        for program in still_open:
            self._check_callable(program)
        return History(tuple(items), self.tools, still_open, self.next_turn)

    # --- one item ---------------------------------------------------------------------------------------

    def _kind(self, item: JsonObject, where: str) -> str:
        if "type" not in item and "role" in item:
            return "message"
        if "type" not in item and set(item) == {"id"}:
            return "item_reference"
        return typed(item, where)

    def _check_shape(self, item: JsonObject, kind: str, where: str) -> bool:
        """Check the fields; returns whether the item is the peer's own and unchanged.

        Only such an item may be of a type, or have fields, that the API of this version does not know.
        """
        if "created_by" in item:  # output only, on every type (wire.md, rule 1)
            raise unknown_parameter(f"{where}.created_by")
        # What is added to a program and to reasoning after they have their id is sealed on its own.
        if kind not in ("program", "reasoning") and self.mint.is_unchanged(item):
            return True
        shape = ITEMS.get(kind)
        if shape is None:
            raise invalid(
                f"{where}.type", f"Invalid value: '{kind}'. Supported values are: " + _known_types()
            )
        if kind == "message":
            check_fields({"type": "message", **item}, shape, where)
        else:
            check_fields(item if kind != "item_reference" else {"type": kind, **item}, shape, where)
        if kind == "item_reference":
            raise Rejected(
                f"Item with id '{item['id']}' not found.", param="input", status=404, code="item_not_found"
            )
        return False

    def _check_id(self, item: JsonObject, where: str) -> None:
        item_id = item.get("id")
        if item_id is None or item.get("type") == "local_shell_call_output":
            return
        if not isinstance(item_id, str) or not item_id:
            raise invalid(f"{where}.id", f"Invalid '{where}.id': expected an id.")
        if item_id in self.item_ids:
            raise invalid(
                f"{where}.id",
                f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try "
                "again.",
            )
        self.item_ids.add(item_id)

    def _note_turn(self, item: JsonObject) -> None:
        place = place_of(item.get("id"))
        turns = [place.turn if place else None, turn_of_call(item.get("call_id"))]
        self.next_turn = max(self.next_turn, *(turn + 1 for turn in turns if turn is not None), 0)

    def _message(self, item: JsonObject, where: str) -> None:
        assistant = item["role"] == "assistant"
        if not assistant and "phase" in item:
            raise unknown_parameter(f"{where}.phase")
        check_content(item["content"], OUTPUT_CONTENT if assistant else INPUT_CONTENT, f"{where}.content")

    # --- reasoning --------------------------------------------------------------------------------------

    def _reasoning(self, item: JsonObject, where: str) -> None:
        sealed = item.get("encrypted_content")
        if sealed is None:
            if not self.known_reasoning(str(item["id"])):
                raise Rejected(
                    f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to "
                    "false. Try again with `store` set to true, or remove this item from your input.",
                    param="input",
                    status=404,
                )
            return
        try:
            content = self.seal.open(ENCRYPTED_REASONING, str(sealed))
        except (MalformedSeal, ForeignSeal, BrokenSeal) as error:
            raise invalid(
                f"{where}.encrypted_content",
                f"The encrypted content for item {item['id']} could not be verified. Reason: Encrypted "
                "content could not be decrypted or parsed.",
                code="invalid_encrypted_content",
            ) from error
        if content.get("id") != item["id"]:
            raise invalid(
                f"{where}.encrypted_content", "Encrypted content item_id did not match the item id."
            )

    def _check_reasoning_order(self, item: JsonObject, where: str) -> None:
        """Reasoning keeps what follows it, and what follows keeps its reasoning (wire.md, rule 9)."""
        before, place = self.previous, place_of(item.get("id"))
        reasoned = before is not None and before.get("type") == "reasoning"
        before_place = place_of(before.get("id")) if before is not None and reasoned else None
        if before is not None and before_place is not None:
            expected = Place(before_place.turn, before_place.ordinal + 1, after_reasoning=True)
            # An id may be left out where the API has it optional; then only the kind of item can be judged.
            model_made = self._kind(item, where) not in CLIENT_ITEMS and item.get("role") in (
                None,
                "assistant",
            )
            if place != expected and (place is not None or not model_made):
                raise self._without_following(before)
        if place is not None and place.after_reasoning and not reasoned:
            raise invalid(
                "input",
                f"Item '{item['id']}' of type '{item['type']}' was provided without its required "
                "'reasoning' item.",
            )

    def _without_following(self, item: JsonObject) -> Rejected:
        return invalid(
            "input",
            f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
        )

    # --- programs ---------------------------------------------------------------------------------------

    def _program(self, item: JsonObject, where: str) -> None:
        state = self._open_fingerprint(item, where)
        call_id = str(item["call_id"])
        if call_id in self.programs or call_id in self.calls:
            raise invalid(f"{where}.call_id", f"Duplicate call_id '{call_id}' in the input.")
        self.programs[call_id] = ProgramHistory(item, state)

    def _open_fingerprint(self, item: JsonObject, where: str) -> JsonObject:
        param = f"{where}.fingerprint"
        try:
            state = self.seal.open(FINGERPRINT, str(item["fingerprint"]))
        except ForeignSeal as error:
            raise Rejected(
                "The program's fingerprint was issued for another deployment. Replay a program only to the "
                "deployment that wrote it.",
                param=param,
                code="invalid_program_fingerprint",
                status=401,
                type="authentication_error",
            ) from error
        except (MalformedSeal, BrokenSeal) as error:
            raise invalid(param, f"The program's fingerprint is not valid: {error}.") from error
        for name in ("id", "call_id", "code"):
            if state.get(name) != _digest(item[name]):
                raise invalid(f"{where}.{name}", f"The program's '{name}' does not match its fingerprint.")
        return state

    def _program_output(self, item: JsonObject, where: str) -> None:
        program = self.programs.get(str(item["call_id"]))
        if program is None:
            raise invalid(
                f"{where}.call_id", f"No program found for program output with call_id {item['call_id']}."
            )
        if program.closed:
            raise invalid(f"{where}.call_id", f"Duplicate program output for call_id {item['call_id']}.")
        for exchange in program.exchanges.values():
            if exchange.output is None:
                raise invalid(
                    "input",
                    f"No tool output found for function call {exchange.call_id}.",
                    code="missing_tool_output",
                )
        program.closed = True

    def _check_callable(self, program: ProgramHistory) -> None:
        """Every tool that an open program may call is sent on every continuation (wire.md, rule 11)."""
        names = program.state.get("tools")
        assert isinstance(names, list)
        for entry in names:
            assert isinstance(entry, list)
            namespace, name = entry
            if self.tools.get(str(namespace) if namespace is not None else None, str(name)) is None:
                raise invalid(
                    "tools",
                    f"Tool '{name}' is missing from 'tools': the program {program.call_id} is open and may "
                    "call it.",
                    code="missing_required_tool",
                )

    def _owner(self, caller: JsonValue, where: str) -> ProgramHistory | None:
        if _is_direct(caller):
            return None
        program = self.programs.get(_caller_id(caller))
        if program is None:
            raise invalid(
                f"{where}.caller.caller_id", f"No program found for caller_id '{_caller_id(caller)}'."
            )
        return program

    # --- calls and outputs ------------------------------------------------------------------------------

    def _call(self, item: JsonObject, where: str, index: int, ours: bool) -> None:
        call_id = str(item["call_id"])
        if call_id in self.calls or call_id in self.programs:
            raise invalid(f"{where}.call_id", f"Duplicate call_id '{call_id}' in the input.")
        check_caller(item.get("caller"), f"{where}.caller", extra_fields_are_ours=ours)
        place = place_of(item["id"]) if ours else None
        if place is not None and place.ordinal != OF_A_PROGRAM:
            # The script itself said so: it may forge a caller, to see what the client does about it.
            program = self.programs.get(_caller_id(item.get("caller")))
        else:
            program = self._owner(item.get("caller"), where)
        if item["type"] in ("function_call", "custom_tool_call"):
            self._check_namespace(item, where)
        exchange = self.calls[call_id] = Exchange(index, item)
        if program is not None:
            if program.closed:
                raise invalid(f"{where}.caller", f"The program {program.call_id} has ended before this call.")
            program.exchanges[call_id] = exchange

    def _check_namespace(self, item: JsonObject, where: str) -> None:
        namespace, name = item.get("namespace"), str(item["name"])
        if namespace is None and self.tools.get(None, name) is None and self.tools.namespaces_of(name):
            spaces = ", ".join(f"'{space}'" for space in self.tools.namespaces_of(name))
            raise invalid(
                f"{where}.namespace",
                f"Missing namespace for {item['type']} '{name}'. Expected one of: {spaces}.",
            )

    def _output(self, item: JsonObject, kind: str, where: str) -> None:
        # The one output that has no field for the call's id carries it as its own.
        call_id = str(item["id" if kind == "local_shell_call_output" else "call_id"])
        exchange = self.calls.get(call_id)
        if exchange is None or exchange.call["type"] != _CALL_OF[kind]:
            raise invalid(
                "input",
                f"No tool call found for {kind.replace('_', ' ')} with call_id {call_id}.",
                "unknown_call_id",
            )
        if exchange.output is not None:
            raise invalid("input", f"Duplicate tool output for call_id {call_id}.", "duplicate_tool_output")
        self._check_same_caller(exchange, item, where)
        self._check_same_name(exchange, item, where)
        if kind in ("function_call_output", "custom_tool_call_output"):
            check_content(item["output"], INPUT_CONTENT, f"{where}.output")
        exchange.output = item
        program = self._owner(exchange.call.get("caller"), where)
        if program is not None:
            if program.closed:
                raise invalid(
                    f"{where}.caller", f"The program {program.call_id} has ended before this output."
                )
            if kind == "function_call_output":
                self._check_object(exchange, where)
            program.answered.append(exchange)

    def _check_same_caller(self, exchange: Exchange, item: JsonObject, where: str) -> None:
        """`caller` goes back exactly as it came (wire.md, rule 3); null, absent and direct are one."""
        expected, given = exchange.call.get("caller"), item.get("caller")
        if _is_direct(expected) and _is_direct(given):
            check_caller(given, f"{where}.caller")
            return
        if given is None:
            raise invalid(
                f"{where}.caller",
                f"Missing caller for function call output with call_id {exchange.call_id}: the call was made "
                "by a program.",
                code="missing_caller",
            )
        if given != expected:
            check_caller(given, f"{where}.caller", extra_fields_are_ours=True)
            raise invalid(
                f"{where}.caller",
                f"The caller of the output with call_id {exchange.call_id} does not match the call's caller.",
                code="caller_mismatch",
            )

    def _check_same_name(self, exchange: Exchange, item: JsonObject, where: str) -> None:
        for name in ("name", "namespace"):
            given = item.get(name)
            if given is not None and given != exchange.call.get(name):
                raise invalid(
                    f"{where}.{name}",
                    f"The {name} of the output with call_id {exchange.call_id} does not match the call's.",
                )

    def _check_object(self, exchange: Exchange, where: str) -> None:
        """A program-owned call with an output schema is answered by a JSON object, even for an error.

        JSON of another type passes only where the schema names that type itself.
        """
        call, output = exchange.call, exchange.output
        assert output is not None
        namespace = call.get("namespace")
        tool = self.tools.get(namespace if isinstance(namespace, str) else None, str(call["name"]))
        if tool is None or tool.output_schema is None:
            return
        text = output["output"]
        try:
            kind = json_type(strict_json.loads(text)) if isinstance(text, str) else "content"
        except InvalidJson:
            kind = "text"
        if kind != "object" and kind not in types_of(tool.output_schema, tool.output_schema):
            raise invalid(
                f"{where}.output",
                f"Invalid output for function call {exchange.call_id}: '{call['name']}' has an output_schema "
                "and was called by a program, so its output must be a string holding a JSON object.",
                code="invalid_tool_output",
            )

    # --- tools that arrive in the input, approvals ------------------------------------------------------

    def _tools_item(self, item: JsonObject, kind: str, where: str) -> None:
        call_id = item.get("call_id")
        if kind == "tool_search_call":
            if item.get("execution") == "client":
                self.searches[str(call_id)] = False
            return
        if kind == "tool_search_output" and item.get("execution") == "client":
            if self.searches.get(str(call_id)) is not False:
                raise invalid(
                    "input",
                    f"No tool call found for tool search output with call_id {call_id}.",
                    "unknown_call_id",
                )
            self.searches[str(call_id)] = True
        more = item["tools"]
        assert isinstance(more, list)
        self.tools = self.tools.with_more(more, f"{where}.tools")

    def _approval(self, item: JsonObject, kind: str, where: str) -> None:
        if kind == "mcp_approval_request":
            self.approvals[str(item["id"])] = False
            return
        request_id = str(item["approval_request_id"])
        if self.approvals.get(request_id) is not False:
            raise invalid(
                f"{where}.approval_request_id", f"No open approval request found with id '{request_id}'."
            )
        self.approvals[request_id] = True


def program_state(item: Mapping[str, JsonValue], header: JsonObject, tools: list[JsonValue]) -> JsonObject:
    """What a program's fingerprint seals: what it is, and what a run of it depends on.

    `item` has the program's `id`, `call_id` and `code`; `tools` are the (namespace, name) it may call.
    """
    digests = {name: _digest(item[name]) for name in ("id", "call_id", "code")}
    return {**digests, "header": header, "tools": tools}


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _is_direct(caller: JsonValue) -> bool:
    return caller is None or (isinstance(caller, dict) and caller.get("type") == "direct")


def _caller_id(caller: JsonValue) -> str:
    """The program that a caller names; an empty text, which no program has, for any other caller."""
    return str(caller.get("caller_id", "")) if isinstance(caller, dict) else ""


def _known_types() -> str:
    return ", ".join(f"'{name}'" for name in sorted(ITEMS))
