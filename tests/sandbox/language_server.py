"""Runs programs behind the language wall alone, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import RestrictedPython

import ptc_sandbox

_GUEST = Path(__file__).with_name("language_guest.py")


class LanguageServer:
    """A process that answers with what became of a program. Use as a context manager."""

    def __enter__(self) -> LanguageServer:
        places = [str(Path(module.__file__ or "").parents[1]) for module in (ptc_sandbox, RestrictedPython)]
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-S", "-P", str(_GUEST), *places],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONHASHSEED": "0"},
        )
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def run(self, code: str, *, plain: bool = False) -> dict[str, Any]:
        """The outcome: `status` completed (with `value`, `output`), denied or raised (with `code`, `message`)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"code": code, "plain": plain}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer
