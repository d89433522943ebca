"""What an operator is told: the probe, the doctor, the errors, and the table in the documentation."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import ptc_sandbox.confine
from ptc.cli.doctor import doctor
from ptc_sandbox.confine import (
    LAYERS,
    Confinement,
    LayerReport,
    LayerUnavailable,
    Resources,
    enter_namespaces,
    prepare,
)
from ptc_sandbox.confine import report as confine_report
from ptc_sandbox.confine.report import TOGETHER, Examination, LevelReport, probe, require
from ptc_sandbox.confine.syscalls import ALLOWED, FATAL
from ptc_sandbox.confine.trial import Request
from ptc_sandbox.engines import conformance
from ptc_sandbox.engines.conformance import CASES, Case, gives
from ptc_sandbox.errors import ConfinementUnavailable

DOCUMENT = Path(__file__).parents[2] / "docs" / "confinement.md"


@pytest.fixture(scope="module")
def examined() -> Examination:
    """One examination of this machine: it takes seconds."""
    return confine_report.examine()


def test_the_probe_finds_every_promised_layer_of_the_smallest_level() -> None:
    """Any Linux that we support gives seccomp, limits and a uid drop; each is found by attack."""
    reports = probe(Confinement.minimal())
    assert [report.layer for report in reports] == [*LAYERS, TOGETHER]
    assert [report for report in reports if report.missing] == []
    seccomp = next(report for report in reports if report.layer == "seccomp")
    assert re.search(r"alone it stopped all of \d+ attacks", seccomp.evidence)
    require(reports)


def test_the_probe_of_no_wall_names_what_is_open() -> None:
    """Whoever asks for no confinement is shown what that means."""
    together = probe(Confinement.none())[-1]
    assert not together.holds
    assert "open: open_file" in together.evidence


def test_a_promise_that_cannot_be_kept_is_the_hosts_typed_error() -> None:
    """It names the layer, the reason and the way out."""
    reports = [
        LayerReport("namespaces", "if-available", False, "no"),
        LayerReport(
            "landlock", "required", False, "the kernel has no Landlock", "pass Confinement.minimal()"
        ),
    ]
    with pytest.raises(ConfinementUnavailable) as caught:
        require(reports)
    assert caught.value.layer == "landlock"
    assert "Confinement.minimal()" in str(caught.value)


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS and Windows enforce nothing of this, and no level pretends otherwise."""
    monkeypatch.setattr(ptc_sandbox.confine.sys, "platform", "darwin")
    for call in (
        lambda: enter_namespaces(Confinement.minimal()),
        lambda: prepare(Confinement.none(), Resources()),
    ):
        with pytest.raises(LayerUnavailable, match="darwin has no seccomp"):
            call()


def test_the_package_imports_without_what_only_linux_has() -> None:
    """A policy can be written, stored and compared anywhere; and importing it stays cheap."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.modules['ctypes'] = sys.modules['resource'] = None\n"
        "from ptc_sandbox.confine import Confinement; print(Confinement.default().name)"
    )
    root = str(Path(ptc_sandbox.confine.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-c", code, root], capture_output=True, text=True, check=True
    )
    assert done.stdout == "standard\n"


def test_the_levels_follow_from_the_layers(examined: Examination) -> None:
    """A level can be had exactly when every layer that it promises holds."""
    holds = {report.layer for report in examined.layers if report.holds}
    by_name = {
        level.name: level for level in (Confinement.strict(), Confinement.standard(), Confinement.minimal())
    }
    for level in examined.levels:
        promised = {layer for layer in LAYERS if by_name[level.name].want(layer) == "required"}
        assert set(level.missing) == promised - holds
        assert level.reachable == (promised <= holds)
    assert examined.together is not None
    assert examined.together.holds


def run_doctor(monkeypatch: pytest.MonkeyPatch, found: Examination, *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(confine_report, "examine", lambda: found)
    app = typer.Typer()
    app.command()(doctor)
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout


def test_doctor_prints_one_json_object(monkeypatch: pytest.MonkeyPatch, examined: Examination) -> None:
    """Deployment checks read this."""
    code, printed = run_doctor(monkeypatch, examined, "--json")
    data = json.loads(printed)
    assert code == 0
    assert {layer["layer"] for layer in data["layers"]} == set(LAYERS)
    assert data["default"] == "standard"
    assert data["together"]["holds"] is True


def test_doctor_prints_a_table_for_people(monkeypatch: pytest.MonkeyPatch, examined: Examination) -> None:
    """Every layer with its evidence, every level."""
    code, printed = run_doctor(monkeypatch, examined)
    assert code == 0
    for word in (*LAYERS, "Confinement.strict()", "attacks stopped"):
        assert word in printed


def test_doctor_fails_where_the_default_level_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, examined: Examination
) -> None:
    """A deployment that would refuse to run programs is found before it serves."""
    unfit = dataclasses.replace(
        examined,
        levels=(
            LevelReport("strict", False, ("landlock",)),
            LevelReport("standard", False, ("landlock",)),
            LevelReport("minimal", True, ()),
        ),
    )
    assert run_doctor(monkeypatch, unfit)[0] == 1


def test_the_documentation_lists_every_call_with_its_reason() -> None:
    """The table that operators read is the table that is enforced."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert [(name, reason) for name, _, reason in rows] == [(each.name, each.reason) for each in ALLOWED]
    text = DOCUMENT.read_text()
    for group in FATAL:
        listed = ", ".join(f"`{name}`" for name in group.names)
        assert f"| {group.reason} | {listed} |" in text


def test_doctor_checks_itself_by_running_programs(
    monkeypatch: pytest.MonkeyPatch, examined: Examination
) -> None:
    """The conformance suite on each engine that is installed; what one need not keep is said with the reason."""
    code, printed = run_doctor(monkeypatch, examined, "--json", "--self-check")
    data = json.loads(printed)
    assert [check for check in data["self_check"] if not check["passed"]] == []
    ours = [check["name"] for check in data["self_check"] if check["engine"] == "ptc"]
    assert sorted(ours) == sorted(case.name for case in CASES)
    assert {engine["engine"] for engine in data["engines"]} == {"ptc", "monty"}
    for engine in data["engines"]:
        rows = [check for check in data["self_check"] if check["engine"] == engine["engine"]]
        assert engine["held"] + engine["excepted"] == len(rows)
        assert engine["available"] == bool(rows)
        if engine["engine"] == "monty" and rows:
            assert "landlock" in engine["note"]
            assert "seccomp" in engine["note"]
    assert code == 0


def failing(monkeypatch: pytest.MonkeyPatch, *wrong: Case) -> None:
    monkeypatch.setattr(conformance, "CASES", wrong)
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)


def test_doctor_fails_when_an_engine_does_not_conform(
    monkeypatch: pytest.MonkeyPatch, examined: Examination
) -> None:
    """Exit status 1, and the case in the table with what became of it."""
    failing(monkeypatch, Case("adds", "1 + 1", gives(3)), Case("runs", "1", gives(1)))
    code, printed = run_doctor(monkeypatch, examined, "--self-check")
    assert code == 1
    assert "1 cases hold, 1 do not" in printed
    assert "adds" in printed
    assert "completed: 2" in printed


def test_doctor_says_which_engine_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, examined: Examination
) -> None:
    """Optional engines are no failure; how to install one is said."""
    failing(monkeypatch, Case("runs", "1", gives(1)))
    code, printed = run_doctor(monkeypatch, examined, "--json", "--self-check")
    monty = json.loads(printed)["engines"][1]
    assert (code, monty["available"]) == (0, False)
    assert "ptc-runner[monty]" in monty["note"]


@pytest.mark.parametrize("as_uid", [None, 65534])
def test_a_trial_leaves_no_file_behind(monkeypatch: pytest.MonkeyPatch, as_uid: int | None) -> None:
    """Also one that has become somebody else, who cannot remove what root has made."""
    if as_uid is not None and os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        os.chmod(place, 0o777)
        monkeypatch.setattr(confine_report, "_for_anybody", lambda: place)
        request = Request(Confinement.none(), ("create_file",), as_uid=as_uid)
        (outcome,) = confine_report.run_trial(request).outcomes
        assert outcome.how == "succeeded"
        assert os.listdir(place) == []
