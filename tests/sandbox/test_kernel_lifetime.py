"""Confined processes begin and end as the fork server means them to: nobody outlives it, nobody shares an
id."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptc_sandbox import Sandbox
from ptc_sandbox.confine import Confinement, landlock
from ptc_sandbox.confine import __file__ as confine_file

ROOT = str(Path(confine_file).parents[2])
AS_ROOT = os.geteuid() == 0

_SERVER = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
from ptc_sandbox.confine import Confinement, Resources, enter_namespaces, leave_namespaces, prepare
confinement = Confinement.from_json(sys.argv[2])
enter_namespaces(confinement)
prepared = prepare(confinement, Resources())
lines = []
for _ in range(int(sys.argv[3])):
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        fd = theirs.detach()
        prepared.confine_child(fd)
        os.write(fd, b"x")
        while True:
            os.read(fd, 1)
    theirs.close()
    ours.recv(1)
    lines.append(ours)
    print(pid, flush=True)
print("ready", flush=True)
sys.stdin.readline()
leave_namespaces()
print("left", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def server(confinement: Confinement, children: int) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process that does what the fork server does, with waiting children, and their process ids."""
    with subprocess.Popen(
        [sys.executable, "-s", "-S", "-P", "-c", _SERVER, ROOT, confinement.to_json(), str(children)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONHASHSEED": "0"},
    ) as process:
        assert process.stdout is not None
        pids = []
        while (line := process.stdout.readline().strip()).isdigit():
            pids.append(int(line))
        if line != "ready":
            assert process.stderr is not None
            said = process.stderr.read()
            if "namespaces" in said:
                pytest.skip(f"this machine has no namespaces: {said[-200:]}")
            raise AssertionError(said)
        try:
            yield process, pids
        finally:
            process.kill()


def ends(pidfds: list[int], within_s: float = 1.0) -> bool:
    """Whether all of these processes end within a second; returns as soon as they have."""
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    left = set(pidfds)
    while left:
        events = poll.poll(within_s * 1000)
        if not events:
            return False
        for pidfd, _ in events:
            poll.unregister(pidfd)
            left.discard(pidfd)
    return True


def open_pidfds(stack: contextlib.ExitStack, pids: list[int]) -> list[int]:
    pidfds = [os.pidfd_open(pid) for pid in pids]
    for pidfd in pidfds:
        stack.callback(os.close, pidfd)
    return pidfds


def status(pid: int, field: str) -> str:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return line.split(":", 1)[1].strip()
    raise AssertionError(field)


@pytest.mark.parametrize(
    "level",
    [Confinement.strict(), Confinement.standard(), Confinement.minimal(), Confinement.none()],
    ids=lambda level: level.name,
)
def test_no_child_outlives_a_killed_server(level: Confinement) -> None:
    """A host or server that is killed at any point leaves nobody alive, at every level."""
    with contextlib.ExitStack() as stack:
        process, pids = stack.enter_context(server(level, 3))
        pidfds = open_pidfds(stack, pids)
        process.kill()
        assert ends(pidfds)


def test_leaving_ends_everybody_in_the_pid_namespace() -> None:
    """One call empties the namespace, whatever the processes in it are doing, and leaves no zombie."""
    with contextlib.ExitStack() as stack:
        process, pids = stack.enter_context(server(Confinement.strict(), 2))
        keepers = [
            int(pid)
            for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            if int(pid) not in pids
        ]
        assert [status(pid, "NSpid").split()[-1] for pid in keepers] == ["1"]
        pidfds = open_pidfds(stack, pids)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "left\n"
        assert ends(pidfds)
        assert not Path(f"/proc/{keepers[0]}").exists()


@pytest.mark.skipif(not AS_ROOT, reason="only root can become somebody else")
def test_each_program_of_root_has_an_id_of_its_own() -> None:
    """Programs that run at once cannot signal or read one another, and a limit of processes counts one."""
    with server(Confinement.minimal(), 4) as (_, pids):
        ids = [status(pid, "Uid").split() + status(pid, "Gid").split() for pid in pids]
        assert [len(set(each)) for each in ids] == [1] * 4
        assert len({each[0] for each in ids}) == 4
        assert all(0x7000_0000 <= int(each[0]) < 0x7FFF_FFFF for each in ids)


def test_a_child_has_a_process_group_of_its_own() -> None:
    """Ctrl-C at the host's terminal must not end programs, and a program's group holds nobody else."""
    with server(Confinement.minimal(), 1) as (_, [pid]):
        assert os.getpgid(pid) == pid


def test_only_the_channel_is_open() -> None:
    """Not standard input or output, not the ruleset, not the empty root."""
    if not AS_ROOT:
        pytest.skip(
            "a child that is not dumpable shows its descriptors to root only; the attacks prove the rest"
        )
    with server(Confinement.standard(), 2) as (_, pids):
        assert [len(os.listdir(f"/proc/{pid}/fd")) for pid in pids] == [1, 1]


def test_a_child_is_the_first_that_the_kernel_sacrifices() -> None:
    """When memory is short a program goes before the host."""
    with server(Confinement.minimal(), 1) as (_, [pid]):
        assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "1000\n"


def test_landlock_denies_all_that_each_abi_knows() -> None:
    """The struct grows with the ABI; one unknown bit or byte would be EINVAL on an older kernel."""
    attributes = {version: landlock.deny_all_attributes(version).hex() for version in range(1, 8)}
    assert attributes == {
        1: "ff1f000000000000",
        2: "ff3f000000000000",
        3: "ff7f000000000000",
        4: "ff7f000000000000" + "0300000000000000",
        5: "ffff000000000000" + "0300000000000000",
        6: "ffff000000000000" + "0300000000000000" + "0300000000000000",
        7: "ffff000000000000" + "0300000000000000" + "0300000000000000",
    }


_SPIN = """
import os, sys
sys.path.insert(0, sys.argv[1])
from ptc_sandbox.confine import Confinement, Resources, prepare
prepared = prepare(Confinement.minimal(), Resources(cpu_s=0.1))
pid = os.fork()
if pid == 0:
    prepared.confine_child(1)
    while True:
        pass
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_program_that_spins_ends_by_the_kernels_signal() -> None:
    """SIGXCPU in the wait status is the evidence for `killed:cpu`."""
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-P", "-c", _SPIN, ROOT], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(-signal.SIGXCPU)


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for child in children for found in (int(child), *descendants(int(child)))]


def memory_maps(pids: list[int]) -> list[list[str]]:
    return [Path(f"/proc/{pid}/maps").read_text().splitlines() for pid in pids]


@pytest.mark.skipif(not AS_ROOT, reason="the memory map of what is not dumpable is shown to root only")
async def test_no_memory_of_a_child_is_writable_and_executable() -> None:
    """Seccomp forbids new code; what the fork server brought along must not be a place to write it either."""
    async with Sandbox() as sandbox:
        assert (await sandbox.run("1")).status == "completed"
        maps = memory_maps(descendants(os.getpid()))
    assert len(maps) >= 2
    assert [line for lines in maps for line in lines if "wx" in line.split()[1]] == []


_SETTLE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from ptc_sandbox.confine import Confinement, LayerUnavailable, Resources, enter_namespaces, prepare
try:
    enter_namespaces(Confinement.strict())
except LayerUnavailable as error:
    sys.exit(f"unavailable: {error}")
prepared = prepare(Confinement.strict(), Resources())
prepared.settle()
files = os.listdir("/")
pid = os.fork()
if pid == 0:
    prepared.confine_child(1)
    os.write(1, b"confined ")
    os._exit(0)
os.waitpid(pid, 0)
print(files)
"""


def test_a_settled_fork_server_has_no_file_either() -> None:
    """The server is the one that a child could most want to use; and children inherit the empty root."""
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-P", "-c", _SETTLE, ROOT], capture_output=True, text=True
    )
    if "unavailable" in done.stderr:
        pytest.skip(f"this machine has no namespaces: {done.stderr[-200:]}")
    assert done.stdout.split(maxsplit=1) == ["confined", "[]\n"]
