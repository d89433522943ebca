"""What a verifier finds: each way to change a log, for both forms, and what it takes to show it."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ptc.audit import Checkpoints, FileAnchor, Rotation
from ptc.audit.anchors import read_notes
from ptc.audit.errors import AuditCorrupt, RecordNotFound
from ptc.audit.keys import Keyring
from ptc.audit.lines import leaf_hash
from ptc.audit.notes import verifier_key
from ptc.audit.store import segments
from ptc.audit.values import canonical
from ptc.audit.verification import Verification
from ptc.audit.verify import verify
from ptc_tools.call import JsonValue
from ptc_tools.outcome import Success
from tests.ptc.audit_rewriting import rechain, resign, rewrite
from tests.ptc.audit_support import FORMS, KEYS, RUN, fill, open_log, raw_lines, read, record_call


def check(path: Path, anchor: Path | None = None, trusted: bool = True) -> Verification:
    log = json.loads(raw_lines(path)[0])["log"]
    keys = [verifier_key(log, KEYS.active("signing"))] if trusted else []
    return verify(path, verifier_keys=keys, anchors=read_notes(anchor) if anchor else ())


@pytest.fixture(params=FORMS)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"a.{request.param}"
    await fill(path, anchors=[FileAnchor(tmp_path / "anchor.txt")])
    return path


def test_a_log_as_it_was_written_is_intact(log: Path) -> None:
    """Every guarantee reaches to the end, except over the last checkpoint itself."""
    report = check(log, log.parent / "anchor.txt")
    last = len(raw_lines(log))
    assert (report.verdict, report.findings) == ("intact", [])
    assert (report.chained_to, report.signed_to, report.anchored_to) == (last, last - 1, last - 1)
    assert report.indeterminate == []


CHANGES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "deletion": lambda lines: lines[:5] + lines[6:],
    "deletion of the first": lambda lines: lines[1:],
    "duplication": lambda lines: [*lines[:5], lines[4], *lines[5:]],
    "reordering": lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]],
    "a changed word": lambda lines: [
        *lines[:4],
        lines[4].replace(b"get_inventory", b"get_inventorx"),
        *lines[5:],
    ],
    "a changed number": lambda lines: [*lines[:6], lines[6].replace(b'"at":1', b'"at":2'), *lines[7:]],
    "no record at all": lambda lines: [*lines[:4], b"[]", *lines[5:]],
    "not even JSON": lambda lines: [*lines[:4], b"\x00" * 40, *lines[5:]],
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_in_the_middle_breaks_the_chain(log: Path, name: str) -> None:
    """No key is needed to see this: each record carries the hash of the one before."""
    before = raw_lines(log)
    after = CHANGES[name](before)
    if log.suffix == ".db" and name == "not even JSON":
        after[4] = b"zzz"
    rewrite(log, after, _seqs(before, after) if log.suffix == ".db" and name != "reordering" else None)
    report = check(log, trusted=False)
    assert report.verdict == "tampered"
    assert log.suffix == ".db" or report.findings[0].number in (1, 5, 6, 7, 8)


def _seqs(before: list[bytes], after: list[bytes]) -> list[int]:
    seqs = []
    for number, line in enumerate(after, 1):
        seq = before.index(line) + 1 if line in before else number
        seqs.append(seq if seq not in seqs else 1000 + number)
    return seqs


async def test_a_record_of_another_log_is_found(log: Path, tmp_path: Path) -> None:
    """A splice: whole, well-formed, correctly numbered, and somebody else's."""
    other = tmp_path / f"other{log.suffix}"
    await fill(other)
    lines = raw_lines(log)
    lines[5] = raw_lines(other)[5]
    rewrite(log, lines)
    report = check(log, trusted=False)
    assert report.verdict == "tampered"
    assert "another log" in report.findings[0].what


def test_every_flipped_bit_of_a_record_is_found(log: Path) -> None:
    """Whatever the bit means, the hash over the line is another."""
    lines = raw_lines(log)
    victim = lines[4]
    for position in range(0, len(victim), 7):
        flipped = bytearray(victim)
        flipped[position] ^= 1
        changed = [*lines[:4], bytes(flipped), *lines[5:]]
        if b"\n" in flipped or (log.suffix == ".db" and not _is_text(bytes(flipped))):
            continue
        rewrite(log, changed)
        assert check(log, trusted=False).verdict == "tampered", position


def _is_text(data: bytes) -> bool:
    try:
        return "\x00" not in data.decode()
    except UnicodeDecodeError:
        return False


def test_a_rewrite_with_the_chain_recomputed_needs_the_key_to_be_seen(log: Path) -> None:
    """A chain alone proves nothing against who recomputes it; the signed root does."""
    lines = raw_lines(log)
    lines[4] = lines[4].replace(b"get_inventory", b"get_inventorx")
    rewrite(log, rechain(lines))
    report = check(log)
    assert report.verdict == "tampered"
    assert "root that was signed" in report.findings[0].what


def test_a_rewrite_without_checkpoints_fails_under_a_trusted_key(log: Path) -> None:
    """Who drops the checkpoints drops what a closed log must end with; no anchor is needed to see it."""
    lines = [line for line in raw_lines(log) if b"audit.checkpoint" not in line]
    lines[4] = lines[4].replace(b"get_inventory", b"get_inventorx")
    rewrite(log, rechain(lines))
    assert check(log).verdict == "tampered"


async def test_records_forged_after_a_genuine_checkpoint_fail_under_a_trusted_key(tmp_path: Path) -> None:
    """The first checkpoints are kept, so that there is something signed, and the rest is invented."""
    path = tmp_path / "a.jsonl"
    await fill(path, 20, checkpoints=Checkpoints(records=10))
    lines = raw_lines(path)
    first = next(i for i, line in enumerate(lines) if b"audit.checkpoint" in line)
    rest = [line for line in lines[first + 1 :] if b"audit.checkpoint" not in line]
    rest[2] = rest[2].replace(b"get_inventory", b"get_inventorx")
    rewrite(path, rechain([*lines[: first + 1], *rest]))
    assert check(path).verdict == "tampered"


def test_too_many_records_without_a_checkpoint_are_not_intact(tmp_path: Path) -> None:
    """A log that is still written has no end to look at, but its checkpoints come in intervals."""
    path = tmp_path / "a.jsonl"
    with open_log(path, checkpoints=Checkpoints(records=2000), signed=True) as log:
        asyncio.run(log.event("run.started", {}, RUN))
        lines = raw_lines(path)
        opened = json.loads(lines[0])
        opened["data"]["checkpoint_records"] = 1
        live = rechain([canonical(opened), *[lines[1]] * 1100])
        path.write_bytes(b"".join(line + b"\n" for line in live))
        report = check(path)
        assert report.live
        assert report.verdict == "incomplete"
        path.write_bytes(b"".join(line + b"\n" for line in lines))


def test_a_checkpoint_signed_with_another_key_is_found(log: Path) -> None:
    """A forger has a key too, and names it in the log."""
    lines = raw_lines(log)
    lines[4] = lines[4].replace(b"get_inventory", b"get_inventorx")
    rewrite(log, resign(lines, Keyring.generate()))
    assert check(log, trusted=False).verdict == "intact", "nothing but a trusted key shows this"
    assert check(log, trusted=True).verdict == "tampered"


def test_a_cut_end_needs_an_anchor_to_be_called_tampering(log: Path) -> None:
    """Without one it looks like a crash, and is reported as incomplete."""
    lines = raw_lines(log)
    for kept in range(1, len(lines)):
        rewrite(log, lines[:kept])
        if kept < len(lines) - 1:
            assert check(log).verdict == "incomplete"
        assert check(log, log.parent / "anchor.txt").verdict == (
            "tampered" if kept < len(lines) - 1 else "intact"
        )


def test_a_changed_last_record_is_not_covered_and_the_report_says_so(log: Path) -> None:
    """The last record is the checkpoint: nothing stands behind it, but its own signature."""
    lines = raw_lines(log)
    rewrite(log, [*lines[:-1], lines[-1].replace(b'"reason":"closed"', b'"reason":"asked!"')])
    report = check(log)
    assert report.signed_to == len(lines) - 1
    assert "could be rewritten" in report.guarantee() or report.verdict == "tampered"


def test_truncation_at_every_byte_of_the_last_two_records(tmp_path: Path) -> None:
    """A crash may stop a write anywhere: opened again, the log is whole and says what was cut."""
    path = tmp_path / "a.jsonl"
    asyncio.run(fill(path, 1, signed=False))
    data = path.read_bytes()
    lines = raw_lines(path)
    start = len(data) - len(lines[-1]) - len(lines[-2]) - 2
    for size in range(start, len(data)):
        path.write_bytes(data[:size])
        torn = size not in (start, start + len(lines[-2]) + 1)
        assert check(path, trusted=False).verdict == ("incomplete" if torn or size == start else "intact"), (
            size
        )
        open_log(path, sync="none", signed=False).close()
        report = check(path, trusted=False)
        assert (report.verdict, report.findings) == ("intact", []), size
        recovered = [r for r in read(path) if r["type"] == "audit.recovered"]
        assert bool(recovered) == torn
        if torn:
            begin = data[:size].rfind(b"\n") + 1
            assert recovered[-1]["data"]["cut_bytes"] == size - begin


def test_a_database_cut_short_is_never_called_intact(tmp_path: Path) -> None:
    """SQLite's own recovery, our chain, or an anchor: one of them speaks up for every length."""
    path = tmp_path / "a.db"
    asyncio.run(fill(path, 40, anchors=[FileAnchor(tmp_path / "anchor.txt")]))
    data = path.read_bytes()
    copy = tmp_path / "b.db"
    log = json.loads(raw_lines(path)[0])["log"]
    keys = [verifier_key(log, KEYS.active("signing"))]
    for size in range(len(data) - 1, 4096, -1021):
        copy.write_bytes(data[:size])
        report = verify(copy, verifier_keys=keys, anchors=read_notes(tmp_path / "anchor.txt"))
        assert report.verdict != "intact", size


def test_a_log_whose_end_was_changed_is_not_continued(log: Path) -> None:
    """Going on from a broken chain would bury the break."""
    lines = raw_lines(log)
    changed = json.loads(lines[-1])
    changed["data"]["frontier"] = [("0" * 64)] * len(changed["data"]["frontier"])
    rewrite(log, [*lines[:-1], canonical(changed)])
    with pytest.raises(AuditCorrupt, match="ptc audit verify"):
        open_log(log)


def test_columns_that_disagree_with_their_record_are_found(tmp_path: Path) -> None:
    """Searches use the columns: changing them would hide a call from every query."""
    path = tmp_path / "a.db"
    asyncio.run(fill(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE records SET tool = 'harmless' WHERE type = 'tool.started'")
        db.commit()
    report = check(path)
    assert report.verdict == "tampered"
    assert "columns" in report.findings[0].what


def test_an_index_that_hides_records_from_a_search_is_found(tmp_path: Path) -> None:
    """The rows are all there; a search by run would not find the calls."""
    path = tmp_path / "a.db"
    asyncio.run(fill(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'records_run'").fetchone()
        db.execute("DROP INDEX records_run")
        db.execute("CREATE INDEX records_run ON records (run, seq) WHERE run IS NOT NULL AND type > 'z'")
        db.execute("PRAGMA writable_schema = 1")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'records_run'", (sql,))
    assert check(path).verdict == "tampered"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records WHERE seq = new.seq; END",
        "CREATE VIEW v AS SELECT 1",
        "DROP INDEX records_run",
    ],
)
def test_a_database_whose_schema_is_not_the_logs_is_tampered(tmp_path: Path, sql: str) -> None:
    """A trigger may take records away as they come, a view may show others."""
    path = tmp_path / "a.db"
    asyncio.run(fill(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute(sql)
    assert check(path).verdict == "tampered"


def test_another_applications_database_is_refused(tmp_path: Path) -> None:
    """A wrong path must not grow a table in somebody's data."""
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
    before = path.read_bytes()
    with pytest.raises(AuditCorrupt, match="another application"):
        open_log(path)
    assert path.read_bytes() == before or "records" not in str(before)


async def test_an_anchor_that_matches_nothing_leaves_the_log_incomplete(log: Path, tmp_path: Path) -> None:
    """Who asks for an anchor must not be told that all is well by the lack of one."""
    await fill(tmp_path / "other.jsonl", anchors=[FileAnchor(tmp_path / "others.txt")])
    assert check(log, tmp_path / "others.txt").verdict == "incomplete"


def test_a_keyring_without_the_logs_key_is_not_tampering(log: Path) -> None:
    """An auditor on another machine has another keyring: that says something of him, not of the log."""
    from ptc.audit.keys import Keyring

    other = Keyring.generate().active("signing")
    report = verify(log, verifier_for=lambda log_id: [verifier_key(log_id, other)])
    assert report.verdict == "incomplete"
    assert "the keyring has" in report.findings[0].what


@pytest.mark.parametrize("trusted", ["key", "anchor"])
@pytest.mark.parametrize("form", FORMS)
async def test_a_rewrite_behind_a_missing_first_file_is_tampered(
    tmp_path: Path, form: str, trusted: str
) -> None:
    """Taking the oldest file away must not switch off signatures and anchors for the rest."""
    path = tmp_path / f"a.{form}"
    anchor = tmp_path / "anchor.txt"
    await fill(path, 60, rotate=Rotation(bytes=8000), anchors=[FileAnchor(anchor)])
    files = segments(path)
    assert len(files) > 2
    key = verifier_key(json.loads(raw_lines(files[0])[0])["log"], KEYS.active("signing"))
    files[0].unlink()

    def look() -> Verification:
        return (
            verify(path, verifier_keys=[key])
            if trusted == "key"
            else verify(path, anchors=read_notes(anchor))
        )

    report = look()
    assert report.verdict == "incomplete"
    assert (report.signed_to if trusted == "key" else report.anchored_to) == (report.last_seq or 0) - 1
    previous = None
    for file in files[1:]:
        lines = []
        seqs = []
        for line in raw_lines(file):
            record = json.loads(line.replace(b'"duration_us":1040', b'"duration_us":9'))
            record["prev"] = previous or record["prev"]
            lines.append(canonical(record))
            seqs.append(record["seq"])
            previous = leaf_hash(lines[-1]).hex()
        rewrite(file, lines, seqs)
    assert look().verdict == "tampered"


def test_verifying_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(RecordNotFound, match="no audit log"):
        verify(tmp_path / "none.jsonl")


@pytest.mark.parametrize("form", FORMS)
async def test_the_chain_crosses_files(tmp_path: Path, form: str) -> None:
    """Rotation in the middle of a call: the start in one file, the end in the next."""
    path = tmp_path / f"a.{form}"
    size = 4096 if form == "jsonl" else 16_384
    async with open_log(path, rotate=Rotation(bytes=size)) as log:
        for number in range(120):
            await record_call(log, number)
    files = segments(path)
    assert len(files) > 3
    report = check_all(path)
    assert (report.verdict, report.findings, report.indeterminate) == ("intact", [], [])
    assert report.records == report.last_seq

    missing = tmp_path / "moved"
    missing.mkdir()
    shutil.move(files[0], missing)
    report = check_all(path)
    assert (report.verdict, report.findings[0].kind) == ("incomplete", "incomplete")
    shutil.move(missing / files[0].name, files[0])
    shutil.move(files[1], missing)
    assert check_all(path).verdict == "tampered"


def check_all(path: Path) -> Verification:
    from ptc.audit.reader import records

    log = next(records(path))["log"]
    return verify(path, verifier_keys=[verifier_key(log, KEYS.active("signing"))])


@pytest.mark.parametrize("form", FORMS)
async def test_a_rotated_log_is_continued(tmp_path: Path, form: str) -> None:
    """Opened again after any number of rotations, even just after one, the chain and the tree go on."""
    path = tmp_path / f"a.{form}"
    for _ in range(5):
        async with open_log(path, rotate=Rotation(bytes=4096)) as log:
            for number in range(7):
                await record_call(log, number)
    path_files = segments(path)
    path_files[-1].rename(tmp_path / f"a.{999999:012d}{path.suffix}")
    open_log(path).close()
    assert check_all(path).verdict == "intact"


async def test_checkpoints_come_by_count_and_when_asked(tmp_path: Path) -> None:
    """Between two checkpoints lies what a thief of the key could still change."""
    path = tmp_path / "a.jsonl"
    async with open_log(path, checkpoints=Checkpoints(records=10)) as log:
        for number in range(20):
            await record_call(log, number)
        log.checkpoint()
    reasons = [r["data"]["reason"] for r in read(path) if r["type"] == "audit.checkpoint"]
    assert reasons.count("records") >= 3
    assert reasons[-2:] == ["asked", "closed"]


async def test_checkpoints_come_with_time_even_when_idle(tmp_path: Path) -> None:
    """A log that nobody writes to still says that it is alive and complete."""
    path = tmp_path / "a.jsonl"
    told: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    from ptc.audit import CallbackAnchor

    anchor = CallbackAnchor(lambda note: loop.call_soon_threadsafe(told.put_nowait, note))
    async with open_log(path, checkpoints=Checkpoints(seconds=0.05), anchors=[anchor]):
        for _ in range(3):
            await asyncio.wait_for(told.get(), 20)
    reasons = [r["data"]["reason"] for r in read(path) if r["type"] == "audit.checkpoint"]
    assert reasons.count("time") >= 3


async def test_an_anchor_that_fails_does_not_stop_the_log(tmp_path: Path) -> None:
    """The second place may be down; the next checkpoint says how often it was."""
    from ptc.audit import CallbackAnchor

    def fail(note: str) -> None:
        raise ConnectionError("down")

    path = tmp_path / "a.jsonl"
    async with open_log(path, anchors=[CallbackAnchor(fail)]) as log:
        log.checkpoint()
        await record_call(log)
    assert [r["data"]["anchor_failures"] for r in read(path) if r["type"] == "audit.checkpoint"] == [0, 1]
    assert check(path).verdict == "intact"


async def test_a_clock_that_goes_back_changes_nothing(tmp_path: Path) -> None:
    """Order is by sequence number; a wrong clock is the machine's fault and not tampering."""
    moments = iter(range(100_000_000, 0, -200_000))
    path = tmp_path / "a.jsonl"
    async with open_log(path, clock=lambda: next(moments)) as log:
        for number in range(5):
            await record_call(log, number)
    report = check(path)
    assert report.verdict == "intact"
    assert any("clock" in note for note in report.notes)


async def test_another_key_is_recorded(tmp_path: Path) -> None:
    """Who compares digests across it must know that they cannot be equal."""
    from ptc.audit.keys import Keyring

    ring = Keyring.generate().save(tmp_path / "keys.json")
    path = tmp_path / "a.jsonl"
    open_log(path, keys=ring, journals=True).close()
    old = ring.active("digest").id
    ring.rotate("digest")
    ring.rotate("signing")
    before, after = ring.active("journal").id, ring.rotate("journal").id
    open_log(path, keys=Keyring.open(tmp_path / "keys.json"), journals=True).close()
    open_log(path, keys=Keyring.open(tmp_path / "keys.json")).close()
    changes = [r["data"] for r in read(path) if r["type"] == "audit.key_changed"]
    assert next((c["purpose"], c["from"]) for c in changes) == ("digest", old)
    assert [c["purpose"] for c in changes] == ["digest", "signing", "journal"]
    assert (changes[-1]["from"], changes[-1]["to"]) == (before, after)
    log = read(path)[0]["log"]
    report = verify(path, verifier_keys=[verifier_key(log, key) for key in ring.of("signing")])
    assert report.verdict == "intact"


@pytest.mark.parametrize("form", FORMS)
def test_a_reader_sees_every_record_of_a_log_that_is_rotated(tmp_path: Path, form: str) -> None:
    """Operators look at live logs: what was durable when they looked is in what they see, in its order."""
    import threading

    from ptc.audit.reader import records

    path = tmp_path / f"a.{form}"
    done = threading.Event()
    written = [0]

    async def write() -> None:
        size = 4096 if form == "jsonl" else 32_768
        async with open_log(
            path, rotate=Rotation(bytes=size), sync="none", checkpoints=Checkpoints(records=50)
        ) as log:
            for number in range(1500):
                await record_call(log, number)
                written[0] = number + 1

    def run() -> None:
        asyncio.run(write())
        done.set()

    writer = threading.Thread(target=run)
    writer.start()
    looked = 0
    while not done.is_set():
        least = written[0]
        if not least:
            continue
        seqs = [record["seq"] for record in records(path)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) >= 2 * least
        looked += 1
    writer.join()
    assert looked
    assert form == "db" or len(segments(path)) > 3
    assert check_all(path).verdict == "intact"


async def test_a_reader_of_a_database_does_not_stop_the_log(tmp_path: Path) -> None:
    """Somebody who reads for long keeps the file from being put aside, and nothing else."""
    path = tmp_path / "a.db"
    async with open_log(path, rotate=Rotation(bytes=16_384)) as log:
        await record_call(log, 0)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM records").fetchone()[0] == 3
            for number in range(1, 60):
                await record_call(log, number)
            assert log.blocked is None
    assert check_all(path).verdict == "intact"
    open_log(path).close()
    assert check_all(path).verdict == "intact"


async def test_a_part_of_the_log_is_never_overwritten(tmp_path: Path) -> None:
    """A file has the name that rotation wants: it stays as it is, and the log goes on where it is."""
    path = tmp_path / "a.jsonl"
    precious = tmp_path / f"a.{1:012d}.jsonl"
    async with open_log(path, rotate=Rotation(bytes=4096)) as log:
        precious.write_text("precious")
        for number in range(30):
            await record_call(log, number)
        assert log.blocked is None
    assert precious.read_text() == "precious"
    assert [record["seq"] for record in read(path)] == list(range(1, len(raw_lines(path)) + 1))
    assert len(raw_lines(path)) > 60


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become somebody who may not write")
def test_an_auditor_who_may_only_read_reads(tmp_path: Path) -> None:
    """A log handed over on a read-only share is verified there, by somebody who can make no file beside it."""
    folder = tmp_path / "share"
    asyncio.run(fill(folder / "a.db"))
    for file in folder.iterdir():
        file.chmod(0o644)
    for place in (folder, *folder.parents):
        if place == Path("/tmp") or place == Path("/"):
            break
        place.chmod(0o755)
    folder.chmod(0o555)
    program = (
        "import os, sys\nfrom ptc.audit.verify import verify\nos.setresuid(65534, 65534, 65534)\n"
        "print(verify(sys.argv[1]).verdict)"
    )
    command = [sys.executable, "-c", program, str(folder / "a.db")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout == "intact\n", ran.stderr


async def test_a_deeply_nested_result_is_intact(tmp_path: Path) -> None:
    """The verifier reads whatever the log could write."""
    path = tmp_path / "a.jsonl"
    value: JsonValue = 1
    for _ in range(400):
        value = [value]
    async with open_log(path, levels="full") as log:
        await record_call(log, outcome=Success(value))
    assert check(path).verdict == "intact"
