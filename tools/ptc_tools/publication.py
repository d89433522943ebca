"""What a consumer has to know of a tool beyond its schemas, so that it can find, show, confirm, page and run it.

A part of the contract, so fingerprints, pins and comparisons see it. It holds declarations alone: no function,
no address, no data. What it does not say is not inferred, so schemas without it are no publication.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast, get_args

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidPublication, InvalidSchema
from ptc_tools.frozen import FrozenObject, freeze_object, thaw_object
from ptc_tools.names import PATTERN
from ptc_tools.schema import check_schema, escape, resolve
from ptc_tools.strict_json import is_sendable
from ptc_tools.templates import Template

Kind: TypeAlias = Literal["service", "agent"]
Audience: TypeAlias = Literal["user", "application", "audit"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
MAX_TERMS: Final = 64
MAX_TEXT: Final = 4_000
_MAX_FIELDS = 200
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person is asked before each call, as templates over the call's JSON arguments.

    `prompt` is the question and `title` stands above it; `denied` is what the model is told after a no. See
    `ptc_tools.templates`. A tool that has one needs an approval for every call.
    """

    prompt: str
    title: str | None = None
    denied: str | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "title", "denied"):
            if getattr(self, name) is not None:
                Template(getattr(self, name))

    def ask(self, arguments: Mapping[str, JsonValue]) -> str:
        """The question about one call. Raises UnknownKey."""
        return Template(self.prompt).render(arguments)

    def heading(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """What stands above the question. Raises UnknownKey."""
        return None if self.title is None else Template(self.title).render(arguments)

    def text(self, arguments: Mapping[str, JsonValue]) -> str:
        """Heading and question. Raises UnknownKey."""
        heading = self.heading(arguments)
        question = self.ask(arguments)
        return question if heading is None else f"{heading}\n{question}"

    def refusal(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """What the model is told after a no. Raises UnknownKey."""
        return None if self.denied is None else Template(self.denied).render(arguments)

    def check(self, parameters: JsonObject, what: str) -> None:
        """Raises InvalidPublication for a key that no call has."""
        for name in ("prompt", "title", "denied"):
            text = getattr(self, name)
            if text is not None:
                Template(text).check(parameters, f"{what}: confirmation.{name}")


@dataclass(frozen=True, slots=True)
class Paging:
    """How a result is read on: which parameter takes the cursor, and which field of the result gives it.

    `continue_tool` is the local name of the tool that reads the next page, where that is another one.
    """

    cursor: str
    next_cursor: str
    continue_tool: str | None = None


@dataclass(frozen=True, slots=True)
class ServerData:
    """Data that a call gives beside its result: for the application, never for the model.

    `kind` is unique in the tool; `audience`: `user` (shown in the application), `application`, or `audit`;
    `schema` describes the data.
    """

    kind: str
    audience: Audience
    schema: JsonObject
    description: str = ""

    def __hash__(self) -> int:
        return hash((self.kind, self.audience))


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """What a field of the arguments is called and means, for forms, questions and error messages."""

    type: str | None = None
    title: str | None = None
    description: str | None = None

    def to_json(self) -> JsonObject:
        said = {"type": self.type, "title": self.title, "description": self.description}
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Facts for consumers. Raises InvalidPublication for what does not hold together.

    `kind`: `service` runs at its provider; `agent` runs at the consumer, by the executor that it registered
    under the name `executor`, which is told `configuration`, an immutable reference. `title` and
    `search_terms` (what people call it) help to find it. `fields` maps JSON pointers (`/customer/name`,
    `/items/*/sku`) to what the field means. `required_labels`: labels that a run must have; these go to the
    provider, no others. `server_data`: what calls give beside their results.
    """

    kind: Kind = "service"
    title: str | None = None
    search_terms: tuple[str, ...] = ()
    fields: Mapping[str, FieldInfo] = field(default_factory=dict)
    required_labels: tuple[str, ...] = ()
    confirmation: Confirmation | None = None
    paging: Paging | None = None
    server_data: tuple[ServerData, ...] = ()
    executor: str | None = None
    configuration: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidPublication(
                f"a tool of kind {self.kind!r} cannot run here; known kinds: {', '.join(KINDS)}"
            )
        named = {self.executor is not None, self.configuration is not None}
        if named != {self.kind == "agent"}:
            raise InvalidPublication(
                "a tool of kind 'agent', and only that, names its executor and configuration"
            )
        for name in ("title", "executor", "configuration"):
            _check_text(getattr(self, name), name)
        for name in ("search_terms", "required_labels"):
            words = getattr(self, name)
            if isinstance(words, str) or not all(is_sendable(word) and word.strip() for word in words):
                raise InvalidPublication(f"{name} must be a list of words")
            if len(words) > MAX_TERMS:
                raise InvalidPublication(f"{name}: at most {MAX_TERMS}")
            object.__setattr__(self, name, tuple(dict.fromkeys(words)))
        object.__setattr__(self, "fields", _fields(self.fields))
        object.__setattr__(self, "server_data", tuple(_checked(item) for item in self.server_data))
        kinds = [item.kind for item in self.server_data]
        if len(set(kinds)) < len(kinds):
            raise InvalidPublication(f"server data: a kind is declared twice among {', '.join(kinds)}")

    def __hash__(self) -> int:
        return hash((self.kind, self.title, self.search_terms, self.required_labels))

    def check(self, parameters: JsonObject, output: JsonObject | None, what: str) -> None:
        """Raises InvalidPublication where it contradicts the tool's schemas."""
        if self.confirmation is not None:
            self.confirmation.check(parameters, what)
        known = {path for path, _ in _described(parameters)} if self.fields else set()
        for path in self.fields:
            if path not in known:
                raise InvalidPublication(f"{what}: fields describes {path!r}, which no call has")
        paging = self.paging
        if paging is None:
            return
        if paging.continue_tool is None and paging.cursor not in _properties(parameters):
            raise InvalidPublication(
                f"{what}: paging.cursor names {paging.cursor!r}, which is no parameter of it"
            )
        if paging.next_cursor not in _properties(output or {}):
            raise InvalidPublication(
                f"{what}: paging.next_cursor names {paging.next_cursor!r}, which its result does not have"
            )

    def declared(self, kind: str) -> ServerData | None:
        """The declaration of a kind of server data, or None."""
        return next((item for item in self.server_data if item.kind == kind), None)

    def to_json(self) -> JsonObject:
        """As plain JSON, defaults left out, `kind` always there. `from_json` is the inverse."""
        data: JsonObject = {"kind": self.kind}
        for name in ("title", "executor", "configuration"):
            if getattr(self, name) is not None:
                data[name] = getattr(self, name)
        for name in ("search_terms", "required_labels"):
            if getattr(self, name):
                data[name] = list(getattr(self, name))
        if self.fields:
            data["fields"] = {path: info.to_json() for path, info in self.fields.items()}
        if self.confirmation is not None:
            asked = self.confirmation
            data["confirmation"] = _said(
                {"prompt": asked.prompt, "title": asked.title, "denied": asked.denied}
            )
        if self.paging is not None:
            paging = self.paging
            data["paging"] = _said(
                {
                    "cursor": paging.cursor,
                    "next_cursor": paging.next_cursor,
                    "continue_tool": paging.continue_tool,
                }
            )
        if self.server_data:
            data["server_data"] = [
                _said(
                    {
                        "kind": item.kind,
                        "audience": item.audience,
                        "schema": thaw_object(item.schema),
                        "description": item.description or None,
                    }
                )
                for item in self.server_data
            ]
        return data

    @classmethod
    def from_json(cls, data: object, what: str = "publication") -> Publication:
        """The inverse of `to_json`. Raises InvalidPublication, also for a key that it does not know."""
        given = _known(_object(data, what), cls, what)
        values: dict[str, object] = {name: value for name, value in given.items() if name not in _PARTS}
        for name in ("search_terms", "required_labels"):
            if name in given:
                values[name] = tuple(cast("list[str]", _list(given[name], f"{what}: {name}")))
        if "fields" in given:
            values["fields"] = {
                path: _made(FieldInfo, info, f"{what}: fields[{path!r}]")
                for path, info in _object(given["fields"], f"{what}: fields").items()
            }
        for name, kind in (("confirmation", Confirmation), ("paging", Paging)):
            if name in given:
                values[name] = _made(kind, given[name], f"{what}: {name}")
        if "server_data" in given:
            items = _list(given["server_data"], f"{what}: server_data")
            values["server_data"] = tuple(_made(ServerData, item, f"{what}: server_data") for item in items)
        try:
            return cls(**values)  # type: ignore[arg-type]
        except InvalidPublication as error:
            raise InvalidPublication(f"{what}: {error.message}") from None


_PARTS = ("search_terms", "required_labels", "fields", "confirmation", "paging", "server_data")


def _fields(given: Mapping[str, FieldInfo]) -> Mapping[str, FieldInfo]:
    for path, info in given.items():
        if not isinstance(path, str) or not path.startswith("/") or not isinstance(info, FieldInfo):
            raise InvalidPublication("fields maps JSON pointers such as '/customer/name' to FieldInfo")
    return cast("Mapping[str, FieldInfo]", FrozenObject(cast("JsonObject", dict(sorted(given.items())))))


def fields_of(parameters: JsonObject) -> dict[str, FieldInfo]:
    """What a schema itself says of its fields, four levels deep: the metadata of an export."""
    found: dict[str, FieldInfo] = {}
    for path, schema in _described(parameters):
        kind = schema.get("type")
        info = FieldInfo(
            kind if isinstance(kind, str) else None,
            cast("str | None", schema.get("title") if isinstance(schema.get("title"), str) else None),
            cast(
                "str | None",
                schema.get("description") if isinstance(schema.get("description"), str) else None,
            ),
        )
        if (info.title or info.description) and len(found) < _MAX_FIELDS:
            found[path] = info
    return found


def _described(
    schema: JsonValue, path: str = "", root: JsonObject | None = None
) -> Iterator[tuple[str, JsonObject]]:
    """Each field with its schema, local references followed."""
    if not isinstance(schema, dict) or path.count("/") > _MAX_DEPTH:
        return
    root = schema if root is None else root
    reference = schema.get("$ref")
    if isinstance(reference, str):
        try:
            target = resolve(root, reference)
        except InvalidSchema:
            return
        if path.count("/") <= _MAX_DEPTH and target is not schema:
            yield from _inside(target, path, root)
        return
    yield from _inside(schema, path, root)


def _inside(schema: JsonValue, path: str, root: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    if not isinstance(schema, dict):
        return
    for name, inner in _properties(schema).items():
        place = f"{path}/{escape(name)}"
        if isinstance(inner, dict):
            yield place, inner
            yield from _described(inner, place, root)
    items = schema.get("items")
    if isinstance(items, dict):
        yield f"{path}/*", items
        yield from _described(items, f"{path}/*", root)
    for keyword in ("anyOf", "oneOf", "allOf"):
        members = schema.get(keyword)
        for member in members if isinstance(members, list) else ():
            yield from _described(member, path, root)


def _properties(schema: JsonObject) -> JsonObject:
    named = schema.get("properties")
    return named if isinstance(named, dict) else {}


def _checked(item: ServerData) -> ServerData:
    if not isinstance(item, ServerData) or not isinstance(item.kind, str) or not PATTERN.fullmatch(item.kind):
        raise InvalidPublication("server data has a kind of 1 to 64 letters, digits, underscores and hyphens")
    if item.audience not in get_args(Audience):
        raise InvalidPublication(
            f"server data {item.kind!r}: audience must be one of {', '.join(get_args(Audience))}"
        )
    _check_text(item.description, f"server data {item.kind!r}: description")
    schema = freeze_object(check_schema(item.schema, f"server data {item.kind!r}"))
    return ServerData(item.kind, item.audience, schema, item.description)


def _check_text(value: object, what: str) -> None:
    if value is not None and (not isinstance(value, str) or not is_sendable(value) or len(value) > MAX_TEXT):
        raise InvalidPublication(
            f"{what} must be text of at most {MAX_TEXT} characters, without lone surrogates"
        )


def _said(values: JsonObject) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _known(given: JsonObject, kind: type, what: str) -> JsonObject:
    known = set(kind.__dataclass_fields__)  # type: ignore[attr-defined]
    if unknown := sorted(set(given) - known):
        raise InvalidPublication(f"{what}: unknown key {unknown[0]!r}")
    return given


def _made(kind: type, data: object, what: str) -> object:
    given = _known(_object(data, what), kind, what)
    try:
        return kind(**given)
    except TypeError:
        raise InvalidPublication(f"{what}: a key is missing") from None


def _object(data: object, what: str) -> JsonObject:
    if not isinstance(data, dict):
        raise InvalidPublication(f"{what} must be an object")
    return data


def _list(data: object, what: str) -> list[JsonValue]:
    if not isinstance(data, list):
        raise InvalidPublication(f"{what} must be a list")
    return data
