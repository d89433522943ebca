"""A whole number is an integer, however JSON writes it: 1.0 is accepted, and the function is given 1."""

from enum import IntEnum
from typing import Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.integers import with_integers
from ptc_tools.outcome import Denied, Success
from ptc_tools.tool import define_tool, tool
from tests.tools.tool_support import invoke


class Size(IntEnum):
    small = 1


class Line(BaseModel):
    units: int
    price: float = 1.0


seen: list[object] = []


@tool
def order(
    number: int,
    rate: float,
    lines: list[Line],
    kind: Literal[1, 2],
    size: Size,
    more: int | str | None = None,
) -> str:
    """Order something."""
    seen.append((number, rate, lines, kind, size, more))
    return "ok"


async def test_a_typed_function_is_given_ints_wherever_its_schema_takes_integers() -> None:
    """A program's JSON writes 1.0 for 1; JSON Schema (2020-12, 4.2.3) does not tell them apart."""
    text = (
        '{"number": 3.0, "rate": 2.0, "lines": [{"units": 5, "price": 1}, {"units": 4.0, "price": 2.0}],'
        ' "kind": 2.0, "size": 1.0, "more": 7.0}'
    )
    seen.clear()
    assert isinstance(await invoke(order, text), Success)
    number, rate, lines, kind, size, more = seen[0]  # type: ignore[misc]
    assert (number, rate, kind, size, more) == (3, 2.0, 2, Size.small, 7)
    assert [type(value) for value in (number, rate, kind, size, more)] == [int, float, int, Size, int]
    assert [(line.units, type(line.units), type(line.price)) for line in lines] == [
        (5, int, float),
        (4, int, float),
    ]


@pytest.mark.parametrize("number", ["1.5", '"1"', "true", "1e-1"])
async def test_what_is_no_integer_stays_refused(number: str) -> None:
    seen.clear()
    text = f'{{"number": {number}, "rate": 1, "lines": [], "kind": 1, "size": 1}}'
    assert isinstance(await invoke(order, text), Denied)
    assert seen == []


async def test_a_raw_tool_is_given_ints_too() -> None:
    """Its function reads `range(units)` as its schema promised."""
    got: list[object] = []
    definition: JsonObject = {
        "type": "function",
        "name": "raw",
        "description": "Raw.",
        "parameters": {
            "type": "object",
            "properties": {
                "units": {"type": "integer"},
                "rate": {"type": "number"},
                "any": {},
                "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
            },
            "$defs": {"row": {"anyOf": [{"type": "null"}, {"type": ["integer", "string"]}]}},
            "additionalProperties": False,
        },
    }
    raw = define_tool(definition, lambda **arguments: got.append(arguments))
    assert isinstance(
        await invoke(raw, '{"units": 2.0, "rate": 2.0, "any": 2.0, "rows": [1.0, null, "x"]}'), Success
    )
    assert got == [{"units": 2, "rate": 2.0, "any": 2.0, "rows": [1, None, "x"]}]
    assert repr(got[0]) == repr({"units": 2, "rate": 2.0, "any": 2.0, "rows": [1, None, "x"]})


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(("integer", "number", "string", "array", "object", "null", "boolean"))
SCHEMAS = st.recursive(
    st.builds(lambda kind: {"type": kind}, KINDS) | st.just({"$ref": "#"}) | st.just({}),
    lambda inner: (
        st.builds(lambda items: {"items": items}, inner)
        | st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner)
        | st.builds(lambda a, rest: {"properties": {"a": a}, "additionalProperties": rest}, inner, inner)
        | st.builds(lambda first, rest: {"prefixItems": [first], "items": rest}, inner, inner)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), SCHEMAS)
def test_no_value_is_changed_and_no_schema_is_broken_by_it(arguments: JsonObject, schema: JsonObject) -> None:
    """Only how a number is represented changes: everything compares equal, and fits what it fitted."""
    before: JsonValue = repr(arguments)
    changed = with_integers(arguments, schema)
    assert changed == arguments
    assert repr(arguments) == before
    validator = jsonschema.Draft202012Validator(schema)
    try:
        fitted = validator.is_valid(arguments)
    except RecursionError:
        return
    assert validator.is_valid(changed) == fitted
