"""Ordinary programs give behind the language wall what they give on CPython."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.language_programs import PROGRAMS
from tests.sandbox.language_server import LanguageServer


@pytest.fixture(scope="module")
def server() -> Iterator[LanguageServer]:
    with LanguageServer() as made:
        yield made


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_ordinary_program_gives_what_cpython_gives(server: LanguageServer, name: str) -> None:
    """Models write plain Python: a wall that bends it costs answers."""
    expected = server.run(PROGRAMS[name], plain=True)

    assert server.run(PROGRAMS[name]) == expected
    assert expected["status"] == "completed"
    assert not str(expected["value"]).startswith("<")
