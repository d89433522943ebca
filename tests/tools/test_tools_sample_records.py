"""`samples/records`: a real toolset over SQLite that shows what contracts can say; it is tested as shown."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptc_sandbox import Sandbox
from ptc_tools import (
    Call,
    Catalog,
    Denied,
    Direct,
    Empty,
    Failure,
    Invoker,
    Lock,
    Outcome,
    Partial,
    Provenance,
    Recorder,
    RequireAuthority,
    RunContext,
    Success,
    Uncertain,
)
from ptc_tools.call import Caller
from ptc_tools.lint import lint
from ptc_tools.redacting import Redacting
from samples.records.store import Store
from samples.records.tools import records, toolset
from tests.tools.tool_support import PROGRAM, MemoryRecorder, run_with

ROOT = Path(__file__).parent.parent.parent
NAMES = ["Ada", "Bo", "Cy", "Di", "Ed", "Flo", "Gus"]
CHANGE = {"operation_id": "op_1", "customer_id": "c_002", "status": "blocked"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "records.db")
    store.create(
        "acme", [(f"c_{n:03}", name, f"{name.lower()}@example.org", None) for n, name in enumerate(NAMES, 1)]
    )
    return (yield store)


RUN = run_with("prog_1", principal="ada", tenant="acme")


async def ask(
    store: Store,
    name: str,
    arguments: object = None,
    *,
    run: RunContext = RUN,
    caller: Caller = Direct(),  # noqa: B008 - a frozen value
    recorder: Recorder | None = None,
    **options: object,
) -> Outcome:
    invoker = Invoker(toolset(store), recorder=recorder, **options)  # type: ignore[arg-type]
    return await invoker.invoke(Call("call_1", name, arguments, caller, "records"), run)  # type: ignore[arg-type]


async def test_a_search_is_continued_until_nothing_is_missing(store: Store) -> None:
    """Three at a time; each partial result holds the arguments that go on; nobody is seen twice or left out."""
    for caller in (Direct(), PROGRAM):
        arguments: object = {"text": ""}
        seen: list[str] = []
        while True:
            outcome = await ask(store, "search", arguments, caller=caller)
            assert isinstance(outcome, Success)
            page = outcome.value["value"] if isinstance(outcome, Partial) else outcome.value  # type: ignore[index, call-overload]
            assert len(page) <= 3  # type: ignore[arg-type]
            seen += [row["name"] for row in page]  # type: ignore[index, union-attr, call-overload, misc]
            if not isinstance(outcome, Partial):
                break
            arguments = outcome.continuation
        assert seen == NAMES


async def test_nothing_found_is_an_empty_result(store: Store) -> None:
    """Not an error, not a null, not a list that could have been cut."""
    assert isinstance(await ask(store, "search", {"text": "zzz"}), Empty)


async def test_a_section_that_is_down_is_unavailable_and_the_rest_is_there(store: Store) -> None:
    """The absent telephone number is null: there is none."""
    store.shipments_available = False
    outcome = await ask(store, "get", {"customer_id": "c_001"})
    assert isinstance(outcome, Success)
    value = outcome.value
    assert isinstance(value, dict)
    assert value["shipments"] == {
        "outcome": "unavailable",
        "reason": "the shipping system does not answer",
        "retry": True,
    }
    assert value["phone"] is None
    assert value["name"] == "Ada"


async def test_a_change_that_is_uncertain_is_found_out_and_not_made_twice(store: Store) -> None:
    """The connection breaks after the commit: the case for which operation ids are there."""
    store.cut_after_commit.append(True)
    uncertain = await ask(store, "set_status", CHANGE)
    assert isinstance(uncertain, Uncertain)
    read = uncertain.reconciliation
    assert read == {"tool": "records.find_operation", "arguments": {"operation_id": "op_1"}}
    found = await ask(store, "find_operation", read["arguments"])
    assert found == Success({"happened": True, "customer": "c_002", "status": "blocked"})
    assert await ask(store, "set_status", CHANGE) == Success(
        {"id": "c_002", "status": "blocked", "version": 2}
    )
    never = await ask(store, "find_operation", {"operation_id": "op_2"})
    assert never == Success({"happened": False, "customer": None, "status": None})


async def test_a_count_of_too_many_says_that_it_is_partial(store: Store) -> None:
    """A number that is short of five hundred customers looks like any other."""
    store.path.unlink()
    store.create("acme", [(f"x{n:04}", "X", "x@example.org", None) for n in range(1_500)])
    outcome = await ask(store, "count_by_status", {})
    assert isinstance(outcome, Partial)
    counted = outcome.value["value"]  # type: ignore[index, call-overload]
    assert sum(counted.values()) == 1_000  # type: ignore[union-attr, misc, arg-type]
    assert outcome.missing == ("customers after x0999",)


async def test_an_operation_id_belongs_to_one_change(store: Store) -> None:
    """Reused for something else it is refused, not taken for the first change."""
    assert isinstance(await ask(store, "set_status", CHANGE), Success)
    other = await ask(store, "set_status", {**CHANGE, "customer_id": "c_003"})
    assert isinstance(other, Failure)
    assert "another change" in other.message


async def test_the_tenant_comes_from_the_run_and_the_database_from_the_designer(store: Store) -> None:
    """No argument reaches another tenant's records or another file."""
    outcome = await ask(store, "get", {"customer_id": "c_001"}, run=run_with(tenant="other"))
    assert isinstance(outcome, Failure)
    assert "no customer has the id" in outcome.message
    assert isinstance(await ask(store, "get", {"customer_id": "c_001"}, run=run_with()), Failure)
    for extra in ("store", "tenant", "context"):
        assert isinstance(await ask(store, "get", {"customer_id": "c_001", extra: "x"}), Denied)
    wire = json.dumps(Catalog(toolset(store)).wire())
    assert str(store.path) not in wire
    assert "tenant" not in json.dumps([entry.contract.to_json()["parameters"] for entry in toolset(store)])


async def test_what_is_sensitive_reaches_the_caller_and_not_the_record(store: Store) -> None:
    """And the record knows where the value came from."""
    recorder = MemoryRecorder()
    outcome = await ask(store, "get", {"customer_id": "c_001"}, recorder=Redacting(recorder))
    assert isinstance(outcome, Success)
    assert outcome.value["email"] == "ada@example.org"  # type: ignore[index, call-overload]
    recorded = recorder.last
    assert isinstance(recorded, Success)
    assert recorded.value["email"] == "[redacted]"  # type: ignore[index, call-overload]
    assert isinstance(recorded.provenance, Provenance)
    assert recorded.provenance.classification == "confidential"


async def test_a_summary_comes_from_every_record_it_counts(store: Store) -> None:
    """Provenance survives the summary."""
    await ask(store, "set_status", CHANGE)
    outcome = await ask(store, "count_by_status")
    assert isinstance(outcome, Success)
    assert outcome.value == {"active": 6, "blocked": 1}
    assert outcome.provenance is not None
    assert len(outcome.provenance.sources) == 7


async def test_reading_is_not_writing(store: Store) -> None:
    """Authority is by tool, and a policy holds it against the principal."""
    policy = RequireAuthority({"ada": ["records:read"]})
    assert isinstance(await ask(store, "get", {"customer_id": "c_001"}, policy=policy), Success)
    refused = await ask(store, "set_status", CHANGE, policy=policy)
    assert isinstance(refused, Denied)
    assert refused.code == "not_authorized"


PROGRAM_TEXT = """
try:
    await records_set_status(operation_id="op_1", customer_id="c_002", status="blocked")
except ToolUncertain:
    found = await records_find_operation(operation_id="op_1")
try:
    await records_set_status(operation_id="op_1", customer_id="c_003", status="blocked")
except ToolError as refused:
    other = [type(refused).__name__, refused.code]
[found["happened"], other]
"""


async def test_a_program_can_tell_doubt_from_failure(store: Store) -> None:
    """By the type of the exception at its await."""
    store.cut_after_commit.append(True)
    async with Sandbox() as sandbox:
        result = await sandbox.run(PROGRAM_TEXT, tools=toolset(store), run=run_with(tenant="acme"))
    assert result.status == "completed", result.error
    assert result.value == [True, ["ToolError", "tool_error"]]


def test_its_contracts_have_no_findings_and_can_be_pinned(store: Store) -> None:
    """What the sample shows is what lint asks for."""
    contracts = [entry.contract for entry in toolset(store)]
    assert [str(finding) for finding in lint(contracts)] == []
    assert Lock.loads(Lock.of(contracts).dumps()).check(entry.contract for entry in records.tools) == []


def test_it_runs_as_shown() -> None:
    """The demonstration, its program in the sandbox included."""
    done = subprocess.run(
        [sys.executable, "-m", "samples.records"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for word in ("partial:", "empty:", "unavailable", "denied:", "uncertain:", '"happened":true', "Ed Adair"):
        assert word in done.stdout
    assert "completed:" in done.stdout
