"""Holds the log to account for every call of a program: each record that was written is there, and as it was.

It is told what the log says of a program, and the digests that its sealed journal has of those records. It
raises `Parted` for a record that is gone, changed or added, and `Unprovable` where nothing can tell.
"""

from __future__ import annotations

from collections import Counter

from ptc.audit.explain import Life, Parted, Unprovable, asked_for
from ptc.audit.keys import Keyring
from ptc.audit.reader import Record
from ptc.audit.told import digest_of
from ptc.audit.values import canonical
from ptc_sandbox.journal import CallAnswered, CallMade, Journal
from ptc_tools.call import JsonObject


def compare_records(life: Life, end: Record, bundle: JsonObject) -> None:
    """The records of the time that ended so are those that its journal lists, and none is gone."""
    listed, _ = _told(bundle)
    begun = next(start for start in reversed(life.starts) if start["seq"] < end["seq"])
    until = next((start["seq"] for start in life.starts if start["seq"] > end["seq"]), None)
    found = [begun]
    for record in life.calls:
        if record["seq"] > begun["seq"] and (until is None or record["seq"] < until):
            found.append(record)
    left = Counter(digest for _, digest, _ in listed)
    for record in found:
        digest = digest_of(canonical({k: v for k, v in record.items() if k not in ("prev", "seq")}).decode())
        if not left[digest]:
            what = "a start" if record is begun else f"a record of {record['identity'].get('call')}"
            raise Parted(f"{what} of this program is not as it was written, or was added", record)
        left[digest] -= 1
    gone = [call for call, digest, sure in listed if sure and left[digest]]
    if gone:
        raise Parted(
            f"a record of {gone[0]} that was written is not in the log any more, or not of this program"
        )
    unsure = [call for call, digest, _ in listed if left[digest]]
    if unsure:
        raise Unprovable(f"a record of {unsure[0]} could not be written, or was removed")


def unrecorded(bundle: JsonObject) -> list[str]:
    """The program's calls of level `none`."""
    return _told(bundle)[1]


def account_for_calls(life: Life, bundle: JsonObject, journal: Journal, keys: Keyring) -> None:
    """Each call that the program made has one whole story, and no part of it is believed unseen."""
    for name in unrecorded(bundle):
        raise Unprovable(f"{name} was made at the level none: the log holds nothing of it")
    starts = {record["seq"]: record for record in life.calls if record["type"] == "tool.started"}
    ended: set[object] = set()
    for record in life.calls:
        if record["type"] == "tool.finished":
            start, name = record.get("start"), record["identity"]["call"]
            if start not in starts:
                raise (Unprovable if start is None else Parted)(f"the log does not hold the start of {name}")
            ended.add(start)
    for seq, record in starts.items():
        if seq not in ended:
            raise Unprovable(
                f"the log does not hold the end of {record['identity']['call']}: it is indeterminate"
            )
    _account_for_before(life, journal, keys)


def _account_for_before(life: Life, journal: Journal, keys: Keyring) -> None:
    """What an earlier process recorded, before the program was begun again: no digest of it was kept.

    Of a call that was answered the journal knows the rest. Of any other, what the log says cannot be checked.
    """
    begun = life.starts[-1]["seq"]
    if len(life.starts) == 1:
        return
    answered = {f"{life.call_id}:{e.number}" for e in journal.entries if isinstance(e, CallAnswered)}
    told = {asked_for(str(record["identity"]["call"])) for record in life.calls}
    for entry in journal.entries:
        name = f"{life.call_id}:{entry.number}" if isinstance(entry, CallMade) else ""
        if name and name not in answered and name not in told:
            raise Unprovable(f"the log holds nothing of {name}, which the program gave up before a crash")
    for record in life.calls:
        if record["seq"] > begun:
            continue
        name, content = str(record["identity"]["call"]), record["content"]
        if asked_for(name) not in answered and record["type"] != "tool.started":
            raise Unprovable(f"what became of {name}, which the program gave up, was recorded before a crash")
        if "asked_digest" in content and not _fits_itself(content, keys):
            raise Unprovable(f"the arguments that {name} had in the end were recorded before a crash")


def _fits_itself(content: Record, keys: Keyring) -> bool:
    """Whether arguments that are shown whole are those of their digest."""
    digest, shown = str(content.get("arguments_digest")), content.get("arguments")
    key = keys.get(digest.partition(":")[0])
    return key is not None and key.purpose == "digest" and key.digest(shown) == digest


def _told(bundle: JsonObject) -> tuple[list[tuple[str, str, bool]], list[str]]:
    told = bundle.get("told")
    if not isinstance(told, dict):
        raise Unprovable("the journal does not say which records were written of this program")
    records, counted = told.get("records"), told.get("unrecorded")
    assert isinstance(records, list)
    assert isinstance(counted, list)
    listed: list[tuple[str, str, bool]] = []
    for row in records:
        assert isinstance(row, list)
        call, digest, sure = row
        listed.append((str(call), str(digest), sure is True))
    return listed, [str(name) for name in counted]
