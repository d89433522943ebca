"""Searches a log: records by tool, caller, run, time, status, argument digest; the runs and their sums.

SQLite logs are searched by their columns, JSON lines are read through with a quick look before parsing.
Results come in the log's order. Nothing here checks the chain; `verify` does.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final

from ptc.audit.reader import Line, LogFile, Record, json_lines, lines, opened, parse, unreadable
from ptc.audit.values import canonical, clean
from ptc_tools.call import JsonObject

_POLL_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Filter:
    """What to find; every condition given must hold. `tool` may be a glob, times are microseconds (UTC)."""

    run: str | None = None
    tool: str | None = None
    caller: str | None = None
    status: str | None = None
    type: str | None = None
    arguments: str | None = None
    since_us: int | None = None
    until_us: int | None = None

    def matches(self, record: Record) -> bool:
        """Whether a parsed record fits."""
        at = record["at"]
        if (self.since_us is not None and at < self.since_us) or (
            self.until_us is not None and at > self.until_us
        ):
            return False
        if self.run is not None and record.get("identity", {}).get("run") != self.run:
            return False
        if self.type is not None and not fnmatchcase(record["type"], self.type):
            return False
        if self.tool is not None and not fnmatchcase(tool_of(record) or "", self.tool):
            return False
        if self.caller is not None and caller_of(record) != self.caller:
            return False
        if self.status is not None and status_of(record) != self.status:
            return False
        return self.arguments is None or record.get("content", {}).get("arguments_digest") == self.arguments


def select(path: Path, wanted: Filter, limit: int | None = None) -> Iterator[Record]:
    """The records that fit, oldest first."""
    found = _from_files(path, wanted)
    return found if limit is None else islice(found, limit)


def _from_files(path: Path, wanted: Filter) -> Iterator[Record]:
    with opened(path) as files:
        for file in files:
            try:
                yield from _scan(file, wanted) if file.is_lines else _search(file, wanted)
            except (OSError, sqlite3.DatabaseError) as error:
                raise unreadable(file.path, error) from error


def _scan(file: LogFile, wanted: Filter) -> Iterator[Record]:
    # A line that does not even contain the text cannot match: most lines are never parsed.
    needles = [canonical(text) for text in (wanted.run, wanted.arguments) if text is not None]
    for line in json_lines(file):
        if not line.torn and all(needle in line.data for needle in needles):
            record = parse(line)
            if wanted.matches(record):
                yield record


def _search(file: LogFile, wanted: Filter) -> Iterator[Record]:
    conditions, values = ["1"], list[object]()
    for column, value in (("run", wanted.run), ("caller", wanted.caller), ("status", wanted.status)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    if wanted.arguments is not None:
        conditions.append("arguments = ?")
        values.append(wanted.arguments)
    for column, value in (("tool", wanted.tool), ("type", wanted.type)):
        if value is not None:
            conditions.append(f"{column} GLOB ?")
            values.append(value)
    for condition, moment in (("at >= ?", wanted.since_us), ("at <= ?", wanted.until_us)):
        if moment is not None:
            conditions.append(condition)
            values.append(moment)
    query = f"SELECT record, seq FROM records WHERE {' AND '.join(conditions)} ORDER BY seq"  # noqa: S608  fixed words
    with file.reading() as db:
        # What no text can hold is in no record either; names that had it are recorded written out.
        sought = [clean(value) if isinstance(value, str) else value for value in values]
        for data, seq in db.execute(query, sought):
            yield parse(Line(file.path, seq, data))


def last(path: Path, number: int) -> list[Record]:
    """The newest records, oldest of them first."""
    found: deque[Record] = deque()
    with opened(path) as files:
        for file in reversed(files):
            missing = number - len(found)
            if missing <= 0:
                break
            try:
                found.extendleft(reversed(_last_of(file, missing)))
            except (OSError, sqlite3.DatabaseError) as error:
                raise unreadable(file.path, error) from error
    return list(found)


def _last_of(file: LogFile, number: int) -> list[Record]:
    if not file.is_lines:
        newest = "SELECT record, seq FROM records ORDER BY seq DESC LIMIT ?"
        with file.reading() as db:
            rows = db.execute(newest, (number,)).fetchall()
        return [parse(Line(file.path, seq, data)) for data, seq in reversed(rows)]
    with nullcontext(file.stream) if file.stream is not None else file.path.open("rb") as reading:
        position = reading.seek(0, 2)
        data = b""
        while position > 0 and data.count(b"\n") <= number:
            step = min(1 << 16, position)
            position -= step
            reading.seek(position)
            data = reading.read(step) + data
    whole = data.split(b"\n")[:-1]
    return [parse(Line(file.path, 0, line)) for line in whole[-number:]]


def follow(path: Path, after: int) -> Iterator[Record]:
    """Records beyond `after` as they are written, for ever. Looks four times a second."""
    while True:
        newest = last(path, 1)
        if newest and newest[0]["seq"] > after:
            for record in last(path, newest[0]["seq"] - after):
                if record["seq"] > after:
                    after = record["seq"]
                    yield record
        else:
            time.sleep(_POLL_SECONDS)


@dataclass(slots=True)
class RunSummary:
    """One run, added up."""

    run: str
    began_us: int
    ended_us: int
    actor: str | None = None
    model: str | None = None
    calls: int = 0
    denied: int = 0
    failed: int = 0
    open: int = 0
    programs: int = 0
    tools: set[str] = field(default_factory=set)
    status: str | None = None

    def to_json(self) -> JsonObject:
        return {**asdict(self), "tools": sorted(self.tools)}

    def add(self, record: Record) -> None:
        self.ended_us = max(self.ended_us, record["at"])
        self.actor = self.actor or _text(record["identity"].get("actor"))
        type, data = record["type"], record.get("data", {})
        tool = tool_of(record)
        if tool is not None:
            self.tools.add(tool)
        if type == "tool.started":
            self.calls += 1
            self.open += 1
        elif type == "tool.finished":
            self.open -= record.get("start") is not None
            self.failed += status_of(record) not in SUCCEEDED
        elif type == "tool.denied":
            self.denied += 1
        elif type == "program.started":
            self.programs += 1
        elif type == "run.started":
            self.model = _text(data.get("model"))
        elif type == "run.finished":
            self.status = _text(data.get("status"))


def runs(path: Path) -> list[RunSummary]:
    """Every run of the log, in the order in which they began."""
    found: dict[str, RunSummary] = {}
    for line in lines(path):
        if not isinstance(line, Line) or line.torn or b'"run":' not in line.data:
            continue
        record = parse(line)
        run = record.get("identity", {}).get("run")
        if isinstance(run, str):
            summary = found.get(run)
            if summary is None:
                summary = found[run] = RunSummary(run, record["at"], record["at"])
            summary.add(record)
    return list(found.values())


def tool_of(record: Record) -> str | None:
    """The qualified name of the tool a record is about."""
    tool = record.get("tool", {})
    return f"{tool['namespace']}.{tool['name']}" if "namespace" in tool else tool.get("name")


def caller_of(record: Record) -> str | None:
    """`direct` or `programmatic`."""
    return {"program": "programmatic", "direct": "direct"}.get(record.get("origin", {}).get("caller"))


SUCCEEDED: Final = frozenset({"success", "empty", "partial"})


def status_of(record: Record) -> str | None:
    """How a call or a run ended, as the record says it."""
    status = record.get("outcome", {}).get("status")
    if status is None and "identity" in record and isinstance(record.get("data"), dict):
        status = record["data"].get("status")
    return _text(status)


def _text(value: object) -> str | None:
    """What somebody wrote into a log may be anything."""
    return value if isinstance(value, str) else None
