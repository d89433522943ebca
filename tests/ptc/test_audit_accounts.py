"""Replay proves nothing of a log in which a record of a call was removed, changed or given to somebody else."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ptc.audit import Levels, Rule
from ptc.audit.replay import Proof, replay
from ptc_sandbox.sandbox import Sandbox
from ptc_tools.context import RunContext
from ptc_tools.tool import tool
from tests.ptc.audit_rewriting import rechain, rewrite
from tests.ptc.audit_support import FORMS, KEYS, open_log, raw_lines

RUN_ID = "run_1"
Record = dict[str, Any]
PROGRAM = """
try:
    await asyncio.wait_for(pay(amount=100), 0.05)
except asyncio.TimeoutError:
    print("gave up")
a = await add(a=1, b=2)
try:
    await add(a="x", b=2)
except Exception as error:
    print(type(error).__name__)
a
"""


@tool(allowed_callers=["programmatic"], effects="write")
async def pay(amount: int) -> str:
    """Pays, however long the program waits for it."""
    await asyncio.sleep(0.3)
    return f"paid {amount}"


@tool(allowed_callers=["programmatic"])
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


async def record(path: Path, code: str, **options: Any) -> None:
    async with open_log(path, **{"journals": True, **options}) as log, Sandbox(ahead=1) as sandbox:
        run = RunContext(RUN_ID)
        await sandbox.run(code, tools=[pay, add], run=run, recorder=log, caller_id="prog_1")


def prove(path: Path) -> Proof:
    (proof,) = asyncio.run(replay(path, RUN_ID, KEYS))
    return proof


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for form in FORMS:
        for level in ("metadata", "full"):
            folder = tmp_path_factory.mktemp(f"{form}_{level}")
            asyncio.run(record(folder / f"a.{form}", PROGRAM, levels=level))
            made[f"{form} {level}"] = folder
    return made


def of(record: Record, name: str, *types: str) -> bool:
    return record.get("tool", {}).get("name") == name and (not types or record["type"] in types)


def drop(*types: str, name: str | None = None) -> Callable[[list[Record]], list[Record]]:
    return lambda records: [
        one
        for one in records
        if not ((not types or one["type"] in types) and (name is None or of(one, name)))
    ]


def each(change: Callable[[Record], None]) -> Callable[[list[Record]], list[Record]]:
    def all_of(records: list[Record]) -> list[Record]:
        for one in records:
            change(one)
        return records

    return all_of


def late_result(one: Record) -> None:
    if of(one, "pay", "tool.finished"):
        one["content"]["result"] = "NOT paid"
        one["outcome"] = {"status": "failure", "code": "tool_error", "duration_us": 1}


def late_cancelled(one: Record) -> None:
    if of(one, "pay", "tool.finished"):
        one["outcome"]["status"] = "cancelled"


def another_result_of_the_log(one: Record) -> None:
    if of(one, "pay", "tool.finished"):
        one["content"].update(result=3, result_digest=KEYS.active("digest").digest(3))


def asked_otherwise(one: Record) -> None:
    if of(one, "add"):
        content = one["content"]
        content["asked_digest"] = content["arguments_digest"]
        content["arguments_digest"] = "d00000000:" + "0" * 64
        content["arguments"] = {"a": 1, "b": 1}


def by_the_model_itself(one: Record) -> None:
    if of(one, "pay"):
        one["origin"] = {"caller": "direct"}


def of_another_program(one: Record) -> None:
    if of(one, "pay"):
        one["origin"]["program"] = "prog_2"


def program_text_of_another(one: Record) -> None:
    if of(one, "add"):
        one["origin"]["program_digest"] = "d00000000:" + "0" * 64


def somebody_else(one: Record) -> None:
    if of(one, "pay"):
        one["identity"]["actor"] = "mallory"


def another_contract(one: Record) -> None:
    if of(one, "add"):
        one["tool"].update(effects="read", version="9", fingerprint="sha256:0")


def no_start(one: Record) -> None:
    if of(one, "pay", "tool.finished"):
        one.pop("start")


def another_duration(one: Record) -> None:
    if of(one, "add", "tool.finished"):
        one["outcome"]["duration_us"] = 9


CHANGES: dict[str, Callable[[list[Record]], list[Record]]] = {
    "every record of a call given up": drop("tool.started", "tool.finished", name="pay"),
    "the end of a call given up": drop("tool.finished", name="pay"),
    "the start of a call given up": drop("tool.started", name="pay"),
    "every start": drop("tool.started"),
    "every end": drop("tool.finished"),
    "a denial": drop("tool.denied"),
    "every call": drop("tool.started", "tool.finished", "tool.denied"),
    "the late result": each(late_result),
    "the late status": each(late_cancelled),
    "a result that the log has elsewhere": each(another_result_of_the_log),
    "what the tool got": each(asked_otherwise),
    "who called": each(by_the_model_itself),
    "which program called": each(of_another_program),
    "what that program was": each(program_text_of_another),
    "on whose authority": each(somebody_else),
    "the contract": each(another_contract),
    "the start that an end belongs to": each(no_start),
    "how long it took": each(another_duration),
    "a call twice": lambda records: [
        again for one in records for again in ([one, one] if of(one, "pay") else [one])
    ],
}


@pytest.mark.parametrize("where", ["jsonl metadata", "db metadata", "jsonl full", "db full"])
def test_a_log_as_it_was_written_is_proven(logs: dict[str, Path], where: str) -> None:
    """Also with a call that the program gave up and that went on to its end."""
    form = where.split()[0]
    proof = prove(logs[where] / f"a.{form}")
    assert (proof.verdict, proof.calls) == ("proven", 3), proof


@pytest.mark.parametrize("where", ["jsonl metadata", "db metadata", "jsonl full", "db full"])
@pytest.mark.parametrize("name", CHANGES)
def test_no_change_to_the_record_of_a_call_is_proven(
    tmp_path: Path, logs: dict[str, Path], where: str, name: str
) -> None:
    """The chain is computed anew and the checkpoints are gone: only the sealed journal knows better."""
    form = where.split()[0]
    shutil.copytree(logs[where], tmp_path, dirs_exist_ok=True)
    path = tmp_path / f"a.{form}"
    records = [json.loads(line) for line in raw_lines(path)]
    changed = CHANGES[name]([one for one in records if one["type"] != "audit.checkpoint"])
    rewrite(path, rechain([json.dumps(one).encode() for one in changed]))
    proof = prove(path)
    assert proof.verdict == "diverged", proof


@pytest.mark.parametrize("form", FORMS)
def test_calls_of_level_none_are_not_provable(tmp_path: Path, form: str) -> None:
    """The log holds nothing of them, by the operator's own rule: that is neither a proof nor a forgery."""
    path = tmp_path / f"a.{form}"
    levels = Levels(Rule("none", tool="add"), Rule("metadata"))
    asyncio.run(record(path, "await add(a=1, b=2)", levels=levels))
    proof = prove(path)
    assert proof.verdict == "not provable", proof
    assert "none" in proof.why


@pytest.mark.parametrize("sync", ["none", "group", "each"])
@pytest.mark.parametrize("form", FORMS)
def test_calls_that_never_began_are_accounted_for(tmp_path: Path, form: str, sync: str) -> None:
    """A program may end with calls in the queue: the journal has them, and no record was ever made."""
    path = tmp_path / f"a.{form}"
    code = "tasks = [asyncio.ensure_future(pay(amount=n)) for n in range(40)]\nawait asyncio.sleep(0.01)\n1"
    asyncio.run(record(path, code, sync=sync))
    proof = prove(path)
    assert proof.verdict == "proven", proof
