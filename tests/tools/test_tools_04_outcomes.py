"""Point 4: a result, an empty one, a partial one, an absent field, an unavailable section, a failure, a
denial and an uncertain mutation stay different: on the wire, as types, and in the record."""

from typing import Annotated

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from ptc_tools import (
    Denied,
    Empty,
    EmptyResult,
    Failure,
    Idempotency,
    InvalidName,
    Invocation,
    Next,
    Outcome,
    Partial,
    PartialResult,
    Success,
    Unavailable,
    Uncertain,
    define_tool,
    error_object,
    tool,
)
from tests.tools.tool_support import MemoryRecorder, invoke


class Order(BaseModel):
    id: str
    note: str | None = None
    items: Annotated[list[str] | Unavailable, Field(description="What was ordered.")]


@tool(allowed_callers=["direct", "programmatic"])
async def orders(kind: str) -> list[Order] | EmptyResult | PartialResult[list[Order]]:
    """Find orders."""
    one = Order(id="1", items=["a"])
    match kind:
        case "empty":
            return EmptyResult(reason="no order is open")
        case "partial":
            return PartialResult(value=[one], missing=["orders of 2019"], continuation={"kind": "older"})
        case "unavailable":
            return [Order(id="1", items=Unavailable(reason="the archive is down", retry=True))]
        case "none":
            return []
        case "fails":
            raise ValueError("x")
    return [one]


VALUES: dict[str, object] = {
    "some": [{"id": "1", "note": None, "items": ["a"]}],
    "none": [],
    "empty": {"outcome": "empty", "reason": "no order is open"},
    "partial": {
        "outcome": "partial",
        "value": [{"id": "1", "note": None, "items": ["a"]}],
        "missing": ["orders of 2019"],
        "continuation": {"kind": "older"},
    },
    "unavailable": [
        {
            "id": "1",
            "note": None,
            "items": {"outcome": "unavailable", "reason": "the archive is down", "retry": True},
        }
    ],
}


@pytest.mark.parametrize("kind", list(VALUES))
async def test_each_kind_of_result_has_its_own_wire_form_and_the_schema_says_so(kind: str) -> None:
    """`output_schema` describes them truthfully: the schema on the wire accepts each of them."""
    outcome = await invoke(orders, {"kind": kind})
    assert isinstance(outcome, Success)
    assert outcome.value == VALUES[kind]
    schema = orders.contract.wire()["output_schema"]
    Draft202012Validator(schema).validate(orders.contract.on_wire(outcome.value))  # type: ignore[arg-type]


def test_no_two_kinds_look_alike() -> None:
    """Nothing is told by a null, an empty list or an empty string."""
    forms = [repr(value) for value in VALUES.values()]
    assert len(set(forms)) == len(forms)


async def test_each_kind_has_a_type_and_a_status_of_its_own() -> None:
    """A host matches on types; a record keeps the status."""
    kinds = {
        "some": (Success, "success"),
        "none": (Success, "success"),
        "unavailable": (Success, "success"),
        "empty": (Empty, "empty"),
        "partial": (Partial, "partial"),
        "fails": (Failure, "failure"),
    }
    for kind, (expected, status) in kinds.items():
        recorder = MemoryRecorder()
        outcome = await invoke(orders, {"kind": kind}, recorder=recorder)
        assert type(outcome) is expected
        assert outcome.status == status
        assert recorder.last == outcome
    partial = await invoke(orders, {"kind": "partial"})
    assert isinstance(partial, Partial)
    assert partial.missing == ("orders of 2019",)
    assert partial.continuation == {"kind": "older"}


async def test_a_continuation_can_be_called() -> None:
    """It holds the arguments that go on from here."""
    partial = await invoke(orders, {"kind": "partial"})
    assert isinstance(partial, Partial)
    assert isinstance(await invoke(orders, partial.continuation), Success)


async def test_an_absent_optional_field_is_not_an_unavailable_one() -> None:
    """`null` says there is none; unavailable says that nobody could look."""
    present = await invoke(orders, {"kind": "some"})
    missing = await invoke(orders, {"kind": "unavailable"})
    assert present.value[0]["note"] is None  # type: ignore[union-attr, index, call-overload]
    assert missing.value[0]["items"]["outcome"] == "unavailable"  # type: ignore[union-attr, index, call-overload]


async def test_errors_are_objects_of_their_own_kind() -> None:
    """Denied never ran, failed ran, uncertain may have had its effect: three codes, never a result."""

    @tool(effects="write", idempotency=Idempotency("service"), timeout=0.01)
    async def change(n: int) -> int:
        raise ConnectionError("gone")

    @tool
    async def fails(n: int) -> int:
        raise ConnectionError("gone")

    denied, failed, uncertain = (
        await invoke(fails, {}),
        await invoke(fails, {"n": 1}),
        await invoke(change, {"n": 1}),
    )
    assert type(denied) is Denied
    assert type(failed) is Failure
    assert type(uncertain) is Uncertain
    objects = [error_object(outcome)["error"] for outcome in (denied, failed, uncertain)]
    assert [error["type"] for error in objects] == ["invalid_arguments", "tool_error", "uncertain"]  # type: ignore[index, call-overload]
    assert all(error["message"] for error in objects)  # type: ignore[index, call-overload]


async def test_a_raw_tool_may_return_them_too() -> None:
    """The helpers are plain values; a raw tool has no annotation to say so."""
    definition = {"name": "raw", "parameters": {"type": "object"}}
    outcome = await invoke(define_tool(definition, lambda: EmptyResult()))  # type: ignore[arg-type]
    assert type(outcome) is Empty
    outcome = await invoke(define_tool(definition, lambda: PartialResult(value=[1], missing=["2"])))  # type: ignore[arg-type]
    assert type(outcome) is Partial
    plain = await invoke(define_tool(definition, lambda: {"outcome": "empty"}))  # type: ignore[arg-type]
    assert type(plain) is Success


async def test_a_partial_result_stays_partial_through_middleware() -> None:
    """A layer that hands an outcome on must not make it look whole."""

    async def copies(invocation: Invocation, next: Next) -> Outcome:
        from dataclasses import replace

        return replace(await next(invocation))

    outcome = await invoke(orders, {"kind": "partial"}, middleware=[copies])
    assert type(outcome) is Partial
    assert outcome.missing == ("orders of 2019",)


def test_a_partial_projection_may_not_be_named_platform() -> None:
    """A name that claims the whole platform for a part of it misleads who chooses the tool."""

    async def orders_by_status(n: int) -> int:
        return n

    with pytest.raises(InvalidName, match="platform"):
        tool(orders_by_status, namespace="platform", projection="partial")
    assert tool(orders_by_status, namespace="platform").contract.projection == "full"
    assert tool(orders_by_status, namespace="sales", projection="partial").contract.projection == "partial"
