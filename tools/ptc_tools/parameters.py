"""From a typed function to what a model may pass it: the parameters' schema, and a decoder for arguments.

It reads annotations, defaults and the docstring, and refuses what it cannot express. It never takes a type
from a name or a value, and the parameters that the host fills in never reach the schema.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, NotRequired, Required, cast, get_args, get_origin, get_type_hints

import annotated_types
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_json, to_jsonable_python
from typing_extensions import is_typeddict

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.docstrings import parameter_descriptions
from ptc_tools.errors import InvalidSignature
from ptc_tools.fragments import assembled, fragment, words_of
from ptc_tools.hidden import scrub
from ptc_tools.integers import with_integers_at
from ptc_tools.markers import SensitiveMark, is_designer, sensitive_texts
from ptc_tools.schema import escape, printable, shorten
from ptc_tools.strict_json import dumps
from ptc_tools.trust import check_untrusted, is_context
from ptc_tools.typed import fields_adapter

_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class InvalidArguments(ValueError):
    """Arguments fit the schema and yet not the types: a validator of the application's refused them, say."""


@dataclass(frozen=True, slots=True)
class DesignerField:
    """A parameter that the tool's designer sets. Its type may be anything: it never becomes JSON."""

    annotation: object
    required: bool
    default: object = None

    @classmethod
    def of(cls, annotation: object, parameter: inspect.Parameter) -> DesignerField:
        """As the function declares it."""
        required = parameter.default is parameter.empty
        return cls(annotation, required, None if required else parameter.default)

    def fits(self, value: object) -> bool:
        """Whether the value is of the declared type."""
        try:
            self._check(value)
        except ValueError:
            return False
        return True

    def _check(self, value: object) -> object:
        try:
            adapter: TypeAdapter[object] = TypeAdapter(
                cast("type[object]", self.annotation),
                config=None if _configures_itself(self.annotation) else _ANY_TYPE,
            )
        except PydanticSchemaGenerationError:
            bare = _bare(self.annotation)  # a class with a field that pydantic does not know, a Secret say
            if isinstance(bare, type) and isinstance(value, bare):
                return value
            raise ValueError("not of the declared type") from None
        return adapter.validate_python(value, strict=True)


_ANY_TYPE = ConfigDict(arbitrary_types_allowed=True, hide_input_in_errors=True)


def _configures_itself(annotation: object) -> bool:
    bare = _bare(annotation)
    return is_dataclass(bare) or is_typeddict(bare) or hasattr(bare, "model_config")


class Parameters:
    """What a function takes. `schema` is for the wire; `accepted` is what a call is checked against.

    The two differ in strict mode alone: there the wire lists an optional parameter as required but nullable,
    while a program may simply leave it out. The decoder is built when the first call comes.
    """

    __slots__ = (
        "_decode",
        "_fields",
        "_null_means_default",
        "accepted",
        "context",
        "designer",
        "schema",
        "sensitive",
    )

    def __init__(
        self,
        *,
        schema: JsonObject,
        accepted: JsonObject,
        context: str | None,
        designer: Mapping[str, DesignerField],
        sensitive: tuple[str, ...],
        fields: dict[str, object],
        null_means_default: frozenset[str],
    ) -> None:
        self.schema = schema
        self.accepted = accepted
        self.context = context
        self.designer = designer
        self.sensitive = sensitive
        self._fields = fields
        self._null_means_default = null_means_default
        self._decode: Callable[[JsonObject], dict[str, object]] | None = None

    def decode(self, arguments: JsonObject) -> dict[str, object]:
        """Typed keyword arguments from JSON that fits `accepted`. Raises `InvalidArguments`."""
        decode = self._decode
        if decode is None:
            decode = self._decode = self._decoder()
        try:
            decoded = decode(arguments)
        except ValidationError as error:
            decoded = _decoded_with_integers(decode, arguments, error, self.sensitive)
        for name in self._null_means_default:
            if decoded.get(name, ...) is None:
                del decoded[name]
        return decoded

    def _decoder(self) -> Callable[[JsonObject], dict[str, object]]:
        # The core's own methods: the adapter's wrappers cost as much as the work.
        validator = fields_adapter("Arguments", self._fields, "arguments").validator
        if all(is_plain(get_args(hint)[0]) for hint in self._fields.values()):
            # Strictness means the same for Python's and for JSON's values of these types.
            return validator.validate_python
        # The arguments are strict JSON already, so they are written without another look.
        return lambda arguments: validator.validate_json(to_json(arguments))


def _decoded_with_integers(
    decode: Callable[[JsonObject], dict[str, object]],
    arguments: JsonObject,
    error: ValidationError,
    sensitive: tuple[str, ...],
) -> dict[str, object]:
    """What JSON Schema took for an integer, as 1.0, was refused by pydantic: once more, with an int there."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    changed = with_integers_at(arguments, [detail["loc"] for detail in details])
    hidden = tuple(sensitive_texts(arguments, sensitive))
    if changed is arguments:
        raise InvalidArguments(explain(error, hidden)) from None
    try:
        return decode(changed)
    except ValidationError as again:
        raise InvalidArguments(explain(again, hidden)) from None


def explain(error: ValidationError, hidden: tuple[str, ...] = ()) -> str:
    """A pydantic error in one line, without the values, and without `hidden` ones that a validator quotes."""
    found = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False)[:3]:
        where = scrub(".".join(str(step) for step in detail["loc"]) or "the value itself", hidden)
        # A validator of the application's may say what it was given in any form.
        own_words = hidden and detail["type"] in ("value_error", "assertion_error")
        said = "a validator refused it" if own_words else scrub(detail["msg"], hidden)
        found.append(f"{where[:100]}: {said}")
    return shorten(printable("; ".join(found)))


def type_hints(function: Callable[..., object], names: Mapping[str, object] | None) -> dict[str, object]:
    """The annotations of a function, method, partial or callable object, with forward references resolved.

    `names` are the caller's local variables, for types that are defined inside a function.
    """
    target: object = function
    while isinstance(target, functools.partial):
        target = target.func
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return get_type_hints(target, localns=dict(names) if names else None, include_extras=True)
    except NameError as error:
        raise InvalidSignature(
            f"function {name_of(function)!r}: {error}; annotations must name types that exist when the tool "
            "is registered"
        ) from None
    except TypeError as error:
        raise InvalidSignature(f"function {name_of(function)!r}: {error}") from None


def name_of(function: object) -> str:
    """The function's own name, through `functools.partial`."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def bound_values(function: object) -> dict[str, object]:
    """What `functools.partial` binds by keyword: the author's values, which no call sets."""
    bound: dict[str, object] = {}
    while isinstance(function, functools.partial):
        bound = {**function.keywords, **bound}
        function = function.func
    return bound


def read_parameters(
    function: Callable[..., object], hints: Mapping[str, object], *, strict: bool, what: str
) -> Parameters:
    """Describe a function's parameters. Raises `InvalidSignature`, or `InvalidSchema`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise InvalidSignature(f"{what}: no signature: {error}") from None
    fields: dict[str, object] = {}
    properties: dict[str, JsonObject] = {}
    definitions: list[tuple[str, JsonObject]] = []
    sensitive: list[str] = []
    required: list[JsonValue] = []
    nullable: set[str] = set()
    designer: dict[str, DesignerField] = {}
    context: str | None = None
    words = parameter_descriptions(function)
    bound = bound_values(function)
    for name, parameter in signature.parameters.items():
        if name in bound:
            continue
        annotation = _annotation(parameter, hints, what)
        if is_context(annotation):
            if context is not None:
                raise InvalidSignature(f"{what}: only one parameter may be a ToolContext")
            context = name
            continue
        if is_designer(annotation):
            designer[name] = DesignerField.of(annotation, parameter)
            continue
        check_untrusted(annotation, name, what)
        _check_metadata(annotation, parameter, what)
        part = fragment(annotation, "validation", strict=strict, what=what)
        schema = part.schema
        if parameter.default is parameter.empty:
            fields[name] = Required[annotation]
            required.append(name)
        else:
            if strict and not admits_none(annotation):
                nullable.add(name)
                annotation = annotation | None  # type: ignore[operator]
                schema = _or_null(schema)
            elif strict and parameter.default is not None:
                raise InvalidSignature(
                    f"{what}: parameter {name!r} may be None and has another default; strict mode cannot tell "
                    "null from absent: use the default None, or choose strict=False"
                )
            fields[name] = NotRequired[annotation]
        properties[name] = _described(
            schema, words_of(hints[name]) or words.get(name), parameter, show_default=not part.sensitive
        )
        definitions.append((name, part.definitions))
        sensitive += [f"/{escape(name)}{path}" for path in part.sensitive]
    found, shared = assembled(properties, definitions)
    accepted: JsonObject = {"type": "object", "properties": found, "required": required}
    accepted["additionalProperties"] = False
    if shared:
        accepted["$defs"] = shared
    return Parameters(
        schema=accepted | {"required": list(found)} if strict else accepted,
        accepted=accepted,
        context=context,
        designer=designer,
        sensitive=tuple(sensitive),
        fields=fields,
        null_means_default=frozenset(nullable),
    )


def _annotation(parameter: inspect.Parameter, hints: Mapping[str, object], what: str) -> object:
    name = parameter.name
    if parameter.kind in _VARIADIC:
        raise InvalidSignature(f"{what}: *{name} has no schema; name each parameter")
    if parameter.kind is _POSITIONAL:
        raise InvalidSignature(f"{what}: parameter {name!r} is positional-only; arguments come by name")
    if name not in hints:
        hint = " (decorate the bound method: tool(instance.method))" if name in ("self", "cls") else ""
        raise InvalidSignature(f"{what}: parameter {name!r} has no type annotation{hint}")
    return hints[name]


def _bare(annotation: object) -> object:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _check_metadata(annotation: object, parameter: inspect.Parameter, what: str) -> None:
    place = f"{what}: parameter {parameter.name!r}"
    if isinstance(parameter.default, FieldInfo):
        raise InvalidSignature(f"{place}: write Annotated[type, Field(…)] and a plain default")
    if get_origin(annotation) is not Annotated:
        return
    for item in get_args(annotation)[1:]:
        if not isinstance(item, FieldInfo):
            continue
        if item.alias is not None or item.validation_alias is not None:
            raise InvalidSignature(f"{place}: no alias; the parameter's own name is what the model sees")
        if item.default is not PydanticUndefined or item.default_factory is not None:
            raise InvalidSignature(f"{place}: write the default in the signature, not in Field(…)")


def admits_none(annotation: object) -> bool:
    """Whether None is a value of the type by itself."""
    annotation = _bare(annotation)
    alias = getattr(annotation, "__value__", None)  # `type Name = …`
    if alias is not None:
        return admits_none(alias)
    if annotation is None or annotation is type(None) or annotation is object:
        return True
    origin = get_origin(annotation)
    if origin is None:
        return str(annotation) == "typing.Any"
    if str(origin) == "typing.Literal":
        return None in get_args(annotation)
    return "Union" in str(origin) and any(map(admits_none, get_args(annotation)))


def is_plain(annotation: object) -> bool:
    """Whether values of the type are JSON's own, so that decoding them only checks them."""
    if annotation in (str, int, float, bool, None, type(None)):
        return True
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return is_plain(arguments[0]) and all(
            isinstance(item, FieldInfo | SensitiveMark | annotated_types.BaseMetadata)
            for item in arguments[1:]
        )
    if origin is list or (origin is not None and "Union" in str(origin)):
        return all(map(is_plain, arguments))
    return str(origin) == "typing.Literal" and all(isinstance(item, str | int | None) for item in arguments)


def _or_null(schema: JsonObject) -> JsonObject:
    members = schema.get("anyOf")
    if isinstance(members, list) and set(schema) == {"anyOf"}:
        return {"anyOf": [*members, {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


def _described(
    schema: JsonObject, words: str | None, parameter: inspect.Parameter, *, show_default: bool
) -> JsonObject:
    """The schema with a parameter's description, to which its default is added."""
    sentences = [words] if words else []
    own = schema.get("description")
    if isinstance(own, str) and own != words:
        sentences.append(own)  # what there is no keyword for: a format, a limit of a date
    if show_default and parameter.default is not parameter.empty and parameter.default is not None:
        shown = _shown(parameter.default)
        if shown is not None:
            sentences.append(f"Default: {shown}.")
    if not sentences or sentences == [own]:
        return schema
    if "$ref" in schema:
        schema = {"anyOf": [schema]}  # strict mode takes no word beside a reference
    return {**schema, "description": " ".join(sentences)}


def _shown(default: object) -> str | None:
    try:
        text = dumps(to_jsonable_python(default))
    except ValueError:
        return None
    return text if len(text) <= 60 else None
