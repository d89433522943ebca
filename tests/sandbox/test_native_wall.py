"""The kernel wall around a native worker, attacked by a worker that has been taken over entirely."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptc_sandbox.confine import Confinement
from ptc_sandbox.confine.syscalls import AARCH64, ALLOWED, X86_64
from ptc_sandbox.engines.monty import EXCEPTIONS
from ptc_sandbox.engines.native import Launcher
from ptc_sandbox.engines.native_filter import CALLS, EXEC_PAGE, NativeFilter
from ptc_sandbox.errors import ConfinementUnavailable, SandboxBroken
from tests.sandbox.syscall_proxy import TEXT, Proxy, write_binary

on_x86_64 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the attacker is x86-64 machine code")

READ, WRITE, OPEN, CLOSE, MMAP, MPROTECT, MREMAP, DUP2, FCNTL = 0, 1, 2, 3, 9, 10, 25, 33, 72
SOCKET, CONNECT, CLONE, FORK, VFORK, EXECVE, KILL, PTRACE, SETUID = 41, 42, 56, 57, 58, 59, 62, 101, 105
PRCTL, OPENAT, UNLINKAT, PRLIMIT, SECCOMP, EXECVEAT, IO_URING, CLONE3 = 157, 257, 263, 302, 317, 322, 425, 435
AT_FDCWD, O_RDWR, O_CREAT = -100, 2, 0o100
PRIVATE, ANONYMOUS, FIXED = 2, 32, 16
STANDARD = Confinement.standard()


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_binary(tmp_path_factory.mktemp("worker"))


@pytest.fixture
def worker(binary: Path) -> Iterator[Proxy]:
    with Proxy(binary, STANDARD) as proxy:
        yield proxy


REFUSED = {
    "open a file": (OPENAT, (AT_FDCWD, TEXT, 0), b"/etc/passwd", "EACCES"),
    "open one for writing": (OPENAT, (AT_FDCWD, TEXT, O_RDWR), b"/etc/passwd", "EPERM"),
    "create one": (OPENAT, (AT_FDCWD, TEXT, O_CREAT | 1, 0o600), b"/tmp/new", "EPERM"),
    "open one by the older call": (OPEN, (TEXT, 0), b"/etc/passwd", "EPERM"),
    "list a directory": (OPENAT, (AT_FDCWD, TEXT, 0), b"/", "EACCES"),
    "read its own memory map": (OPENAT, (AT_FDCWD, TEXT, 0), b"/proc/self/maps", "EACCES"),
    "remove a file": (UNLINKAT, (AT_FDCWD, TEXT, 0), b"/tmp/new", "EPERM"),
    "make a socket": (SOCKET, (2, 1, 0), b"", "EPERM"),
    "make a local socket": (SOCKET, (1, 1, 0), b"", "EPERM"),
    "fork": (FORK, (), b"", "EPERM"),
    "vfork": (VFORK, (), b"", "EPERM"),
    "clone a process": (CLONE, (17,), b"", "EPERM"),
    "clone by the call that hides its flags": (CLONE3, (TEXT, 88), b"", "ENOSYS"),
    "signal another process": (KILL, (1, 9), b"", "EPERM"),
    "become root": (SETUID, (0,), b"", "EPERM"),
    "raise a limit": (PRLIMIT, (0, 7, TEXT, 0), b"", "EPERM"),
    "duplicate over the tether": (DUP2, (0, 3), b"", "EPERM"),
    "close the tether": (CLOSE, (3,), b"", "EPERM"),
    "take the signal off the tether": (FCNTL, (3, 10, 0), b"", "EPERM"),
    "be traceable": (PRCTL, (4, 1), b"", "EPERM"),
    "write to another descriptor": (WRITE, (0, TEXT, 1), b"x", "EPERM"),
    "take more memory than it has": (MMAP, (0, 1 << 30, 3, PRIVATE | ANONYMOUS, -1), b"", "ENOMEM"),
    "share memory": (MMAP, (0, 4096, 3, 1 | ANONYMOUS, -1), b"", "EPERM"),
    "map where the executed path was": (MMAP, (EXEC_PAGE, 4096, 3, 0x32, -1), b"", "EPERM"),
    "map up to where it was": (MMAP, (EXEC_PAGE - 4096, 8192, 3, 0x22, -1), b"", "EPERM"),
    "move memory to where it was": (MREMAP, (0x60_0000, 4096, 4096, 3, EXEC_PAGE), b"", "EPERM"),
    "execute where nothing lies any more": (EXECVE, (EXEC_PAGE, 0, 0), b"", "EFAULT"),
}
FATAL = {
    "execute": (EXECVE, (TEXT, 0, 0), b"/bin/true"),
    "execute by descriptor": (EXECVEAT, (0, TEXT, 0, 0, 0x1000), b""),
    "trace": (PTRACE, (0,), b""),
    "make code from data": (MMAP, (0, 4096, 7, PRIVATE | ANONYMOUS, -1), b""),
    "make its data executable": (MPROTECT, (0x60_0000, 4096, 5), b""),
    "install another filter": (SECCOMP, (1, 0, TEXT), b""),
    "use io_uring": (IO_URING, (8, TEXT), b""),
    "call by x32": (0x4000_0000 + OPENAT, (AT_FDCWD, TEXT, 0), b"/etc/passwd"),
    "enter a namespace": (CLONE, (0x1000_0000 | 17,), b""),
}


@on_x86_64
def test_what_a_taken_over_worker_is_refused(worker: Proxy) -> None:
    """Each is refused by an error, and the worker lives on to try the next."""
    found = {name: worker.call(number, *args, text=text) for name, (number, args, text, _) in REFUSED.items()}
    assert found == {name: expected for name, (*_, expected) in REFUSED.items()}
    assert worker.call(39) == "ok"


@on_x86_64
@pytest.mark.parametrize("attack", FATAL)
def test_what_ends_a_taken_over_worker(binary: Path, attack: str) -> None:
    """What no honest worker tries is fatal, so the wait status proves the attempt."""
    number, arguments, text = FATAL[attack]
    with Proxy(binary, STANDARD) as worker:
        assert worker.call(number, *arguments, text=text) == "SIGSYS"


@on_x86_64
def test_a_worker_holds_four_descriptors(worker: Proxy) -> None:
    """Nothing that the host had open crosses: input, output, nothing for errors, the tether."""
    worker.call(39)  # it answers, so the exec is behind it
    held = {int(fd.name): os.readlink(fd) for fd in Path(f"/proc/{worker.pid}/fd").iterdir()}
    assert set(held) == {0, 1, 2, 3}
    assert held[2] == "/dev/null"


@on_x86_64
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has an id to give away")
def test_a_root_hosts_worker_is_nobody(worker: Proxy) -> None:
    """Another id than the host's, no capability, no way to gain one."""
    worker.call(39)
    status = Path(f"/proc/{worker.pid}/status").read_text()
    ids = re.findall(r"^[UG]id:\s+(\d+)\s+(\d+)\s+(\d+)", status, re.MULTILINE)
    assert all(int(number) >= 0x7000_0000 for row in ids for number in row)
    assert re.findall(r"Cap(?:Inh|Prm|Eff|Bnd|Amb):\s*(\w+)", status) == ["0" * 16] * 5
    assert re.search(r"NoNewPrivs:\s*1", status)


def alone(layer: str) -> Confinement:
    without = Confinement.none().with_layer("no_new_privs", "required").with_layer("descriptors", "required")
    return without.with_layer(layer, "required")  # type: ignore[arg-type]


@on_x86_64
def test_landlock_alone_holds_files(binary: Path) -> None:
    """Without the filter: no file but the worker's own can be read, none made or executed."""
    with Proxy(binary, alone("landlock")) as worker:
        assert worker.call(OPENAT, AT_FDCWD, TEXT, 0, text=b"/etc/passwd") == "EACCES"
        assert worker.call(OPENAT, AT_FDCWD, TEXT, O_CREAT | 1, 0o600, text=b"/tmp/new") == "EACCES"
        assert worker.call(EXECVE, TEXT, 0, 0, text=b"/bin/true") == "EACCES"
        assert worker.call(OPENAT, AT_FDCWD, TEXT, 0, text=bytes(binary)) == "ok"


@on_x86_64
def test_the_filter_alone_leaves_reading_files_open(binary: Path) -> None:
    """The documented gap: the loader has to open, so without Landlock whatever may be read can be."""
    with Proxy(binary, alone("seccomp")) as worker:
        assert worker.call(OPENAT, AT_FDCWD, TEXT, 0, text=b"/etc/passwd") == "ok"
        assert worker.call(OPENAT, AT_FDCWD, TEXT, O_RDWR, text=b"/etc/passwd") == "EPERM"
        assert worker.call(SOCKET, 2, 1, 0) == "EPERM"


@on_x86_64
def test_namespaces_alone_hold_the_network(binary: Path) -> None:
    """A socket can be made and leads nowhere: not even the loopback interface is up."""
    confinement = alone("user").with_namespaces("net", "ipc", "uts")
    launcher = Launcher(str(binary), confinement, memory=64 << 20, cpu_s=20)
    try:
        launcher.rehearse()
    except ConfinementUnavailable as missing:
        pytest.skip(f"this machine cannot: {missing}")
    finally:
        launcher.close()
    with Proxy(binary, confinement) as worker:
        fd = worker.value(SOCKET, 2, 1, 0)
        assert fd > 3
        address = b"\x02\x00\x00\x50\x7f\x00\x00\x01" + bytes(8)
        assert worker.call(CONNECT, fd, TEXT, 16, text=address) == "ENETUNREACH"


@on_x86_64
def test_a_worker_dies_with_its_host_whoever_holds_its_pipes(binary: Path) -> None:
    """A host that is killed leaves nobody behind: the tether acts even when input stays open."""
    code = (
        "import sys\nfrom ptc_sandbox.confine import Confinement\nfrom ptc_sandbox.engines.native import Launcher\n"
        "launcher = Launcher(sys.argv[1], Confinement.standard(), memory=1 << 26, cpu_s=5)\n"
        "print(launcher.path, flush=True)\nsys.stdin.read()"
    )
    host = subprocess.Popen(
        [sys.executable, "-c", code, str(binary)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert host.stdout is not None
    assert host.stdin is not None
    path = host.stdout.readline().decode().strip()
    worker = subprocess.Popen([path, "subprocess"], env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write((39).to_bytes(8, "little").ljust(4096, b"\0"))
    worker.stdin.flush()
    assert len(worker.stdout.read(4096)) == 4096
    host.kill()
    assert worker.wait(20) == -signal.SIGKILL
    host.wait()
    for stream in (host.stdin, host.stdout, worker.stdin, worker.stdout):
        stream.close()


@on_x86_64
def test_a_level_that_a_worker_cannot_have_is_an_error(binary: Path) -> None:
    """An exec'ed worker has no empty root and no pid namespace: `strict()` says so instead of pretending."""
    with (
        Launcher(str(binary), Confinement.strict(), memory=1 << 26, cpu_s=5) as launcher,
        pytest.raises(ConfinementUnavailable, match="mnt, pid"),
    ):
        launcher.rehearse()


@on_x86_64
def test_a_rehearsal_says_what_holds(binary: Path) -> None:
    """Every layer is reported, as it would be around a worker."""
    with Launcher(str(binary), STANDARD, memory=1 << 26, cpu_s=5) as launcher:
        launcher.rehearse()
        held = {report.layer for report in launcher.layers if report.holds}
    assert held >= {"user", "no_new_privs", "landlock", "descriptors", "rlimits", "seccomp"}


def test_a_script_is_no_worker(tmp_path: Path) -> None:
    """What it would execute is decided by its first line, not by us."""
    script = tmp_path / "worker"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(SandboxBroken, match="not a 64-bit ELF"):
        Launcher(str(script), STANDARD, memory=1 << 26, cpu_s=5)


@pytest.mark.parametrize("arch", [X86_64, AARCH64], ids=["x86_64", "aarch64"])
def test_the_filter_can_be_assembled_for_each_machine(arch: object) -> None:
    """Jumps of classic BPF are short; a filter that does not fit is found here."""
    assert 100 < NativeFilter(arch).instructions < 300  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "path"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        ("aarch64", "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_the_numbers_of_a_worker_are_those_of_the_kernels_headers(column: str, path: str) -> None:
    """A wrong number would allow one call for another."""
    if not Path(path).exists():
        pytest.skip(f"{path} is not installed (linux-libc-dev)")
    text = Path(path).read_text()
    numbers = dict(re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", text, re.MULTILINE))
    numbers.setdefault("newfstatat", numbers.get("fstatat", ""))
    ours = {call.name: getattr(call, column) for call in CALLS if getattr(call, column) is not None}
    assert ours == {name: int(numbers[name]) for name in ours}


def test_the_page_on_engines_lists_what_is_enforced_and_what_is_excepted() -> None:
    """What operators read is what is in the code."""
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| .+? \| (.+?) \|$", page, re.MULTILINE)
    assert rows == [(call.name, call.reason) for call in CALLS]
    assert f"{len(CALLS)} calls instead of {len(ALLOWED)}" in page
    for case, reason in EXCEPTIONS.items():
        assert f"| {case} | {reason} |" in page
