"""Warnings for what may still change: one for each helper and process, of a class that can be filtered."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from typing import Final

PROGRESSIVE_TOOLS: Final = "PROGRESSIVE_TOOLS"
_warned: set[tuple[str, str]] = set()
_lock = threading.Lock()
_HERE = os.path.dirname(__file__) + os.sep


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
        stacklevel=_users_line(),
    )


def _users_line() -> int:
    """How far up `warnings.warn` has to look for the first line that is not of this package: the user's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    return level
