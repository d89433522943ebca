"""`str.format` and `str.format_map` that read no attribute a program could not read itself.

The text of a format string can name attributes; it is parsed by the interpreter's own parser and refused
before the interpreter formats it.
"""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
from collections.abc import Mapping

from ptc_sandbox.guest.policy_errors import RefusedAttribute
from ptc_sandbox.guest.policy_names import Rule, load_rule

_DEPTH = 3


def unsafe_field(template: str, depth: int = _DEPTH) -> str | None:
    """The first attribute in a format string that may not be read, or None.

    A malformed string has none: formatting it raises ValueError before it reads anything further.
    """
    if "." not in template:
        return None
    try:
        for _, field, spec, _ in _string.formatter_parser(template):
            if field:
                _, rest = _string.formatter_field_name_split(field)
                for is_attribute, name in rest:
                    if is_attribute and load_rule(name) is not Rule.PLAIN:
                        return str(name)
            if spec and depth and (found := unsafe_field(spec, depth - 1)):
                return found
    except ValueError:
        return _any_unsafe(template)
    return None


def _any_unsafe(template: str) -> str | None:
    """For a malformed string: anything after a dot that would be refused, so that no parser's view matters."""
    for part in template.split(".")[1:]:
        name = part
        for end in "[]{}!:.":
            name = name.partition(end)[0]
        if load_rule(name) is not Rule.PLAIN:
            return name
    return None


def checked(template: object) -> str:
    """The template as an exact str, if what it reads may be read. Raises RefusedAttribute."""
    if not isinstance(template, str):
        raise TypeError(f"a format string must be a str, not {type(template).__name__}")
    text = str.__str__(template)
    if field := unsafe_field(text):
        raise RefusedAttribute(
            f"A format string may not read the attribute {field}. Format the value itself: '{{}}'.format(x.name)."
        )
    return text


def safe_format(template: str, /, *args: object, **kwargs: object) -> str:
    """`str.format`, called as a function."""
    return checked(template).format(*args, **kwargs)


def safe_format_map(template: str, mapping: Mapping[str, object], /) -> str:
    """`str.format_map`, called as a function."""
    return checked(template).format_map(mapping)


safe_format.__name__ = safe_format.__qualname__ = "format"
safe_format_map.__name__ = safe_format_map.__qualname__ = "format_map"
