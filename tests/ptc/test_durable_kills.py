"""Runs whose process is killed with SIGKILL at every durable step, and in every tool: the answer stays the same.

Fault points are enumerated: the n-th step, before it and after it. `make test` takes every few, `make soak` all.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

RUNS = ("direct", "stream", "approval", "program", "program_approval", "hosted", "sample")
SCENARIOS = (*RUNS, "twice", *(f"own_{name}" for name in RUNS))
"""In an audit log's file, and in a file of the store's own without a log."""


async def matrix(scenario: str, directory: Path, every: int) -> list[dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("durable_matrix.py")),
        scenario,
        str(directory),
        str(every),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]


def calls_of(story: dict[str, Any]) -> list[list[str]]:
    """Without the reads that settled others; the peer's call ids differ from run to run."""
    return sorted(
        [name, "" if name.startswith("get_") else call_id, status]
        for name, call_id, status in story["calls"]
        if name != "sent"
    )


def check(whole: dict[str, Any], stories: Sequence[dict[str, Any]]) -> None:
    for story in stories:
        fault = story["fault"]
        assert (fault, story["status"], story["text"]) == (fault, "completed", whole["text"])
        assert (fault, story["requests"], story["usage"]) == (fault, whole["requests"], whole["usage"])
        assert (fault, story["disagreements"]) == (fault, [])
        for name in ("note", "send", "drop"):  # not idempotent: as many lines as without a fault
            assert (fault, len(story["effects"][name])) == (fault, len(whole["effects"][name]))
        attempts: dict[str, list[int]] = {}
        for line in story["effects"]["put"]:
            _, key, attempt = json.loads(line)
            attempts.setdefault(key, []).append(attempt)
        assert all(numbers == sorted(set(numbers)) for numbers in attempts.values()), attempts
        keys = {json.loads(line)[1] for line in story["effects"]["put"]}
        assert (fault, keys) == (fault, {json.loads(line)[1] for line in whole["effects"]["put"]})
        assert (fault, calls_of(story)) == (fault, calls_of(whole))


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_killed_run_is_recovered_with_the_same_answer(scenario: str, tmp_path: Path) -> None:
    """No effect is lost, none happens twice, and the log and the store tell the same."""
    whole, *stories = await matrix(scenario, tmp_path / "runs", 25)
    assert stories
    check(whole, stories)


async def life(*arguments: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("durable_matrix.py")),
        "--life",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return dict(json.loads(out))


@pytest.mark.parametrize(("decision", "told", "effects"), [("approve", -7, ["7"]), ("deny", "denied", [])])
async def test_a_program_that_waits_goes_on_in_another_process_the_next_day(
    tmp_path: Path, decision: str, told: object, effects: list[str]
) -> None:
    """The tool runs once, or the program's `except` sees the denial; its own clock knows of no night."""
    where = str(tmp_path)
    paused = await life("program_approval", where, "none", "0")
    assert (paused["status"], [item["call_id"] for item in paused["approvals"]]) == ("paused", ["p:1"])
    done = await life("program_approval", where, decision, str(26 * 3600))
    assert done["status"] == "completed"
    output = dict(json.loads(json.loads(done["text"])[0][1]))
    assert output["value"] == [2, told, True]
    path = tmp_path / "drop.txt"
    assert (path.read_text().splitlines() if path.exists() else []) == effects


async def test_of_processes_that_go_on_with_one_run_at_once_one_does(tmp_path: Path) -> None:
    """The others are told who has it, or what came of it; what was approved happens once."""
    where = str(tmp_path)
    assert (await life("own_approval", where, "none", "0"))["status"] == "paused"

    async def go_on() -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("durable_matrix.py")),
            "--life",
            "own_approval",
            where,
            "approve",
            "0",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode, (out if process.returncode == 0 else err).decode()

    ended = await asyncio.gather(*(go_on() for _ in range(4)))
    answers = {json.loads(told)["text"] for status, told in ended if status == 0}
    assert len(answers) == 1
    assert all("RunLeased: the run 'r1' is driven by" in told for status, told in ended if status != 0)
    assert [(tmp_path / f"{name}.txt").read_text().split() for name in ("drop", "note")] == [["7"], ["2"]]


@pytest.mark.soak
async def test_a_kill_at_any_instruction_is_survived(tmp_path: Path) -> None:
    """Between the steps as well, and in the recovery once more: by the clock, with fixed seeds."""
    whole, *stories = await matrix("anytime", tmp_path / "runs", 1)
    check(whole, stories)
    assert any(story["kills"] == 2 for story in stories)


@pytest.mark.soak
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_every_fault_point_is_survived(scenario: str, tmp_path: Path) -> None:
    """The whole matrix; every way of settling an uncertain call is seen in it."""
    whole, *stories = await matrix(scenario, tmp_path / "runs", 1)
    check(whole, stories)
    resolutions = {(name, how) for story in stories for name, _, how, _ in story["uncertain"]}
    if "approval" in scenario:
        assert any(
            story["fault"] == "later tool:drop:1" and story["effects"]["drop"] == ["7"] for story in stories
        )
    if scenario.removeprefix("own_") in ("direct", "stream", "program"):
        assert resolutions >= {
            ("look", "run_again"),
            ("put", "same_key"),
            ("send", "reconciled"),
            ("note", "waiting"),
            ("note", "decided"),
        }
