"""The host's side of a native worker: an executable that stands in for its binary and confines itself first.

`Launcher.path` is what a pool is given to spawn. It lives in memory only, works while this process does, and
is gone with it; so are the workers, whatever they are doing, by a pipe whose end only this process holds.
"""

from __future__ import annotations

import json
import os
import shlex
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Self

from ptc_sandbox.confine import Confinement, LayerReport
from ptc_sandbox.engines.native_wall import REPORT, Order
from ptc_sandbox.errors import ConfinementUnavailable, SandboxBroken

_ROOT: Final = str(Path(__file__).parent.parent.parent)
_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    "from ptc_sandbox.engines.native_wall import main; main(sys.argv[2], sys.argv[3])"
)
_MFD_EXEC: Final = 0x10
_PT_INTERP: Final = 3
_CACHE: Final = "/etc/ld.so.cache"
_PATIENCE: Final = 30.0


class Launcher:
    """Confines a native binary before it is executed. Close it when its pool is closed."""

    def __init__(self, binary: str, confinement: Confinement, *, memory: int, cpu_s: float) -> None:
        if sys.platform != "linux":
            raise ConfinementUnavailable("linux", f"{sys.platform} has nothing that could confine a worker")
        reader, self._tether = os.pipe()
        os.close(reader)  # each worker opens one of its own
        binary = os.path.realpath(binary)
        interpreter, libraries = _loaded_by(binary)
        executable = (binary, interpreter) if interpreter else (binary,)
        order = Order(
            binary,
            executable,
            libraries,
            f"/proc/{os.getpid()}/fd/{self._tether}",
            confinement,
            memory,
            cpu_s,
        )
        command = [sys.executable, "-I", "-S", "-B", "-c", _BOOT, _ROOT, order.to_json()]
        # The host's signals to end are for the host: ignored ones stay ignored over an exec.
        script = f"#!/bin/sh\ntrap '' INT TERM HUP QUIT\nexec {shlex.join(command)} \"$1\"\n"
        self._script = _in_memory(script)
        self.path: Final = f"/proc/{os.getpid()}/fd/{self._script}"
        self.layers: tuple[LayerReport, ...] = ()

    def rehearse(self) -> None:
        """Let a launcher confine itself and say what holds. Blocks for some tens of milliseconds.

        Raises ConfinementUnavailable where a required layer cannot be had, SandboxBroken where it cannot even
        start.
        """
        try:
            ran = subprocess.run(  # noqa: S603
                [self.path, REPORT], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE
            )
            said: dict[str, Any] = json.loads(ran.stdout)
        except (OSError, subprocess.SubprocessError) as error:
            raise SandboxBroken(f"the launcher of the worker does not start: {error}") from None
        except ValueError:
            words = ran.stderr.decode(errors="replace").strip()[-1000:]
            raise SandboxBroken(f"the launcher of the worker ended with {ran.returncode}: {words}") from None
        if "refused" in said:
            report = LayerReport.from_json(said["refused"])
            raise ConfinementUnavailable(report.layer, report.evidence)
        if ran.returncode:
            raise SandboxBroken(
                f"the launcher of the worker ended with {ran.returncode} under its own filter"
            )
        self.layers = tuple(LayerReport.from_json(layer) for layer in said["layers"])

    def close(self) -> None:
        """Kill the workers that are left, and give the descriptors back."""
        for fd in (self._tether, self._script):
            if fd >= 0:
                os.close(fd)
        self._tether = self._script = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _in_memory(script: str) -> int:
    """A descriptor of an executable file that is nowhere on disk."""
    try:
        fd = os.memfd_create("ptc-launcher", os.MFD_CLOEXEC | _MFD_EXEC)
    except OSError:  # before Linux 6.3, where such files are executable anyway
        fd = os.memfd_create("ptc-launcher", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(script.encode())
    os.fchmod(fd, 0o500)
    return fd


def _loaded_by(binary: str) -> tuple[str | None, tuple[str, ...]]:
    """The binary's loader, and the files that it reads, as it says itself. Nothing for a static binary."""
    interpreter = _interpreter(binary)
    if interpreter is None:
        return None, ()
    listed = subprocess.run(  # noqa: S603
        [interpreter, "--list", binary],
        env={},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE,
    )
    words = listed.stdout.decode(errors="replace").split()
    libraries = {os.path.realpath(word) for word in words if word.startswith("/")}
    if os.path.exists(_CACHE):
        libraries.add(_CACHE)
    return os.path.realpath(interpreter), tuple(sorted(libraries))


def _interpreter(binary: str) -> str | None:
    """PT_INTERP of a 64-bit little-endian ELF file. SandboxBroken for anything else."""
    with open(binary, "rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise SandboxBroken(f"{binary} is not a 64-bit ELF binary, so it cannot be a confined worker")
        table, (size, count) = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<HH", head, 54)
        for index in range(count):
            file.seek(table + index * size)
            kind, _, offset, _, _, length = struct.unpack("<IIQQQQ", file.read(40))
            if kind == _PT_INTERP:
                file.seek(offset)
                return file.read(length).rstrip(b"\0").decode()
    return None
