"""The one path and the log together: nothing runs unrecorded, nothing unrecorded is released."""

import errno
from pathlib import Path

import pytest

from ptc.audit.verify import verify
from ptc_sandbox.sandbox import Sandbox
from ptc_tools.call import Call
from ptc_tools.context import RunContext
from ptc_tools.invoke import Invoker
from ptc_tools.outcome import Denied, Failure, Success
from ptc_tools.tool import tool
from tests.ptc.audit_support import RUN, of_type, open_log, read
from tests.ptc.test_audit_failure import FaultyFiles, resumed

SYNCS = ("each", "group", "none")


@pytest.mark.parametrize("sync", SYNCS)
async def test_a_call_that_cannot_be_recorded_does_not_run(tmp_path: Path, sync: str) -> None:
    """The model is told why, the tool has done nothing, and afterwards calls run again."""
    ran: list[int] = []

    @tool
    def count(n: int) -> int:
        """Counts."""
        ran.append(n)
        return n

    disk = FaultyFiles()
    async with open_log(tmp_path / "a.jsonl", files=disk, sync=sync) as log:
        invoker = Invoker([count], recorder=log)
        assert await invoker.invoke(Call("c1", "count", {"n": 1}), RUN) == Success(1)
        disk.error = errno.ENOSPC
        for call_id in ("c2", "c3"):
            outcome = await invoker.invoke(Call(call_id, "count", {"n": 2}), RUN)
            assert isinstance(outcome, Denied)
            assert outcome.code == "audit_unavailable"
        disk.heal()
        await resumed(log)
        assert await invoker.invoke(Call("c4", "count", {"n": 4}), RUN) == Success(4)
    assert ran == [1, 4]
    assert [r["identity"]["call"] for r in of_type(read(tmp_path / "a.jsonl"), "tool.started")] == [
        "c1",
        "c4",
    ]


@pytest.mark.parametrize("sync", SYNCS)
async def test_a_result_that_cannot_be_recorded_is_withheld(tmp_path: Path, sync: str) -> None:
    """The tool ran: the log says indeterminate, and nobody acts on a result that no record knows."""
    disk = FaultyFiles()

    @tool
    def work() -> str:
        """The disk fills up meanwhile."""
        disk.error = errno.ENOSPC
        return "secret result"

    path = tmp_path / "a.jsonl"
    async with open_log(path, files=disk, sync=sync) as log:
        outcome = await Invoker([work], recorder=log).invoke(Call("c1", "work", {}), RUN)
        assert isinstance(outcome, Failure)
        assert outcome.code == "audit_unavailable"
        assert "secret result" not in outcome.message
        disk.heal()
        await resumed(log)
    assert [call["call"] for call in verify(path).indeterminate] == ["c1"]


async def test_a_program_that_cannot_be_recorded_does_not_start(tmp_path: Path) -> None:
    """Its start is a record like any other."""
    disk = FaultyFiles()
    async with open_log(tmp_path / "a.jsonl", files=disk) as log, Sandbox(ahead=1) as sandbox:
        disk.error = errno.EIO
        with pytest.raises(Exception, match="audit log cannot write"):
            await sandbox.run("print(1)", run=RunContext("run_1"), recorder=log)
        disk.heal()
        await resumed(log)
        assert (await sandbox.run("1 + 1", run=RunContext("run_2"), recorder=log)).value == 2
    started = of_type(read(tmp_path / "a.jsonl"), "program.started")
    assert [record["identity"]["run"] for record in started] == ["run_2"]
