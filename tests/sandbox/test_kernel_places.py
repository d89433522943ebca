"""The places where hosts run: containers that took capabilities, user namespaces that map few ids.

Each is made here as far as root can make it; in each, a level holds against every attack or is refused by name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptc_sandbox.confine import Confinement
from ptc_sandbox.confine import __file__ as confine_file
from ptc_sandbox.confine.attacks import ATTACKS
from ptc_sandbox.confine.report import run_trial
from ptc_sandbox.confine.trial import Answer, Request

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make these places")

STANDARD, STRICT = Confinement.standard(), Confinement.strict()

# As container runtimes do it: the parent maps ids for a child that has unshared. The trial is loaded before,
# since the interpreter may lie where an ordinary user cannot read.
_MAPPED = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
import ptc_sandbox.confine.server
from ptc_sandbox.confine import trial
libc = ctypes.CDLL(None)
ready, said = os.pipe()
mapped, go = os.pipe()
pid = os.fork()
if pid == 0:
    if libc.unshare(0x10000000):
        os._exit(77)
    os.write(said, b"x")
    os.read(mapped, 1)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    libc.prctl(4, 1)  # dumpable again, as a program started in the container is
    trial.main()
    sys.exit()
os.close(said)
if not os.read(ready, 1):
    sys.exit(77)
for kind in ("uid", "gid"):
    with open(f"/proc/{pid}/{kind}_map", "w") as file:
        file.write(sys.argv[2])
os.write(go, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def request(confinement: Confinement) -> Request:
    names = tuple(
        name
        for name in ATTACKS
        if os.uname().machine == "x86_64" or name not in ("call_by_x32", "call_by_foreign_architecture")
    )
    return Request(confinement, names)


def tried(confinement: Confinement, *under: str) -> Answer:
    return run_trial(request(confinement), under=under)


def tried_with_ids(confinement: Confinement, id_map: str) -> Answer:
    """The same in a user namespace with just these ids."""
    root = str(Path(confine_file).parents[2])
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-P", "-c", _MAPPED, root, id_map],
        input=request(confinement).to_json(),
        capture_output=True,
        text=True,
        env={"PATH": os.defpath},
    )
    if done.returncode == 77:
        pytest.skip("this machine has no user namespaces")
    assert done.returncode == 0, done.stderr
    return Answer.from_json(done.stdout)


def without(*capabilities: str) -> tuple[str, ...]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not installed (util-linux)")
    return (setpriv, f"--bounding-set={','.join(f'-{name}' for name in capabilities)}")


def got_through(answer: Answer) -> list[str]:
    assert answer.unavailable is None, answer.unavailable
    return [outcome.attack for outcome in answer.outcomes if not outcome.stopped]


def evidence(answer: Answer, layer: str) -> str:
    return next(report.evidence for report in answer.layers if report.layer == layer)


def test_root_of_a_container_without_sys_admin_holds_at_the_default_level() -> None:
    """Docker's default set of capabilities: no namespace can be entered, and the report says so."""
    answer = tried(STANDARD, *without("sys_admin", "sys_ptrace", "net_admin", "sys_module"))
    assert got_through(answer) == []
    assert "unshare" in evidence(answer, "namespaces")
    assert answer.facts["Uid"].split()[0] != "0"


def test_root_of_a_container_without_sys_admin_is_refused_the_strict_level() -> None:
    """What was promised cannot be had, and the layer is named."""
    refused = tried(STRICT, *without("sys_admin")).unavailable
    assert refused is not None
    assert refused.layer == "namespaces"


@pytest.mark.parametrize("level", [STANDARD, STRICT], ids=lambda level: level.name)
def test_root_that_cannot_become_anybody_else_is_refused_for_that(level: Confinement) -> None:
    """`--cap-drop=ALL` on a root container: staying root would be a weaker wall, and no namespace is to blame."""
    refused = tried(level, *without("setuid", "setgid")).unavailable
    assert refused is not None
    assert refused.layer == "user"
    assert "ordinary user" in refused.advice


@pytest.mark.parametrize("level", [STANDARD, STRICT], ids=lambda level: level.name)
def test_root_of_a_rootless_container_holds(level: Confinement) -> None:
    """A range of 65536 ids: none of those that nobody has, so programs become the last resort, nobody."""
    answer = tried_with_ids(level, "0 100000 65536")
    assert got_through(answer) == []
    assert answer.facts["Uid"].split() == ["65534"] * 4


def test_root_that_is_an_ordinary_user_outside_holds_without_another_id() -> None:
    """One id mapped, as by `unshare -r`: no other id exists, and this one is nobody's root."""
    answer = tried_with_ids(STANDARD, "0 100000 1")
    assert got_through(answer) == []
    assert "ordinary user outside" in evidence(answer, "user")
    assert int(answer.facts["CapEff"], 16) == 0


def test_root_that_is_root_outside_and_has_no_other_id_is_refused() -> None:
    """Files of the real root would be its own: that is no uid drop."""
    refused = tried_with_ids(STANDARD, "0 0 1").unavailable
    assert refused is not None
    assert refused.layer == "user"
    assert "no other id" in refused.evidence


def test_an_id_that_is_not_mapped_is_refused() -> None:
    """setresuid to it would be EINVAL in every child."""
    refused = tried_with_ids(STANDARD.with_uid(90000), "0 100000 65536").unavailable
    assert refused is not None
    assert refused.layer == "user"
    assert "90000" in refused.evidence
