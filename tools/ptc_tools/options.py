"""What the author of a tool may declare beside the function itself: the options of `tool` and `define_tool`.

Names and types alone, and their way into a contract; what they mean, and what is refused, is the contract's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Final, Literal, TypedDict, cast

from ptc_tools.bounds import Bounds
from ptc_tools.call import CallerKind, JsonValue
from ptc_tools.contract import Approval, Effects, RiskLevel
from ptc_tools.errors import RegistrationError
from ptc_tools.mutation import Idempotency, Reconciliation
from ptc_tools.publication import Publication

_ABSENT: Final = object()


class ContractOptions(TypedDict, total=False):
    """What the author of any tool may declare; see `Contract` for what each means."""

    namespace: str | None
    timeout: float | None
    effects: Effects | None
    risk_level: RiskLevel | None
    approval: Approval
    authority: Iterable[str]
    commitment: str | None
    idempotency: Idempotency | None
    reconciliation: Reconciliation | None
    bounds: Bounds
    projection: Literal["full", "partial"]
    tags: Iterable[str]
    version: str | None
    publication: Publication | None


class ToolOptions(ContractOptions, total=False):
    """What the author of a typed tool may also say, where the function does not say it already."""

    name: str | None
    description: str | None
    allowed_callers: Iterable[CallerKind]
    strict: bool
    output_schema: Mapping[str, JsonValue] | None
    defer_loading: bool


class _Declared(TypedDict, total=False):
    """`ContractOptions` as `Contract` takes them."""

    namespace: str | None
    timeout: float | None
    effects: Effects | None
    risk_level: RiskLevel | None
    approval: Approval
    authority: tuple[str, ...]
    commitment: str | None
    idempotency: Idempotency | None
    reconciliation: Reconciliation | None
    bounds: Bounds
    projection: Literal["full", "partial"]
    tags: tuple[str, ...]
    version: str | None
    publication: Publication | None


_KINDS: Mapping[str, tuple[type, ...]] = {
    "idempotency": (Idempotency, NoneType),
    "reconciliation": (Reconciliation, NoneType),
    "bounds": (Bounds,),
    "publication": (Publication, NoneType),
    "output_schema": (Mapping, NoneType),
    "strict": (bool,),
}
_LISTS = ("allowed_callers", "authority", "tags")


def check_kinds(options: Mapping[str, object], what: str) -> None:
    """Raises `RegistrationError` for an option of another kind than it takes, such as `idempotency="service"`."""
    for name, kinds in _KINDS.items():
        value = options.get(name, _ABSENT)
        if value is not _ABSENT and not isinstance(value, kinds):
            raise RegistrationError(f"{what}: {name} takes {kinds[0].__name__}, not {type(value).__name__}")
    for name in _LISTS:
        value = options.get(name, ())
        if not isinstance(value, Iterable):
            raise RegistrationError(f"{what}: {name} must be a list of strings")


def declared_by(options: ContractOptions) -> _Declared:
    declared: dict[str, object] = {
        name: options[name]  # type: ignore[literal-required]
        for name in ContractOptions.__annotations__
        if name in options
    }
    for name in ("authority", "tags"):
        words = declared.get(name)
        if words is not None and not isinstance(words, str):
            declared[name] = tuple(cast("Iterable[str]", words))
    return cast("_Declared", declared)
