"""Confining a child: what the fork server computes once, and what each child then does to itself.

`Prepared` is made after preloading, since memory is counted from there. `confine_child` either puts every
layer in place or raises, and after it only the channel is left; nothing in this module ever loosens a layer
for a program.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import resource
import signal
from collections.abc import Callable, Iterator
from typing import Final

from ptc_sandbox.confine import kernel, landlock, namespaces, privileges, rlimits
from ptc_sandbox.confine.levels import Confinement, Layer, LayerReport, LayerUnavailable, Resources
from ptc_sandbox.confine.namespaces import Entered
from ptc_sandbox.confine.seccomp import Filter

_LAST_DESCRIPTOR: Final = 0xFFFF_FFFF


class Prepared:
    """Everything about confining that can be computed ahead. Make it in the fork server, after preloading.

    Making it takes from the calling process what no child may inherit and the server does not need: groups, the
    capability bounding set, limits such as those on core files. LayerUnavailable when a required layer cannot
    be had.
    """

    def __init__(self, confinement: Confinement, resources: Resources, entered: Entered) -> None:
        self._confinement: Final = confinement
        self._entered = entered
        self._expected_parent: Final = 0 if "pid" in entered.kinds else os.getpid()  # as seen from the child
        self.reports: Final[list[LayerReport]] = []
        """One for each layer that a child puts in place, in the order of `confine_child`."""
        self._user: Final = self._plan_user()
        self._private: Final = self._plan_no_new_privs()
        self._ruleset: Final = self._plan_landlock()
        self._close_others: Final = self._plan_descriptors()
        self._limits: Final = self._plan_rlimits(resources)
        self._filter: Final = self._plan_seccomp()
        self._calls: Final = tuple(self._plan_calls())
        self._channel_fd = -1
        self._closing: tuple[kernel.Call, ...] = ()
        self._filtering: kernel.Call | None = None

    def aim(self, channel_fd: int) -> None:
        """Prepare the calls that name the channel. For a fork server whose children all have it at one number."""
        if self._close_others:
            self._closing = closing_all_but(channel_fd)
        if self._filter is not None:
            self._filtering = self._filter.installing(channel_fd)
        self._channel_fd = channel_fd

    def confine_child(self, channel_fd: int) -> None:
        """Confine the calling process for good, all of it, before it reads a byte of a program.

        Afterwards only `channel_fd` is open, and only read, write, recv and send work on it. LayerUnavailable
        if a layer fails: the process must exit at once.
        """
        # One flat function and a list of prepared calls: in a fresh child every function and every object that is
        # touched for the first time costs a copied page, which is most of what confining costs.
        layer: Layer = "namespaces"
        if channel_fd != self._channel_fd:
            self.aim(channel_fd)
        try:
            if self._entered.root_fd is not None:
                namespaces.take_empty_root(self._entered)
            layer = "user"
            if self._user is not None and (uid := self._user.uid()) is not None:
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            if os.getpgrp() != os.getpid():
                # So that no signal to the host's group or from its terminal reaches a program, nor a program's the
                # host. A session of its own would cost 2.5 ms, for its scheduler group.
                os.setpgid(0, 0)
            for each, function, arguments in self._calls:
                if function(*arguments) == -1:
                    layer = each
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            if os.getppid() != self._expected_parent:
                os._exit(0)  # the server died before its death could be our signal
            layer = "descriptors"
            if self._close_others:
                for call in self._closing:
                    if call.function(*call.arguments) == -1:
                        _close_one_by_one(channel_fd)
                        break
            layer = "rlimits"
            for which, soft, hard in self._limits:
                resource.setrlimit(which, (soft, hard))
            layer = "seccomp"
            last = self._filtering
            if last is not None and last.function(*last.arguments) == -1:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        except OSError as error:
            advice = "the fork server prepared this layer and a child could not set it: run `ptc doctor`"
            raise LayerUnavailable(
                LayerReport(layer, self._confinement.want(layer), False, str(error), advice)
            ) from error

    def _plan_calls(self) -> Iterator[tuple[Layer, Callable[..., int], tuple[int, ...]]]:
        """The calls of a child that are the same for all, in order."""
        calls: list[tuple[Layer, kernel.Call]] = []
        if self._user is not None:
            calls.append(("user", privileges.dropping_capabilities()))
        # Die with the fork server's main thread: after the ids changed, which clears it.
        calls.append(("user", kernel.prctl_call(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)))
        if self._private:
            calls.append(("no_new_privs", kernel.prctl_call(kernel.PR_SET_NO_NEW_PRIVS, 1)))
            # After the ids changed, too, which resets it.
            calls.append(("no_new_privs", kernel.prctl_call(kernel.PR_SET_DUMPABLE, 0)))
        if self._ruleset is not None:
            calls.append(("landlock", landlock.restricting_self(self._ruleset)))
        for layer, call in calls:
            yield layer, call.function, tuple(int(argument) for argument in call.arguments)

    def settle(self) -> None:
        """Leave the file system for the empty root, if there is one: the calling process can open no file any more.

        Optional: the last act of a fork server before it forks, which spares each child the same.
        """
        namespaces.take_empty_root(self._entered)
        self._entered = dataclasses.replace(self._entered, root_fd=None)

    def close(self) -> None:
        """Release what this object holds in the fork server."""
        if self._ruleset is not None:
            os.close(self._ruleset)

    def _wants(self, layer: Layer) -> bool:
        return self._confinement.want(layer) != "off"

    def _note(self, layer: Layer, holds: bool, evidence: str, advice: str = "") -> None:
        report = LayerReport(layer, self._confinement.want(layer), holds, evidence, advice)
        if report.missing:
            raise LayerUnavailable(report)
        self.reports.append(report)

    def _plan_user(self) -> privileges.UserPlan | None:
        if not self._wants("user"):
            self._note("user", False, "off")
            return None
        try:
            plan = privileges.plan(self._confinement.uid)
        except OSError as error:
            self._note(
                "user",
                False,
                str(error),
                "map more ids into this user namespace, or name one that is mapped by with_uid()",
            )
            return None
        if plan.changes_ids and not kernel.holds_capabilities(kernel.CAP_SETUID, kernel.CAP_SETGID):
            self._note(
                "user",
                False,
                "root without CAP_SETUID and CAP_SETGID cannot become anybody else",
                "run the host as an ordinary user, or give it those two capabilities",
            )
            return None
        privileges.shed(plan)
        self._note("user", True, plan.evidence)
        return plan

    def _plan_no_new_privs(self) -> bool:
        wanted = self._wants("no_new_privs")
        self._note("no_new_privs", wanted, "set in each child, not dumpable" if wanted else "off")
        return wanted

    def _plan_landlock(self) -> int | None:
        if not self._wants("landlock"):
            self._note("landlock", False, "off")
            return None
        have, least = landlock.abi(), self._confinement.landlock_abi
        if have < least:
            self._note(
                "landlock",
                False,
                f"ABI {have}, and {least} is wanted"
                if have
                else "the kernel has no Landlock, or it is not active",
                "use Linux 5.13 or newer with `landlock` in its `lsm=` list, or pass Confinement.minimal()",
            )
            return None
        try:
            ruleset = landlock.create_ruleset()
        except OSError as error:
            self._note("landlock", False, str(error), "a container's seccomp profile may refuse Landlock")
            return None
        self._note("landlock", True, landlock.describe(have))
        return ruleset

    def _plan_descriptors(self) -> bool:
        wanted = self._wants("descriptors")
        self._note("descriptors", wanted, "all but the channel are closed" if wanted else "off")
        return wanted

    def _plan_rlimits(self, resources: Resources) -> tuple[rlimits.Limit, ...]:
        if not self._wants("rlimits"):
            self._note("rlimits", False, "off")
            return ()
        limits = rlimits.plan(resources)
        rlimits.apply_to_server()
        data = {which: soft for which, soft, _ in limits}[resource.RLIMIT_DATA]
        self._note(
            "rlimits",
            True,
            f"private memory {data >> 20} MiB, CPU {resources.cpu_s:g} s; no process, no file",
        )
        return limits

    def _plan_seccomp(self) -> Filter | None:
        if not self._wants("seccomp"):
            self._note("seccomp", False, "off")
            return None
        arch = kernel.ARCHITECTURE
        if arch is None:
            self._note("seccomp", False, "no table of system calls for this machine", "use x86-64 or aarch64")
            return None
        filter_ = Filter(arch)
        self._note("seccomp", True, f"{filter_.instructions} instructions for {arch.machine}")
        return filter_


def closing_all_but(channel_fd: int) -> tuple[kernel.Call, ...]:
    """The calls that close every other descriptor, whatever its number.

    They fail before Linux 5.9, or under a container's profile that does not know them.
    """
    ranges = [(0, channel_fd - 1)] if channel_fd else []
    ranges.append((channel_fd + 1, _LAST_DESCRIPTOR))
    try:
        return tuple(kernel.system_call("close_range", first, last, 0) for first, last in ranges)
    except OSError:  # no number here: a call that fails leads to the other way
        return (kernel.Call("close_range", lambda: -1, ()),)


def _close_one_by_one(channel_fd: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) != channel_fd:
            _close_quietly(int(name))


def _close_quietly(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:  # the descriptor by which the directory was read
        return
