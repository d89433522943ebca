"""A result over its bounds, cut to one within them: a partial one, which says what is missing.

It is cut where a cut leaves a true value: a list, a free text. Where none would be true (depth, the bytes of
an object, half a date) the call fails. It never drops a member of an object, and cuts nothing unsaid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ptc_tools.applied import expanded, items, members
from ptc_tools.bounds import Bounds
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.results import Returned
from ptc_tools.schema import escape, shorten
from ptc_tools.strict_json import dumps

_MAX_NAMED, _MAX_NOTE = 20, 200
_AND_MORE = "and more"
# Texts of a length that their form limits: they stand whatever the bound, since half of one is false.
_SHORT = frozenset({"date", "date-time", "time", "duration", "uuid", "ipv4", "ipv6"})


class OutOfBounds(ValueError):
    """A value is over a bound and cannot be cut to a true one."""


@dataclass(slots=True)
class Cut:
    """A result within its bounds, and what was taken away."""

    value: JsonValue
    missing: list[str]
    root_items: int | None = None
    """How many elements of a list at the root are left, if that list was cut."""


class Forms:
    """What a schema says about a place in a value. It is worked out for a text that is too long, not before."""

    __slots__ = ("_parent", "_parts", "_root", "_step")

    def __init__(self, root: JsonObject, parent: Forms | None = None, step: str | int = "") -> None:
        self._root = root
        self._parent = parent
        self._step = step
        self._parts: list[JsonObject] | None = [root] if parent is None else None

    def at(self, step: str | int) -> Forms:
        """What is said about a member or an element."""
        return Forms(self._root, self, step)

    @property
    def parts(self) -> list[JsonObject]:
        """Those parts of the schema that apply here."""
        if self._parts is None and self._parent is not None:
            above = list(expanded(self._parent.parts, self._root))
            step = self._step
            self._parts = members(above, step) if isinstance(step, str) else items(above, step)
        return self._parts or []

    def is_free(self) -> bool:
        """Whether a text here may as well be another one, a shorter one for instance."""
        return all(_is_free(part, self._root, ()) for part in self.parts)

    def is_short(self) -> bool:
        """Whether the form itself limits how long a text here is."""
        return any(
            part.get("format") in _SHORT or "enum" in part or "const" in part
            for part in expanded(self.parts, self._root)
        )


def _is_free(schema: JsonValue, root: JsonObject, seen: tuple[int, ...]) -> bool:
    if not isinstance(schema, dict) or id(schema) in seen:
        return True
    if any(keyword in schema for keyword in ("format", "pattern", "enum", "const")):
        return False
    kinds = schema.get("type")
    if kinds is not None and "string" not in (kinds if isinstance(kinds, list) else [kinds]):
        return False
    seen = (*seen, id(schema))
    if "$ref" in schema:
        found = [part for part in expanded([{"$ref": schema["$ref"]}], root) if "$ref" not in part]
        if found and not _is_free(found[0], root, seen):
            return False
    for keyword, enough in (("anyOf", any), ("oneOf", any), ("allOf", all)):
        parts = schema.get(keyword)
        if isinstance(parts, list) and not enough(_is_free(part, root, seen) for part in parts):
            return False
    return True


def bounded(
    returned: Returned,
    bounds: Bounds,
    schema: JsonObject | None,
    going_on: Callable[[int], JsonObject | None],
) -> None:
    """Cut what is over the bounds, and make the result a partial one that says so. Raises `OutOfBounds`.

    `schema` is the tool's output schema. `going_on` gives the arguments of a call that goes on
    after that many items of this one, or None.
    """
    root: JsonObject = {} if schema is None else schema
    value, forms = returned.value, Forms(root)
    if returned.kind == "empty" and isinstance(value, dict):
        returned.value = _fewer_words(value, bounds)
        return
    own = value if returned.kind == "partial" and isinstance(value, dict) else None
    said: list[JsonValue] = []
    if own is not None:
        value, forms = own.get("value"), forms.at("value")
        said = _said(own, bounds)
        if bounds.bytes is not None:
            bounds = replace(bounds, bytes=_room(bounds.bytes, own, said))
    result = cut(value, bounds, forms)
    if not result.missing:
        if own is not None:
            returned.value = {**own, "missing": said}
        return
    # A continuation that the tool gave would skip what was cut here, so it is not passed on.
    continuation = None if result.root_items is None else going_on(result.root_items)
    returned.kind = "partial"
    returned.value = {
        "outcome": "partial",
        "value": result.value,
        "missing": [*said, *result.missing],
        "continuation": continuation,
    }


def _fewer_words(value: JsonObject, bounds: Bounds) -> JsonObject:
    """Nothing stays nothing: why is said in fewer words, and that is the answer still."""
    reason = value.get("reason")
    if not isinstance(reason, str):
        return value
    if bounds.text is not None:
        reason = reason[: bounds.text]
    while bounds.bytes is not None and reason and _size({**value, "reason": reason}) > bounds.bytes:
        reason = reason[: len(reason) // 2]
    return {**value, "reason": reason}


def _said(own: JsonObject, bounds: Bounds) -> list[JsonValue]:
    """What the tool itself says is missing: words, so that fewer of them are true as well."""
    given = own.get("missing")
    words = [item for item in given if isinstance(item, str)] if isinstance(given, list) else []
    said: list[JsonValue] = []
    room = None if bounds.bytes is None else bounds.bytes // 2
    for word in words:
        shown = word if bounds.text is None else shorten(word, bounds.text)
        if room is not None:
            room -= _size(shown) + 1
        if (room is not None and room < 0) or (bounds.items is not None and len(said) == bounds.items):
            said.append(_AND_MORE)
            break
        said.append(shown)
    return said


def _room(limit: int, own: JsonObject, said: list[JsonValue]) -> int:
    """What is left of the bytes for the value itself."""
    room = limit - _size({**own, "value": None, "missing": said}) + len("null")
    if room < 1:
        raise OutOfBounds(
            f"what the tool says is missing, and how to go on, is more than {limit} bytes of JSON"
        )
    return room


def cut(value: JsonValue, bounds: Bounds, forms: Forms | None = None) -> Cut:
    """The value within `bounds`. Raises `OutOfBounds` for what only leaving out would make fit."""
    result = Cut(value, [])
    result.value = _Cutter(bounds, result).cut(value, forms or Forms({}), "", 1)
    if bounds.bytes is not None:
        _cut_bytes(result, bounds.bytes)
    return result


class _Cutter:
    """One walk through a value."""

    def __init__(self, bounds: Bounds, result: Cut) -> None:
        self._bounds = bounds
        self._result = result

    def cut(self, value: JsonValue, forms: Forms, path: str, depth: int) -> JsonValue:
        if isinstance(value, str):
            return self._text(value, forms, path)
        if not isinstance(value, dict | list):
            return value
        most = self._bounds.depth
        if most is not None and depth > most:
            raise OutOfBounds(f"the result is nested deeper than {most} levels")
        if isinstance(value, dict):
            return {
                key: self.cut(item, forms.at(key), f"{path}/{escape(key)}", depth + 1)
                for key, item in value.items()
            }
        kept = self._items(value, path)
        return [
            self.cut(item, forms.at(index), f"{path}/{index}", depth + 1) for index, item in enumerate(kept)
        ]

    def _items(self, value: list[JsonValue], path: str) -> list[JsonValue]:
        most = self._bounds.items
        if most is None or len(value) <= most:
            return value
        _note(self._result, path, f"items after the first {most} of {len(value)}")
        if not path:
            self._result.root_items = most
        return value[:most]

    def _text(self, value: str, forms: Forms, path: str) -> str:
        most = self._bounds.text
        if most is None or len(value) <= most:
            return value
        if forms.is_free():
            _note(self._result, path, f"characters after the first {most}")
            return value[:most]
        if forms.is_short():
            return value
        raise OutOfBounds(
            f"the text at {shorten(path or '/', 100)} has more than {most} characters, and a form that a part of it"
            " would not have"
        )


def _cut_bytes(result: Cut, limit: int) -> None:
    size = _size(result.value)
    if size <= limit:
        return
    value = result.value
    if not isinstance(value, list) or not value:
        raise OutOfBounds(f"the result is {size} bytes of JSON, at most {limit} are released")
    room, kept = limit - 2, 0
    for item in value:
        room -= _size(item) + (1 if kept else 0)
        if room < 0:
            break
        kept += 1
    if not kept:
        raise OutOfBounds(f"the first item alone is more than {limit} bytes of JSON")
    _note(result, "", f"items after the first {kept}, to stay within {limit} bytes")
    result.value, result.root_items = value[:kept], kept


def _size(value: JsonValue) -> int:
    return len(dumps(value).encode())


def _note(result: Cut, path: str, what: str) -> None:
    if len(result.missing) < _MAX_NAMED:
        result.missing.append(f"{shorten(path or '/', _MAX_NOTE)}: {what}")
    elif len(result.missing) == _MAX_NAMED:
        result.missing.append(_AND_MORE)
