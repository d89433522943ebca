"""What a runner cannot work with, found when it is made instead of in the middle of its first run.

It is told the settings. It looks at kinds and ranges alone: it calls nothing of the application's, and what a
part does when it is used is that part's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import get_args

from ptc.conversation import HistoryMode
from ptc.errors import ConfigurationError
from ptc.limits import Limits
from ptc.retry import RetryPolicy
from ptc.settings import Settings


def check_setup(settings: Settings) -> None:
    """Raises ConfigurationError for the first thing that is none of its kind, in words that say what to give."""
    modes = ", ".join(f'"{mode}"' for mode in get_args(HistoryMode))
    if settings.history not in get_args(HistoryMode):
        raise ConfigurationError(f"history={settings.history!r}: give one of {modes}")
    check_limits(settings.limits)
    if not isinstance(settings.retry, RetryPolicy):
        raise ConfigurationError(f"retry= is a {_kind(settings.retry)}; give a ptc.RetryPolicy")
    for layer in settings.middleware:
        if not callable(layer):
            raise ConfigurationError(
                f"middleware= has a {_kind(layer)}; give async functions of (invocation, next)"
            )
    if settings.compact is not None and not callable(settings.compact):
        raise ConfigurationError(f"compact= is a {_kind(settings.compact)}; give a function of the history")
    if settings.instructions is not None and not isinstance(settings.instructions, str):
        raise ConfigurationError(f"instructions= is a {_kind(settings.instructions)}; give a text")
    for name in ("background", "errors_in_schema"):
        if not isinstance(getattr(settings, name), bool):
            raise ConfigurationError(f"{name}={getattr(settings, name)!r}: give True or False")
    told = settings.namespaces
    if told is not None and not (
        isinstance(told, Mapping) and all(isinstance(text, str) for pair in told.items() for text in pair)
    ):
        raise ConfigurationError("namespaces= is a mapping of their names to descriptions, which are texts")
    _has(settings.policy, "policy", "a ptc.Policy", "authorize")
    _has(settings.approver, "approver", "a ptc.Approver or None", "approve")
    _has(
        settings.recorder,
        "audit",
        "a recorder such as ptc.AuditLog",
        "started",
        "finished",
        "denied",
        "event",
    )
    _has(settings.sandbox, "sandbox", "a ptc.Sandbox", "run")
    _has(settings.store, "store", "a store such as ptc.SQLiteRunStore", "create", "acquire", "append")
    _seconds(settings.call_timeout, "call_timeout")
    _seconds(settings.request_timeout, "request_timeout")
    _seconds(settings.poll_interval, "poll_interval", least=0.0)


def check_limits(limits: object) -> None:
    if not isinstance(limits, Limits):
        raise ConfigurationError(f"limits= is a {_kind(limits)}; give a ptc.Limits(…)")


def _has(value: object, name: str, wanted: str, *methods: str) -> None:
    """None passes where the setting may be None: those that may not have a default."""
    if value is None and name != "policy":
        return
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing or isinstance(value, type):
        raise ConfigurationError(f"{name}= is a {_kind(value)}; give {wanted}")


def _seconds(value: object, name: str, *, least: float | None = None) -> None:
    if value is None and least is None:
        return
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not (number > 0 or number == least):
        words = "a positive number of seconds, or None" if least is None else "a number of seconds"
        raise ConfigurationError(f"{name}={value!r}: give {words}")


def _kind(value: object) -> str:
    return f"class ({value.__name__})" if isinstance(value, type) else type(value).__name__
