"""What a docstring says about a function and its parameters, for the model to read.

Understands the three usual forms (Google's `Args:`, reStructuredText's `:param x:`, numpy's `Parameters`).
It never takes a type from a docstring.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Params)\s*:?\s*$")
_OTHER = re.compile(
    r"^(Returns?|Raises|Yields|Examples?|Notes?|Warnings?|See Also|Attributes|References)\s*:?\s*$"
)
_GOOGLE = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^(\w+)\s*(?::.*)?$")
_REST = re.compile(r"^\s*:param\s+(?:[\w\[\], |.]+\s+)?(\w+)\s*:\s*(.*)$")
_REST_OTHER = re.compile(r"^\s*:(?!param\b)\w+[^:]*:")


def docstring(function: Callable[..., object]) -> str:
    """The cleaned docstring of a function, of what a partial wraps, or of a callable object's class."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.getdoc(function) or ""


def summary(function: Callable[..., object]) -> str:
    """The docstring without its sections: what the tool is for."""
    lines = []
    for line in docstring(function).splitlines():
        if _SECTION.match(line) or _OTHER.match(line) or _REST.match(line) or _REST_OTHER.match(line):
            break
        lines.append(line)
    return "\n".join(lines).strip()


def parameter_descriptions(function: Callable[..., object]) -> dict[str, str]:
    """Parameter name to its description, where the docstring has one."""
    found: dict[str, list[str]] = {}
    inside = False
    current: list[str] | None = None
    for line in docstring(function).splitlines():
        rest = _REST.match(line)
        if rest:
            current = found.setdefault(rest[1], [rest[2]])
            continue
        if _OTHER.match(line) or _REST_OTHER.match(line):
            inside, current = False, None
        elif _SECTION.match(line):
            inside, current = True, None
        elif inside and (entry := _GOOGLE.match(line) or _NUMPY.match(line)):
            current = found.setdefault(entry[1], [entry[2]] if entry.re is _GOOGLE else [])
        elif current is not None and line.strip():
            current.append(line.strip())
        elif not line.strip():
            current = None
    return {
        name: " ".join(part for part in parts if part).strip() for name, parts in found.items() if any(parts)
    }
