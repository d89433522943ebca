"""What a tool may return besides a plain result, so that "nothing", "not all" and "not now" are said.

These are values for return annotations (`-> list[Order] | EmptyResult | PartialResult[list[Order]]`); the
output schema then describes them, and the outcome of the call has a type of its own.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

T = TypeVar("T")


Kind: TypeAlias = Literal["success", "empty", "partial"]


class _Returned(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EmptyResult(_Returned):
    """There is nothing, and that is the answer: not an error, not a null."""

    outcome: Literal["empty"] = "empty"
    reason: str = Field(default="", description="Why there is nothing, if that is known.")


class PartialResult(_Returned, Generic[T]):
    """Not all. `missing` names what is not there; `continuation` holds the arguments that go on from here."""

    outcome: Literal["partial"] = "partial"
    value: T
    missing: list[str] = Field(description="What is not in `value`.")
    continuation: dict[str, JsonValue] | None = Field(
        default=None, description="Call the tool again with these arguments to go on; null if nothing does."
    )


def kind_of(value: object) -> Kind:
    """What kind of result a tool returned."""
    # Not isinstance: pydantic's classes answer that, and a missing attribute, ten times more slowly.
    ancestors = type(value).__mro__
    return "partial" if PartialResult in ancestors else "empty" if EmptyResult in ancestors else "success"


class Unavailable(_Returned):
    """A section that cannot be had now; an absent optional field would say that there is none."""

    outcome: Literal["unavailable"] = "unavailable"
    reason: str = Field(description="Why it cannot be had now.")
    retry: bool = Field(default=False, description="Whether asking again later may help.")
