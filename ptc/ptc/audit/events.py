"""The event types of the log, each documented field by field: this table is the specification.

`docs/audit.md` prints it, `AuditLog.event` follows it: a field stands in the record at the level its line
names, and below that as a redaction. A type or a field that is not in the table is still recorded, its
content as if it were marked `full`: what nobody classified is not shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Exposure: TypeAlias = Literal["own", "metadata", "request", "full", "digest", "proof"]
"""From which level on a field is shown. `own`: always and as it is, for ids, hashes and counts that the log or
the runtime made: nothing is searched in them, since digits in a hash must not pass for a card number, and a
link that was redacted proves nothing. `digest`: its keyed digest always (as `NAME_digest`), itself from
`request` on; `proof`: its keyed digest always, itself at `full`."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    exposure: Exposure
    says: str


@dataclass(frozen=True, slots=True)
class EventType:
    name: str
    when: str
    fields: tuple[Field, ...] = ()


def _type(name: str, when: str, *fields: tuple[str, Exposure, str]) -> EventType:
    return EventType(name, when, tuple(Field(*field) for field in fields))


_PROGRAM: Final = ("call_id", "own", "the program's call id: the `caller_id` of its calls")

TABLE: Final[tuple[EventType, ...]] = (
    # What the log says about itself.
    _type(
        "audit.opened",
        "the log was created, or opened to be continued",
        ("created", "metadata", "true for the first record of a log"),
        ("writer", "metadata", "version of the writing library"),
        ("sync", "metadata", "each, group or none: what `durable` means in what follows"),
        ("fail", "metadata", "closed or open"),
        ("policy", "metadata", "SHA-256 of the content policy in force, canonical JSON"),
        ("levels", "metadata", "the rules of that policy, in their order"),
        ("digest_key", "metadata", "id of the key of digests and redactions"),
        ("signing_key", "metadata", "verifier key of the checkpoints (C2SP note), null when unsigned"),
        ("journal_key", "metadata", "id of the key of journals, null where none are kept"),
        ("checkpoint_records", "metadata", "records after which a checkpoint is signed"),
        ("clean", "metadata", "whether the log had been closed before; null for a new one"),
        (
            "unsigned",
            "metadata",
            "first and last record at the end that was found which no key of the keyring had signed: a crash left"
            " them so, or somebody wrote them; else null",
        ),
    ),
    _type(
        "audit.recovered",
        "a torn end was cut off when the log was opened: a crash in the middle of a write",
        ("cut_bytes", "metadata", "bytes removed after the last whole record"),
        ("cut_sha256", "metadata", "SHA-256 of the removed bytes"),
    ),
    _type(
        "audit.rotated",
        "first record of a further file; `prev` is the last record of the file before",
        ("file", "metadata", "name of the file that was completed"),
        ("records", "metadata", "records in it"),
        ("reason", "metadata", "size or age"),
    ),
    _type(
        "audit.blocked",
        "the log could not write and stopped accepting calls (or, with fail=open, began to lose records)",
        ("error", "metadata", "name of the system error, as ENOSPC, or `timeout`"),
        ("refused", "metadata", "records that were waiting and failed"),
    ),
    _type(
        "audit.resumed",
        "writing works again",
        ("blocked_us", "metadata", "how long it did not, microseconds"),
        ("refused", "metadata", "records refused meanwhile, each answered to its caller"),
    ),
    _type(
        "audit.gap",
        "fail=open only: records were lost, though the calls ran",
        ("lost", "metadata", "how many records"),
        ("by_type", "metadata", "the same, by event type"),
        ("from_us", "metadata", "time of the first lost record"),
        ("to_us", "metadata", "time of the last lost record"),
    ),
    _type(
        "audit.counted",
        "calls whose level is `none`, counted since the last such record: before each checkpoint and on close",
        ("calls", "metadata", "by tool: how many"),
    ),
    _type(
        "audit.key_changed",
        "another key is in use from here on",
        ("purpose", "metadata", "digest, signing or journal"),
        ("from", "metadata", "id of the key before"),
        ("to", "metadata", "id of the key now"),
    ),
    _type(
        "audit.checkpoint",
        "the tree head over every record before this one, signed",
        ("note", "metadata", "C2SP tlog-checkpoint, a signed note: origin, size, root, signature"),
        ("frontier", "metadata", "roots of the full subtrees (RFC 6962) at that size, largest first"),
        ("reason", "metadata", "records, time, rotated, closed or asked"),
        ("anchor_failures", "metadata", "times an anchor could not be reached since the log was opened"),
        ("digest_key", "metadata", "id of the key of digests and redactions"),
        ("signing_key", "metadata", "verifier key of this checkpoint, null when unsigned"),
        ("journal_key", "metadata", "id of the key of journals, null where none are kept"),
    ),
    _type(
        "audit.closed",
        "the log was closed in order; without this record at the end, its writer died",
        ("records", "metadata", "records written since it was opened"),
        ("note", "metadata", "signed note of the tree head over every record before this one"),
    ),
    # Runs and requests.
    _type(
        "run.started",
        "a run begins, before its first request",
        ("model", "metadata", "deployment or model name"),
        ("programs", "metadata", "hosted, local or null"),
        ("tools", "metadata", "qualified names the run may use; not of those that wait for a search"),
        ("input", "request", "what the user said"),
        ("labels", "metadata", "the application's words about the run"),
    ),
    _type(
        "run.finished",
        "a run ended, however it did",
        (
            "status",
            "metadata",
            "completed, refused, terminated, paused (calls wait for an approval; the run may go on), failed or"
            " cancelled; of `ptc exec`, how the program ended",
        ),
        ("requests", "own", "requests made"),
        ("calls", "own", "calls handled"),
        ("usage", "metadata", "tokens, as the provider counted"),
        ("error", "metadata", "stable code of the error that ended it"),
        ("message", "full", "that error's message"),
        ("output_text", "full", "the answer"),
    ),
    _type(
        "history.compacted",
        "the application replaced the run's history by a shorter one, between two requests",
        ("from", "own", "items before"),
        ("to", "own", "items now"),
    ),
    _type(
        "run.recovered",
        "a process took up a run from its store: an earlier one ended, or the run had paused",
        ("steps", "own", "steps that the store had"),
        ("status", "metadata", "running where a process ended in the middle, else how the run had ended"),
    ),
    _type(
        "call.uncertain",
        "a recovered run came to a call that was admitted, and of which the outcome is missing",
        ("call_id", "own", "the call"),
        ("tool", "metadata", "qualified name"),
        ("attempt", "own", "number of the attempt that nobody saw the end of"),
        ("resolution", "metadata", "run_again, same_key, reconciled, decided or waiting"),
    ),
    _type(
        "registry.called",
        "a call goes to the registry that its tool came from, for exactly that registration",
        ("call_id", "own", "the call"),
        ("tool", "metadata", "qualified name"),
        ("registry", "metadata", "the name that this process calls it by"),
        ("version", "metadata", "that the toolset was published under"),
        ("registration", "own", "token of the registration that the call was admitted for"),
        ("attempt", "own", "number of the attempt"),
    ),
    _type(
        "request.sent",
        "before a request goes to the provider",
        ("request", "own", "its number in the run, from 1"),
        ("model", "metadata", "deployment or model name"),
        ("items", "own", "items of history sent"),
        ("tools", "metadata", "names of the tools sent"),
        ("attempt", "own", "from 1; more where the driver tried again"),
    ),
    _type(
        "response.received",
        "after a response arrived, before anything in it is acted on",
        ("request", "own", "number of the request it answers"),
        ("response_id", "own", "the provider's id"),
        ("status", "metadata", "completed, incomplete, failed …"),
        ("items", "own", "items of output"),
        ("calls", "own", "calls it asks for"),
        ("usage", "metadata", "tokens"),
        ("error", "metadata", "the provider's error code"),
    ),
    # Programs.
    _type(
        "program.started",
        "a program begins (local) or was seen first in a response (hosted)",
        _PROGRAM,
        ("code", "digest", "its source"),
        ("language", "metadata", "javascript or python"),
        ("where", "metadata", "hosted or local"),
        ("policy_hash", "own", "hash of the language policy it runs under"),
        ("limits", "own", "time, memory, calls … it may use"),
        ("confinement", "metadata", "what the kernel wall enforces"),
        ("seed", "own", "seed of its randomness: part of the journal's header"),
    ),
    _type(
        "program.finished",
        "a program ended",
        _PROGRAM,
        ("status", "metadata", "completed, raised, denied, suspended, cancelled, killed:… or crashed"),
        ("wall", "metadata", "language, kernel or host, where one refused or killed it"),
        ("calls", "own", "calls it made"),
        ("duration_us", "own", "wall-clock time, microseconds"),
        ("cpu_us", "own", "processor time, microseconds"),
        (
            "peak_memory",
            "own",
            "bytes resident at most, the interpreter included; null where it could not be read",
        ),
        ("output", "proof", "what it printed"),
        ("value", "proof", "its last expression"),
        (
            "error_type",
            "proof",
            "class of the exception that ended it: the program may have named it after a result",
        ),
        ("message", "full", "that exception's message"),
        ("line", "own", "line it was raised at"),
        ("result", "proof", "a hosted program's result text"),
        ("journal", "own", "file, SHA-256, size and key of the encrypted journal, where one is kept"),
    ),
    _type(
        "sandbox.violation",
        "a wall refused something a program tried",
        _PROGRAM,
        ("wall", "metadata", "language, kernel or host"),
        ("rule", "metadata", "stable code of what was refused"),
        ("line", "own", "line of the program"),
        ("detail", "proof", "the refused name or call, into which a program may have put a result"),
    ),
    _type(
        "sandbox.killed",
        "a program was ended from outside",
        _PROGRAM,
        ("status", "metadata", "killed:time, killed:cpu, killed:memory …"),
        ("limit", "metadata", "the bound that was reached"),
    ),
    _type(
        "call.reused",
        "a call that was answered before was asked for again and got the same answer; nothing ran",
        ("call_id", "own", "the call"),
    ),
    # Calls.
    _type("tool.started", "durable before the tool runs; see `content`, `origin` and `tool` of the record"),
    _type("tool.finished", "durable before the result is released; `start` is the seq of its tool.started"),
    _type("tool.denied", "the tool never ran; `outcome.code` says why, as invalid_arguments"),
    # Decisions.
    _type(
        "approval.requested",
        "a call waits for somebody's decision",
        ("call_id", "own", "the call"),
        ("tool", "metadata", "qualified name"),
        ("reason", "metadata", "rule that asks"),
    ),
    _type(
        "approval.decided",
        "somebody, or a rule, decided",
        ("call_id", "own", "the call"),
        ("decision", "metadata", "approved, denied or expired"),
        ("by", "metadata", "who"),
        ("reason", "request", "their words"),
    ),
    _type(
        "exposure.changed",
        "what the model can see changed during a run",
        ("added", "metadata", "qualified names"),
        ("removed", "metadata", "qualified names"),
        ("reason", "metadata", "search, rule, application"),
    ),
    _type(
        "catalog.changed",
        "the tools themselves changed",
        ("added", "metadata", "qualified names"),
        ("removed", "metadata", "qualified names"),
        ("changed", "metadata", "qualified names whose contract fingerprint is another"),
    ),
)

TYPES: Final = {entry.name: entry for entry in TABLE}
EXPOSURES: Final[dict[str, dict[str, Exposure]]] = {
    entry.name: {field.name: field.exposure for field in entry.fields} for entry in TABLE
}
