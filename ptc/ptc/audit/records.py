"""Turns what happened into records: who, what, on whose authority, how it ended, content by level.

It is told calls and outcomes as the invoker knows them and events as the runner reports them. What the
level in force does not allow never enters a draft; what redaction finds is replaced before that.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ptc.audit.events import EXPOSURES, Exposure
from ptc.audit.keys import Key
from ptc.audit.lines import Columns, Draft, Parts, call_draft, draft
from ptc.audit.policy import RANK, Level, Levels
from ptc.audit.redact import Redactor
from ptc.audit.runs import Runs, RunState
from ptc.audit.sensitive import NOTHING, Sensitivity
from ptc.audit.told import ProgramTold
from ptc.audit.values import (
    TYPE_PREFIX,
    Unencodable,
    bounded,
    canonical,
    canonical_text,
    comparable,
    quoted,
    quoted_name,
    type_prefix,
)
from ptc_tools.call import Call, JsonObject, JsonValue, Program
from ptc_tools.context import RunContext, idempotency_key
from ptc_tools.contract import Contract
from ptc_tools.errors import InvalidJson
from ptc_tools.markers import with_marks
from ptc_tools.outcome import Denied, Failure, Outcome, Success

MAX_CONTENT: Final = 256 * 1024
"""Bytes of arguments, result or program text that a record shows; more stands as a redaction, `size`."""

_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


@dataclass(slots=True)
class Started:
    """Given out for a started call, taken back when it finished. `seq` is None where nothing was written."""

    level: Level
    tool: _ToolParts
    middle: str
    columns: Columns
    asked: str = ""
    seq: int | None = None
    uncounted: bool = False
    call_id: str = ""
    told: ProgramTold | None = None


@dataclass(frozen=True, slots=True)
class _ToolParts:
    """What the log says of one contract, encoded once."""

    contract: Contract
    name: str
    text: str
    effects: tuple[str, ...]
    arguments: Sensitivity
    result: Sensitivity


class Records:
    """Makes drafts for one log, in any thread."""

    def __init__(
        self, log: str, *, levels: Levels, redactor: Redactor, key: Key, clock: Callable[[], int]
    ) -> None:
        self._log = log
        self._levels = levels
        self._redactor = redactor
        self._key = key
        self._clock = clock
        self._runs = Runs()
        self._tools: dict[int, _ToolParts] = {}
        self._uncounted: Counter[str] = Counter()
        self._counting = threading.Lock()

    # Calls.

    def started(
        self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext
    ) -> tuple[Started, Draft | None]:
        """The token, and the record to write; None where the level is `none`: then the call is counted."""
        tool = self._tool(contract)
        state = self._runs.of(run)
        level = self._levels.level(tool.name, call.caller.kind, state.tenant, tool.effects)
        if level == "none":
            with self._counting:
                self._uncounted[tool.name] += 1
            return Started(level, tool, "", _NO_COLUMNS, uncounted=True), None
        shown, digest = self._content(arguments, level, "request", tool.arguments)
        columns = Columns(
            self._clock(), "tool.started", bounded(run.run_id), tool.name, call.caller.kind, None, digest
        )
        asked = ""
        if isinstance(call.arguments, Mapping) and call.arguments != arguments:
            asked = f',"asked_digest":"{self._digest(dict(call.arguments))}"'
        content = f'{{"arguments":{shown},"arguments_digest":"{digest}"{asked},"level":"{level}"}}'
        identity = state.of_call(call, self._key_digest(call, contract, arguments, run))
        middle = f',"identity":{identity},"log":"{self._log}","origin":{_origin(call, state)}'
        record = call_draft(columns, content, middle, "", None, tool.text)
        return Started(level, tool, middle, columns, asked), record

    def finished(self, token: Started, outcome: Outcome, duration_us: int) -> Draft | None:
        if token.uncounted:
            return None
        tool, begun = token.tool, token.columns
        digests = f'{{"arguments_digest":"{begun.arguments}"{token.asked}'
        asked = f'{digests},"level":"{token.level}"'
        if isinstance(outcome, Success):
            shown, digest = self._content(outcome.value, token.level, "full", tool.result)
            content = f'{asked},"result":{shown},"result_digest":"{digest}"}}'
            origin = ""
            if outcome.provenance is not None:
                # Whose record it was may be somebody's address: it is searched like everything else.
                shown = canonical_text(self._redactor.shown(outcome.provenance.to_json()))
                origin = f',"provenance":{_bounded_content(shown)}'
            ending = f',"outcome":{{"duration_us":{int(duration_us)}{origin},"status":"{outcome.status}"}}'
        else:
            shown = self._shown_text(outcome.message, token.level, "full")
            if isinstance(outcome, Failure) and outcome.details is not None:
                details = self._shown_text(outcome.details, token.level, "full")
                asked = f'{digests},"details":{details},"level":"{token.level}"'
            content = f'{asked},"message":{shown}}}'
            ending = (
                f',"outcome":{{"code":{quoted_name(outcome.code)},"duration_us":{int(duration_us)},'
                f'"status":"{outcome.status}"}}'
            )
        columns = Columns(
            self._clock(),
            "tool.finished",
            begun.run,
            begun.tool,
            begun.caller,
            outcome.status,
            begun.arguments,
        )
        return call_draft(columns, content, token.middle, ending, token.seq, tool.text)

    def denied(self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext) -> Draft:
        """Refusals are recorded whatever the level; `none` leaves out what `metadata` would."""
        state = self._runs.of(run)
        if contract is not None:
            tool = self._tool(contract)
            name, text, sensitivity, effects = tool.name, tool.text, tool.arguments, tool.effects
        else:
            invented = self._invented(call)
            name, text, sensitivity, effects = (
                bounded(invented.qualified_name),
                _unknown_tool(invented),
                NOTHING,
                (),
            )
        level = self._levels.level(name, call.caller.kind, state.tenant, effects)
        level = "metadata" if level == "none" else level
        arguments = dict(call.arguments) if isinstance(call.arguments, Mapping) else call.arguments
        shown, digest = self._content(arguments, level, "request", sensitivity)
        unchecked = isinstance(arguments, str) or outcome.code in _UNCHECKED
        if RANK[level] >= RANK["request"] and (
            contract is None or (unchecked and sensitivity is not NOTHING)
        ):
            # What in them is secret cannot be told: none of it is shown.
            shown = _left_out("unchecked", len(canonical_text(arguments).encode()) if digest else 0)
        message = self._shown_text(outcome.message, level, "request")
        columns = Columns(
            self._clock(), "tool.denied", bounded(run.run_id), name, call.caller.kind, "denied", digest
        )
        parts = Parts(
            content=f'{{"arguments":{shown},"arguments_digest":"{digest}","level":"{level}","message":{message}}}',
            identity=state.of_call(call, None),
            origin=_origin(call, state),
            outcome=f'{{"code":{quoted_name(outcome.code)},"status":"denied"}}',
            tool=text,
        )
        return draft(self._log, columns, parts)

    def _key_digest(
        self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext
    ) -> str | None:
        """The keyed digest of what a mutation's service knows the call by; None for a tool that changes nothing.

        As it stands, the key would be a hash of the arguments without a secret: who reads the log could try values.
        """
        if not contract.mutates and contract.idempotency is None:
            return None
        named = contract.idempotency.parameter if contract.idempotency is not None else None
        if named is not None and isinstance(arguments, dict) and arguments.get(named) not in (None, ""):
            return self._digest(arguments[named])
        try:
            return self._digest(idempotency_key(run, call))
        except InvalidJson:
            return None

    def _invented(self, call: Call) -> Call:
        """The call with the names that the model gave, where there is no such tool, searched for secrets."""
        namespace = None if call.namespace is None else self._redactor.name(call.namespace)
        return replace(call, name=self._redactor.name(call.name), namespace=namespace)

    # Everything else.

    def event(self, type: str, data: Mapping[str, JsonValue], run: RunContext | None) -> Draft:
        """Raises ValueError for a type that is not dotted lower-case words."""
        if not _TYPE.fullmatch(type) or len(type) > 100:
            raise ValueError(f"an event type is dotted lower-case words such as 'run.started', not {type!r}")
        identity = run_id = None
        if run is not None:
            state = self._runs.of(run)
            self._remember(type, data, run, state)
            call_id = data.get("call_id")
            identity = state.identity(call_id if isinstance(call_id, str) else None)
            run_id = bounded(run.run_id)
        status = data.get("status")
        columns = Columns(
            self._clock(),
            type,
            run_id,
            status=status if isinstance(status, str) and run is not None else None,
        )
        return draft(self._log, columns, Parts(data=self._data(type, data), identity=identity or ""))

    def own(self, type: str, data: JsonObject) -> Draft:
        """An event of the log's own: what it says is the log's, and shown as it is."""
        return draft(self._log, Columns(self._clock(), type), Parts(data=canonical_text(data)))

    def take_uncounted(self) -> Draft | None:
        """The calls of level `none` since it was last asked, as a record; None where there were none."""
        with self._counting:
            counts, self._uncounted = self._uncounted, Counter()
        if not counts:
            return None
        calls: JsonObject = dict(counts)
        return self.own("audit.counted", {"calls": calls})

    def _remember(self, type: str, data: Mapping[str, JsonValue], run: RunContext, state: RunState) -> None:
        call_id, code = data.get("call_id"), data.get("code")
        if type == "program.started" and isinstance(call_id, str) and isinstance(code, str):
            state.program(call_id, self._key.digest(code))
        elif type in ("request.sent", "response.received"):
            state.turn(run.run_id, data.get("request"), data.get("response_id"))
        elif type == "run.finished" and data.get("status") != "paused":  # a paused run goes on
            self._runs.forget(run.run_id)

    def _data(self, type: str, data: Mapping[str, JsonValue]) -> str:
        known = EXPOSURES.get(type, {})
        members: list[tuple[str, str]] = []
        for name, value in data.items():
            exposure = known.get(name, "full")
            shown = bounded(name)
            if exposure in ("digest", "proof"):
                members.append((f"{shown}_digest", quoted(self._digest(value))))
            members.append((shown, self._field(value, exposure)))
        return "{" + ",".join(f"{quoted(name)}:{text}" for name, text in sorted(dict(members).items())) + "}"

    def _field(self, value: JsonValue, exposure: Exposure) -> str:
        needed = _NEEDED[exposure]
        if exposure in ("own", "metadata") and isinstance(value, str):
            value = bounded(value)
        try:
            if exposure == "own":
                return _bounded_content(canonical_text(value))
            if RANK[self._levels.events] < RANK[needed]:
                return _left_out("level", len(canonical(value)))
            return _bounded_content(canonical_text(self._redactor.shown(value)))
        except Unencodable:
            return _left_out("unencodable", 0)

    # Content.

    def _content(
        self, value: JsonValue, level: Level, needed: Level, sensitivity: Sensitivity
    ) -> tuple[str, str]:
        """The value as the level shows it, as JSON text, and its digest."""
        try:
            if isinstance(value, float):
                data = canonical(value)
                digest = self._key.digest(value)
            else:
                data = canonical_text(value).encode()
                digest = self._key.digest_of((TYPE_PREFIX.get(type(value)) or type_prefix(value)) + data)
            if RANK[level] < RANK[needed]:
                return f'{{"$redacted":"level","bytes":{len(data)}}}', digest
            return _bounded_content(canonical_text(self._redactor.shown(value, sensitivity))), digest
        except Unencodable:
            return _left_out("unencodable", 0), ""

    def _shown_text(self, text: str, level: Level, needed: Level) -> str:
        if RANK[level] < RANK[needed]:
            return _left_out("level", len(text.encode("utf-8", "replace")))
        return _bounded_content(canonical_text(self._redactor.shown(text)))

    def _digest(self, value: JsonValue) -> str:
        try:
            return self._key.digest_of(comparable(value))
        except Unencodable:
            return ""

    def _tool(self, contract: Contract) -> _ToolParts:
        known = self._tools.get(id(contract))
        if known is None or known.contract is not contract:
            if len(self._tools) > 10_000:
                self._tools.clear()
            known = self._tools[id(contract)] = _tool_parts(contract)
        return known


def _tool_parts(contract: Contract) -> _ToolParts:
    body: JsonObject = {"name": contract.name, "fingerprint": contract.fingerprint()}
    extra = {
        "namespace": contract.namespace,
        "effects": contract.effects,
        "risk": contract.risk_level,
        "version": contract.version,
    }
    body.update({name: value for name, value in extra.items() if value is not None})
    return _ToolParts(
        contract,
        contract.qualified_name,
        canonical_text(body),
        (contract.effects,) if contract.effects else (),
        Sensitivity.of(with_marks(contract.parameters, contract.sensitive_parameters)),
        Sensitivity.of(with_marks(contract.output_schema, contract.sensitive_results)),
    )


def _unknown_tool(call: Call) -> str:
    if call.namespace:
        return f'{{"name":{quoted_name(call.name)},"namespace":{quoted_name(call.namespace)}}}'
    return f'{{"name":{quoted_name(call.name)}}}'


def _origin(call: Call, state: RunState) -> str:
    if not isinstance(call.caller, Program):
        return '{"caller":"direct"}'
    text = '{"caller":"program"'
    if call.origin_line is not None:
        text += f',"line":{call.origin_line}'
    text += f',"program":{quoted_name(call.caller.caller_id)}'
    digest = state.programs.get(call.caller.caller_id)
    return f'{text},"program_digest":"{digest}"}}' if digest else text + "}"


def _left_out(reason: str, size: int) -> str:
    return f'{{"$redacted":"{reason}","bytes":{size}}}'


def _bounded_content(text: str) -> str:
    size = len(text.encode())
    return text if size <= MAX_CONTENT else _left_out("size", size)


_NEEDED: Final[dict[Exposure, Level]] = {
    "own": "metadata",
    "metadata": "metadata",
    "request": "request",
    "digest": "request",
    "full": "full",
    "proof": "full",
}
_NO_COLUMNS: Final = Columns(0, "")
_UNCHECKED: Final = ("caller_not_allowed", "program_not_open", "invalid_arguments")
"""Codes of refusals before arguments were found to fit: a secret one may stand under a misspelt name."""
