"""Spans: a program's span is the parent of its calls', names are the conventions', content is opt-in."""

import sqlite3
import sys
import types
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ptc.audit.errors import AuditUnavailable, InvalidAuditConfig
from ptc.audit.otel import TracedRecorder
from ptc_tools.outcome import Denied, Failure, Success
from tests.ptc.audit_support import INVENTORY, RUN, call, contract, open_log, read


class FakeSpan:
    """A span that remembers. It has what the API's spans have and nothing else that we use."""

    def __init__(self, name: str, parent: "FakeSpan | None", attributes: dict[str, Any]) -> None:
        self.name, self.parent, self.attributes = name, parent, dict(attributes)
        self.status: tuple[Any, Any] | None = None
        self.ended = False

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = (status, description)

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class FakeTracer:
    def __init__(self) -> None:
        self.spans: list[FakeSpan] = []

    def start_span(self, name: str, context: Any = None, *, attributes: Any = None) -> FakeSpan:
        self.spans.append(FakeSpan(name, context, attributes))
        return self.spans[-1]


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> FakeTracer:
    """The API's two functions that are used, where the real one is not installed."""
    try:
        module = import_module("opentelemetry.trace")
    except ModuleNotFoundError:
        module = types.ModuleType("opentelemetry.trace")
        module.StatusCode = types.SimpleNamespace(ERROR="ERROR")  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "opentelemetry", types.ModuleType("opentelemetry"))
        monkeypatch.setitem(sys.modules, "opentelemetry.trace", module)
    monkeypatch.setattr(module, "set_span_in_context", lambda span: span, raising=False)
    return FakeTracer()


async def record_all(recorder: TracedRecorder) -> None:
    await recorder.event(
        "program.started", {"call_id": "prog_1", "code": "secret code", "language": "python"}, RUN
    )
    token = await recorder.started(call(1, origin_line=3), INVENTORY, {"sku": "secret sku"}, RUN)
    await recorder.finished(token, Success({"v": "secret result"}), 5)
    token = await recorder.started(call(2), INVENTORY, {"sku": "b"}, RUN)
    await recorder.finished(token, Failure("timeout", "secret message"), 5)
    await recorder.denied(call(3, "rm", None), None, Denied("unknown_tool", "secret message"), RUN)
    await recorder.event("program.finished", {"call_id": "prog_1", "status": "completed"}, RUN)


async def test_a_program_is_the_parent_of_its_calls(tracer: FakeTracer) -> None:
    await record_all(TracedRecorder(tracer=tracer))
    program, first, second, denied = tracer.spans
    assert [span.name for span in tracer.spans] == [
        "execute_program",
        "execute_tool get_inventory",
        "execute_tool get_inventory",
        "execute_tool rm",
    ]
    assert (first.parent, second.parent, denied.parent) == (program, program, None)
    assert all(span.ended for span in tracer.spans)
    assert first.attributes["gen_ai.operation.name"] == "execute_tool"
    assert first.attributes["gen_ai.tool.call.id"] == "call_1"
    assert first.attributes["ptc.program.line"] == 3
    assert (second.attributes["error.type"], second.status and second.status[1]) == ("timeout", "failure")
    assert denied.attributes["error.type"] == "unknown_tool"


@pytest.mark.parametrize("content", [False, True])
async def test_content_goes_into_spans_only_when_asked(tracer: FakeTracer, content: bool) -> None:
    """Telemetry is read by more people than an audit log; messages are never in it."""
    await record_all(TracedRecorder(tracer=tracer, content=content))
    told = repr([span.attributes for span in tracer.spans])
    for secret in ("secret code", "secret sku", "secret result"):
        assert (secret in told) == content
    assert "secret message" not in told


async def test_the_record_comes_first_and_stays_in_charge(tracer: FakeTracer, tmp_path: Any) -> None:
    """A call that could not be recorded has no span, and its refusal goes through."""
    with open_log(tmp_path / "a.jsonl") as log:
        recorder = TracedRecorder(log, tracer=tracer)
        await record_all(recorder)
    assert [r["type"] for r in read(tmp_path / "a.jsonl")].count("tool.finished") == 2
    before = len(tracer.spans)
    with pytest.raises(Exception, match="closed") as refused:
        await recorder.started(call(9), INVENTORY, {"sku": "a"}, RUN)
    assert not isinstance(refused.value, AuditUnavailable)
    assert len(tracer.spans) == before


def test_without_opentelemetry_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(InvalidAuditConfig, match=r"ptc-runner.otel"):
        TracedRecorder()


async def test_a_run_stores_statements_reach_the_log_behind_the_spans(
    tracer: FakeTracer, tmp_path: Path
) -> None:
    """A run and its records are one transaction, whether or not somebody traces it."""
    path = tmp_path / "a.db"
    async with open_log(path) as log:
        recorder = TracedRecorder(log, tracer=tracer)
        assert recorder.can_hold_runs
        also = (("CREATE TABLE runs (run TEXT)", ()),)
        token = await recorder.started(call(1), INVENTORY, {"sku": "a"}, RUN, also=also)
        await recorder.finished(token, Success(1), 5, also=(("INSERT INTO runs VALUES ('x')", ()),))
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT run FROM runs").fetchall() == [("x",)]


async def test_a_secret_in_a_tool_name_that_a_model_made_up_is_in_no_span(tracer: FakeTracer) -> None:
    """The log redacts it, and telemetry is read by more people than the log."""
    secret = "sk-proj-" + "a1B2" * 8
    recorder = TracedRecorder(tracer=tracer)
    refusal = Denied("unknown_tool", "no")
    await recorder.denied(call(1, f"send_{secret}"), None, refusal, RUN)
    await recorder.denied(call(2, "send", namespace=secret), None, refusal, RUN)
    await recorder.denied(call(3, "remove"), None, refusal, RUN)
    assert [span.name for span in tracer.spans] == ["execute_tool $redacted"] * 2 + ["execute_tool remove"]
    assert not any(secret in str(span.attributes) for span in tracer.spans)


async def test_what_is_sensitive_is_in_no_span_also_where_content_is_wanted(tracer: FakeTracer) -> None:
    """Telemetry goes further than any log: what a contract marks, or a detector finds, must not go with it."""
    recorder = TracedRecorder(tracer=tracer, content=True)
    schema = {"type": "object", "properties": {"id": {"type": "string", "x-sensitive": True}}}
    login = contract("login", secret=True, strict=False, output_schema=schema)
    token = await recorder.started(call(1, "login"), login, {"sku": "canary-argument"}, RUN)
    value: Any = {"id": "canary-result", "note": "of ada@example.org", "password": "canary-name", "units": 3}
    await recorder.finished(token, Success(value), 5)
    data: Any = {"call_id": "prog_1", "code": "login(sku='AKIAIOSFODNN7EXAMPLE')"}
    await recorder.event("program.started", data, RUN)
    said = repr([span.attributes for span in tracer.spans])
    assert not [word for word in ("canary", "example.org", "AKIA") if word in said]
    assert '"units": 3' in said
