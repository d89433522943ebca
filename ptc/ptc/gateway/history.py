"""The rules that the items of a request's input must keep together (wire.md, rules 3 to 12), sans-I/O.

It is told the input and the tools of one request and gives back what the peer needs to go on: the programs
that are open, their exchanges so far, and the turn of the script that comes next. It runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptc.gateway import reasoning
from ptc.gateway.definitions import PROGRAMS, ToolSet
from ptc.gateway.fingerprint import open_fingerprint
from ptc.gateway.ids import OF_A_PROGRAM, Mint, place_of, turn_of_call
from ptc.gateway.pairing import (
    CALL_OF,
    OUTPUT_OF,
    Exchange,
    caller_id,
    check_loaded,
    check_namespace,
    check_object,
    check_pair,
    is_direct,
)
from ptc.gateway.rejection import Rejected, invalid, missing_parameter, unknown_parameter
from ptc.gateway.seal import Seal
from ptc.gateway.searching import SEARCH_ITEMS, Searches
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
from ptc.gateway.verbatim import Verbatim
from ptc_tools.call import JsonObject, JsonValue

# What stands for the user, not for the model.
_CLIENT_ITEMS = frozenset({*CALL_OF, "mcp_approval_response", "additional_tools", "compaction_trigger"})


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
    model: str,
    known_reasoning: Callable[[str], bool] = lambda _: False,
    verbatim: Verbatim | None = None,
) -> History:
    """Check the input against every rule; raises `Rejected` for the first that it breaks.

    `model` is the deployment that is asked. `known_reasoning` says whether the peer stored a reasoning item
    of that id: without its encrypted content such an item is of use only where it is stored. `verbatim` knows
    what the script sent under ids of its own.
    """
    reader = _Reader(tools, seal, known_reasoning, model, verbatim or Verbatim())
    checked = [reader.read(value, f"input[{index}]") for index, value in enumerate(items)]
    return reader.finish(checked)


class _Reader:
    """Goes through the input once, item by item."""

    def __init__(
        self,
        tools: ToolSet,
        seal: Seal,
        known_reasoning: Callable[[str], bool],
        model: str,
        verbatim: Verbatim,
    ) -> None:
        self.tools = tools
        self.verbatim = verbatim
        self.model = model
        self.seal = seal
        self.mint = Mint(seal)
        self.known_reasoning = known_reasoning
        self.calls: dict[str, Exchange] = {}
        self.programs: dict[str, ProgramHistory] = {}
        self.item_ids: set[str] = set()
        self.searches = Searches()
        self.approvals: dict[str, bool] = {}
        self.previous: JsonObject | None = None
        self.next_turn = 0

    def read(self, value: JsonValue, where: str) -> JsonObject:
        item = as_object(value, where)
        kind = _kind(item, where)
        ours = self._check_shape(item, kind, where)
        self._check_id(item, where)
        by_model = kind not in _CLIENT_ITEMS and item.get("role") in (None, "assistant")
        reasoning.check_order(self.previous, item, by_model=by_model)
        self._note_turn(item)
        if kind == "message":
            self._message(item, where)
        elif kind == "reasoning":
            reasoning.check_content(self.seal, item, where, self.known_reasoning)
        elif kind == "program":
            self._program(item, where)
        elif kind == "program_output":
            self._program_output(item, where)
        elif kind in OUTPUT_OF:
            self._call(item, where, ours)
        elif kind in CALL_OF:
            self._output(item, kind, where)
        elif kind in SEARCH_ITEMS:
            self.tools = self.searches.read(item, kind, self.tools, where)
        elif kind in ("mcp_approval_request", "mcp_approval_response"):
            self._approval(item, kind, where)
        elif "caller" in item:
            check_caller(item["caller"], f"{where}.caller", extra_fields_are_ours=ours)
            self._owner(item.get("caller"), where)
        self.previous = item
        return item

    def finish(self, items: list[JsonObject]) -> History:
        if self.previous is not None and self.previous.get("type") == "reasoning":
            raise reasoning.without_following(self.previous)
        for exchange in self.calls.values():
            if exchange.output is None:
                raise _no_output(exchange)
        self.searches.check_answered()
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

    # --- any item ---------------------------------------------------------------------------------------

    def _check_shape(self, item: JsonObject, kind: str, where: str) -> bool:
        """Check the fields; returns whether the item is the peer's own and unchanged.

        Only such an item may be of a type, or have fields, that the API of this version does not know.
        """
        if "created_by" in item:  # output only, on every type (wire.md, rule 1)
            raise unknown_parameter(f"{where}.created_by")
        shape = ITEMS.get(kind)
        # What is added to a program and to reasoning after they have their id is sealed on its own.
        ours = self.mint.is_unchanged(item) or self.verbatim.turn_of(item) is not None
        if kind not in ("program", "reasoning") and ours:
            for name, wanted in (shape or {}).items():
                if wanted.required and name not in item:
                    raise missing_parameter(f"{where}.{name}")
            return True
        if shape is None:
            known = ", ".join(f"'{name}'" for name in sorted(ITEMS))
            raise invalid(f"{where}.type", f"Invalid value: '{kind}'. Supported values are: {known}.")
        check_fields({"type": kind, **item}, shape, where)
        if kind == "item_reference":  # one that is stored was put in its place before
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
        sent_in = self.verbatim.turn_of(item) if place is None else place.turn
        turns = [sent_in, turn_of_call(item.get("call_id"))]
        known = [turn + 1 for turn in turns if turn is not None]
        if not known and item.get("role") == "assistant":
            # A client may send a message back without its id; each group of them was a turn.
            after_another = self.previous is not None and self.previous.get("role") == "assistant"
            known = [self.next_turn if after_another else self.next_turn + 1]
        self.next_turn = max(self.next_turn, *known, 0)

    def _message(self, item: JsonObject, where: str) -> None:
        assistant = item["role"] == "assistant"
        if not assistant and "phase" in item:
            raise unknown_parameter(f"{where}.phase")
        check_content(item["content"], OUTPUT_CONTENT if assistant else INPUT_CONTENT, f"{where}.content")

    # --- programs ---------------------------------------------------------------------------------------

    def _program(self, item: JsonObject, where: str) -> None:
        state = open_fingerprint(self.seal, item, where, model=self.model)
        self._check_new_call_id(str(item["call_id"]), where)
        self.programs[str(item["call_id"])] = ProgramHistory(item, state)

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
                raise _no_output(exchange)
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
        """The program that a caller names, None for the model itself."""
        if is_direct(caller):
            return None
        program = self.programs.get(caller_id(caller))
        if program is None:
            raise invalid(
                f"{where}.caller.caller_id", f"No program found for caller_id '{caller_id(caller)}'."
            )
        return program

    # --- calls and outputs ------------------------------------------------------------------------------

    def _check_new_call_id(self, call_id: str, where: str) -> None:
        if call_id in self.calls or call_id in self.programs:
            raise invalid(f"{where}.call_id", f"Duplicate call_id '{call_id}' in the input.")

    def _call(self, item: JsonObject, where: str, ours: bool) -> None:
        call_id = str(item["call_id"])
        self._check_new_call_id(call_id, where)
        check_caller(item.get("caller"), f"{where}.caller", extra_fields_are_ours=ours)
        place = place_of(item["id"]) if ours else None
        if place is not None and place.ordinal != OF_A_PROGRAM:
            # The script itself said so: it may forge a caller, to see what the client does about it.
            program = self.programs.get(caller_id(item.get("caller")))
        else:
            program = self._owner(item.get("caller"), where)
        if item["type"] in ("function_call", "custom_tool_call"):
            check_namespace(item, self.tools, where)
            if not ours:
                check_loaded(item, self.tools, where)
        exchange = self.calls[call_id] = Exchange(item)
        if program is not None:
            if program.closed:
                raise invalid(f"{where}.caller", f"The program {program.call_id} has ended before this call.")
            program.exchanges[call_id] = exchange

    def _output(self, item: JsonObject, kind: str, where: str) -> None:
        # The one output that has no field for the call's id carries it as its own.
        call_id = str(item["id" if kind == "local_shell_call_output" else "call_id"])
        exchange = self.calls.get(call_id)
        if exchange is None or exchange.call["type"] != CALL_OF[kind]:
            words = kind.replace("_", " ")
            raise invalid(
                "input", f"No tool call found for {words} with call_id {call_id}.", "unknown_call_id"
            )
        if exchange.output is not None:
            raise invalid("input", f"Duplicate tool output for call_id {call_id}.", "duplicate_tool_output")
        check_pair(exchange, item, where)
        if kind in ("function_call_output", "custom_tool_call_output"):
            check_content(item["output"], INPUT_CONTENT, f"{where}.output")
        program = self.programs.get(caller_id(exchange.call.get("caller")))
        if program is not None:
            if program.closed:
                raise invalid(
                    f"{where}.caller", f"The program {program.call_id} has ended before this output."
                )
            if kind == "function_call_output":
                check_object(exchange, item, self.tools, where)
            program.answered.append(exchange)
        exchange.output = item

    # --- approvals --------------------------------------------------------------------------------------

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


def _kind(item: JsonObject, where: str) -> str:
    """The type of an item; a message and a reference may leave it out."""
    if item.get("type") is None and "role" in item:
        return "message"
    if item.get("type") is None and item.keys() - {"type"} == {"id"}:
        return "item_reference"
    return typed(item, where)


def _no_output(exchange: Exchange) -> Rejected:
    kind = str(exchange.call["type"]).replace("_", " ")
    return invalid(
        "input", f"No tool output found for {kind} {exchange.call_id}.", code="missing_tool_output"
    )
