"""Ordinary programs of the kind that models write. Each ends in an expression, its value.

A program stands under a line `=== name`. What they give is what CPython gives; no result is written here.
"""

from __future__ import annotations

from tests.sandbox.language_programs_library import LIBRARY
from tests.sandbox.language_programs_syntax import SYNTAX


def _parsed(text: str) -> dict[str, str]:
    programs: dict[str, str] = {}
    for part in text.split("\n=== ")[1:]:
        name, _, source = part.partition("\n")
        assert name not in programs, name
        programs[name] = source.strip("\n") + "\n"
    return programs


PROGRAMS = {**_parsed(SYNTAX), **_parsed(LIBRARY)}
