"""What the audit log's tests share: a keyring, contracts, calls, and a log with a few of them in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ptc.audit.keys import Keyring
from ptc.audit.log import AuditLog
from ptc_tools.call import Call, Direct, Program
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied, Failure, Outcome, Success

KEYS = Keyring.generate()
RUN = RunContext("run_1", "alice", {"tenant": "acme"})
FORMS = ("jsonl", "db")


def contract(name: str = "get_inventory", *, secret: bool = False, **options: Any) -> Contract:
    sku: dict[str, Any] = {"type": "string"}
    if secret:
        sku["x-sensitive"] = True
    parameters = {
        "type": "object",
        "properties": {"sku": sku},
        "required": ["sku"],
        "additionalProperties": False,
    }
    return Contract(name=name, parameters=parameters, allowed_callers=("direct", "programmatic"), **options)


INVENTORY = contract()


def call(
    number: int = 1, name: str = "get_inventory", program: str | None = "prog_1", **options: Any
) -> Call:
    caller = Program(program) if program else Direct()
    return Call(f"call_{number}", name, options.pop("arguments", '{"sku":"a"}'), caller, **options)


def open_log(path: Path, **options: Any) -> AuditLog:
    return AuditLog(path, **{"keys": KEYS, **options})


async def record_call(
    log: AuditLog,
    number: int = 1,
    *,
    arguments: Any = None,
    outcome: Outcome | None = None,
    made: Call | None = None,
    of: Contract = INVENTORY,
    run: RunContext = RUN,
) -> None:
    """One call, whole."""
    token = await log.started(made or call(number), of, arguments or {"sku": f"sku_{number}"}, run)
    await log.finished(token, outcome or Success({"units": number}), 1000 + number)


async def fill(path: Path, calls: int = 3, **options: Any) -> None:
    """A closed log: a run with a program, some calls, a denial and a failure."""
    async with open_log(path, **options) as log:
        await log.event("run.started", {"model": "m", "programs": "local"}, RUN)
        code = "await get_inventory(sku='a')"
        await log.event("program.started", {"call_id": "prog_1", "code": code, "language": "python"}, RUN)
        for number in range(1, calls + 1):
            await record_call(log, number)
        await log.denied(call(90, "rm"), None, Denied("unknown_tool", "there is no tool 'rm'"), RUN)
        await record_call(log, 91, outcome=Failure("tool_error", "the tool failed"))
        await log.event("program.finished", {"call_id": "prog_1", "status": "completed"}, RUN)
        await log.event("run.finished", {"status": "completed"}, RUN)


def raw_lines(path: Path) -> list[bytes]:
    """The records of a log with one file, as bytes."""
    if path.suffix == ".jsonl":
        return path.read_bytes().splitlines()
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as db:
        return [row[0].encode() for row in db.execute("SELECT record FROM records ORDER BY seq")]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw_lines(path)]


def of_type(records: list[dict[str, Any]], type: str) -> list[dict[str, Any]]:
    return [record for record in records if record["type"] == type]
