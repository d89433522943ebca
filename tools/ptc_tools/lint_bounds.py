"""Where a contract's schemas leave room without end: texts, lists, mappings, any JSON at all.

It reads schemas alone, and knows which bounds of the contract stand in for a keyword. What a pattern bounds it
tells by its form; it matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ptc_tools.applied import expanded
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.contract import Contract
from ptc_tools.schema import walk
from ptc_tools.typed import DECIMAL


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A place, what stands there, and an example of a bound."""

    path: str
    what: str
    fix: str


def unbounded(contract: Contract) -> Iterator[Unbounded]:
    """The places of a contract's schemas that its own bounds leave open."""
    for where, schema in (("parameters", contract.parameters), ("output_schema", contract.output_schema)):
        if schema is None:
            continue
        is_result = where == "output_schema"
        ours = _own_words(schema)
        anything: set[str] = set()
        listed = contract.bounds.items or contract.bounds.bytes
        for pointer, member in walk(schema):
            if pointer.startswith(ours):
                continue
            path = path_of(where, pointer)
            literal = "enum" in member or "const" in member
            if "string" in types_of(member) and not literal and "maxLength" not in member:
                bounded = _says_something(member.get("pattern")) or "format" in member
                if not bounded and not (is_result and (contract.bounds.text or contract.bounds.bytes)):
                    yield _place(path, "text", "maxLength", 200)
            if "array" in types_of(member) and "maxItems" not in member and not (is_result and listed):
                yield _place(path, "list", "maxItems", 50)
            if (
                path not in anything
                and _is_any_json(member, schema, pointer)
                and not (is_result and contract.bounds.bytes)
            ):
                anything.add(path)  # a reference inside a reference is one place
                yield Unbounded(path, "value", "-> Report, list[int], str: a type with a bound, not any JSON")
            if _is_open(member) and not (is_result and contract.bounds.bytes):
                yield _place(path, "mapping", "maxProperties", 50)


def _place(path: str, what: str, keyword: str, most: int) -> Unbounded:
    fix = f"Annotated[…, Field(max_length={most})] ({keyword}), or bounds=Bounds(…) for results"
    return Unbounded(path, what, fix)


_KINDS = frozenset({"type", "enum", "const", "$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if"})


def _is_any_json(schema: JsonObject, root: JsonObject, pointer: str) -> bool:
    """Whether a place takes any JSON at all, also by reference; a definition alone is no place."""
    if re.fullmatch(r"#/(\$defs|definitions)/[^/]+", pointer):
        return False
    return any(map(_is_anything, expanded([schema], root)))


def _is_anything(schema: JsonObject) -> bool:
    """Whether it takes any JSON at all: without a word about kinds, no bound of a kind holds."""
    return not _KINDS & schema.keys() and not {"properties", "items", "required"} & schema.keys()


def _is_open(schema: JsonObject) -> bool:
    """Whether it says itself that it takes any number of keys."""
    return schema.get("additionalProperties", False) is not False and "maxProperties" not in schema


def _own_words(schema: JsonObject) -> tuple[str, ...]:
    """Places of what our own return types say (what is missing, a reason): no part of the tool's result."""
    found = []
    for pointer, member in walk(schema):
        named = member.get("properties")
        outcome = named.get("outcome") if isinstance(named, dict) else None
        if isinstance(outcome, dict) and outcome.get("const") in ("empty", "partial", "unavailable"):
            found += [f"{pointer}/properties/{name}" for name in ("missing", "continuation", "reason")]
    return tuple(found)


def _says_something(pattern: JsonValue) -> bool:
    """Whether a pattern may bound a text: it holds from the start to the end, and repeats nothing without end."""
    if pattern == DECIMAL:
        return True  # a number, however many digits it has
    if not isinstance(pattern, str) or not (pattern.startswith("^") and pattern.endswith(("$", "\\Z"))):
        return False
    # What is escaped, or in a class of characters, repeats nothing.
    bare = re.sub(r"\[(?:\\.|[^\]\\])*\]|\\.", "x", pattern)
    return re.search(r"[*+]|\{\d*,\}", bare) is None


def types_of(schema: JsonObject) -> list[JsonValue]:
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def path_of(where: str, pointer: str) -> str:
    """A JSON pointer into a schema as the path of the value that it describes."""
    steps, path, index = pointer.split("/")[1:], f"$.{where}", 0
    while index < len(steps):
        step = steps[index]
        if step == "properties" and index + 1 < len(steps):
            path += f".{steps[index + 1]}"
            index += 1
        elif step in ("items", "prefixItems"):
            path += "[*]"
        elif step in ("$defs", "definitions") and index + 1 < len(steps):
            path += f".{step}.{steps[index + 1]}"
            index += 1
        index += 1
    return path
