"""No tool may take a name that a program finds ready: it would stand in its place."""

import asyncio
from typing import Any, cast

import pytest

from ptc_sandbox.guest.builtins import make_globals
from ptc_sandbox.guest.facades.module import facade
from ptc_sandbox.guest.tools import ERRORS
from ptc_tools.errors import InvalidName
from ptc_tools.names import check_program_name


class World:
    """No program runs: nothing of it is asked."""

    def sleep(self, seconds: float) -> None: ...

    def write_output(self, text: str) -> None: ...


def test_every_name_that_a_program_finds_ready_is_refused_for_its_tools() -> None:
    """The list of names stands with the tools, which know no sandbox: here the two are compared."""
    ready: dict[str, Any] = make_globals(cast(Any, World()), {}, facade("asyncio", {"sleep": asyncio.sleep}))[
        "__builtins__"
    ]
    errors = [kind.__name__ for kind in ERRORS]
    for name in [*(name for name in ready if name.isidentifier()), *errors]:
        with pytest.raises(InvalidName):
            check_program_name(None, name)
