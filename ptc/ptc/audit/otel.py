"""Projects what is recorded to OpenTelemetry: a span for each program and, under it, one for each call.

Spans are sampled and may be lost, so they are never the audit record: a `TracedRecorder` stands around one
and adds nothing to when a call may run. Content goes into spans only where the application asks for it.
Needs `opentelemetry-api`: the extra `otel`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol

from ptc.audit import genai
from ptc.audit.errors import InvalidAuditConfig
from ptc.audit.keys import Keyring
from ptc.audit.redact import Redaction, Redactor, hides
from ptc.audit.sensitive import NOTHING, Sensitivity
from ptc_tools.call import Call, JsonObject, JsonValue, Program
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.markers import with_marks
from ptc_tools.outcome import Denied, Outcome, Success
from ptc_tools.record import Recorder

MAX_OPEN: Final = 10_000
MAX_CONTENT: Final = 8_192


class Span(Protocol):
    """What is used of an OpenTelemetry span."""

    def set_attribute(self, key: str, value: Any) -> None: ...

    def set_status(self, status: Any, description: str | None = None) -> None: ...

    def end(self, end_time: int | None = None) -> None: ...


class Tracer(Protocol):
    """What is used of an OpenTelemetry tracer."""

    def start_span(self, name: str, context: Any = None, *, attributes: Any = None) -> Any: ...


@dataclass(slots=True)
class _Token:
    inner: object
    span: Span
    contract: Contract


class TracedRecorder:
    """A recorder that makes spans and passes everything on to another recorder, first.

        runner = ptc.Runner(..., audit=TracedRecorder(log))

    `content=True` puts arguments, results and program text into spans, with marks in the place of what
    contracts mark as sensitive and of what `redact` finds, as in the log at its level `full`; digests in these
    marks fit one another within one recorder alone. A run store's `also` is passed on. Raises
    InvalidAuditConfig where `opentelemetry-api` is not installed.
    """

    def __init__(
        self,
        recorder: Recorder | None = None,
        *,
        tracer: Tracer | None = None,
        content: bool = False,
        redact: Redaction | None = None,
    ) -> None:
        try:
            self._trace = import_module("opentelemetry.trace")
        except ModuleNotFoundError:
            raise InvalidAuditConfig("spans need OpenTelemetry: pip install 'ptc-runner[otel]'") from None
        self._recorder = recorder
        self._tracer: Tracer = tracer or self._trace.get_tracer("ptc")
        self._content = content
        self._redactor = Redactor(redact or Redaction(), Keyring.generate().active("digest"))
        self._marks: dict[int, tuple[Contract, Sensitivity, Sensitivity]] = {}
        self._programs: OrderedDict[tuple[str, str], Span] = OrderedDict()
        self._calls: OrderedDict[tuple[str, str], Span] = OrderedDict()

    @property
    def can_hold_runs(self) -> bool:
        """Whether the recorder behind this one takes a run store's statements with its records."""
        return bool(getattr(self._recorder, "can_hold_runs", False))

    async def started(
        self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext, **also: Any
    ) -> object:
        """The record first: a span never stands for a call that was not recorded."""
        inner = None
        if self._recorder is not None:
            inner = await self._recorder.started(call, contract, arguments, run, **also)
        span = self._call_span(call, run, call.qualified_name)
        if self._content:
            span.set_attribute(genai.TOOL_ARGUMENTS, self._text(arguments, self._marked(contract)[1]))
        _keep(self._calls, (run.run_id, call.call_id), span)
        return _Token(inner, span, contract)

    async def finished(self, token: object, outcome: Outcome, duration_us: int, **also: Any) -> None:
        assert isinstance(token, _Token)
        try:
            if self._recorder is not None:
                await self._recorder.finished(token.inner, outcome, duration_us, **also)
        finally:
            self._end(token.span, outcome, token.contract)

    async def denied(self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext) -> None:
        if self._recorder is not None:
            await self._recorder.denied(call, contract, outcome, run)
        name = call.qualified_name
        if contract is None and hides(name):  # the model made it up, and put a secret into it
            name = "$redacted"
        self._end(self._call_span(call, run, name), outcome, contract)

    async def event(self, type: str, data: JsonObject, run: RunContext, **also: Any) -> None:
        if self._recorder is not None:
            await self._recorder.event(type, data, run, **also)
        key = (run.run_id, str(data.get("call_id")))
        if type == "program.started":
            _keep(self._programs, key, self._program_span(data, run))
        elif type == "program.finished":
            span = self._programs.pop(key, None)
            if span is not None:
                span.set_attribute(genai.PROGRAM_STATUS, str(data.get("status")))
                if data.get("status") != "completed":
                    span.set_status(self._error(), str(data.get("status")))
                span.end()

    def _program_span(self, data: JsonObject, run: RunContext) -> Span:
        call_id = str(data.get("call_id"))
        attributes = {
            genai.OPERATION: genai.EXECUTE_PROGRAM,
            genai.PROGRAM_ID: call_id,
            genai.PROGRAM_LANGUAGE: str(data.get("language", "")),
            genai.PROGRAM_WHERE: str(data.get("where", "")),
            genai.CONVERSATION_ID: run.run_id,
        }
        if self._content:
            attributes[genai.PROGRAM_CODE] = self._text(data.get("code"), NOTHING)
        parent = self._calls.get((run.run_id, call_id))  # the code tool's call, where it was one
        return self._start(genai.EXECUTE_PROGRAM, parent, attributes)

    def _call_span(self, call: Call, run: RunContext, name: str) -> Span:
        name = name[:256]
        attributes: dict[str, Any] = {
            genai.OPERATION: genai.EXECUTE_TOOL,
            genai.TOOL_NAME: name,
            genai.TOOL_TYPE: "function",
            genai.TOOL_CALL_ID: call.call_id[:256],
            genai.CONVERSATION_ID: run.run_id,
            genai.CALLER: "program" if isinstance(call.caller, Program) else "direct",
        }
        if call.origin_line is not None:
            attributes[genai.LINE] = call.origin_line
        parent = None
        if isinstance(call.caller, Program):
            parent = self._programs.get((run.run_id, call.caller.caller_id))
        return self._start(f"{genai.EXECUTE_TOOL} {name}", parent, attributes)

    def _start(self, name: str, parent: Span | None, attributes: dict[str, Any]) -> Span:
        context = self._trace.set_span_in_context(parent) if parent is not None else None
        span: Span = self._tracer.start_span(name, context, attributes=attributes)
        return span

    def _end(self, span: Span, outcome: Outcome, contract: Contract | None) -> None:
        if isinstance(outcome, Success):
            if self._content:
                marked = NOTHING if contract is None else self._marked(contract)[2]
                span.set_attribute(genai.TOOL_RESULT, self._text(outcome.value, marked))
        else:
            span.set_attribute(genai.ERROR_TYPE, outcome.code)
            span.set_status(self._error(), outcome.status)
        span.end()

    def _marked(self, contract: Contract) -> tuple[Contract, Sensitivity, Sensitivity]:
        """The contract, and what it marks as sensitive in arguments and in results."""
        known = self._marks.get(id(contract))
        if known is None or known[0] is not contract:
            if len(self._marks) > MAX_OPEN:
                self._marks.clear()
            known = self._marks[id(contract)] = (
                contract,
                Sensitivity.of(with_marks(contract.parameters, contract.sensitive_parameters)),
                Sensitivity.of(with_marks(contract.output_schema, contract.sensitive_results)),
            )
        return known

    def _text(self, value: JsonValue, marked: Sensitivity) -> str:
        try:
            shown = self._redactor.shown(value, marked)
            return (shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False))[:MAX_CONTENT]
        except (TypeError, ValueError):
            return ""

    def _error(self) -> Any:
        return self._trace.StatusCode.ERROR


def _keep(spans: OrderedDict[tuple[str, str], Span], key: tuple[str, str], span: Span) -> None:
    spans[key] = span
    if len(spans) > MAX_OPEN:
        spans.popitem(last=False)
