"""Warnings for what may still change: one for each helper and process, of a class that can be filtered."""

from __future__ import annotations

import threading
import warnings
from typing import Final

PROGRESSIVE_TOOLS: Final = "PROGRESSIVE_TOOLS"
_warned: set[tuple[str, str]] = set()
_lock = threading.Lock()


class ExperimentalWarning(UserWarning):
    """A feature that may change or go without notice; the message starts with its id in brackets."""


def warn_experimental(feature: str, helper: str) -> None:
    """Warns the first time that a helper of a feature is used in this process."""
    with _lock:
        if (feature, helper) in _warned:
            return
        _warned.add((feature, helper))
    warnings.warn(
        f"[{feature}] {helper} is experimental and may change or be removed without notice",
        ExperimentalWarning,
        stacklevel=4,
    )
