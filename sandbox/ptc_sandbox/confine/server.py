"""What the fork server does to itself, once, before it forks: namespaces, and being the first to go when
memory is short.

It is told a `Confinement`; what it has entered is process-wide, so it is kept in this module. It never leaves
a half-entered namespace: what may be missing is tried in a throw-away process first.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ptc_sandbox.confine import cgroup, namespaces
from ptc_sandbox.confine.child import Prepared
from ptc_sandbox.confine.levels import Confinement, LayerReport, LayerUnavailable, Resources
from ptc_sandbox.confine.namespaces import Entered

_ADVICE: Final = (
    "allow user namespaces (sysctl user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns, "
    "the container's seccomp profile), or pass Confinement.standard(), which does without where it must"
)


class _State:
    """The namespaces of this process; there is one of each kind, so one value for the process."""

    entered = Entered()
    keeper: tuple[int, int] | None = None  # the namespace's first process, and our end of its line


def entered() -> Entered:
    """What this process has entered."""
    return _State.entered


def enter_namespaces(confinement: Confinement) -> list[LayerReport]:
    """See `ptc_sandbox.confine.enter_namespaces`."""
    _volunteer_for_the_oom_killer()
    if confinement.cgroup == "required" and not cgroup.is_inside_one():
        evidence, advice = "the host did not put the fork server into a group", "start it by a Sandbox"
        raise LayerUnavailable(LayerReport("cgroup", "required", False, evidence, advice))
    want = confinement.namespaces
    if want == "off" or not confinement.namespace_kinds:
        return [LayerReport("namespaces", want, False, "off")]
    # A layer that children cannot have is told under its own name, before a namespace is blamed for it.
    Prepared(confinement, Resources(), Entered()).close()
    failure = _tried_in_a_fork(lambda: _enter(confinement))
    if failure:
        report = LayerReport("namespaces", want, False, failure, _ADVICE)
        if report.missing:
            raise LayerUnavailable(report)
        return [report]
    try:
        _enter(confinement)
    except OSError as error:  # it worked a moment ago: this process is half way in, so it must not go on
        raise LayerUnavailable(LayerReport("namespaces", want, False, str(error), _ADVICE)) from error
    return [LayerReport("namespaces", want, True, _State.entered.describe())]


def leave_namespaces() -> None:
    """See `ptc_sandbox.confine.leave_namespaces`."""
    keeper, _State.keeper = _State.keeper, None
    if keeper is not None:
        pid, line = keeper
        with contextlib.suppress(
            ProcessLookupError, ChildProcessError
        ):  # reaped already by the server's own loop
            os.kill(pid, signal.SIGKILL)
            # It ends only when all others of its namespace were reaped, and those are our children.
            while os.waitpid(-1, 0)[0] != pid:
                pass
        os.close(line)


def _enter(confinement: Confinement) -> None:
    _State.entered = namespaces.enter(confinement.namespace_kinds)
    if "pid" in confinement.namespace_kinds:
        _State.keeper = _start_keeper(confinement)


def _start_keeper(confinement: Confinement) -> tuple[int, int]:
    """Fork the first process of the pid namespace. It does nothing, confined like a program, until the
    server's end of the line closes; its end is the end of all in the namespace, whatever they are doing."""
    theirs, ours = os.pipe()
    prepared = Prepared(confinement, Resources(), _State.entered)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(ours)
            prepared.confine_child(theirs)
            os.read(theirs, 1)
            status = 0
        finally:
            os._exit(status)
    os.close(theirs)
    prepared.close()
    return pid, ours


def _tried_in_a_fork(attempt: Callable[[], None]) -> str:
    """Run `attempt` in a process of its own; "" when it went well, else what was refused."""
    theirs, ours = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(theirs)
            attempt()
            leave_namespaces()
            os.write(ours, b"\0")
        except (OSError, LayerUnavailable) as error:
            os.write(ours, str(error).encode()[:512])
        finally:
            os._exit(0)
    os.close(ours)
    with open(theirs, "rb") as line:
        said = line.read()
    os.waitpid(pid, 0)
    return "" if said == b"\0" else said.decode() or "the attempt ended without a word"


def _volunteer_for_the_oom_killer() -> None:
    """Raise the score that children inherit, so that programs go before the host; always allowed, never
    needed."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
