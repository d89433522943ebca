"""The modules of programs: what the table names is there, is no live module, and stands in the documentation."""

from __future__ import annotations

import asyncio
import enum
import random
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from ptc_sandbox.guest.builtins import make_globals
from ptc_sandbox.guest.facades import table
from ptc_sandbox.guest.facades.module import Facade, facade

DOCUMENT = Path(__file__).parents[2] / "docs" / "programs.md"


class World:
    random = random.Random(1)

    def now_us(self) -> int:
        return 0

    monotonic_us = now_us

    def sleep(self, seconds: float) -> None: ...

    def random_bytes(self, n: int) -> bytes:
        return bytes(n)

    def write_output(self, text: str) -> None: ...


def _load(module: str) -> Any:
    builtins: Any = make_globals(World(), {}, facade("asyncio", {"sleep": asyncio.sleep}))["__builtins__"]
    return (
        builtins["__import__"](module, {}, {}, ("__doc__",)[:0], 0)
        if "." not in module
        else _submodule(builtins, module)
    )


def _submodule(builtins: Any, module: str) -> Any:
    found = builtins["__import__"](module, {}, {}, None, 0)
    for part in module.split(".")[1:]:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("module", table.modules())
def test_a_module_offers_what_the_table_names(module: str) -> None:
    """And no member is a module of the interpreter."""
    loaded = _load(module)
    members = {name: getattr(loaded, name) for name in dir(loaded)}

    assert isinstance(loaded, Facade)
    assert members
    assert not [name for name, value in members.items() if isinstance(value, types.ModuleType)]
    if (offered := table.members(module)) is not None:
        assert set(members) <= offered


@pytest.mark.parametrize("module", sorted(set(table.modules()) - {"asyncio"}))
def test_a_member_that_is_missing_is_missing_from_this_python_too(module: str) -> None:
    """The table names no member that exists nowhere."""
    loaded = _load(module)
    real = sys.modules[module]

    missing = [name for name in table.members(module) or () if name not in dir(loaded)]
    assert [name for name in missing if hasattr(real, name)] == []


def test_the_documentation_names_every_module_and_member() -> None:
    """Run `python tests/sandbox/test_language_modules.py` to write it anew."""
    assert DOCUMENT.read_text() == _documented(DOCUMENT.read_text())


def _documented(text: str) -> str:
    head, mark, _ = text.partition("<!-- modules: kept by tests/sandbox/test_language_modules.py -->")
    rows = ["| module | names |", "|---|---|"]
    for module in table.modules():
        if (members := table.members(module)) is not None:
            rows.append(
                f"| `{module}` | {' '.join(sorted(members, key=lambda name: (name.lower(), name)))} |"
            )
    return head + mark + "\n\n" + "\n".join(rows) + "\n"


def test_a_missing_module_is_told_with_what_to_do() -> None:
    """The message is the only help a model gets."""
    assert "call a tool" in table.no_module("requests")
    assert "asyncio.gather" in table.no_module("threading")
    assert "statistics" in table.no_module("numpy")
    assert "Did you mean json?" in table.no_module("jsn")


def test_each_program_has_its_own_stand_ins() -> None:
    """Clock and chance belong to a program."""
    assert _load("random") is not _load("random")
    assert _load("re").compile is re.compile
    assert issubclass(_load("enum").Enum, enum.Enum)


if __name__ == "__main__":
    DOCUMENT.write_text(_documented(DOCUMENT.read_text()))
