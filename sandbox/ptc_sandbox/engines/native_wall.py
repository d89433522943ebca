"""The launcher of a native worker: confines its own process, then becomes the worker by the one exec it may make.

It runs as `python -I -S` in an empty environment and imports the standard library and `ptc_sandbox.confine`
only. It is told what to run and what its loader reads; a layer that is required and cannot be had ends it
before anything runs. With `report` for an argument it does all that, says what holds, and runs nothing.
"""

from __future__ import annotations

import ctypes
import dataclasses
import fcntl
import json
import mmap
import os
import resource
import select
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

from ptc_sandbox.confine import kernel, landlock, namespaces, privileges, rlimits
from ptc_sandbox.confine.levels import Confinement, Layer, LayerReport, LayerUnavailable, Namespace, Resources
from ptc_sandbox.engines.native_filter import EXEC_PAGE, MAX_ADDRESS_SPACE, TETHER, NativeFilter

REPORT: Final = "report"
"""The argument with which the launcher tells what holds instead of running the worker."""

NAMESPACES: Final[tuple[Namespace, ...]] = ("net", "ipc", "uts")
"""The ones a worker can have: it is executed, so its files must be there (mnt), and as the child of the host's
pool, not of ours (pid)."""

_BINARY: Final = TETHER + 1
_MOST_DESCRIPTORS: Final = 16
_MOST_THREADS: Final = 16
_LOADED: Final = 64 * 1024 * 1024
"""Private memory of the worker itself, and of what its allocator holds ready."""
_RESERVED: Final = 1024 * 1024 * 1024
"""Address space that costs no memory: the binary, thread stacks, arenas."""

_ADD_RULE: Final = 445  # landlock_add_rule, on both architectures
_PATH_BENEATH: Final = 1
_EXECUTE: Final = 1 << 0
_READ_FILE: Final = 1 << 2

_F_SETSIG: Final = 10
_LAST_DESCRIPTOR: Final = 0xFFFF_FFFF


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """What the host orders: crosses as one argument of JSON."""

    binary: str
    executable: tuple[str, ...]
    """Files that the exec itself needs: the binary and its loader."""
    readable: tuple[str, ...]
    """Files that the loader reads."""
    tether: str
    """A path under /proc to the write end of a pipe that only the host holds."""
    confinement: Confinement
    memory: int
    cpu_s: float

    def to_json(self) -> str:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return json.dumps(fields | {"confinement": self.confinement.to_json()})

    @classmethod
    def from_json(cls, text: str) -> Order:
        fields = json.loads(text)
        fields["confinement"] = Confinement.from_json(fields["confinement"])
        return cls(**fields)


def main(order: str, argument: str) -> None:
    """Become the worker (`argument` is its only one), or report. Never returns to a caller that could go on."""
    wall = _Wall(Order.from_json(order))
    try:
        wall.raise_()
        if argument == REPORT:
            wall.tell()
        wall.close_door()
        if argument != REPORT:
            wall.become(argument)
    except LayerUnavailable as unavailable:
        if argument == REPORT:
            os.write(1, json.dumps({"refused": unavailable.report.to_json()}).encode())
        os._exit(1)
    os._exit(0 if argument == REPORT else 127)


class _Wall:
    """The layers, in the order in which they can be put in place."""

    def __init__(self, order: Order) -> None:
        self._order: Final = order
        self._confinement: Final = order.confinement
        self._reports: Final[list[LayerReport]] = []
        self._filter: NativeFilter | None = None
        self._user: privileges.UserPlan | None = None

    def raise_(self) -> None:
        """All layers but the filter, which is last."""
        self._take_descriptors()
        self._layer("namespaces", self._enter_namespaces)
        self._layer("user", self._become_nobody)
        self._layer("no_new_privs", self._renounce)
        self._hold_on_to_the_host()
        self._layer("landlock", self._restrict_files)
        self._layer("descriptors", self._close_others)
        self._layer("rlimits", self._limit)
        self._layer("seccomp", self._prepare_filter)
        self._note("cgroup", False, "not used for native workers: each is bounded by its rlimits")
        self._path = self._place_path()

    def tell(self) -> None:
        os.write(1, json.dumps({"layers": [report.to_json() for report in self._reports]}).encode())

    def close_door(self) -> None:
        """The filter: afterwards this process can do nothing but read, write, compute, and exec once."""
        if self._filter is not None:
            self._filter.install()

    def become(self, argument: str) -> None:
        texts = [ctypes.create_string_buffer(os.fsencode(text)) for text in (self._order.binary, argument)]
        argv = (ctypes.c_void_p * 3)(*(ctypes.addressof(text) for text in texts), None)
        environment = (ctypes.c_void_p * 1)(None)
        execve = ctypes.CDLL(None).execve
        execve.argtypes = [ctypes.c_void_p] * 3
        execve(self._path, ctypes.addressof(argv), ctypes.addressof(environment))

    # -- layers --------------------------------------------------------------------------------------

    def _layer(self, layer: Layer, raise_: Callable[[], str]) -> None:
        """Put one in place unless it is off. LayerUnavailable if it is required and cannot be had."""
        if self._confinement.want(layer) == "off":
            self._note(layer, False, "off")
            return
        try:
            evidence = raise_()
        except OSError as error:
            self._note(layer, False, str(error), "run `ptc doctor`, or choose a weaker level by name")
            return
        self._note(layer, True, evidence)

    def _note(self, layer: Layer, holds: bool, evidence: str, advice: str = "") -> None:
        want = self._confinement.want(layer)
        report = LayerReport(layer, "if-available" if layer == "cgroup" else want, holds, evidence, advice)
        if report.missing:
            raise LayerUnavailable(report)
        self._reports.append(report)

    def _take_descriptors(self) -> None:
        """Standard input and output stay. The tether, the binary and nothing for errors take known numbers,
        opened while this process still may."""
        opened = [
            os.open(self._order.tether, os.O_RDONLY),
            os.open(self._order.binary, os.O_RDONLY),
            os.open(os.devnull, os.O_WRONLY),
        ]
        # Above the numbers that they will have, so that none is overwritten before it is placed.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in opened]
        rules = [(path, _EXECUTE | _READ_FILE) for path in self._order.executable]
        rules += [(path, _READ_FILE) for path in self._order.readable]
        self._rules = [
            (fcntl.fcntl(os.open(path, os.O_PATH), fcntl.F_DUPFD, 64), rights) for path, rights in rules
        ]
        for fd, number in zip(high, (TETHER, _BINARY, 2), strict=True):
            os.dup2(fd, number, inheritable=True)

    def _enter_namespaces(self) -> str:
        wanted = self._confinement.namespace_kinds
        beyond = [kind for kind in wanted if kind not in NAMESPACES]
        if beyond and self._confinement.want("namespaces") == "required":
            raise OSError(
                f"a native worker cannot have the namespaces {', '.join(beyond)}; pass"
                f" .with_namespaces({', '.join(map(repr, NAMESPACES))})"
            )
        kinds = [kind for kind in wanted if kind in NAMESPACES]
        return namespaces.enter(kinds).describe()

    def _become_nobody(self) -> str:
        plan = privileges.plan(self._confinement.uid)
        privileges.shed(plan)
        uid = plan.uid()
        if uid is not None:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            # The limit counts what runs under an id, and nothing else runs under this one.
            resource.setrlimit(resource.RLIMIT_NPROC, (_MOST_THREADS, _MOST_THREADS))
        if os.getpgrp() != os.getpid():
            os.setpgid(0, 0)
        kernel.make(privileges.dropping_capabilities())
        return plan.evidence

    def _renounce(self) -> str:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        return "set before the exec"

    def _hold_on_to_the_host(self) -> None:
        """Die with the host, at once and whatever this process is doing: the kernel sends SIGKILL when the last
        writer of the tether is gone. (PDEATHSIG would fire with the *thread* of the host that started us.)"""
        fcntl.fcntl(TETHER, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(TETHER, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(TETHER, fcntl.F_SETFL, fcntl.fcntl(TETHER, fcntl.F_GETFL) | os.O_ASYNC)
        poll = select.poll()
        poll.register(TETHER, 0)
        if poll.poll(0):
            os._exit(0)  # it went before this could be noticed

    def _restrict_files(self) -> str:
        have, least = landlock.abi(), self._confinement.landlock_abi
        if have < least:
            raise OSError(f"Landlock ABI {have}, and {least} is wanted")
        ruleset = landlock.create_ruleset()
        for fd, rights in self._rules:
            attributes = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd), 12)
            kernel.raw(_ADD_RULE, ruleset, _PATH_BENEATH, kernel.address(attributes), 0)
        kernel.make(landlock.restricting_self(ruleset))
        return f"{landlock.describe(have)}; to read: {len(self._rules)} files that the loader needs"

    def _close_others(self) -> str:
        # The binary is open until the exec. A program of ours has one descriptor, a worker four.
        os.set_inheritable(_BINARY, False)
        try:
            kernel.syscall("close_range", _BINARY + 1, _LAST_DESCRIPTOR, 0)
        except OSError:
            os.closerange(_BINARY + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        return "all but input, output, nothing for errors, and the tether are closed"

    def _limit(self) -> str:
        rlimits.apply_to_server()
        memory, cpu = self._order.memory + _LOADED, int(-(-self._order.cpu_s // 1))
        space = min(self._order.memory + _RESERVED, MAX_ADDRESS_SPACE - 1)
        stack = Resources().stack
        for which, soft, hard in (
            (resource.RLIMIT_FSIZE, 0, 0),
            (resource.RLIMIT_NOFILE, _MOST_DESCRIPTORS, _MOST_DESCRIPTORS),
            (resource.RLIMIT_DATA, memory, memory),
            (resource.RLIMIT_AS, space, space),
            (resource.RLIMIT_STACK, stack, stack),
            (resource.RLIMIT_CPU, cpu, cpu + 1),
        ):
            ceiling = resource.getrlimit(which)[1]
            if ceiling != resource.RLIM_INFINITY:
                soft, hard = min(soft, ceiling), min(hard, ceiling)
            resource.setrlimit(which, (soft, hard))
        return f"private memory {memory >> 20} MiB, CPU {cpu} s; no byte into a file"

    def _prepare_filter(self) -> str:
        if kernel.ARCHITECTURE is None:
            raise OSError("no table of system calls for this machine: use x86-64 or aarch64")
        self._filter = NativeFilter(kernel.ARCHITECTURE)
        return f"{self._filter.instructions} instructions for {kernel.ARCHITECTURE.machine}; one exec"

    def _place_path(self) -> int:
        """The path to execute, where the filter wants it. By descriptor: an id that nobody has may not be allowed
        to walk to where the binary lies."""
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else /proc/self would be root's after the ids changed
        path = f"/proc/self/fd/{_BINARY}\0".encode()
        protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        map_at: Any = ctypes.CDLL(None, use_errno=True).mmap
        map_at.restype = ctypes.c_size_t
        map_at.argtypes = [ctypes.c_size_t, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        if map_at(EXEC_PAGE, mmap.PAGESIZE, protection, flags | 0x100000, -1, 0) != EXEC_PAGE:
            raise OSError(ctypes.get_errno(), "the page of the path cannot be placed")
        ctypes.memmove(EXEC_PAGE, path, len(path))
        return EXEC_PAGE


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
