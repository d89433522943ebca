"""Trying a confinement for real: a process of its own forks one confined child for each attack and says what
came of it.

`main` is what the host starts (see `report.py`): a request as JSON on standard input, the answer on standard
output. It uses the very code that the fork server uses, and cleans up after itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import errno
import json
import mmap
import os
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from ptc_sandbox.confine import bpf, enter_namespaces, kernel, leave_namespaces, prepare
from ptc_sandbox.confine.attack import BECAME_ANOTHER, Attack, Target
from ptc_sandbox.confine.attacks import ATTACKS
from ptc_sandbox.confine.child import Prepared
from ptc_sandbox.confine.levels import Confinement, LayerReport, LayerUnavailable, Resources

How = Literal["refused", "killed", "succeeded", "failed", "hung"]

_RESOURCES: Final = Resources(memory=64 * 1024 * 1024, cpu_s=1)
_PATIENCE_MS: Final = 20_000
_FACTS: Final = (
    "Uid",
    "Gid",
    "Groups",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attack: `by` is the errno's name, the signal's name, what was had, or (`failed`) the
    exception that was none of the kernel's."""

    attack: str
    how: How
    by: str

    @property
    def stopped(self) -> bool:
        """Whether the attacker has nothing."""
        return self.how in ("refused", "killed")


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What to try. `as_uid` drops to an ordinary user first (root only); `refuse` names calls that the
    machine shall refuse, as a container's profile does. `directory` is where its files are made and left, by whoever
    removes it: a trial that has become somebody else cannot. Without one it makes and removes its own."""

    confinement: Confinement
    attacks: tuple[str, ...]
    resources: Resources = _RESOURCES
    as_uid: int | None = None
    refuse: tuple[str, ...] = ()
    directory: str | None = None

    def to_json(self) -> str:
        """For the trial's standard input."""
        return json.dumps(
            {
                "confinement": self.confinement.to_json(),
                "attacks": self.attacks,
                "resources": dataclasses.asdict(self.resources),
                "as_uid": self.as_uid,
                "refuse": self.refuse,
                "directory": self.directory,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Request:
        """The inverse of `to_json`."""
        data = json.loads(text)
        return cls(
            Confinement.from_json(data["confinement"]),
            tuple(data["attacks"]),
            Resources(**data["resources"]),
            data["as_uid"],
            tuple(data["refuse"]),
            data["directory"],
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request: either `unavailable`, or layers, one outcome for each attack, and what the
    kernel says of a confined child (fields of /proc/PID/status)."""

    unavailable: LayerReport | None = None
    layers: tuple[LayerReport, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    facts: dict[str, str] = dataclasses.field(default_factory=dict)

    def to_json(self) -> str:
        """For the trial's standard output."""
        return json.dumps(
            {
                "unavailable": self.unavailable and self.unavailable.to_json(),
                "layers": [layer.to_json() for layer in self.layers],
                "outcomes": [dataclasses.asdict(outcome) for outcome in self.outcomes],
                "facts": self.facts,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """The inverse of `to_json`."""
        data: dict[str, Any] = json.loads(text)
        return cls(
            data["unavailable"] and LayerReport.from_json(data["unavailable"]),
            tuple(LayerReport.from_json(layer) for layer in data["layers"]),
            tuple(Outcome(**outcome) for outcome in data["outcomes"]),
            data["facts"],
        )


def main() -> None:
    """Serve one request."""
    request = Request.from_json(sys.stdin.read())
    sys.stdout.write(run(request).to_json())


def run(request: Request) -> Answer:
    """Try `request` from the calling process, which is changed for good by it (user, namespaces)."""
    with _targets(request) as target:
        if request.refuse:
            _refuse(request.refuse)
        if request.as_uid is not None:
            _become(request.as_uid)
        try:
            layers = enter_namespaces(request.confinement)
            prepared = prepare(request.confinement, request.resources)
        except LayerUnavailable as error:
            leave_namespaces()
            return Answer(unavailable=error.report)
        try:
            outcomes = tuple(_try(ATTACKS[name], target, prepared) for name in request.attacks)
            facts = _facts(prepared)
        finally:
            leave_namespaces()
        return Answer(None, (*layers, *prepared.reports), outcomes, facts)


def _try(attack: Attack, target: Target, prepared: Prepared) -> Outcome:
    """One attack in a child of its own."""
    ours, theirs = socket.socketpair()
    with ours:
        pid = os.fork()
        if pid == 0:
            _attack_as_child(attack, target, prepared, theirs)
        theirs.close()
        said = _read_all(ours)
        if said is None:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    if said is None:
        return Outcome(attack.name, "hung", "")
    if os.WIFSIGNALED(status):
        return Outcome(attack.name, "killed", signal.Signals(os.WTERMSIG(status)).name)
    how, _, by = said.partition(" ")
    if how == "refused":
        return Outcome(attack.name, "refused", by)
    if how == "succeeded" or os.waitstatus_to_exitcode(status) == BECAME_ANOTHER:
        return Outcome(attack.name, "succeeded", by)
    return Outcome(attack.name, "failed", by or f"exit status {os.waitstatus_to_exitcode(status)}")


def _attack_as_child(attack: Attack, target: Target, prepared: Prepared, channel: socket.socket) -> None:
    """Never returns."""
    fd = channel.detach()
    try:
        prepared.confine_child(fd)
        try:
            said = f"succeeded {attack.act(dataclasses.replace(target, channel=fd))!r}"
        except OSError as error:
            said = f"refused {errno.errorcode.get(error.errno or 0, error)}"
        except Exception as error:  # noqa: BLE001 - told to the parent, which counts it as not stopped
            said = f"failed {error!r}"
        os.write(fd, said.encode()[:500])
    finally:
        os._exit(1)


def _read_all(line: socket.socket) -> str | None:
    """What the child says until it is gone; None when it takes too long."""
    said = b""
    poll = select.poll()
    poll.register(line, select.POLLIN)
    while poll.poll(_PATIENCE_MS):
        try:
            part = line.recv(4096)
        except ConnectionResetError:  # it died with something unread
            part = b""
        if not part:
            return said.decode(errors="replace")
        said += part
    return None


def _facts(prepared: Prepared) -> dict[str, str]:
    """What the kernel says of a child that is confined and waits."""
    ours, theirs = socket.socketpair()
    with ours:
        pid = os.fork()
        if pid == 0:
            try:
                fd = theirs.detach()
                prepared.confine_child(fd)
                os.write(fd, b"x")
                os.read(fd, 1)
            finally:
                os._exit(0)
        theirs.close()
        ours.recv(1)
        rows = (line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        facts = {row[0]: row[1].strip() for row in rows if row[0] in _FACTS}
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return facts


@contextlib.contextmanager
def _targets(request: Request) -> Iterator[Target]:
    """Things to attack, and their end. They are open to whom the trial becomes."""
    with contextlib.ExitStack() as stack:
        directory = request.directory
        if directory is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="ptc-trial-"))
            os.chmod(directory, 0o777)  # noqa: S103 - children of another user shall be able to write, unconfined
        readable, root_only = Path(directory, "readable"), Path(directory, "root-only")
        readable.write_text("anybody")
        root_only.write_text("root")
        root_only.chmod(0o600)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0ptc-trial-{os.getpid()}")
        abstract.listen()
        theirs, ours = socket.socketpair()
        stack.enter_context(theirs)
        stack.enter_context(ours)
        ours.send(b"x" * 64)
        file = stack.enter_context(open(Path(directory, "open"), "wb", buffering=0))
        victim = _start_victim(request.as_uid)
        stack.callback(_end_victim, victim)
        yield Target(
            directory=directory,
            readable=str(readable),
            root_only=str(root_only),
            setuid_id=_setuid_id(directory),
            shell=shutil.which("sh") or "/bin/sh",
            port=listener.getsockname()[1],
            abstract=abstract.getsockname().decode(),
            victim=victim,
            other_fd=theirs.fileno(),
            file_fd=file.fileno(),
            foreign_code=_foreign_code(),
        )


def _start_victim(owner: int | None) -> int:
    """A process that sleeps until it is ended, owned by whoever the attackers are if unconfined."""
    ready, say = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            if owner is not None:
                _become(owner)
                kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            os.write(say, b"x")
            while True:
                signal.pause()
        finally:
            os._exit(0)
    os.close(say)
    os.read(ready, 1)
    os.close(ready)
    return pid


def _end_victim(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _setuid_id(directory: str) -> str:
    """A set-user-ID copy of `id`, if we are root and this file system honours the bit."""
    source = shutil.which("id")
    if source is None or os.geteuid() != 0 or os.statvfs(directory).f_flag & os.ST_NOSUID:
        return ""
    copy = shutil.copyfile(source, f"{directory}/id")
    os.chmod(copy, 0o4755)  # noqa: S103 - a set-user-ID program is the point
    return copy


def _foreign_code() -> int:
    """mov eax, 20 (getpid of 32-bit Linux); int 0x80; ret. Only on x86-64, and made before anything is
    confined."""
    if kernel.ARCHITECTURE is None or not kernel.ARCHITECTURE.has_x32:
        return 0
    code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"
    page = mmap.mmap(
        -1,
        4096,
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC,
    )
    page.write(code)
    _KEPT.append(page)
    return ctypes.addressof(ctypes.c_char.from_buffer(page))


_KEPT: Final[list[object]] = []


def _become(uid: int) -> None:
    """An ordinary user from here on, open to be traced like one."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)


def _refuse(names: Sequence[str]) -> None:
    """From here on these calls are EPERM, as under a container's profile."""
    assert kernel.ARCHITECTURE is not None
    p = bpf.Program()
    p.load(bpf.NR)
    for name in names:
        p.if_equal(kernel.ARCHITECTURE.numbers[name], then="refuse")
    p.give(0x7FFF_0000)
    p.label("refuse")
    p.give(0x0005_0000 | errno.EPERM)
    code = p.assemble()
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(
        struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer)), 16
    )
    if os.geteuid() != 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.syscall("seccomp", 1, 0, ctypes.addressof(header))
