"""Runs the command line in this process, as its entry point does."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import pytest

from ptc.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    status: int
    out: str
    err: str


class Cli:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: object, stdin: str = "") -> Ran:
        self._monkeypatch.setattr(sys, "argv", ["ptc", *map(str, arguments)])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        return Ran(int(ended.value.code or 0), out, err)
