"""A log whose first files are not here: what its signatures say of the records that are, and what they do not."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptc.audit import Checkpoints, Rotation
from ptc.audit.notes import verifier_key
from ptc.audit.verification import Verification
from ptc.audit.verify import verify
from tests.ptc.audit_rewriting import rechain, rewrite
from tests.ptc.audit_support import FORMS, KEYS, fill, open_log, raw_lines, record_call

Lines = list[bytes]


def check(path: Path, anchors: tuple[str, ...] = ()) -> Verification:
    log = json.loads(raw_lines(path)[0])["log"]
    keys = [verifier_key(log, key) for key in KEYS.of("signing")]
    return verify(path, verifier_keys=keys, anchors=anchors)


def put(path: Path, lines: Lines, first: int) -> None:
    """These lines alone, so that the files before are gone."""
    rewrite(path, lines, list(range(first, first + len(lines))))


def checkpoints(lines: Lines) -> Iterator[tuple[int, str]]:
    """Size and note of each."""
    for line in lines:
        record = json.loads(line)
        if record["type"] == "audit.checkpoint":
            yield record["seq"] - 1, record["data"]["note"]


def innocent(line: bytes) -> bytes:
    record = json.loads(line)
    if record["type"] == "audit.checkpoint":  # one that could be compared would show it
        record = {**record, "type": "request.sent", "data": {}}
    if "tool" in record:
        record["tool"]["name"] = "innocent"
    record.pop("start", None)
    return json.dumps(record).encode()


def forged_before_a_real_checkpoint(path: Path, size: int) -> int:
    """The checkpoint over `size` records as it was signed, and before it records that nobody wrote."""
    lines = raw_lines(path)
    first = size - (size & -size) + 2
    rotated = {
        **json.loads(lines[0]),
        "type": "audit.rotated",
        "data": {"file": "a.000000000001", "records": 1},
    }
    told = [json.dumps(rotated).encode(), *map(innocent, lines[first:size]), lines[size]]
    put(path, rechain(told, first, "ab" * 32), first)
    return first


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("anchored", [False, True])
def test_a_checkpoint_says_nothing_of_records_that_cannot_be_compared_with_it(
    tmp_path: Path, form: str, anchored: bool
) -> None:
    """Anybody can put a genuine one behind records of his own, and say that the files before are gone."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path, 30, checkpoints=Checkpoints(records=8)))
    size, note = max(checkpoints(raw_lines(path)), key=lambda head: head[0] & -head[0])
    assert size & -size > 8, "it takes more records than one checkpoint has"
    first = forged_before_a_real_checkpoint(path, size)
    report = check(path, (note,) if anchored else ())
    assert (report.verdict, report.signed_to, report.anchored_to) == ("incomplete", None, None)
    with open_log(path) as log:
        asyncio.run(record_call(log, 99))
    report = check(path)
    assert report.verdict == "incomplete"
    assert report.unsigned == [(first, size + 1)]
    assert f"Records {first} to {size + 1} were not signed" in report.guarantee()


@pytest.mark.parametrize("form", FORMS)
def test_an_anchor_that_saw_another_tree_is_told_where_nothing_can_be_compared(
    tmp_path: Path, form: str
) -> None:
    """Two heads of one size are a rewrite, whatever records are here."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path, 30, checkpoints=Checkpoints(records=8)))
    size, note = max(checkpoints(raw_lines(path)), key=lambda head: head[0] & -head[0])
    forged_before_a_real_checkpoint(path, size)
    origin, number, _, rest = note.split("\n", 3)
    other = "\n".join((origin, number, "A" * 43 + "=", rest))
    assert verify(path, anchors=[other]).verdict == "tampered"


@pytest.mark.parametrize("form", FORMS)
def test_what_nobody_signed_is_told_without_the_first_files_too(tmp_path: Path, form: str) -> None:
    """Whoever forged the stretch must not get rid of the words about it by taking the first file away."""
    path = tmp_path / f"a.{form}"
    asyncio.run(fill(path, 30, rotate=Rotation(bytes=4096)))
    files = sorted(file for file in tmp_path.glob(f"a.0*.{form}"))
    lines = raw_lines(path)
    first, previous = json.loads(lines[0])["seq"], json.loads(lines[0])["prev"]
    kept = [line for line in lines if b'"audit.c' not in line]
    assert 1 < len(kept) < len(lines)
    put(path, rechain(list(map(innocent, kept)), first, previous), first)
    with open_log(path) as log:
        asyncio.run(record_call(log, 99))
    last = first + len(kept) - 1
    assert check(path).unsigned == [(first, last)]
    for file in files:
        file.unlink()
    report = check(path)
    assert (report.verdict, report.unsigned) == ("incomplete", [(first, last)])
    assert report.signed_to is not None
    assert report.signed_to > last


@pytest.mark.parametrize("form", FORMS)
def test_an_honest_log_without_its_first_files_is_signed_to_its_end(tmp_path: Path, form: str) -> None:
    """Retention takes old files away every day: what is left is vouched for as before, without exceptions."""
    path = tmp_path / f"a.{form}"
    for _ in range(2):
        asyncio.run(fill(path, 20, rotate=Rotation(bytes=4096), checkpoints=Checkpoints(records=5)))
    next(iter(sorted(tmp_path.glob(f"a.0*.{form}")))).unlink()
    report = check(path)
    assert (report.verdict, report.unsigned) == ("incomplete", [])
    assert [finding.what[:9] for finding in report.findings] == ["the files"]
    assert report.last_seq is not None
    assert report.signed_to == report.last_seq - 1
