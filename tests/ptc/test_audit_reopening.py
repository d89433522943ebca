"""Opening a log again must not make a forgery a signed log: what is refused, what is told, and that crashes go on."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ptc.audit import Checkpoints, Keyring, Levels, Rule
from ptc.audit.errors import AuditClosed, AuditCorrupt
from ptc.audit.notes import verifier_key
from ptc.audit.verification import Verification
from ptc.audit.verify import verify
from tests.ptc.audit_rewriting import rechain, resign, rewrite
from tests.ptc.audit_support import FORMS, KEYS, fill, of_type, open_log, raw_lines, read, record_call

Lines = list[bytes]


def check(path: Path, keys: Keyring | None = KEYS) -> Verification:
    log = json.loads(raw_lines(path)[0])["log"]
    ring = list(keys.of("signing")) if keys else []
    return verify(path, verifier_for=lambda _: [verifier_key(log, key) for key in ring])


def without(lines: Lines, *types: str, call: str = "") -> Lines:
    """The others, with their references to one another put right, as a careful forger would."""
    numbers: dict[int, int] = {}
    kept: Lines = []
    for line in lines:
        record = json.loads(line)
        if record["type"] in types or (call and record.get("identity", {}).get("call") == call):
            continue
        numbers[record["seq"]] = len(kept) + 1
        if "start" in record:
            record["start"] = numbers[record["start"]]
        kept.append(json.dumps(record).encode())
    return rechain(kept)


def hidden(lines: Lines) -> Lines:
    """Without one call: what the forger wants nobody to know."""
    return without(lines, call="call_2")


def edited(lines: Lines, type: str, **changes: object) -> Lines:
    done = []
    for line in lines:
        record = json.loads(line)
        if record["type"] == type:
            record["data"].update(changes)
        done.append(json.dumps(record).encode())
    return done


CLOSED_FORGERIES: dict[str, Callable[[Lines], Lines]] = {
    "no checkpoints": lambda lines: without(lines, "audit.checkpoint"),
    "no checkpoints, a note of the real log": lambda lines: edited(
        without(lines, "audit.checkpoint"), "audit.closed", note=json.loads(lines[-1])["data"]["note"]
    ),
    "no checkpoints, no note": lambda lines: edited(
        without(lines, "audit.checkpoint"), "audit.closed", note=None
    ),
    "a larger interval": lambda lines: edited(
        without(lines, "audit.checkpoint"), "audit.opened", checkpoint_records=10**9
    ),
    "checkpoints as they were": lambda lines: lines,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", CLOSED_FORGERIES)
def test_a_closed_log_rewritten_without_the_key_is_not_continued(tmp_path: Path, form: str, how: str) -> None:
    """Continued, its next checkpoint would be the real key's signature over the forgery."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path, checkpoints=Checkpoints(records=4)))
    rewrite(path, rechain(CLOSED_FORGERIES[how](hidden(raw_lines(path)))))
    before = raw_lines(path)
    assert check(path).verdict == "tampered"
    with pytest.raises(AuditCorrupt, match="ptc audit verify"):
        open_log(path)
    assert raw_lines(path) == before, "evidence is left as it is"


@pytest.mark.parametrize("form", FORMS)
def test_more_unsigned_records_than_a_crash_leaves_are_not_continued(tmp_path: Path, form: str) -> None:
    """Without audit.closed it looks like a crash, but no crash leaves so many."""
    path = tmp_path / f"a.{form}"
    asyncio.run(
        fill(path, 560, sync="none" if form == "db" else "group", checkpoints=Checkpoints(records=20))
    )
    lines = rechain(
        edited(without(raw_lines(path), "audit.checkpoint", "audit.closed"), "audit.opened", sync="group")
    )
    assert len(lines) > 20 + 1024
    rewrite(path, lines)
    with pytest.raises(AuditCorrupt, match="no crash leaves more than 1044"):
        open_log(path)


@pytest.mark.parametrize("form", FORMS)
def test_what_nobody_signed_before_a_log_was_opened_again_is_told_for_ever(tmp_path: Path, form: str) -> None:
    """A forgery that looks like a crash goes on, and no later signature makes it a signed one."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path, checkpoints=Checkpoints(records=4)))
    lines = rechain(hidden(without(raw_lines(path), "audit.checkpoint", "audit.closed")))
    rewrite(path, lines)
    for _ in range(3):
        open_log(path).close()
    report = check(path)
    assert (report.verdict, report.unsigned) == ("intact", [(1, len(lines))])
    assert f"Records 1 to {len(lines)} were not signed when the log was opened again" in report.guarantee()
    told = [record["data"]["unsigned"] for record in of_type(read(path), "audit.opened")]
    assert told == [None, [1, len(lines)], None, None]
    printed = subprocess.run(
        [sys.executable, "-m", "ptc", "audit", "verify", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PTC_AUDIT_KEYS": str(keys_file(tmp_path))},
    )
    assert "were not signed when the log was opened again" in printed.stdout
    assert "with exceptions" in printed.stdout


def keys_file(folder: Path) -> Path:
    file = folder / "keys.json"
    KEYS.save(file)
    return file


@pytest.mark.parametrize("form", FORMS)
def test_the_mark_cannot_be_taken_away_without_the_key(tmp_path: Path, form: str) -> None:
    """It follows from where the signatures stand, and the records around it are signed."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path))
    lines = rechain(hidden(without(raw_lines(path), "audit.checkpoint", "audit.closed")))
    rewrite(path, lines)
    open_log(path).close()
    signed = raw_lines(path)
    opened = len(lines)
    told = json.loads(signed[opened])
    told["data"].update(unsigned=None, clean=True)
    rewrite(path, rechain([*signed[:opened], json.dumps(told).encode(), *signed[opened + 1 :]]))
    for _ in range(2):
        assert check(path).verdict == "tampered"
        open_log(path).close()


@pytest.mark.parametrize("form", FORMS)
def test_a_claim_that_nobody_signed_does_not_widen_what_a_crash_explains(tmp_path: Path, form: str) -> None:
    """`checkpoint_records` of a log without one checkpoint is the forger's to choose."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path, 5600, sync="none"))
    lines = edited(
        without(raw_lines(path), "audit.checkpoint", "audit.closed"), "audit.opened", checkpoint_records=10**9
    )
    rewrite(path, rechain(lines))
    open_log(path).close()
    report = check(path)
    assert (report.verdict, report.unsigned) == ("incomplete", [(1, len(lines))])
    assert "a crash leaves fewer" in report.findings[0].what


@pytest.mark.parametrize("form", FORMS)
def test_a_log_signed_with_a_forgers_key_is_never_called_signed(tmp_path: Path, form: str) -> None:
    """Anybody has a key: the keyring's own must have signed."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path))
    rewrite(path, resign(hidden(raw_lines(path)), Keyring.generate()))
    end = len(raw_lines(path))
    open_log(path).close()
    report = check(path)
    assert report.verdict == "incomplete"
    assert of_type(read(path), "audit.opened")[-1]["data"]["unsigned"] == [1, end]


@pytest.mark.parametrize("form", FORMS)
def test_a_log_whose_keys_were_lost_goes_on_and_says_so(tmp_path: Path, form: str) -> None:
    """Its records cannot be vouched for any more, and that is no reason to stop an application."""
    path, lost = tmp_path / f"a.{form}", Keyring.generate()
    asyncio.run(fill(path, 600, keys=lost, checkpoints=Checkpoints(records=10)))
    end = len(raw_lines(path))
    open_log(path).close()
    assert of_type(read(path), "audit.opened")[-1]["data"]["unsigned"] == [1, end]
    report = check(path)
    assert report.verdict == "incomplete"
    assert "no signature was checked" in report.findings[0].what
    assert check(path, None).verdict == "intact"


@pytest.mark.parametrize("form", FORMS)
def test_a_checkpoint_whose_signature_is_not_the_one_it_names_is_not_continued(
    tmp_path: Path, form: str
) -> None:
    """Its root can be computed by anybody, and so can everything but the signature."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path))
    lines = raw_lines(path)
    named = json.loads(lines[-1])["data"]["signing_key"]
    forged = [json.loads(line) for line in resign(hidden(lines), Keyring.generate())]
    forged[-1]["data"]["signing_key"] = named
    rewrite(path, rechain([json.dumps(record).encode() for record in forged]))
    with pytest.raises(AuditCorrupt, match="not signed with the key that it names"):
        open_log(path)


@pytest.mark.parametrize("form", FORMS)
def test_a_log_that_its_operator_begins_to_sign_goes_on(tmp_path: Path, form: str) -> None:
    """It claims nothing for what was there before."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path, signed=False))
    end = len(raw_lines(path))
    open_log(path).close()
    assert check(path, None).unsigned == [(1, end)]


@pytest.mark.parametrize("form", FORMS)
def test_keys_that_were_rotated_vouch_for_what_they_signed(tmp_path: Path, form: str) -> None:
    """Older keys stay in the ring."""
    path, keys = tmp_path / f"a.{form}", Keyring.generate().save(tmp_path / "keys.json")
    for _ in range(3):
        asyncio.run(fill(path, keys=keys))
        keys.rotate("signing")
    open_log(path, keys=keys).close()
    report = check(path, keys)
    assert (report.verdict, report.findings, report.unsigned) == ("intact", [], [])


def test_a_crash_between_the_closing_record_and_its_checkpoint_is_no_forgery(tmp_path: Path) -> None:
    """One write, cut exactly there: the closing record is signed itself."""
    path = tmp_path / "a.jsonl"
    asyncio.run(fill(path))
    lines = raw_lines(path)[:-1]
    assert json.loads(lines[-1])["type"] == "audit.closed"
    rewrite(path, lines)
    report = check(path)
    assert [(finding.kind, "checkpoint was cut off" in finding.what) for finding in report.findings] == [
        ("incomplete", True)
    ]
    open_log(path).close()
    report = check(path)
    assert (report.verdict, report.findings, report.unsigned) == ("intact", [], [])


@pytest.mark.parametrize("form", FORMS)
def test_a_note_in_the_closing_record_that_does_not_fit_is_found(tmp_path: Path, form: str) -> None:
    """With the checkpoint cut off, it is all that is signed."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path))
    lines = raw_lines(path)[:-1]
    rewrite(path, rechain([line.replace(b'"model":"m"', b'"model":"n"') for line in lines]))
    assert check(path).verdict == "tampered"
    with pytest.raises(AuditCorrupt):
        open_log(path)


@pytest.mark.parametrize("form", FORMS)
def test_what_a_log_that_opens_would_refuse_is_never_called_intact(tmp_path: Path, form: str) -> None:
    """The frontier of the last checkpoint is covered by nothing but the comparison with the tree."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path))
    lines = raw_lines(path)
    last = json.loads(lines[-1])
    for change in (
        {"frontier": ["0" * 64, *last["data"]["frontier"][1:]]},
        {"frontier": None},
        {"signing_key": None},
    ):
        forged = {**last, "data": {**last["data"], **change}}
        rewrite(path, [*lines[:-1], json.dumps(forged, sort_keys=True).encode()])
        assert check(path).verdict == "tampered", change


@pytest.mark.parametrize("sync", ["group", "none", "each"])
@pytest.mark.parametrize("form", FORMS)
def test_a_closed_log_takes_nothing_more_whoever_asks(tmp_path: Path, form: str, sync: str) -> None:
    """Another writer may have it by now."""
    path = tmp_path / f"a.{form}"
    old = open_log(path, sync=sync)
    old.close()
    open_log(path).close()
    before = raw_lines(path)
    with pytest.raises(AuditClosed):
        old.checkpoint()
    with pytest.raises(AuditClosed):
        asyncio.run(record_call(old))
    old.close()
    assert raw_lines(path) == before
    assert check(path).verdict == "intact"


@pytest.mark.parametrize("sync", ["group", "none"])
@pytest.mark.parametrize("form", FORMS)
def test_a_forked_child_signs_nothing_in_its_parents_log(tmp_path: Path, form: str, sync: str) -> None:
    """Also a checkpoint that is asked for is a record, and would fork the chain."""
    path = tmp_path / f"a.{form}"
    code = (
        "import os, sys\n"
        "from ptc.audit import AuditLog\n"
        "from ptc.audit.errors import AuditClosed\n"
        f"log = AuditLog(sys.argv[1], sync={sync!r})\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    try:\n"
        "        log.checkpoint()\n"
        "    except AuditClosed:\n"
        "        os._exit(0)\n"
        "    os._exit(3)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "log.checkpoint()\n"
        "log.close()\n"
    )
    environment = {**os.environ, "PTC_AUDIT_KEYS": str(keys_file(tmp_path)), "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment)
    assert check(path).verdict == "intact"
    assert [r["data"]["reason"] for r in of_type(read(path), "audit.checkpoint")] == ["asked", "closed"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("damage", [b"!", b"[]", b'{"at"}'])
def test_a_whole_last_record_that_was_damaged_is_not_cut_as_torn(
    tmp_path: Path, form: str, damage: bytes
) -> None:
    """It was durable, and a crash writes no newline behind half a record: cut, nobody would miss it."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path))
    lines = raw_lines(path)[:-2]
    rewrite(path, [*lines[:-1], damage + lines[-1][len(damage) :]])
    before = raw_lines(path)
    assert check(path).verdict == "tampered"
    with pytest.raises(AuditCorrupt):
        open_log(path)
    assert raw_lines(path) == before


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("zeros", [1, 4096])
def test_a_block_of_zeros_at_the_end_is_a_torn_write(tmp_path: Path, zeros: int, end: bytes) -> None:
    """A file system may have grown the file and not have written to it when the machine lost its power."""
    path = tmp_path / "a.jsonl"
    asyncio.run(fill(path))
    whole = b"".join(line + b"\n" for line in raw_lines(path)[:-2])
    path.write_bytes(whole + b'{"at":17' + b"\0" * zeros + end)
    report = check(path)
    assert {finding.kind for finding in report.findings} == {"incomplete"}
    open_log(path).close()
    report = check(path)
    assert report.verdict == "intact"
    assert any(f"a torn end of {8 + zeros + len(end)} bytes was cut off" in note for note in report.notes)
    path.write_bytes(path.read_bytes().replace(b'"model"', b'"mo\0el"'))
    assert check(path).verdict == "tampered", "in the middle no crash puts zeros"


def test_a_database_that_would_not_open_again_is_not_called_intact(tmp_path: Path) -> None:
    """What marks the file as ours is part of it."""
    path = tmp_path / "a.db"
    asyncio.run(fill(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id=7")
    assert check(path).verdict == "tampered"
    with pytest.raises(AuditCorrupt):
        open_log(path)


@pytest.mark.parametrize("form", FORMS)
def test_that_a_killed_writer_took_counts_with_it_is_told(tmp_path: Path, form: str) -> None:
    """Calls of level none are written as counts, with each checkpoint: what came after the last one is unknown."""
    path = tmp_path / f"a.{form}"
    code = (
        "import asyncio, os, signal, sys\n"
        "from pathlib import Path\n"
        "from ptc.audit import AuditLog, Levels, Rule\n"
        "from tests.ptc.audit_support import record_call\n"
        "async def main():\n"
        "    log = AuditLog(sys.argv[1], levels=Levels(Rule('none', tool='get_inventory'), Rule('metadata')))\n"
        "    await record_call(log)\n"
        "    log.checkpoint()\n"
        "    await record_call(log)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PTC_AUDIT_KEYS": str(keys_file(tmp_path))}
    subprocess.run([sys.executable, "-c", code, str(path)], check=False, env=environment)
    assert [record["data"]["calls"] for record in of_type(read(path), "audit.counted")] == [
        {"get_inventory": 1}
    ]
    told = "calls of level none there were between record 2 and"
    assert any(told in note for note in check(path).notes)
    open_log(path).close()
    assert any(told in note for note in check(path).notes)
    whole = tmp_path / f"b.{form}"
    levels = Levels(Rule("none", tool="get_inventory"), Rule("metadata"))
    asyncio.run(fill(whole, levels=levels))
    assert not any("level none" in note for note in check(whole).notes)


@pytest.mark.parametrize("form", FORMS)
def test_of_the_checkpoint_that_a_log_was_opened_behind_the_note_alone_is_vouched_for(
    tmp_path: Path, form: str
) -> None:
    """It signs what is before it: whoever could write to the file then could change its time and its counts."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path))
    assert check(path).exception() == ""
    lines = raw_lines(path)
    last = json.loads(lines[-1])
    last["data"]["anchor_failures"] = 77
    rewrite(path, rechain([*lines[:-1], json.dumps(last).encode()]))
    with open_log(path):
        pass
    report = check(path)
    assert (report.verdict, report.unsigned, report.bare) == ("intact", [], [len(lines)])
    assert (
        f"Of record {len(lines)} that the log was opened again behind, the note alone" in report.guarantee()
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_key_that_was_rotated_and_not_given_is_named(tmp_path: Path, form: str) -> None:
    """An auditor who has the old key alone must see what he lacks."""
    path, keys = tmp_path / f"a.{form}", Keyring.open(tmp_path / "keys.json", create=True)
    asyncio.run(fill(path, keys=keys))
    log = json.loads(raw_lines(path)[0])["log"]
    old = verifier_key(log, keys.active("signing"))
    keys.rotate("signing")
    new = verifier_key(log, keys.active("signing"))
    with open_log(path, keys=keys):
        pass
    (finding, *_) = verify(path, verifier_keys=[old]).findings
    assert (finding.kind, f"names: {new}. Give that as well" in finding.what) == ("tampered", True)
    assert verify(path, verifier_keys=[old, new]).verdict == "intact"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "name", ["digest_key", "signing_key", "journal_key", "reason", "frontier", "anchor_failures"]
)
def test_a_last_checkpoint_that_lacks_a_word_is_tampered(tmp_path: Path, form: str, name: str) -> None:
    """Nothing signs it yet, and a log that cannot be continued must not be called intact."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path))
    lines = raw_lines(path)
    last = json.loads(lines[-1])
    del last["data"][name]
    rewrite(path, rechain([*lines[:-1], json.dumps(last).encode()]))
    assert check(path).verdict == "tampered"
