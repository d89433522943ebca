"""Whether a function's `parameters` fit strict mode: the subset of JSON Schema that the service documents.

Written from the documentation and apart from the code that makes our own schemas, so that the two check
each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptc.gateway.rejection import Rejected
from ptc_tools.call import JsonObject, JsonValue

_UNSUPPORTED = (
    "allOf",
    "not",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "then",
    "else",
    "oneOf",
    "patternProperties",
    "unevaluatedProperties",
)


def check_strict(schema: JsonObject, function: str, param: str) -> None:
    """Raise `Rejected`, in the service's words, for the first thing that strict mode does not allow."""
    for context, node in _nodes(schema, ()):
        problem = _problem(node)
        if problem:
            where = "(" + "".join(f"'{step}', " for step in context).rstrip() + ")"
            raise Rejected(
                f"Invalid schema for function '{function}': In context={where}, {problem}",
                param=param,
                code="invalid_function_parameters",
            )


def _problem(node: JsonObject) -> str | None:
    for keyword in _UNSUPPORTED:
        if keyword in node:
            return f"'{keyword}' is not permitted."
    kinds = node.get("type")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        if node.get("additionalProperties") is not False:
            return "'additionalProperties' is required to be supplied and to be false."
        properties = node.get("properties", {})
        required = node.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            return "'properties' must be an object and 'required' an array."
        missing = [name for name in properties if name not in required]
        if missing:
            return (
                "'required' is required to be supplied and to be an array including every key in "
                f"properties. Missing '{missing[0]}'."
            )
        extra = [name for name in required if name not in properties]
        if extra:
            return f"'required' has the key '{extra[0]}', which is not in properties."
    elif kinds is None and not node.keys() & {"$ref", "anyOf", "enum", "const"}:
        return "schema must have a 'type' key."
    if (kinds == "array" or (isinstance(kinds, list) and "array" in kinds)) and "items" not in node:
        return "array schema missing items."
    return None


def _nodes(node: JsonValue, context: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], JsonObject]]:
    if not isinstance(node, dict):
        return
    yield context, node
    for keyword in ("properties", "$defs", "definitions"):
        children = node.get(keyword)
        if isinstance(children, dict):
            for name, child in children.items():
                yield from _nodes(child, (*context, keyword, name))
    items = node.get("items")
    if isinstance(items, dict):
        yield from _nodes(items, (*context, "items"))
    options = node.get("anyOf")
    if isinstance(options, list):
        for index, child in enumerate(options):
            yield from _nodes(child, (*context, "anyOf", str(index)))
