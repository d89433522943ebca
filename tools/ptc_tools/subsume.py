"""Whether everything that one JSON Schema accepts is accepted by another: a proof, or nothing.

`accepts_all_of(wide, narrow)` is True only where it is proven; False means that no proof was found, not that
there is a counter-example. It understands the keywords of ordinary tool schemas; where the wide side uses
one that it does not, only the same keyword with the same value on the narrow side satisfies it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import cast

import jsonschema_rs

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidSchema
from ptc_tools.fingerprint import normalised
from ptc_tools.frozen import thaw
from ptc_tools.schema import compile_schema, resolve, walk
from ptc_tools.strict_json import canonical

_TYPES = ("null", "boolean", "number", "string", "array", "object")
_STEPS = 20_000
_KEEP = ("$defs", "definitions")
# Assertions that are compared as a whole: the same words on both sides, or no proof.
_WHOLE: dict[str, tuple[str, ...]] = {
    "string": ("pattern", "format"),
    "number": ("format",),
    "integer": ("format",),
    "object": ("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas"),
}  # fmt: skip
_ALWAYS_WHOLE = ("not", "if", "then", "else", "oneOf")
# What these mean depends on the keywords beside them.
_CONTAINS = ("contains", "minContains", "maxContains")
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
# All that a validator of draft 2020-12 asserts, and what asserts nothing. Who knows what another keyword means
# to whom: it must be there on both sides with the same value.
_UNDERSTOOD = frozenset(
    {
        "type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref",
        "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
        "minProperties", "maxProperties", "dependentRequired", "dependentSchemas",
        "items", "prefixItems", "minItems", "maxItems", "uniqueItems", *_CONTAINS, *_UNEVALUATED,
        "minLength", "maxLength", "pattern", "format",
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
        "title", "description", "examples", "default", "deprecated", "readOnly", "writeOnly",
        "$comment", "$schema", "$id", *_KEEP,
    }
)  # fmt: skip
_ELSEWHERE = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor")
# References that need no look at the rest of the schema: everything in them is walked, and nothing else.
_DEFINITION = re.compile(r"#/(\$defs|definitions)/[^/]+")


def accepts_all_of(wide: JsonValue, narrow: JsonValue) -> bool:
    """Whether it is proven that `wide` accepts every value that `narrow` accepts."""
    wide, narrow = thaw(wide), thaw(narrow)
    if not (_plain(wide) and _plain(narrow)):
        # A reference may lead anywhere, to words and to the third value of an enum.
        exact = b"/enum/" in canonical(wide)
        return canonical(wide if exact else normalised(wide)) == canonical(
            narrow if exact else normalised(narrow)
        )
    if _same(wide, narrow):
        return True
    for schema in (wide, narrow):
        if isinstance(schema, dict) and "2020-12" not in str(schema.get("$schema", "2020-12")):
            return False
    try:
        return _Proof(wide, narrow).holds(narrow, wide, 0)
    except (InvalidSchema, RecursionError, _GaveUp):
        return False


class _GaveUp(Exception):
    """The proof became too long."""


def _plain(schema: JsonValue) -> bool:
    """Whether every part means the same wherever it stands, but for the definitions that it refers to."""
    for pointer, member in walk(schema):
        if any(key in member for key in _ELSEWHERE) or ("$id" in member and pointer != "#"):
            return False
        if isinstance(member.get("items"), list) or "dependencies" in member:
            return False
        reference = member.get("$ref")
        if reference is not None and not (isinstance(reference, str) and _DEFINITION.fullmatch(reference)):
            return False
    return True


def _same(left: JsonValue, right: JsonValue) -> bool:
    return canonical(normalised(left, words=False)) == canonical(normalised(right, words=False))


class _Proof:
    """One attempt. `holds(b, a, depth)` proves that the schema `a` accepts all that `b` does."""

    def __init__(self, wide: JsonValue, narrow: JsonValue) -> None:
        self._wide = wide if isinstance(wide, dict) else {}
        self._narrow = narrow if isinstance(narrow, dict) else {}
        self._steps = 0
        # Pairs that are being proven, and how deep inside the value that is: a pair may be assumed only
        # further inside, else a schema that refers to itself would prove anything.
        self._assumed: dict[tuple[str, str], int] = {}
        self._same_definitions = _same(_kept(self._wide), _kept(self._narrow))

    def holds(self, b: JsonValue, a: JsonValue, depth: int) -> bool:
        self._steps += 1
        if self._steps > _STEPS:
            raise _GaveUp
        if a is True or b is False:
            return True
        b = {} if b is True else b
        if not isinstance(b, dict) or not isinstance(a, dict):
            return False
        if self._same_text(b, a):
            return True
        if "$ref" in b or "$ref" in a:
            return self._through_references(b, a, depth)
        literals = _literals(b)
        if literals is not None:
            return self._accepts_literals(literals, b, a)
        if "anyOf" in b or "oneOf" in b or "allOf" in b:
            return self._splits(b, a, depth)
        kinds = _kinds(b)
        if len(kinds) != 1:
            return all(self.holds({**b, "type": kind}, a, depth) for kind in kinds)
        return self._fits(b, kinds[0], a, depth)

    def _same_text(self, b: JsonValue, a: JsonValue) -> bool:
        """Whether two parts say the same; a reference says what its own root defines."""
        return _same(b, a) and (self._same_definitions or b'"$ref"' not in canonical(b))

    def _same_words(self, b: JsonObject, a: JsonObject, keywords: tuple[str, ...]) -> bool:
        return all(
            keyword in b and self._same_text({keyword: b[keyword]}, {keyword: a[keyword]})
            for keyword in keywords
            if keyword in a
        )

    def _through_references(self, b: JsonObject, a: JsonObject, depth: int) -> bool:
        pair = (canonical(b).decode(), canonical(a).decode())
        if pair in self._assumed:
            return depth > self._assumed[pair]
        self._assumed[pair] = depth
        try:
            if "$ref" in b:
                rest = {key: value for key, value in b.items() if key not in ("$ref", *_KEEP)}
                target = resolve(self._narrow, cast("str", b["$ref"]))
                return self.holds(target, a, depth) or (bool(rest) and self.holds(rest, a, depth))
            rest = {key: value for key, value in a.items() if key not in ("$ref", *_KEEP)}
            target = resolve(self._wide, cast("str", a["$ref"]))
            return self.holds(b, target, depth) and self.holds(b, rest, depth)
        finally:
            del self._assumed[pair]

    def _accepts_literals(self, literals: list[JsonValue], b: JsonObject, a: JsonObject) -> bool:
        if not _decidable(a, self._wide):
            return False
        narrow, wide = _validator(b, self._narrow), _validator(a, self._wide)
        return all(wide.is_valid(value) for value in literals if narrow.is_valid(value))

    def _splits(self, b: JsonObject, a: JsonObject, depth: int) -> bool:
        """A union is covered if each member is; an intersection if any part of it is."""
        for keyword in ("anyOf", "oneOf"):
            members = b.get(keyword)
            if isinstance(members, list):
                rest = {key: value for key, value in b.items() if key != keyword}
                if all(self.holds(_with(member, rest), a, depth) for member in members):
                    return True
                return bool(rest) and self.holds(rest, a, depth)
        rest = {key: value for key, value in b.items() if key != "allOf"}
        members = cast("list[JsonValue]", b["allOf"])
        return any(self.holds(member, a, depth) for member in members) or self.holds(rest, a, depth)

    def _fits(self, b: JsonObject, kind: str, a: JsonObject, depth: int) -> bool:
        """`b` is of one type and has no alternatives any more: every keyword of `a` must hold for it."""
        for keyword in ("allOf", "anyOf"):
            members = a.get(keyword)
            if isinstance(members, list):
                quantifier = all if keyword == "allOf" else any
                if not quantifier(self.holds(b, member, depth) for member in members):
                    return False
        if any(keyword in a for keyword in _UNEVALUATED):
            return False
        unknown = tuple(sorted(set(a) - _UNDERSTOOD))
        if not self._same_words(b, a, (*_ALWAYS_WHOLE, *_WHOLE.get(kind, ()), *unknown)):
            return False
        if _literals(a) is not None:
            every: list[JsonValue] = {"null": [None], "boolean": [True, False]}.get(kind, [])  # type: ignore[assignment]
            return bool(every) and self._accepts_literals(every, b, a)
        if not _type_fits(kind, a):
            return False
        if kind in ("number", "integer"):
            return _numbers_fit(b, kind, a)
        if kind == "string":
            return _counts_fit(b, a, "minLength", "maxLength")
        if kind == "array":
            return self._arrays_fit(b, a, depth)
        return kind != "object" or self._objects_fit(b, a, depth)

    def _arrays_fit(self, b: JsonObject, a: JsonObject, depth: int) -> bool:
        if not _counts_fit(b, a, "minItems", "maxItems"):
            return False
        if "contains" in a and any(b.get(key) != a.get(key) for key in _CONTAINS[1:]):
            return False
        if not self._same_words(b, a, _CONTAINS):
            return False
        most = b.get("maxItems")
        if (
            a.get("uniqueItems") is True
            and b.get("uniqueItems") is not True
            and not (isinstance(most, int) and most <= 1)
        ):
            return False
        narrow, wide = _prefix(b), _prefix(a)
        for index in range(max(len(narrow), len(wide))):
            if isinstance(most, int) and index >= most:
                return True
            inner = narrow[index] if index < len(narrow) else b.get("items", True)
            outer = wide[index] if index < len(wide) else a.get("items", True)
            if not self.holds(inner, outer, depth + 1):
                return False
        if most == 0:
            return True
        return self.holds(b.get("items", True), a.get("items", True), depth + 1)

    def _objects_fit(self, b: JsonObject, a: JsonObject, depth: int) -> bool:
        narrow, wide = _named(b), _named(a)
        required = set(_strings(b.get("required")))
        if not set(_strings(a.get("required"))) <= required:
            return False
        fewest = max(_number(b.get("minProperties"), 0), len(required))
        most = _number(b.get("maxProperties"), float("inf"))
        if b.get("additionalProperties") is False and "patternProperties" not in b:
            most = min(most, len(narrow))
        if fewest < _number(a.get("minProperties"), 0) or most > _number(
            a.get("maxProperties"), float("inf")
        ):
            return False
        others_b, others_a = b.get("additionalProperties", True), a.get("additionalProperties", True)
        patterns = "patternProperties" in b
        if "patternProperties" in a and set(narrow) != set(wide):
            return False
        if patterns and "patternProperties" not in a and others_a is not True:
            return False
        for name in {*narrow, *wide}:
            # A name that is not declared may match a pattern: nothing is known about its value then.
            inner = narrow.get(name, True if patterns else others_b)
            outer = wide.get(name, others_a)
            if not self.holds(inner, outer, depth + 1):
                return False
        return self.holds(others_b, others_a, depth + 1)


def _with(member: JsonValue, rest: JsonObject) -> JsonValue:
    """A member of a union with what stands beside the union, where their keywords do not interact."""
    if not isinstance(member, dict):
        return member
    simple = {
        key: value for key, value in rest.items() if key in ("type", "enum", "const") and key not in member
    }
    return {**member, **simple} if "$ref" not in member else member


def _literals(schema: JsonObject) -> list[JsonValue] | None:
    values = schema.get("enum")
    if isinstance(values, list):
        return values
    return [schema["const"]] if "const" in schema else None


def _kept(root: JsonObject) -> JsonObject:
    return {key: root[key] for key in _KEEP if key in root}


def _decidable(schema: JsonObject, root: JsonObject) -> bool:
    """Whether a validator's yes to a value is the last word: a format may be asserted by somebody else."""
    return all(
        "format" not in member and set(member) <= _UNDERSTOOD
        for _, member in walk({**_kept(root), "allOf": [schema]})
    )


def _validator(schema: JsonObject, root: JsonObject) -> jsonschema_rs.Draft202012Validator:
    bare = {key: value for key, value in schema.items() if key not in (*_KEEP, "$id", "$schema")}
    return compile_schema({**_kept(root), "allOf": [bare]}, "schema")


def _kinds(schema: JsonObject) -> tuple[str, ...]:
    kind = schema.get("type")
    if kind is None:
        return _TYPES
    kinds = tuple(str(item) for item in kind) if isinstance(kind, list) else (str(kind),)
    return tuple(item for item in kinds if item != "integer" or "number" not in kinds)


def _type_fits(kind: str, a: JsonObject) -> bool:
    kinds = _kinds(a)
    return kind in kinds or (kind == "integer" and "number" in kinds)


def _numbers_fit(b: JsonObject, kind: str, a: JsonObject) -> bool:
    for sign, inclusive, exclusive in (
        (1, "minimum", "exclusiveMinimum"),
        (-1, "maximum", "exclusiveMaximum"),
    ):
        outer = _limit(a, sign, inclusive, exclusive)
        if outer is None:
            continue
        inner = _limit(b, sign, inclusive, exclusive)
        if inner is None or inner < outer:
            return False
    step = a.get("multipleOf")
    if step is None:
        return True
    own = b.get("multipleOf")
    steps = [_fraction(own)] if own is not None else []
    if kind == "integer":
        steps.append(Fraction(1))
    return any((mine / _fraction(step)).denominator == 1 for mine in steps)


def _limit(schema: JsonObject, sign: int, inclusive: str, exclusive: str) -> tuple[Fraction, bool] | None:
    """The tighter of two limits, as a pair that is the larger the tighter it is."""
    found = []
    if inclusive in schema:
        found.append((sign * _fraction(schema[inclusive]), False))
    if exclusive in schema:
        found.append((sign * _fraction(schema[exclusive]), True))
    return max(found, default=None)


def _fraction(value: JsonValue) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSchema("a numeric keyword holds no number")
    # Validators read 0.1 as the decimal that is written, not as the binary number nearest to it.
    return Fraction(str(value))


def _counts_fit(b: JsonObject, a: JsonObject, least: str, most: str) -> bool:
    unlimited = float("inf")
    return _number(b.get(least), 0) >= _number(a.get(least), 0) and _number(
        b.get(most), unlimited
    ) <= _number(a.get(most), unlimited)


def _number(value: JsonValue, default: float) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default


def _prefix(schema: JsonObject) -> list[JsonValue]:
    prefix = schema.get("prefixItems")
    return prefix if isinstance(prefix, list) else []


def _named(schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))
