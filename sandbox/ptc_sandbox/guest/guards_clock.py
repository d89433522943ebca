"""`now`, `today` and `utcnow` of the date types, on the journal's clock. The machine's own clock is read nowhere."""

from __future__ import annotations

import datetime
import types
from collections.abc import Callable
from typing import Any, Final

from ptc_sandbox.guest.environment import Environment
from ptc_sandbox.guest.policy_errors import RefusedAttribute

_METHOD: Final = types.BuiltinMethodType


def clock_attribute(found: Any, name: str, environment: Environment) -> Any:
    """What programs get for an attribute of one of these names: itself, unless it would read the clock.

    Raises RefusedAttribute for a descriptor, which could be bound to any date type.
    """
    if type(found) is types.ClassMethodDescriptorType and issubclass(found.__objclass__, datetime.date):
        raise RefusedAttribute(f"Call {name}() on the class itself.")
    if type(found) is not _METHOD:
        return found
    kind = found.__self__
    if not (isinstance(kind, type) and issubclass(kind, datetime.date)):
        return found
    return _clock_method(kind, name, environment)


def _clock_method(kind: type[datetime.date], name: str, environment: Environment) -> Callable[..., Any]:
    """`now`, `today` or `utcnow` of a date type, on the journal's clock; the zone of the machine is UTC."""

    def read(tz: datetime.tzinfo | None = None) -> Any:
        seconds, micros = divmod(environment.now_us(), 1_000_000)
        if not issubclass(kind, datetime.datetime):
            return kind.fromtimestamp(seconds)
        moment = kind.fromtimestamp(seconds, datetime.UTC).replace(microsecond=micros)
        return moment.replace(tzinfo=None) if tz is None else moment.astimezone(tz)

    def now(tz: datetime.tzinfo | None = None) -> Any:
        return read(tz)

    def today() -> Any:
        return read()

    def utcnow() -> Any:
        return read()

    return {"now": now, "today": today, "utcnow": utcnow}[name]
