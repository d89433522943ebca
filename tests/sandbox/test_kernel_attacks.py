"""Every attack against every layer alone, and against the levels, as root and as an ordinary user.

What runs here is plain CPython in a confined child, without any language wall: the kernel alone must hold.
"""

from __future__ import annotations

import os
from functools import lru_cache

import pytest

from ptc_sandbox.confine import LAYERS, Confinement, Layer
from ptc_sandbox.confine.attacks import ATTACKS
from ptc_sandbox.confine.landlock import abi
from ptc_sandbox.confine.report import alone, run_trial
from ptc_sandbox.confine.trial import Answer, Request

ORDINARY = 65534
AS_ROOT = os.geteuid() == 0
USERS = {"root": None, "ordinary": ORDINARY} if AS_ROOT else {"ordinary": None}
"""As root both are tried; an ordinary user can only be who it is."""

LAYERS_OF_A_CHILD: tuple[Layer, ...] = tuple(layer for layer in LAYERS if layer != "cgroup")
X86_64_ONLY = {"call_by_x32", "call_by_foreign_architecture"}


@lru_cache
def answer(confinement: Confinement, user: str, refuse: tuple[str, ...] = ()) -> Answer:
    """One trial of all attacks that matter to this policy."""
    names = [name for name in ATTACKS if os.uname().machine == "x86_64" or name not in X86_64_ONLY]
    if confinement.rlimits == "off":
        names.remove("spin")
    return run_trial(Request(confinement, tuple(names), as_uid=USERS[user], refuse=refuse))


def outcomes(confinement: Confinement, user: str, refuse: tuple[str, ...] = ()) -> dict[str, tuple[str, str]]:
    got = answer(confinement, user, refuse)
    if got.unavailable is not None:
        pytest.skip(f"this machine cannot: {got.unavailable.layer}: {got.unavailable.evidence}")
    return {outcome.attack: (outcome.how, outcome.by) for outcome in got.outcomes}


def must_stop(layer: Layer, user: str) -> list[str]:
    return [
        name
        for name, attack in ATTACKS.items()
        if attack.is_stopped_by(layer, as_root=user == "root", landlock_abi=abi())
        and (os.uname().machine == "x86_64" or name not in X86_64_ONLY)
    ]


CASES = [
    pytest.param(layer, user, name, id=f"{layer}-{user}-{name}")
    for layer in LAYERS_OF_A_CHILD
    for user in USERS
    for name in must_stop(layer, user)
]


@pytest.mark.parametrize(("layer", "user", "name"), CASES)
def test_the_layer_alone_stops_the_attack(layer: Layer, user: str, name: str) -> None:
    """Each layer must hold when every other has fallen; seccomp must leave SIGSYS as evidence of hostile
    acts."""
    how, by = outcomes(alone(layer), user)[name]
    if layer == "seccomp" and ATTACKS[name].fatal:
        assert (how, by) == ("killed", "SIGSYS")
    elif layer == "seccomp":
        # CPython has its own word for a thread that cannot start.
        assert (how, by) == ("refused", "EAGAIN" if name == "start_thread" else "EPERM")
    else:
        assert how in ("refused", "killed"), by


LEVELS = {
    level.name: level for level in (Confinement.strict(), Confinement.standard(), Confinement.minimal())
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_the_level_stops_every_attack(level: str, user: str) -> None:
    """No attack that we know gets anything at any level with a wall, whoever the host is."""
    assert {
        name: got
        for name, got in outcomes(LEVELS[level], user).items()
        if got[0] not in ("refused", "killed")
    } == {}


@pytest.mark.parametrize("user", USERS)
def test_without_confinement_the_attacks_succeed(user: str) -> None:
    """Else the tests above would prove nothing: these are real, and open to a process that is not
    confined."""
    got = outcomes(Confinement.none(), user)
    always = {
        "open_file", "create_file", "list_directory", "look_at_file", "read_environment", "fill_open_file",
        "connect_tcp", "connect_abstract", "send_datagram", "fork", "start_thread", "execute", "signal_outside",
        "write_elsewhere", "read_elsewhere", "write_with_upper_half", "duplicate_channel", "send_descriptor",
        "set_channel_option", "map_executable", "share_memory", "raise_limit",
    }  # fmt: skip
    assert {name: got[name] for name in always if got[name][0] != "succeeded"} == {}
    if user == "root":
        assert {got[name][0] for name in ("open_secret", "become_root", "change_root")} == {"succeeded"}


@pytest.mark.parametrize("user", USERS)
def test_a_confined_child_has_no_privilege_by_the_kernels_own_word(user: str) -> None:
    """/proc/PID/status of a waiting child, read from outside."""
    facts = answer(Confinement.standard(), user).facts
    capabilities = {name: int(facts[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert capabilities == {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0}
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert "0" not in facts["Uid"].split()
    assert "0" not in facts["Gid"].split()
    if user == "root":
        assert facts["Groups"] == ""
        assert int(facts["CapBnd"], 16) == 0


@pytest.mark.parametrize("user", USERS)
def test_a_machine_without_namespaces_is_told_apart_by_level(user: str) -> None:
    """In a container whose profile refuses `unshare`: strict is refused and names the layer, standard holds
    without."""
    refused = answer(Confinement.strict(), user, ("unshare",)).unavailable
    assert refused is not None
    assert (refused.layer, refused.holds) == ("namespaces", False)
    assert "unshare" in refused.evidence
    assert "Confinement.standard()" in refused.advice
    weaker = answer(Confinement.standard(), user, ("unshare",))
    assert [report.holds for report in weaker.layers if report.layer == "namespaces"] == [False]
    assert [outcome.attack for outcome in weaker.outcomes if not outcome.stopped] == []


@pytest.mark.parametrize("user", USERS)
def test_a_machine_without_landlock_is_refused_by_name(user: str) -> None:
    """Never a silent weakening: the operator is told to pass the weaker level, and that one then holds."""
    refused = answer(Confinement.standard(), user, ("landlock_create_ruleset",)).unavailable
    assert refused is not None
    assert refused.layer == "landlock"
    assert "Confinement.minimal()" in refused.advice
    weaker = answer(Confinement.minimal(), user, ("landlock_create_ruleset",))
    assert weaker.unavailable is None
    assert [outcome.attack for outcome in weaker.outcomes if not outcome.stopped] == []


@pytest.mark.parametrize("user", USERS)
def test_a_landlock_older_than_asked_for_does_not_count(user: str) -> None:
    """An operator who relies on Landlock for TCP says so, and an older kernel is then refused."""
    refused = answer(Confinement.standard().with_landlock_abi(999), user).unavailable
    assert refused is not None
    assert refused.layer == "landlock"
    assert "999" in refused.evidence


@pytest.mark.parametrize("user", USERS)
def test_descriptors_close_without_close_range(user: str) -> None:
    """On kernels and in containers that do not know the call, /proc is walked instead."""
    got = outcomes(alone("descriptors"), user, ("close_range",))
    assert got["write_elsewhere"] == got["read_elsewhere"] == ("refused", "EBADF")


@pytest.mark.skipif(not AS_ROOT, reason="only root can become somebody else")
def test_a_fixed_id_is_taken() -> None:
    """An operator may want programs to run as an account that audit rules know."""
    facts = answer(Confinement.standard().with_uid(54321), "root").facts
    assert facts["Uid"].split() == facts["Gid"].split() == ["54321"] * 4
