"""`ptc audit`: each command on a log of each form, its exit status, and what it says when it cannot."""

import asyncio
import csv
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from ptc.audit import Checkpoints
from ptc.audit.keys import Keyring
from ptc.audit.merkle import check_consistency, check_inclusion
from ptc.audit.notes import Verifier
from ptc.cli.audit import app
from ptc_tools.errors import PtcError
from tests.ptc.audit_support import FORMS, KEYS, fill, of_type, open_log, read, record_call
from tests.ptc.cli_support import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTC_AUDIT_KEYS", str(tmp_path / "keys.json"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Cli(monkeypatch, capsys)


@pytest.fixture(params=FORMS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    keys = Keyring.open(tmp_path / "keys.json", create=True)
    path = tmp_path / f"a.{request.param}"
    asyncio.run(fill(path, levels="full", keys=keys))
    return path


def test_verify_says_intact_tampered_incomplete(cli: Cli, log: Path, tmp_path: Path) -> None:
    """Scripts read 0, 1 or 2; people read what and where."""
    ran = cli("audit", "verify", log)
    assert (ran.status, ran.out.splitlines()[0][:7]) == (0, "intact:")
    if log.suffix == ".jsonl":
        whole = log.read_bytes()
        log.write_bytes(whole.replace(b"sku_2", b"sku_9", 1))
        ran = cli("audit", "verify", log)
        assert (ran.status, "tampered at a.jsonl:7 record 7" in ran.out) == (1, True), ran.out
        log.write_bytes(whole[:-10])
        ran = cli("audit", "verify", log)
        assert (ran.status, "torn" in ran.out) == (2, True)
        told = json.loads(cli("audit", "verify", log, "--json").out)
        assert (told["verdict"], told["findings"][0]["kind"]) == ("incomplete", "incomplete")
    assert cli("audit", "verify", tmp_path / "none.db").status == 2


def test_verify_takes_keys_and_anchors(cli: Cli, log: Path, tmp_path: Path) -> None:
    key = cli("audit", "keys", "show", log).out.splitlines()[0].split(": ")[1]
    assert "signed to record" in cli("audit", "verify", log, "--key", key).out
    assert cli("audit", "verify", log, "--key", "nonsense").status == 2
    anchor = tmp_path / "anchor.txt"
    anchor.write_text(read(log)[-1]["data"]["note"])
    assert "anchored to record" in cli("audit", "verify", log, "--anchor", anchor).out
    assert cli("audit", "verify", log, "--anchor", tmp_path / "none").status == 2


def test_show_lists_runs_and_shows_one(cli: Cli, log: Path) -> None:
    assert "run_1" in cli("audit", "show", log).out
    ran = cli("audit", "show", log, "run_1")
    for expected in ("tool.started", "program prog_1", "unknown_tool", '{"sku": "sku_1"}'):
        assert expected in ran.out
    lines = cli("audit", "show", log, "run_1", "--json").out.splitlines()
    assert next(json.loads(line)["type"] for line in lines) == "run.started"
    ran = cli("audit", "show", log, "run_none")
    assert (ran.status, "lists the runs" in ran.err) == (2, True)


def test_tail_shows_the_last_records(cli: Cli, log: Path) -> None:
    lines = cli("audit", "tail", log, "-n", "3", "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == read(log)[-3:]
    assert len(cli("audit", "tail", log, "-n", "1000", "--json").out.splitlines()) == len(read(log))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--tool", "get_*", "--type", "tool.started"), 4),
        (("--tool", "rm"), 1),
        (("--caller", "programmatic", "--status", "success"), 3),
        (("--status", "denied"), 1),
        (("--status", "failure"), 1),
        (("--run", "run_1", "--type", "program.*"), 2),
        (("--run", "none"), 0),
        (("--arguments", '{"sku": "sku_2"}'), 2),
        (("--since", "1h", "--type", "tool.*"), 9),
        (("--until", "2020-01-01"), 0),
        (("--type", "tool.*", "--limit", "2"), 2),
    ],
)
def test_query_finds_by_every_condition(cli: Cli, log: Path, options: tuple[str, ...], found: int) -> None:
    ran = cli("audit", "query", log, *options, "--json")
    assert (ran.status, len(ran.out.splitlines())) == (0, found)


def test_query_refuses_a_time_that_is_none(cli: Cli, log: Path) -> None:
    ran = cli("audit", "query", log, "--since", "yesterday")
    assert (ran.status, "15m, 2h, 3d" in ran.err) == (2, True)


@pytest.mark.parametrize("text", ["{bad", "sku_2", "d123:ff"])
def test_query_refuses_arguments_that_are_none(cli: Cli, log: Path, text: str) -> None:
    """That no record fits would be no answer to what was not understood."""
    ran = cli("audit", "query", log, "--arguments", text)
    assert (ran.status, "as JSON, or their digest" in ran.err) == (2, True)


def test_query_finds_arguments_by_their_digest_and_a_number_however_written(cli: Cli, tmp_path: Path) -> None:
    """A tool that wants an integer gets 7, where the model wrote 7.0."""
    keys = Keyring.open(tmp_path / "keys.json", create=True)
    path = tmp_path / "n.jsonl"

    async def main() -> None:
        async with open_log(path, keys=keys) as log:
            await record_call(log, 1, arguments={"i": 7, "x": [1.5]})

    asyncio.run(main())
    digest = of_type(read(path), "tool.started")[0]["content"]["arguments_digest"]
    for text in ('{"i": 7, "x": [1.5]}', '{"i": 7.0, "x": [1.5]}', digest):
        ran = cli("audit", "query", path, "--arguments", text, "--json", "--keys", tmp_path / "keys.json")
        assert (ran.status, len(ran.out.splitlines())) == (0, 2), text


def test_hash_finds_a_secret_without_showing_it(cli: Cli, tmp_path: Path) -> None:
    """Who holds the key can ask whether a value occurs; the log itself answers nobody."""
    keys = Keyring.open(tmp_path / "keys.json", create=True)
    path = tmp_path / "s.jsonl"

    async def main() -> None:
        async with open_log(path, levels="full", keys=keys) as log:
            await record_call(log, 1, arguments={"sku": "alice@example.com"})
            await record_call(log, 2, arguments={"sku": "mail alice@example.com please"})
            await record_call(log, 3, arguments={"sku": "bob@example.com"})

    asyncio.run(main())
    assert b"alice@" not in path.read_bytes()
    ran = cli("audit", "hash", "alice@example.com", "--log", path, "--json")
    calls = [json.loads(line)["identity"]["call"] for line in ran.out.splitlines()]
    assert calls == ["call_1", "call_2"]
    digest = cli("audit", "hash", "alice@example.com").out.split()[0]
    assert digest.encode() in path.read_bytes()
    kinds = [row["as"] for row in json.loads(cli("audit", "hash", "5", "--json").out)]
    assert kinds == ["JSON", "text"]


def test_export_writes_json_lines_and_csv(cli: Cli, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert cli("audit", "export", log, "-o", out).status == 0
    assert [json.loads(line) for line in out.read_text().splitlines()] == read(log)
    assert out.stat().st_mode & 0o077 == 0
    ran = cli("audit", "export", log, "-o", out)
    assert (ran.status, "exists already" in ran.err) == (2, True)
    rows = list(
        csv.DictReader(cli("audit", "export", log, "--csv", "--type", "tool.started").out.splitlines())
    )
    assert [row["tool"] for row in rows] == ["get_inventory"] * 4


def test_a_spreadsheet_runs_nothing(cli: Cli, tmp_path: Path) -> None:
    """A cell that begins like a formula is one to a spreadsheet."""
    keys = Keyring.open(tmp_path / "keys.json", create=True)
    path = tmp_path / "f.jsonl"

    async def main() -> None:
        async with open_log(path, levels="full", keys=keys) as log:
            from ptc_tools.outcome import Denied
            from tests.ptc.audit_support import RUN, call

            await log.denied(call(1, "=cmd|' /C calc'!A1"), None, Denied("unknown_tool", "no"), RUN)

    asyncio.run(main())
    assert "'=cmd" in cli("audit", "export", path, "--csv").out
    assert ",=cmd" not in cli("audit", "export", path, "--csv").out


def test_stats_add_up(cli: Cli, log: Path) -> None:
    told = json.loads(cli("audit", "stats", log, "--json").out)
    (most, other) = told["tools"]
    assert (most["tool"], most["calls"], most["ended"]) == ("get_inventory", 4, {"success": 3, "failure": 1})
    assert (other["tool"], other["ended"]) == ("rm", {"denied": 1})
    assert "█" in cli("audit", "stats", log).out


def test_prove_gives_what_others_can_check(cli: Cli, log: Path) -> None:
    """The record, the signed checkpoint and the paths are enough; the log is not needed."""
    key = cli("audit", "keys", "show", log).out.splitlines()[0].split(": ")[1]
    proof = json.loads(cli("audit", "prove", log, "5").out)
    head = Verifier(key).check(proof["checkpoint"])
    assert head is not None
    assert (head.size, head.root.hex()) == (proof["size"], proof["root"])
    path = [bytes.fromhex(node) for node in proof["inclusion"]]
    assert check_inclusion(bytes.fromhex(proof["leaf"]), 4, head.size, path, head.root)
    for step in proof["consistency"]:
        nodes = [bytes.fromhex(node) for node in step["proof"]]
        old, new = bytes.fromhex(step["from_root"]), bytes.fromhex(step["to_root"])
        assert check_consistency(step["from"], old, step["to"], new, nodes)
    assert cli("audit", "prove", log, "9999").status == 2


def test_view_writes_a_page_and_never_over_a_file(cli: Cli, log: Path, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    assert cli("audit", "view", log, "run_1", "-o", page).status == 0
    assert "Log intact" in page.read_text()
    assert cli("audit", "view", log, "run_1", "-o", page).status == 2
    assert cli("audit", "view", log, "none", "-o", tmp_path / "b.html").status == 2


def test_keys_are_made_and_rotated(cli: Cli, tmp_path: Path) -> None:
    ring = tmp_path / "ring.json"
    assert cli("audit", "keys", "new", ring).status == 0
    assert cli("audit", "keys", "new", ring).status == 2
    before = Keyring.open(ring).active("journal").id
    ran = cli("audit", "keys", "rotate", "journal", "--keys", ring)
    assert (ran.status, before in ran.out) == (0, False)
    assert cli("audit", "keys", "rotate", "house", "--keys", ring).status == 2
    assert cli("audit", "hash", "x", "--keys", tmp_path / "none").status == 2
    secrets = [row["secret"] for row in json.loads(ring.read_text())["keys"]]
    assert not [secret for secret in secrets if secret in ran.out + ran.err]


def test_replay_says_what_it_can_prove(cli: Cli, log: Path) -> None:
    """Status 0 proven, 1 diverged, 2 not provable: here no journal was kept."""
    ran = cli("audit", "replay", log, "run_1")
    assert (ran.status, "not provable" in ran.out) == (2, True)
    program = "print('x')\n6 * 7"
    made = cli("exec", "-", "--audit", "b.jsonl", "--audit-level", "full", stdin=program)
    assert made.status == 0
    run = json.loads(cli("audit", "show", "b.jsonl", "--json").out)[0]["run"]
    ran = cli("audit", "replay", "b.jsonl", run)
    assert (ran.status, ran.out.splitlines()[0]) == (0, "proven")
    told = json.loads(cli("audit", "replay", "b.jsonl", run, "--json").out)
    assert (told["verdict"], told["programs"][0]["calls"]) == ("proven", 0)


def test_nothing_in_a_record_acts_on_the_terminal(cli: Cli, tmp_path: Path) -> None:
    """Every command prints what models wrote; no escape of theirs gets through."""
    from ptc_tools.context import RunContext
    from ptc_tools.outcome import Denied
    from tests.ptc.audit_support import call

    hostile = "\x1b[2J\x1b]0;pwned\x07\u202e[bold]"
    keys = Keyring.open(tmp_path / "keys.json", create=True)
    path = tmp_path / "h.jsonl"

    async def main() -> None:
        async with open_log(path, levels="full", keys=keys) as log:
            run = RunContext(hostile, hostile, {"tenant": hostile})
            await log.denied(call(1, hostile, hostile), None, Denied("unknown_tool", hostile), run)
            await record_call(log, 2, arguments={hostile: hostile}, run=run)
            await log.event("run.finished", {"status": hostile}, run)

    asyncio.run(main())
    for command in (
        ["show", path],
        ["show", path, hostile],
        ["tail", path],
        ["query", path],
        ["stats", path],
        ["verify", path],
        ["export", path],
        ["export", path, "--csv"],
        ["tail", path, "--json"],
        ["show", path, hostile + "x"],
    ):
        ran = cli("audit", *command)
        assert not re.search("[\x1b\x07\u202e]", ran.out + ran.err), command


def test_a_live_log_can_be_looked_at(cli: Cli, log: Path) -> None:
    """Operators look while the writer writes; nothing waits for it, nothing is called broken."""
    keys = Keyring.open(log.parent / "keys.json")
    with open_log(log, keys=keys):
        assert cli("audit", "tail", log).status == 0
        ran = cli("audit", "verify", log)
        assert (ran.status, "its writer is at work" in ran.out) == (0, True)


def test_query_knows_its_callers(cli: Cli, log: Path) -> None:
    """A word that no record has would find nothing, which reads as if nothing had happened."""
    assert (
        cli("audit", "query", log, "--caller", "program").out
        == cli("audit", "query", log, "--caller", "programmatic").out
    )
    assert cli("audit", "query", log, "--caller", "nobody").status == 2


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"at":null,"seq":1,"type":"x"}', b'{"at":1,"seq":1}'])
def test_hostile_lines_are_an_error_and_no_traceback(cli: Cli, tmp_path: Path, line: bytes) -> None:
    """Who may write to the file must not stop those who look at it in an undefined way."""
    path = tmp_path / "h.jsonl"
    path.write_bytes(line + b"\n")
    for command in (["verify"], ["tail"], ["query"], ["stats"]):
        assert cli("audit", *command, path).status in (1, 2)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_file_is_no_log(cli: Cli, tmp_path: Path, form: str, kind: str) -> None:
    """Said in one line, at once, and without waiting for a writer that never comes."""
    Keyring.open(tmp_path / "keys.json", create=True)
    path = tmp_path / f"odd.{form}"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    for command in (("verify",), ("show",), ("tail",), ("stats",), ("export",), ("keys", "show")):
        ran = cli("audit", *command, path)
        assert (ran.status, len(ran.err.splitlines())) == (2, 1), ran


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_log_has_no_key_to_show(cli: Cli, tmp_path: Path, form: str) -> None:
    """A verifier key belongs to a log's id."""
    Keyring.open(tmp_path / "keys.json", create=True)
    (tmp_path / f"new.{form}").touch()
    ran = cli("audit", "keys", "show", tmp_path / f"new.{form}")
    assert (ran.status, "no record yet" in ran.err) == (2, True)
    assert "nothing is shown" in cli("audit", "verify", tmp_path / f"new.{form}").out


ANYTHING = st.sampled_from(
    [None, True, 5, -5, 10**30, 1.5, "x", "", [], ["a"], {}, {"a": 1}, {"$redacted": 5}, {"$redacted": "x"}]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, but for its root."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*path, name)
        yield from places(item, (*path, name))


@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_command_stumbles_over_what_somebody_wrote_into_a_log(
    tmp_path: Path, data: st.DataObject, written: list[dict[str, Any]]
) -> None:
    """Any value at any place of any record: a typed refusal at most, in every command that reads."""
    records = json.loads(json.dumps(written))
    for _ in range(data.draw(st.integers(1, 3))):
        record = data.draw(st.sampled_from(records))
        *way, last = data.draw(st.sampled_from(list(places(record))))
        target: Any = record
        for step in way:
            target = target[step]
        if data.draw(st.booleans()) or isinstance(target, list):
            target[last] = data.draw(ANYTHING)
        else:
            del target[last]
    path, page = tmp_path / "odd.jsonl", tmp_path / "page.html"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    page.unlink(missing_ok=True)
    keys = ("--keys", str(tmp_path / "keys.json"))
    KEYS.save(tmp_path / "keys.json") if not (tmp_path / "keys.json").exists() else None
    for command in (
        ("verify", path, *keys),
        ("show", path),
        ("show", path, "run_1"),
        ("tail", path),
        ("query", path),
        ("stats", path),
        ("export", path),
        ("export", path, "--csv"),
        ("prove", path, "3"),
        ("hash", "sku_1", "--log", path, *keys),
        ("replay", path, "run_1", *keys),
        ("view", path, "run_1", "-o", page),
        ("keys", "show", path, *keys),
    ):
        error = CliRunner().invoke(app, [str(word) for word in command]).exception
        assert error is None or isinstance(error, (SystemExit, PtcError)), (command, error)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of an honest log with everything in it."""
    path = tmp_path_factory.mktemp("honest") / "a.jsonl"
    asyncio.run(fill(path, calls=2, levels="full", checkpoints=Checkpoints(records=5)))
    return read(path)
