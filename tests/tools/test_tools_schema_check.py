"""The fast check of a schema agrees with the authority, whatever it is given."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for

from ptc_tools.errors import InvalidSchema
from ptc_tools.schema import check_schema

KEYWORDS = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "enum",
    "const",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "uniqueItems",
    "$ref",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "if",
    "then",
    "else",
    "prefixItems",
    "contains",
    "propertyNames",
    "patternProperties",
    "dependentRequired",
    "dependentSchemas",
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "deprecated",
    "readOnly",
    "dependencies",
    "additionalItems",
    "$dynamicRef",
    "minContains",
]
DIALECTS = ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
PLAIN: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "string",
    "object",
    "#/$defs/a",
    "(",
    "[a",
    [],
    ["a"],
    [1],
    {},
]
NESTED: list[Any] = [
    ["a", "a"],
    {"a": {}},
    {"a": 1},
    {"type": "strin"},
    [{}],
    [True],
    [1, {}],
    {"a": ["b", "b"]},
]
VALUES: Any = st.sampled_from([*PLAIN, *NESTED, {"(": {}}, ["string", "null"], *DIALECTS])
SCHEMAS: Any = st.recursive(
    st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=4),
    lambda inner: st.dictionaries(
        st.sampled_from(KEYWORDS),
        inner | VALUES | st.lists(inner, max_size=2) | st.dictionaries(st.just("a"), inner),
    ),
    max_leaves=6,
)


@settings(max_examples=500)
@given(SCHEMAS)
def test_nothing_that_the_authority_refuses_is_accepted(schema: dict[str, Any]) -> None:
    """`jsonschema` says what a schema is; what is checked faster is no weaker for it."""
    try:
        check_schema(schema, "schema")
    except InvalidSchema:
        return
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise AssertionError(f"the authority refuses {schema}") from error
