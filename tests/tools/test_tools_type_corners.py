"""Point 10 at its edges: types that hold themselves, literals that Python takes for one, numbers of any size."""

import copy
import pickle
from decimal import Decimal
from typing import Annotated, Any, List, Literal, Union  # noqa: UP035 - the old form

import pytest
from pydantic import Field
from typing_extensions import TypeAliasType

import ptc_tools
from ptc_tools import (
    Denied,
    Failure,
    InvalidName,
    InvalidSignature,
    JsonObject,
    JsonValue,
    Success,
    ToolContext,
    define_tool,
    tool,
)
from ptc_tools.call import Caller
from ptc_tools.compare import compare
from ptc_tools.contract import Contract
from tests.tools.tool_support import MemoryRecorder, invoke

Endless = Union[int, List["Endless"]]  # noqa: UP006, UP007 - the old form, whose reference is a string
Tree = TypeAliasType("Tree", "int | list[Tree]")


async def test_any_json_is_a_type_that_tools_can_declare() -> None:
    """The name that the library itself uses for JSON works where users write it."""

    @tool(strict=False)
    async def keep(value: JsonValue, more: JsonObject, rows: list[JsonValue]) -> JsonObject:
        """Keep it."""
        return {"value": value, **more, "rows": rows}

    given: JsonObject = {"value": {"a": [1, None]}, "more": {"b": 2.5}, "rows": [True, 9007199254740993]}
    assert await invoke(keep, given) == Success(
        {"value": {"a": [1, None]}, "b": 2.5, "rows": [True, 9007199254740993]}
    )
    assert isinstance(await invoke(keep, given | {"more": [1]}), Denied)


def test_any_json_is_not_for_strict_mode() -> None:
    """It has no schema there; the message says the way out."""
    with pytest.raises(ptc_tools.InvalidSchema, match="strict=False"):

        @tool
        async def keep(value: JsonValue) -> int:
            """Keep it."""
            return 1


@pytest.mark.parametrize("strict", [True, False])
def test_a_type_that_holds_itself_without_a_name_is_refused(strict: bool) -> None:
    """Not with a RecursionError, or an advice about pydantic's insides."""
    with pytest.raises(InvalidSignature, match="TypeAliasType"):

        @tool(strict=strict)
        async def take(value: Endless) -> int:
            """Take it."""
            return 1

    with pytest.raises(InvalidSignature, match="TypeAliasType"):

        @tool(strict=strict)
        async def give(n: int) -> Endless:
            """Give it."""
            return n


async def test_a_type_that_holds_itself_by_name_is_one_that_a_tool_takes() -> None:
    """In strict mode as well, to any depth."""

    @tool
    async def take(value: Tree) -> Tree:
        """Take it."""
        return value

    assert await invoke(take, {"value": [1, [2, [3]]]}) == Success([1, [2, [3]]])
    assert isinstance(await invoke(take, {"value": [1, ["2"]]}), Denied)


@pytest.mark.parametrize("annotation", [Literal[1, True], Literal[0, "a", False]])
def test_literals_that_python_cannot_tell_apart_are_refused(annotation: Any) -> None:
    """A tool given 1.0 would see True."""

    async def pick(one: Any) -> int:
        """Pick."""
        return 1

    pick.__annotations__["one"] = annotation
    with pytest.raises(InvalidSignature, match="equal in Python"):
        tool(pick)


@pytest.mark.parametrize("text", ["9007199254740993.0", "9007199254740992.0", "1e20", "-9007199254740993.0"])
async def test_an_integer_whose_digits_are_lost_is_refused(text: str) -> None:
    """A double stands for several integers there, and the tool would act on a neighbour."""

    @tool
    async def typed(n: int) -> int:
        """Take it."""
        return n

    raw = define_tool(
        {"name": "raw", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        lambda n: n,
    )
    for each in (typed, raw):
        assert isinstance(await invoke(each, f'{{"n": {text}}}'), Denied)
        assert await invoke(each, '{"n": 9007199254740991.0}') == Success(9007199254740991)
        assert await invoke(each, '{"n": 9007199254740993}') == Success(9007199254740993)


async def test_a_decimal_has_an_exponent_that_can_be_written_out() -> None:
    """int(Decimal("1e999999999")) would take all of the memory."""

    @tool
    async def pay(amount: Decimal) -> int:
        """Pay."""
        return int(amount)

    assert isinstance(await invoke(pay, {"amount": "1e999999999"}), Denied)
    assert await invoke(pay, {"amount": "1e3"}) == Success(1000)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("kind", [set, frozenset])
async def test_a_set_takes_no_element_twice(kind: Any, strict: bool) -> None:
    """Two equal elements would silently become one; strict mode has no keyword for it, so words say it."""

    async def take(ids: Any) -> int:
        """Take."""
        return len(ids)

    take.__annotations__["ids"] = kind[int]
    taking = tool(take, strict=strict)
    assert await invoke(taking, {"ids": [1, 2]}) == Success(2)
    assert isinstance(await invoke(taking, {"ids": [1, 1]}), Denied)
    wire = taking.contract.wire()
    assert "x-ptc" not in str(wire)
    assert ("uniqueItems" in str(wire)) is not strict
    take.__annotations__["ids"] = list[int]
    assert compare(taking.contract, tool(take, strict=strict).contract).verdict == "wider"


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_a_copy_of_a_contract_cannot_be_written_to_either(copied: Any) -> None:
    """A pin that was read back from a cache is as fixed as it was."""

    @tool
    async def get(rows: list[int]) -> list[int]:
        """Get."""
        return rows

    contract: Contract = copied(get.contract)
    assert contract == get.contract
    assert contract.fingerprint() == get.contract.fingerprint()
    with pytest.raises(TypeError):
        contract.parameters["x"] = 1
    with pytest.raises(TypeError):
        contract.parameters["required"].append("x")  # type: ignore[union-attr]


@pytest.mark.parametrize("namespace", ["platform", "Platform", "PLATFORM"])
def test_a_partial_projection_is_no_platform_however_it_is_written(namespace: str) -> None:
    """A reader does not tell the two apart."""
    with pytest.raises(InvalidName, match="platform"):

        @tool(namespace=namespace, projection="partial")
        async def orders(n: int) -> int:
            """Show."""
            return n


class Rewriting:
    """A policy and an approver that write into what they are asked about."""

    async def authorize(
        self, principal: str | None, tool: Contract, arguments: JsonObject, caller: Caller
    ) -> Denied | None:
        arguments["rows"][0]["id"] = 2  # type: ignore[index, call-overload]
        return None

    async def approve(
        self, call: object, contract: Contract, arguments: JsonObject, run: object
    ) -> Denied | None:
        arguments["rows"] = []
        return None


@pytest.mark.parametrize("who", ["policy", "approver"])
async def test_who_decides_cannot_change_what_is_decided_about(who: str) -> None:
    """The record would say one thing, and a raw tool, which is given the same objects, do another."""
    ran: list[object] = []
    recorder = MemoryRecorder()

    def act(rows: object, context: ToolContext) -> int:
        ran.append(rows)
        return 1

    acting = define_tool(
        {"name": "act", "parameters": {"type": "object", "properties": {"rows": {"type": "array"}}}},
        act,
        approval="always" if who == "approver" else "never",
    )
    outcome = await invoke(acting, {"rows": [{"id": 1}]}, recorder=recorder, **{who: Rewriting()})
    assert isinstance(outcome, Denied)
    assert ran == []
    assert recorder.kinds == ["denied"]


def test_an_alias_that_may_be_none_counts_as_such() -> None:
    """Null cannot mean both None and the default."""
    Maybe = TypeAliasType("Maybe", Union[int, None])  # noqa: UP007 - a type, read at run time

    async def take(value: Annotated[Maybe, Field(description="x")] = 5) -> int:
        """Take."""
        return 1

    with pytest.raises(InvalidSignature, match="default"):
        tool(take)


@pytest.mark.parametrize(("pattern", "why"), [("^(?=a)a", "look-around"), ("(", "unclosed group")])
def test_a_pattern_that_cannot_be_checked_is_refused_at_registration(pattern: str, why: str) -> None:
    """With the tool's name, and not by an error of a library's."""

    async def take(text: Any) -> int:
        """Take."""
        return 1

    take.__annotations__["text"] = Annotated[str, Field(pattern=pattern)]
    with pytest.raises(ptc_tools.InvalidSchema, match=f"take.*{why}"):
        tool(take)


async def test_a_result_that_json_cannot_carry_is_named() -> None:
    """Not by a place in a document that nobody sees."""

    @tool
    async def measure(n: int) -> float:
        """Measure."""
        return float("nan")

    outcome = await invoke(measure, {"n": 1})
    assert isinstance(outcome, Failure)
    assert outcome.message == "the tool's result cannot be sent: NaN is not JSON"
