"""Point 11: `jsonschema-rs` answers on the path, `jsonschema` is the oracle; where they differ is listed.

The cases in `data/` are the draft 2020-12 files of the JSON-Schema-Test-Suite (MIT licence beside them), as
the source package of `jsonschema` ships them, without those that fetch a schema over the network.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from ptc_tools import Denied, InvalidSchema, Success, define_tool, tool
from ptc_tools.schema import SchemaValidator, check_schema
from tests.tools.test_tools_02_compare import MANY_VALUES, SCHEMAS
from tests.tools.tool_support import invoke

DATA = Path(__file__).parent / "data" / "json_schema_test_suite_2020_12.json"
SUITE: dict[str, list[dict[str, Any]]] = json.loads(DATA.read_text())


@pytest.mark.parametrize("name", sorted(SUITE))
def test_both_validators_give_the_suites_answers(name: str) -> None:
    """More than a thousand cases; no difference is known among them."""
    wrong = []
    for group in SUITE[name]:
        oracle = Draft202012Validator(group["schema"])
        fast = jsonschema_rs.validator_for(group["schema"], offline=True)
        for case in group["tests"]:
            answers = (oracle.is_valid(case["data"]), fast.is_valid(case["data"]))
            if answers != (case["valid"], case["valid"]):
                wrong.append((group["description"], case["description"], answers))
    assert wrong == []


@pytest.mark.parametrize("name", sorted(SUITE))
def test_what_is_registered_gives_the_suites_answers_too(name: str) -> None:
    """Our own checks refuse some schemas (references that are not local); the others mean what they say."""
    refused = 0
    for group in SUITE[name]:
        try:
            schema = check_schema(group["schema"], "schema")
        except InvalidSchema:
            refused += 1
            continue
        validator = SchemaValidator(schema, "schema")
        for case in group["tests"]:
            assert validator.is_valid(case["data"]) is case["valid"], (
                group["description"],
                case["description"],
            )
    assert refused < len(SUITE[name]) or name in {"boolean_schema", "defs", "refRemote"}


# schema, value, what jsonschema says, what jsonschema-rs says (None: it refuses the schema).
DIFFERENCES: list[tuple[Any, Any, bool | None, bool | None]] = [
    # A pattern is an ECMA-262 regular expression; jsonschema takes it for one of Python's.
    ({"pattern": "^a$"}, "a\n", True, False),
    ({"pattern": r"^\d$"}, "٣", True, False),
    ({"pattern": r"^\w$"}, "é", True, False),
    ({"pattern": r"^(?P<x>a)(?P=x)$"}, "aa", True, None),
    ({"pattern": r"^\p{L}$"}, "é", None, True),
    # jsonschema divides binary fractions, jsonschema-rs the decimals that were written.
    ({"multipleOf": 0.01}, 19.99, False, True),
    ({"multipleOf": 0.1}, 0.3, False, True),
    ({"multipleOf": 1.1}, 2**53, True, False),
    ({"multipleOf": 0.01}, 10**400, None, True),
    # … of a float from 2**53 on the binary digits, so that here jsonschema is right.
    ({"multipleOf": 1e20}, 1e30, True, False),
    ({"pattern": "^.$"}, "\u2028", True, False),
    ({"pattern": "a{,2}$"}, "a", True, None),
    ({"pattern": "(?<x>a)"}, "a", None, True),
    ({"patternProperties": {"^a$": False}}, {"a\n": 1}, False, True),
    ({"propertyNames": {"pattern": "^a$"}}, {"a\n": 1}, True, False),
]


@pytest.mark.parametrize(("schema", "value", "oracle", "fast"), DIFFERENCES)
def test_known_differences_are_as_listed(
    schema: Any, value: Any, oracle: bool | None, fast: bool | None
) -> None:
    """Outside the suite; in each but one the path's answer is the specification's. A new version that agrees fails here."""

    def answer(validator: Any) -> bool | None:
        try:
            return validator(schema).is_valid(value)  # type: ignore[no-any-return]
        except Exception:  # noqa: BLE001 - each has errors of its own
            return None

    assert answer(Draft202012Validator) is oracle
    assert answer(lambda s: jsonschema_rs.validator_for(s, offline=True)) is fast


@settings(max_examples=100, deadline=None)
@given(SCHEMAS, MANY_VALUES)
def test_they_agree_on_random_schemas_and_values(schema: Any, values: list[Any]) -> None:
    """Combinations that nobody thought of."""
    oracle, fast = Draft202012Validator(schema), jsonschema_rs.validator_for(schema, offline=True)
    for value in values:
        assert oracle.is_valid(value) == fast.is_valid(value)


@pytest.mark.parametrize(
    "schema",
    [
        3,
        None,
        [],
        True,
        {"type": "objekt"},
        {"type": ["string", "string"]},
        {"properties": []},
        {"required": "a"},
        {"minimum": "3"},
        {"pattern": "("},
        {"$ref": "#/$defs/missing"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"items": {"$ref": "other.json#/a"}},
        {"$dynamicRef": "https://example.com/x#y"},
        {"$schema": "https://example.com/my-dialect"},
        {"$schema": 3},
        {"enum": [float("nan")]},
        {"x": object()},
        {1: 2},
        {"description": "\ud800"},
    ],
)
def test_what_is_no_schema_that_stands_alone_is_refused(schema: Any) -> None:
    """And nothing is ever fetched: neither over the network nor from a file."""
    with pytest.raises(InvalidSchema):
        check_schema(schema, "schema")


def test_a_schema_that_is_too_deep_is_refused() -> None:
    """A hostile server's schema must not exhaust the stack."""
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"items": schema}
    with pytest.raises(InvalidSchema):
        check_schema(schema, "schema")


async def test_an_older_dialect_that_declares_itself_is_honoured() -> None:
    """MCP servers in the wild send draft 7."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"items": [{"type": "string"}], "additionalItems": False}},
    }
    entry = define_tool({"name": "raw", "parameters": schema}, lambda pair: len(pair))  # type: ignore[dict-item]
    assert await invoke(entry, {"pair": ["a"]}) == Success(1)
    assert isinstance(await invoke(entry, {"pair": ["a", "b"]}), Denied)


async def test_formats_are_asserted_for_raw_definitions() -> None:
    """A typed tool's decoder knows its formats; a raw tool has nothing but its schema."""
    schema = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}
    entry = define_tool({"name": "raw", "parameters": schema}, lambda day: day)  # type: ignore[dict-item]
    assert await invoke(entry, {"day": "2024-02-29"}) == Success("2024-02-29")
    assert isinstance(await invoke(entry, {"day": "tomorrow"}), Denied)


async def test_integers_keep_every_digit_on_the_whole_way() -> None:
    """From the text of the call through schema, decoder and result."""

    @tool
    async def same(n: int) -> int:
        return n

    for number in (2**53 + 1, -(2**63) - 1, 10**40):
        assert await invoke(same, f'{{"n": {number}}}') == Success(number)


async def test_a_pattern_that_explodes_does_not_hang_the_host() -> None:
    """Backtracking is bounded: the call is refused instead."""
    schema = {"type": "object", "properties": {"s": {"type": "string", "pattern": r"^(a|aa)+(?=b)$"}}}
    entry = define_tool({"name": "raw", "parameters": schema}, lambda s: s)  # type: ignore[dict-item]
    assert isinstance(await invoke(entry, {"s": "a" * 60 + "!"}), Denied)


def test_messages_name_the_place_and_not_the_value() -> None:
    """They may be read by who must not see the value."""
    schema = {
        "type": "object",
        "properties": {"a": {"enum": ["x"]}, "b": {"type": "array", "items": {"maxLength": 2}}},
    }
    text = SchemaValidator(schema, "schema").explain({"a": "hunter2", "b": ["ok", "hunter2"]})  # type: ignore[dict-item]
    assert "hunter2" not in text
    assert "a:" in text
    assert "b.1:" in text
