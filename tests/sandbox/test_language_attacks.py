"""Attacks on the language wall, alone: no kernel wall stands behind it here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.language_attacks import ATTACKS, Attack
from tests.sandbox.language_server import LanguageServer


@pytest.fixture(scope="module")
def server() -> Iterator[LanguageServer]:
    with LanguageServer() as made:
        yield made


def _outcome(answer: dict[str, Any]) -> str:
    match answer["status"]:
        case "denied":
            return str(answer["code"])
        case "raised":
            return f"raises {answer['code']}"
        case "completed":
            return f"gives {json.dumps(answer['value'])}"
    return str(answer)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.id)
def test_the_language_wall_holds_against(server: LanguageServer, attack: Attack) -> None:
    """Each way out that is known of CPython and of RestrictedPython is tried, and its refusal has a name."""
    assert _outcome(server.run(attack.program)) == attack.outcome
