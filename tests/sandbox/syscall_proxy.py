"""A tiny native worker for tests of the wall around one: it makes any system call it is told and says the result.

A static ELF binary of 85 bytes of code, so what is tested is what the kernel does to a worker that has been
taken over entirely, with no interpreter in between.
"""

from __future__ import annotations

import errno
import os
import signal
import struct
import subprocess
from pathlib import Path

from ptc_sandbox.confine import Confinement
from ptc_sandbox.engines.native import Launcher

DATA = 0x60_0000
TEXT = DATA + 64
"""Where the bytes lie that a request carries."""
_SIZE = 4096
_CODE = bytes.fromhex(
    "bb0000600031c031ff89deba001000000f054885c07e35488b03488b7b08488b7310488b53184c8b53204c8b43284c8b4b30"
    "0f05488903b801000000bf0100000089deba001000000f05ebb9b8e700000031ff0f05"
)


def write_binary(directory: Path) -> Path:
    """The worker as a file: reads 4096 bytes (number, six arguments, text at 64), calls, writes them back."""
    base, code_at = 0x40_0000, 64 + 2 * 56
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + code_at, 64, 0, 0, 64, 56, 2, 0, 0, 0)  # fmt: skip
    size = code_at + len(_CODE)
    code = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)
    data = struct.pack("<IIQQQQQQ", 1, 6, 0, DATA, DATA, 0, 2 * _SIZE, 4096)
    path = directory / "proxy"
    path.write_bytes(head + code + data + _CODE)
    path.chmod(0o755)
    return path


class Proxy:
    """A confined worker under the test's command. Use it in a `with`."""

    def __init__(self, binary: Path, confinement: Confinement, memory: int = 64 << 20) -> None:
        self._launcher = Launcher(str(binary), confinement, memory=memory, cpu_s=20)
        self._process = subprocess.Popen(
            [self._launcher.path, "subprocess"], env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, number: int, *arguments: int, text: bytes = b"") -> str:
        """The result: "ok", the name of the error, or the name of the signal that ended the worker."""
        answer = self._exchange(number, arguments, text)
        if answer is None:
            return self.end()
        result = struct.unpack_from("<q", answer)[0]
        return errno.errorcode.get(-result, str(result)) if -4096 < result < 0 else "ok"

    def value(self, number: int, *arguments: int) -> int:
        answer = self._exchange(number, arguments, b"")
        assert answer is not None
        return int(struct.unpack_from("<q", answer)[0])

    def end(self) -> str:
        """How the worker ended, by its wait status."""
        status = self._process.wait(20)
        return signal.Signals(-status).name if status < 0 else f"exit {status}"

    def _exchange(self, number: int, arguments: tuple[int, ...], text: bytes) -> bytes | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        padded = (*arguments, *(0,) * (6 - len(arguments)))
        request = struct.pack("<7Q", number, *(value & 0xFFFF_FFFF_FFFF_FFFF for value in padded))
        request = request.ljust(64, b"\0") + text
        try:
            os.write(self._process.stdin.fileno(), request.ljust(_SIZE, b"\0"))
        except BrokenPipeError:
            return None
        answer = os.read(self._process.stdout.fileno(), _SIZE)
        return answer if len(answer) == _SIZE else None

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._launcher.close()
