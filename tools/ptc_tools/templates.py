"""Templates of what a person is asked before a call: text with the call's own JSON values in it.

`{{ key }}`, `{{ customer.name }}`, `{{ items[0]["unit price"] }}` address the arguments as JSON has them, and
`{{ key | json }}` writes the value as JSON. There are no expressions and no loops, and a key that is not there
raises: a question with a hole in it is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson, InvalidPublication, InvalidSchema, UnknownKey
from ptc_tools.schema import resolve, shorten
from ptc_tools.strict_json import dumps, loads

MAX_TEMPLATE: Final = 4_000
MAX_VALUE: Final = 2_000
FILTERS: Final = ("json",)

_TAG = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_STEP = re.compile(r"""\.?(?P<key>[^\W\d][\w-]*)|\[(?P<index>\d{1,9})\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]""")
# What would let a value write lines of its own into the question, or turn its direction around.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

Step: TypeAlias = "str | int"


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a template: where its value is in the arguments, and whether it is written as JSON."""

    path: tuple[Step, ...]
    as_json: bool = False

    def __str__(self) -> str:
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).lstrip(".")


class Template:
    """A parsed template. Raises InvalidPublication for text that is none."""

    __slots__ = ("_parts", "text")

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEMPLATE:
            raise InvalidPublication(f"a template is text of at most {MAX_TEMPLATE} characters")
        self.text = text
        self._parts = tuple(_parse(text))

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(part for part in self._parts if isinstance(part, Place))

    def check(self, schema: JsonObject, what: str) -> None:
        """Raises InvalidPublication for a key that arguments of this schema never have."""
        for place in self.places:
            if not _may_have(schema, schema, place.path, 0):
                raise InvalidPublication(f"{what}: the template addresses {str(place)!r}, which no call has")

    def render(self, arguments: Mapping[str, JsonValue]) -> str:
        """The text for a call. A text goes in as one line of at most 2,000 characters, anything else as JSON.

        Raises UnknownKey if these arguments have no such key.
        """
        return "".join(
            _written(_value(arguments, part), part) if isinstance(part, Place) else part
            for part in self._parts
        )


def _parse(text: str) -> Iterator[str | Place]:
    at = 0
    for tag in _TAG.finditer(text):
        yield _plain(text[at : tag.start()])
        yield _place(tag.group(1))
        at = tag.end()
    yield _plain(text[at:])


def _plain(text: str) -> str:
    if "{{" in text or "}}" in text:
        raise InvalidPublication(
            f"template: {shorten(text, 60)!r} has a brace pair that is not closed or not opened"
        )
    return text


def _place(inner: str) -> Place:
    body, *filters = _without_quotes(inner)
    for name in filters:
        if name.strip() not in FILTERS:
            raise InvalidPublication(
                f"template: there is no filter {name.strip()!r}; there is {', '.join(FILTERS)}"
            )
    body = body.strip()
    path: list[Step] = []
    at = 0
    while at < len(body):
        step = _STEP.match(body, at)
        if step is None or (not path and (step.group("key") is None or body[at] == ".")):
            break
        if step.group("key") is not None and path and body[at] != ".":
            break
        path.append(_step(step))
        at = step.end()
    if not path or at < len(body):
        raise InvalidPublication(
            f"template: {shorten(inner.strip(), 60)!r} is no key; write {{{{ key }}}}, {{{{ outer.inner }}}},"
            ' {{ list[0] }} or {{ object["odd key"] }}, and | json after it'
        )
    return Place(tuple(path), bool(filters))


def _without_quotes(inner: str) -> list[str]:
    """Cuts at the bars that are outside of quotes."""
    parts, current, quoted = [], "", False
    for index, character in enumerate(inner):
        if character == '"' and (index == 0 or inner[index - 1] != "\\"):
            quoted = not quoted
        if character == "|" and not quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


def _step(step: re.Match[str]) -> Step:
    if step.group("index") is not None:
        return int(step.group("index"))
    quoted = step.group("quoted")
    if quoted is None:
        return step.group("key")
    try:
        return str(loads(quoted))
    except InvalidJson as error:
        raise InvalidPublication(
            f"template: {shorten(quoted, 60)} is no key as JSON writes it: {error}"
        ) from None


def _value(arguments: Mapping[str, JsonValue], place: Place) -> JsonValue:
    value: JsonValue = dict(arguments)
    for step in place.path:
        try:
            if isinstance(step, str):
                value = value[step] if isinstance(value, dict) else _nowhere()
            else:
                value = value[step] if isinstance(value, list) else _nowhere()
        except LookupError:
            raise UnknownKey(
                f"the template addresses {str(place)!r}, which the arguments of this call do not have"
            ) from None
    return value


def _nowhere() -> NoReturn:
    raise LookupError


def _written(value: JsonValue, place: Place) -> str:
    text = value if isinstance(value, str) and not place.as_json else dumps(value)
    if len(text) > MAX_VALUE:
        text = f"{text[:MAX_VALUE]}… ({len(text) - MAX_VALUE} more characters)"
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _may_have(schema: JsonValue, root: JsonObject, path: tuple[Step, ...], depth: int) -> bool:
    """Whether a value of this schema can have something at the path: only a clear no counts."""
    if depth > 40 or not path:
        return True
    if not isinstance(schema, Mapping):
        return schema is not False
    reference = schema.get("$ref")
    if isinstance(reference, str):
        try:
            return _may_have(resolve(root, reference), root, path, depth + 1)
        except InvalidSchema:
            return True
    for keyword in ("anyOf", "oneOf"):
        members = schema.get(keyword)
        if isinstance(members, list) and members:
            return any(_may_have(member, root, path, depth + 1) for member in members)
    kind = schema.get("type")
    step, rest = path[0], path[1:]
    wanted = "array" if isinstance(step, int) else "object"
    if kind is not None and wanted not in (kind if isinstance(kind, list | tuple) else [kind]):
        return False
    if isinstance(step, int):
        return _may_have(schema.get("items", True), root, rest, depth + 1)
    named = schema.get("properties")
    if isinstance(named, Mapping) and step in named:
        return _may_have(named[step], root, rest, depth + 1)
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        return _may_have(others, root, rest, depth + 1)
    # A schema that lists its properties and says nothing of others means those: a typo is found here.
    return bool(others) or "allOf" in schema or bool(schema.get("patternProperties")) or named is None
