"""The strict rules of the peer's input, each one broken on its own: what is refused, and with which words."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from ptc.gateway.definitions import read_tools
from ptc.gateway.fingerprint import FINGERPRINT, program_state
from ptc.gateway.history import History, read_history
from ptc.gateway.ids import OF_A_PROGRAM, Mint, Place
from ptc.gateway.reasoning import ENCRYPTED_REASONING
from ptc.gateway.rejection import Rejected
from ptc.gateway.seal import Seal

SEAL = Seal(b"the key of these tests")
MINT = Mint(SEAL)
PROGRAMS = {"type": "programmatic_tool_calling"}
Item = dict[str, Any]


def function(name: str, **more: Any) -> Item:
    parameters = {
        "type": "object",
        "properties": {"sku": {"type": "string"}},
        "required": ["sku"],
        "additionalProperties": False,
    }
    return {"type": "function", "name": name, "parameters": parameters, "strict": True, **more}


TOOLS: list[Any] = [
    function("get_inventory", allowed_callers=["programmatic"], output_schema={"type": "object"}),
    function("get_demand", allowed_callers=["direct", "programmatic"]),
    {"type": "namespace", "name": "records", "description": "Records", "tools": [function("search")]},
    PROGRAMS,
]


def minted(item: Item, turn: int = 0, ordinal: int = 0, after_reasoning: bool = False) -> Item:
    return MINT.identify(item, Place(turn, ordinal, after_reasoning), "0123456789")


def a_program(call_id: str = "call_p", code: str = "await get_inventory(sku='a')", seal: Seal = SEAL) -> Item:
    item = minted({"type": "program", "call_id": call_id, "code": code})
    state = program_state(item, {"seed": 1}, [[None, "get_inventory"]], model="m")
    return {**item, "fingerprint": seal.seal(FINGERPRINT, state)}


def a_call(
    call_id: str = "call_1", name: str = "get_inventory", owner: str | None = "call_p", **more: Any
) -> Item:
    item: Item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": '{"sku":"a"}'}
    if owner is not None:
        item["caller"] = {"type": "program", "caller_id": owner}
    return MINT.identify({**item, **more}, Place(0, OF_A_PROGRAM, False), MINT.nonce(call_id))


def an_output(call: Item, output: Any = '{"units":1}', **more: Any) -> Item:
    item: Item = {"type": "function_call_output", "call_id": call["call_id"], "output": output}
    if "caller" in call:
        item["caller"] = copy.deepcopy(call["caller"])
    return {**item, **more}


USER: Item = {"role": "user", "content": "How many are left?"}


def history() -> list[Item]:
    """A paused program with both its calls answered: in order as it is."""
    first, second = a_call("call_1"), a_call("call_2", "get_demand")
    return [USER, a_program(), first, second, an_output(first), an_output(second, "62")]


def read(items: list[Any], tools: list[Any] | None = None) -> History:
    return read_history(items, read_tools(TOOLS if tools is None else tools), SEAL, model="m")


def refused(items: list[Any], tools: list[Any] | None = None) -> Rejected:
    with pytest.raises(Rejected) as caught:
        read(items, tools)
    return caught.value


def test_a_history_in_order_is_taken_and_the_program_is_open() -> None:
    """Strictness that refuses the right thing would be of no use."""
    result = read(history())
    assert [program.call_id for program in result.open_programs] == ["call_p"]
    assert [exchange.call_id for exchange in result.open_programs[0].answered] == ["call_1", "call_2"]
    assert result.next_turn == 1


def without(index: int) -> Callable[[list[Item]], None]:
    return lambda items: items.pop(index) and None


def changed(index: int, **fields: Any) -> Callable[[list[Item]], None]:
    return lambda items: items[index].update(fields)


def dropped(index: int, field: str) -> Callable[[list[Item]], None]:
    return lambda items: items[index].pop(field) and None


BROKEN: dict[str, tuple[Callable[[list[Item]], None], str]] = {
    "the caller of an output is missing": (dropped(4, "caller"), "Missing caller"),
    "the caller of an output is null": (changed(4, caller=None), "Missing caller"),
    "the caller of an output is another program": (
        changed(4, caller={"type": "program", "caller_id": "call_x"}),
        "does not match the call's caller",
    ),
    "the caller of an output is direct": (changed(4, caller={"type": "direct"}), "does not match"),
    "the caller of an output has one more field": (
        changed(4, caller={"type": "program", "caller_id": "call_p", "more": 1}),
        "does not match",
    ),
    "a pending call has no output": (without(5), "No tool output found for function call call_2"),
    "the first pending call has no output": (without(4), "No tool output found for function call call_1"),
    "an output has no call": (
        lambda items: items.append({"type": "function_call_output", "call_id": "call_9", "output": ""}),
        "No tool call found for function call output with call_id call_9",
    ),
    "an output comes twice": (lambda items: items.append(dict(items[4])), "Duplicate tool output"),
    "an output comes before its call": (
        lambda items: items.insert(1, items.pop(4)),
        "No tool call found for function call output",
    ),
    "an output is of another kind than its call": (
        changed(4, type="custom_tool_call_output"),
        "No tool call found for custom tool call output",
    ),
    "a program's call with a schema gets plain text": (changed(4, output="73 units"), "JSON object"),
    "a program's call with a schema gets an array": (changed(4, output="[73]"), "JSON object"),
    "a program's call with a schema gets a number": (changed(4, output="73"), "JSON object"),
    "a program's call with a schema gets null": (changed(4, output="null"), "JSON object"),
    "a program's call with a schema gets a content array": (
        changed(4, output=[{"type": "input_text", "text": "{}"}]),
        "JSON object",
    ),
    "a program's call with a schema gets an object with NaN": (changed(4, output='{"a":NaN}'), "JSON object"),
    "the SDK's parsed_arguments is sent back": (
        changed(2, parsed_arguments={"sku": "a"}),
        "Unknown parameter: 'input[2].parsed_arguments'",
    ),
    "the output-only created_by is sent back": (
        changed(1, created_by="model"),
        "Unknown parameter: 'input[1].created_by'",
    ),
    "async was renamed on the way": (changed(2, async_=True), "Unknown parameter: 'input[2].async_'"),
    "an output has an unknown field": (changed(4, result=1), "Unknown parameter: 'input[4].result'"),
    "the program's code was changed": (changed(1, code="1"), "'code' does not match its fingerprint"),
    "the program's call_id was changed": (changed(1, call_id="call_q"), "'call_id' does not match"),
    "the program's id was changed": (changed(1, id="prog_1"), "'id' does not match its fingerprint"),
    "the program's id is missing": (dropped(1, "id"), "Missing required parameter: 'input[1].id'"),
    "the program's fingerprint is missing": (dropped(1, "fingerprint"), "Missing required parameter"),
    "the program's fingerprint is made up": (changed(1, fingerprint="abc"), "fingerprint is not valid"),
    "the program is missing": (without(1), "No program found for caller_id 'call_p'"),
    "the program comes twice": (
        lambda items: items.append({**items[1]}),
        "Duplicate item found with id",
    ),
    "the program comes after its calls": (
        lambda items: items.insert(3, items.pop(1)),
        "No program found for caller_id",
    ),
    "an item's id comes twice": (lambda items: items[3].update(id=items[2]["id"]), "Duplicate item found"),
    "a call_id comes twice": (
        lambda items: items.append({**a_call("call_1"), "id": "fc_other"}),
        "Duplicate call_id 'call_1'",
    ),
    "a call's caller was made up": (
        lambda items: items.__setitem__(2, {**items[2], "caller": {"type": "program", "caller_id": "x"}}),
        "No program found for caller_id 'x'",
    ),
    "a caller is a text": (changed(4, caller="program"), "Invalid type for 'input[4].caller'"),
    "a caller is of no known type": (changed(2, caller={"type": "user"}), "Invalid value: 'user'"),
    "an item is not an object": (lambda items: items.append("hello"), "Invalid type for 'input[6]'"),
    "an item has no type": (lambda items: items.append({"id": "x", "text": ""}), "'input[6].type'"),
    "an item is of an unknown type": (lambda items: items.append({"type": "thought"}), "Invalid value"),
    "an output's name is another tool's": (changed(4, name="get_demand"), "name of the output"),
    "an argument text is an object": (changed(2, arguments={}), "Invalid type for 'input[2].arguments'"),
    "a message's role is unknown": (changed(0, role="robot"), "Invalid value: 'robot'"),
    "the user speaks in the model's content": (
        changed(0, content=[{"type": "output_text", "text": "hi"}]),
        "Invalid value: 'output_text'",
    ),
    "the user's message has a phase": (changed(0, phase="commentary"), "Unknown parameter"),
    "a program output has no program": (
        lambda items: items.append(
            {"type": "program_output", "id": "po_1", "call_id": "x", "result": "", "status": "completed"}
        ),
        "No program found for program output",
    ),
    "a program output has no id": (
        lambda items: items.append(
            {"type": "program_output", "call_id": "call_p", "result": "", "status": "completed"}
        ),
        "Missing required parameter: 'input[6].id'",
    ),
    "a call comes after its program has ended": (
        lambda items: items.extend([program_output(), a_call("call_3")]),
        "has ended before this call",
    ),
    "a program output comes before an output": (
        lambda items: items.insert(5, program_output()),
        "No tool output found",
    ),
    "a program output comes twice": (
        lambda items: items.extend([program_output(), {**program_output(), "id": "po_2"}]),
        "Duplicate program output",
    ),
}


def program_output() -> Item:
    return {"type": "program_output", "id": "po_1", "call_id": "call_p", "result": "", "status": "completed"}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_history_is_refused_with_words_that_say_why(name: str) -> None:
    """One change each to a history in order, so that nothing else can be the reason."""
    break_it, words = BROKEN[name]
    items = copy.deepcopy(history())
    break_it(items)
    rejected = refused(items)
    assert rejected.status == 400
    assert words in rejected.message


def test_a_program_of_another_deployment_is_answered_401() -> None:
    """A run stays on one deployment (rule 11); the client must not take it for a request of a wrong form."""
    items = history()
    items[1] = a_program(seal=Seal(b"another key"))
    rejected = refused(items)
    assert (rejected.status, rejected.code) == (401, "invalid_program_fingerprint")


def test_the_hosted_tool_is_needed_while_a_program_is_open_and_after_it() -> None:
    """The tool is sent on every continuation, also once the program has ended (rule 11)."""
    tools = [function("get_inventory"), function("get_demand")]
    for items in (history(), [*history(), program_output()]):
        assert "programmatic_tool_calling" in refused(items, tools).message


def test_a_tool_that_an_open_program_may_call_cannot_be_left_out() -> None:
    """The program could not go on; once it has ended the tool may go."""
    tools = [TOOLS[1], PROGRAMS]
    assert "get_inventory" in refused(history(), tools).message
    assert read([*history(), program_output()], tools).open_programs == ()


def test_an_error_object_answers_a_programs_call() -> None:
    """A denied or failed call is an object too, and need not match the schema (rule 5)."""
    items = history()
    items[4]["output"] = '{"error":{"type":"timeout","message":"too slow"}}'
    assert read(items).next_turn == 1


@pytest.mark.parametrize("output", ["3", '"plain"', "null", "[1]", "true", "plain", ""])
@pytest.mark.parametrize("schema", [{"type": "string"}, {"anyOf": [{"type": "integer"}, {"type": "object"}]}])
def test_only_an_object_answers_a_programs_call(schema: Item, output: str) -> None:
    """Whatever the schema says (rule 5): the service answers 400 to everything else."""
    tools = [function("get_inventory", allowed_callers=["programmatic"], output_schema=schema), *TOOLS[1:]]
    items = history()
    items[4]["output"] = output
    assert "JSON object" in refused(items, tools).message
    items[4]["output"] = '{"result":3}'
    assert read(items, tools).next_turn == 1


CALLERS: list[Item] = [{}, {"caller": None}, {"caller": {"type": "direct"}}]


@pytest.mark.parametrize("called", CALLERS)
@pytest.mark.parametrize("answered", CALLERS)
def test_a_direct_call_gets_its_caller_back_exactly(called: Item, answered: Item) -> None:
    """Null comes back as null, and absent not at all (rule 3)."""
    call = {"type": "function_call", "call_id": "call_1", "name": "get_demand", "arguments": "{}"}
    made = {**minted(call), **called}
    answer = {"type": "function_call_output", "call_id": "call_1", "output": "plain", **answered}
    if called == answered:
        assert read([USER, made, answer]).open_programs == ()
    else:
        assert refused([USER, made, answer]).code == "caller_mismatch"


def test_a_program_stays_with_the_model_that_wrote_it() -> None:
    """Replayed to another deployment it is answered 401 (rule 11), with the same key as well."""
    with pytest.raises(Rejected) as error:
        read_history(history(), read_tools(TOOLS), SEAL, model="another")
    assert (error.value.status, error.value.code) == (401, "invalid_program_fingerprint")


def test_a_call_of_a_tool_in_a_namespace_keeps_its_namespace() -> None:
    """The public report's text, on the error path as on any other (rule 12)."""
    call: Item = {"type": "function_call", "call_id": "call_1", "name": "search", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
    assert "Missing namespace for function_call 'search'" in refused([USER, call, output]).message
    assert read([USER, {**call, "namespace": "records"}, output]).open_programs == ()


def test_messages_without_ids_still_tell_the_turn() -> None:
    """Clients that keep the text alone go on where they are, and do not begin again."""
    said = {"role": "assistant", "content": "Hello."}
    assert read([USER, said]).next_turn == 1
    assert read([USER, said, said, USER, said, USER]).next_turn == 2
    assert read([*history(), program_output(), said, USER]).next_turn == 2


# --- reasoning ------------------------------------------------------------------------------------------


def reasoned() -> list[Item]:
    reasoning = minted({"type": "reasoning", "summary": []})
    reasoning["encrypted_content"] = SEAL.seal(ENCRYPTED_REASONING, {"id": reasoning["id"]})
    call = minted(
        {"type": "function_call", "call_id": "call_1", "name": "get_demand", "arguments": "{}"}, 0, 1, True
    )
    return [USER, reasoning, call, {"type": "function_call_output", "call_id": "call_1", "output": "x"}]


def test_reasoning_in_its_place_is_taken() -> None:
    """The order as it was received."""
    assert read(reasoned()).next_turn == 1


def test_reasoning_without_what_follows_it_is_refused() -> None:
    """Dropped, moved or split: the service refuses each, and so does the peer (rule 9)."""
    user, reasoning, call, output = reasoned()
    other = minted(
        {"type": "function_call", "call_id": "call_2", "name": "get_demand", "arguments": "{}"}, 0, 2
    )
    second = {"type": "function_call_output", "call_id": "call_2", "output": "x"}
    for items in (
        [user, reasoning],
        [user, reasoning, user],
        [user, reasoning, other, call, output, second],
    ):
        assert "without its required following item" in refused(items).message


def test_what_follows_reasoning_is_refused_without_it() -> None:
    """The other half of the pair."""
    user, _, call, output = reasoned()
    assert "without its required 'reasoning' item" in refused([user, call, output]).message


def test_a_call_without_its_optional_id_still_follows_its_reasoning() -> None:
    """The id of a call is optional on the way back; the peer judges what it can."""
    user, reasoning, call, output = reasoned()
    del call["id"]
    assert read([user, reasoning, call, output]).open_programs == ()


def test_reasoning_that_is_neither_stored_nor_encrypted_is_not_found() -> None:
    """With store=false nothing is kept, so the item means nothing without its content."""
    items = reasoned()
    del items[1]["encrypted_content"]
    rejected = refused(items)
    assert rejected.status == 404
    assert "Items are not persisted" in rejected.message


def test_encrypted_reasoning_of_another_key_or_item_is_refused() -> None:
    """Only what this deployment encrypted, in the item it was for."""
    for content in (
        "abc",
        Seal(b"other").seal(ENCRYPTED_REASONING, {"id": "x"}),
        SEAL.seal(ENCRYPTED_REASONING, {"id": "rs_2"}),
    ):
        items = reasoned()
        items[1]["encrypted_content"] = content
        assert refused(items).status == 400


# --- what nobody knows ----------------------------------------------------------------------------------


def test_an_item_of_an_unknown_type_comes_back_only_as_it_was_sent() -> None:
    """History is the wire: the peer takes its own back unchanged, and nothing else of that kind."""
    item = minted({"type": "from_the_future", "text": "hi", "nested": {"a": [1, None]}})
    assert read([USER, item]).next_turn == 1
    assert "Invalid value" in refused([USER, {**item, "text": "ho"}]).message
    assert "Invalid value" in refused([USER, {k: v for k, v in item.items() if k != "nested"}]).message


def test_an_unknown_field_comes_back_only_as_it_was_sent() -> None:
    """The same for a field that this version does not know, of an item and of a caller."""
    caller = {"type": "program", "caller_id": "call_p", "depth": 1}
    call = a_call("call_1", future=[1], caller=caller)
    items = [USER, a_program(), call, an_output(call)]
    assert read(items).next_turn == 1
    assert (
        "Unknown parameter" in refused([USER, a_program(), {**call, "future": [2]}, an_output(call)]).message
    )
    del items[3]["caller"]["depth"]
    assert "does not match the call's caller" in refused(items).message


def test_every_item_type_of_the_installed_sdk_is_known() -> None:
    """The table of fields follows the SDK's input types: same types, same fields, same ones required."""
    import openai.types.responses.response_input_param as sdk
    from openai.types.responses.response_input_param import ResponseInputItemParam

    from ptc.gateway.shapes import ITEMS

    ours = {kind: set(shape) for kind, shape in ITEMS.items()}
    theirs: dict[str, set[str]] = {}
    required: dict[str, list[set[str]]] = {}
    for kind, fields, needed in _sdk_items(ResponseInputItemParam, sdk):
        theirs.setdefault(kind, set()).update(fields)
        required.setdefault(kind, []).append(needed)
    assert theirs.keys() == ours.keys()
    for kind, fields in theirs.items():
        assert fields <= ours[kind], kind
        assert ours[kind] - fields <= {"caller", "status"}, kind
        always = set.intersection(*required[kind])
        assert {name for name, field in ITEMS[kind].items() if field.required} - {"type"} <= always | {
            "call_id"
        }


def _sdk_items(union: Any, module: Any) -> Any:
    import typing

    for member in typing.get_args(union):
        hints = typing.get_type_hints(member, include_extras=True)
        kind = hints["type"]
        while typing.get_origin(kind) is not typing.Literal:
            kind = next(
                arg for arg in typing.get_args(kind) if arg is not type(None) and not isinstance(arg, str)
            )
        needed = {name for name, hint in hints.items() if "Required[" in str(hint)}
        yield typing.get_args(kind)[0], set(hints), needed - {"type"}


def test_json_numbers_beyond_a_double_come_back_as_they_were() -> None:
    """An item with a large integer is still the same item."""
    item = minted({"type": "from_the_future", "n": 9007199254740993})
    assert read([USER, json.loads(json.dumps(item))]).next_turn == 1
