"""What no model may fill in, looked for in the whole of an annotation: unions, containers, fields of models.

It reads types and makes nothing. An injected value is a parameter of its own; as a part of what a model
sends, its type would be a schema for another identity, endpoint or account.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Annotated, Literal, TypeAlias, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typing_extensions import is_typeddict

from ptc_tools.context import OpenPrograms, RunContext, ToolContext
from ptc_tools.errors import InvalidSignature
from ptc_tools.markers import DesignerMark, ProviderConfig
from ptc_tools.secret import Secret

_TRUSTED = (ToolContext, RunContext, OpenPrograms, Secret)

Found: TypeAlias = "type | DesignerMark"


def is_context(annotation: object) -> bool:
    """Whether the host fills the parameter in: `ToolContext`, or that with words of the author's."""
    return (get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation) is ToolContext


def check_untrusted(annotation: object, name: str, what: str) -> None:
    """Raises `InvalidSignature` for a parameter of a model's that would hold what a model may not set."""
    found = next(_kept(annotation, set()), None)
    place = f"{what}: parameter {name!r}"
    if found is None:
        return
    if isinstance(found, DesignerMark):
        raise InvalidSignature(
            f"{place} holds a Designer value: only a whole parameter is one, Annotated[…, ptc.Designer]"
        )
    if issubclass(found, ProviderConfig):
        raise InvalidSignature(f"{place} configures a provider; mark it Annotated[…, ptc.Designer]")
    raise InvalidSignature(f"{place} is trusted context, which comes whole as a ptc.ToolContext")


def _kept(annotation: object, seen: set[int]) -> Iterator[Found]:
    """Each trusted type and each `Designer` mark in the annotation, and in what its classes hold."""
    if id(annotation) in seen:
        return
    origin = get_origin(annotation)
    if origin is Literal:
        return
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        yield from _marks(metadata)
        yield from _kept(inner, seen)
        return
    alias = getattr(annotation, "__value__", None)
    if alias is not None:  # `type Name = …`
        seen.add(id(annotation))
        yield from _kept(alias, seen)
    for inner in get_args(annotation):
        for part in inner if isinstance(inner, list) else (inner,):
            yield from _kept(part, seen)
    held = origin if inspect.isclass(origin) else annotation
    if inspect.isclass(held):
        seen.add(id(held))
        if issubclass(held, (*_TRUSTED, ProviderConfig)):
            yield held
        else:
            yield from _held(held, seen)


def _marks(metadata: object) -> Iterator[DesignerMark]:
    for item in metadata if isinstance(metadata, list | tuple) else ():
        if item is DesignerMark:
            yield DesignerMark()
        elif isinstance(item, DesignerMark):
            yield item


def _held(held: type, seen: set[int]) -> Iterator[Found]:
    if issubclass(held, BaseModel):
        for field in held.model_fields.values():
            yield from _field(field, seen)
        return
    if not (is_dataclass(held) or is_typeddict(held) or hasattr(held, "_fields")):
        return
    made = getattr(held, "__pydantic_fields__", None)
    for field in made.values() if isinstance(made, dict) else ():
        yield from _field(field, seen)
    names = {field.name for field in fields(held)} if is_dataclass(held) else None
    for name, hint in _hints(held).items():
        if names is None or name in names:
            yield from _kept(hint, seen)


def _field(field: FieldInfo, seen: set[int]) -> Iterator[Found]:
    yield from _marks(field.metadata)
    yield from _kept(field.annotation, seen)


def _hints(held: type) -> dict[str, object]:
    try:
        return get_type_hints(held, localns={held.__name__: held}, include_extras=True)
    except (NameError, TypeError):
        # A name that is not found: pydantic will find it or refuse it; what is resolved already is looked at.
        return dict(inspect.get_annotations(held))
