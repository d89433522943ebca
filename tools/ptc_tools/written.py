"""How a typed value is written in JSON: one form for each type, so that what is checked is what is decoded.

Pydantic also reads a time from "1700000000", a span from "1 day" and a UUID from a URN, which no schema says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?"
_NUMBER = r"[0-9]+(?:[.,][0-9]+)?"
_SPAN = rf"[+-]?P(?=[0-9T])(?:{_NUMBER}[YMWD])*(?:T(?:{_NUMBER}[HMS])+)?"
_HEX = r"[0-9A-Fa-f]"


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _by_the_type(text: str) -> bool:
    """The type's own decoder says, and says it more exactly."""
    return True


is_date: Final = _matches(_DAY)
is_datetime: Final = _matches(rf"{_DAY}[Tt ]{_CLOCK}")
_is_uuid: Final = _matches(rf"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}")

TYPED_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = MappingProxyType(
    {
        "date": is_date,
        "date-time": is_datetime,
        "time": _matches(_CLOCK),
        "duration": _matches(_SPAN),
        "uuid": _is_uuid,
        **{f"uuid{version}": _is_uuid for version in (1, 3, 4, 5, 6, 7, 8)},
        **dict.fromkeys(
            ("email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri", "uri-reference", "iri",
             "iri-reference", "uri-template", "json-pointer", "relative-json-pointer", "regex"),
            _by_the_type,
        ),
    }
)  # fmt: skip
