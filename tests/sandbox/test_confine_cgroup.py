"""Control groups: where one may be made, what is written, what is left. On a directory that stands in for one.

The kernel's own files cannot be had in most places where tests run; the trial of the real thing is `ptc doctor`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ptc_sandbox import Sandbox
from ptc_sandbox.confine import Confinement, LayerUnavailable, Resources
from ptc_sandbox.confine.cgroup import Cgroup, enter_group, find_parent, is_inside_one
from ptc_sandbox.confine.report import run_trial
from ptc_sandbox.confine.trial import Request
from ptc_sandbox.errors import ConfinementUnavailable


def mkdir_like_cgroupfs(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """From here on a new directory has control files, as in a cgroup file system; rmdir does not mind them."""
    make, remove = Path.mkdir, Path.rmdir

    def mkdir(path: Path) -> None:
        make(path)
        for name in names:
            (path / name).touch()

    def rmdir(path: Path) -> None:
        for file in path.iterdir():
            file.unlink()
        remove(path)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)


FILES = ("memory.max", "memory.swap.max", "pids.max", "cgroup.procs", "memory.events")


@pytest.fixture
def delegated(tmp_path: Path) -> Path:
    """A directory that looks like a delegated group with our controllers."""
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    return tmp_path


def test_a_delegated_directory_is_taken(delegated: Path) -> None:
    """The operator's directory is used, and the report names it."""
    parent, report = find_parent(Confinement.standard().with_cgroup(str(delegated)))
    assert parent == delegated
    assert report.holds
    assert str(delegated) in report.evidence


@pytest.mark.parametrize("control", ["cpu memory", "pids", ""])
def test_a_directory_without_our_controllers_is_refused_when_required(delegated: Path, control: str) -> None:
    """A group that bounds nothing is not a layer."""
    (delegated / "cgroup.subtree_control").write_text(control)
    with pytest.raises(LayerUnavailable, match="does not hand on"):
        find_parent(Confinement.standard().with_cgroup(str(delegated)))


def test_what_is_no_cgroup_is_refused_when_required(tmp_path: Path) -> None:
    """Nothing is ever written into an ordinary directory."""
    with pytest.raises(LayerUnavailable, match="no cgroup v2 directory"):
        find_parent(Confinement.standard().with_cgroup(str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_where_it_is_only_wanted_the_report_says_what_is_missing(tmp_path: Path) -> None:
    """Reported, and no error: the level does not promise it."""
    parent, report = find_parent(Confinement.standard().with_cgroup(str(tmp_path), "if-available"))
    assert parent is None
    assert (report.holds, report.missing) == (False, False)
    assert "Delegate=yes" in report.advice


def test_this_machine_gets_an_answer_either_way() -> None:
    """Whatever cgroups are mounted here, looking for one neither fails nor makes anything."""
    parent, report = find_parent(Confinement.standard())
    assert (parent is not None) == report.holds
    assert report.evidence


def test_the_limits_are_written_and_the_group_is_removed(
    delegated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory without swap, and processes; the server's pid goes in before it forks."""
    mkdir_like_cgroupfs(monkeypatch, *FILES)
    group = Cgroup.create(delegated, memory=1 << 30, pids=70)
    group.add(4242)
    contents = {
        name: (group.path / name).read_text()
        for name in ("memory.max", "memory.swap.max", "pids.max", "cgroup.procs")
    }
    assert contents == {
        "memory.max": "1073741824",
        "memory.swap.max": "0",
        "pids.max": "70",
        "cgroup.procs": "4242",
    }
    (group.path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert group.out_of_memory_kills() == 2
    group.remove()
    group.remove()
    assert [path.name for path in delegated.iterdir()] == ["cgroup.subtree_control"]


def test_a_group_that_cannot_be_bounded_is_not_left_behind(delegated: Path) -> None:
    """In an ordinary directory there are no control files, so creating fails, and cleans up."""
    with pytest.raises(FileNotFoundError):
        Cgroup.create(delegated, memory=1, pids=1)
    assert [path.name for path in delegated.iterdir()] == ["cgroup.subtree_control"]


def test_groups_of_hosts_that_were_killed_are_swept(delegated: Path) -> None:
    """A SIGKILL leaves a directory; the next host removes it, and never one of a host that lives."""
    dead = delegated / "ptc-sandbox-4194305-aa"  # above the kernel's largest process id
    ours = delegated / f"ptc-sandbox-{os.getpid()}-bb"
    foreign = delegated / "ptc-sandbox-notes"
    for directory in (dead, ours, foreign):
        directory.mkdir()
    with pytest.raises(FileNotFoundError):
        Cgroup.create(delegated, memory=1, pids=1)
    assert (dead.exists(), ours.exists(), foreign.exists()) == (False, True, True)


def test_a_group_bounds_all_programs_together(delegated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each may have, times how many may run, and the fork server; or what the operator says."""
    mkdir_like_cgroupfs(monkeypatch, *FILES)
    policy = Confinement.standard().with_cgroup(str(delegated))
    resources = Resources(memory=1 << 20, programs=10)
    group, report = enter_group(policy, resources, 4242)
    assert group is not None
    assert report.holds
    assert (group.path / "memory.max").read_text() == str((10 << 20) + (256 << 20))
    assert (group.path / "pids.max").read_text() == "18"
    assert (group.path / "cgroup.procs").read_text() == "4242"
    group.remove()
    smaller = Confinement.standard().with_cgroup(str(delegated), memory=1 << 25)
    group, _ = enter_group(smaller, resources, 4242)
    assert group is not None
    assert (group.path / "memory.max").read_text() == str(1 << 25)


def test_a_process_that_cannot_be_put_in_leaves_no_group(
    delegated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moving a process needs rights on the group it comes from: found out only by trying."""
    mkdir_like_cgroupfs(monkeypatch, "memory.max", "memory.swap.max", "pids.max")
    wanted = Confinement.standard().with_cgroup(str(delegated), "if-available")
    group, report = enter_group(wanted, Resources(), 4242)
    assert (group, report.holds) == (None, False)
    with pytest.raises(LayerUnavailable):
        enter_group(Confinement.standard().with_cgroup(str(delegated)), Resources(), 4242)
    assert [path.name for path in delegated.iterdir()] == ["cgroup.subtree_control"]


async def test_a_sandbox_that_requires_a_group_is_refused_where_there_is_none(delegated: Path) -> None:
    """Nothing runs without the bound that the operator asked for."""
    with pytest.raises(ConfinementUnavailable) as caught:
        async with Sandbox(confinement=Confinement.standard().with_cgroup(str(delegated))):
            pass
    assert caught.value.layer == "cgroup"


def test_a_fork_server_outside_of_any_group_refuses_a_policy_that_requires_one(delegated: Path) -> None:
    """Whoever starts the server by other means cannot forget the group."""
    policy = Confinement.standard().with_cgroup(str(delegated))
    assert not is_inside_one()
    refused = run_trial(Request(policy, ())).unavailable
    assert refused is not None
    assert refused.layer == "cgroup"
