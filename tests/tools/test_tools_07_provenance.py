"""Point 7: where a value came from and how confidential it is travels with it, to the record and no further."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ptc_tools import (
    Failure,
    InvalidSignature,
    Provenance,
    Sensitive,
    Source,
    Success,
    Traced,
    define_tool,
    flatten,
    join,
    summarise,
    tool,
)
from ptc_tools.markers import redact
from ptc_tools.provenance import LEVELS, NOTHING
from tests.tools.tool_support import MemoryRecorder, invoke

CRM, ERP = Source("crm", "42"), Source("erp", "7", "v3")

SOURCES = st.builds(Source, st.sampled_from(["crm", "erp", "web"]), st.sampled_from(["1", "2"]))
PROVENANCES = st.builds(Provenance, st.lists(SOURCES, max_size=3).map(tuple), st.sampled_from(LEVELS))


@given(PROVENANCES, PROVENANCES, PROVENANCES)
def test_combining_does_not_depend_on_order_and_never_loses(
    a: Provenance, b: Provenance, c: Provenance
) -> None:
    """However a value was put together, all its sources are known and its level is the highest."""
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)
    assert a | NOTHING == a | a == a
    assert set(a.sources) <= set((a | b).sources)
    assert LEVELS.index((a | b).classification) >= LEVELS.index(a.classification)


def test_it_travels_through_summarise_join_and_flatten() -> None:
    """Also from what the new value no longer shows."""
    people = [
        Traced.of({"id": 1, "name": "Ada"}, CRM),
        Traced.of({"id": 2, "name": "Bo"}, Source("crm", "43")),
    ]
    pay = [Traced.of({"id": 1, "pay": 10}, ERP, classification="restricted")]
    total = summarise(pay, lambda rows: sum(row["pay"] for row in rows))
    assert total == Traced(10, Provenance((ERP,), "restricted"))
    joined = join(
        people,
        pay,
        left_key=lambda p: p["id"],
        right_key=lambda p: p["id"],
        function=lambda p, q: (p["name"], q["pay"]),
    )
    assert joined.value == [("Ada", 10)]
    assert joined.provenance == Provenance((CRM, Source("crm", "43"), ERP), "restricted")
    flat = flatten([Traced.of([1, 2], CRM, classification="public"), Traced.of([3], ERP)])
    assert flat == Traced([1, 2, 3], Provenance((CRM, ERP), "internal"))
    assert flat.map(len) == Traced(3, flat.provenance)


class Report(BaseModel):
    total: int


@tool
async def report(n: int) -> Traced[Report]:
    """A report."""
    return Traced.of(Report(total=n), CRM, ERP, classification="confidential")


async def test_a_tool_returns_it_beside_its_value_and_the_record_has_it() -> None:
    """The model sees the value alone; schema and wire know nothing of the trace."""
    recorder = MemoryRecorder()
    outcome = await invoke(report, {"n": 3}, recorder=recorder)
    assert isinstance(outcome, Success)
    assert outcome.value == {"total": 3}
    assert recorder.last.provenance == Provenance((CRM, ERP), "confidential")  # type: ignore[attr-defined]
    assert recorder.last.provenance.to_json() == {  # type: ignore[attr-defined]
        "classification": "confidential",
        "sources": [
            {"system": "crm", "record": "42", "version": ""},
            {"system": "erp", "record": "7", "version": "v3"},
        ],
    }
    assert "crm" not in str(report.contract.wire())
    assert report.contract.output_schema == {
        "type": "object",
        "properties": {"total": {"type": "integer"}},
        "required": ["total"],
        "additionalProperties": False,
    }


async def test_a_raw_tool_may_return_it_too() -> None:
    """The trace is taken off any value."""
    raw = define_tool({"name": "raw", "parameters": {"type": "object"}}, lambda: Traced.of([1], CRM))
    outcome = await invoke(raw)
    assert isinstance(outcome, Success)
    assert outcome.value == [1]
    assert outcome.provenance == Provenance((CRM,), "internal")


@pytest.mark.parametrize("annotation", [list[Traced[int]], dict[str, Traced[int]], Traced[int] | None])
def test_traced_parts_are_refused_since_their_trace_would_be_sent(annotation: Any) -> None:
    """A model must not be told record numbers because somebody forgot to flatten."""

    async def parts(n: int):  # type: ignore[no-untyped-def]
        return []

    parts.__annotations__["return"] = annotation
    with pytest.raises(InvalidSignature, match="Traced"):
        tool(parts)


def test_a_classification_is_one_of_four() -> None:
    """A level that nobody ranks would be lost in combining."""
    with pytest.raises(ValueError):
        Provenance((), "secret")  # type: ignore[arg-type]


class Person(BaseModel):
    name: str
    iban: Annotated[str | None, Sensitive]
    cards: list[Annotated[str, Sensitive]]
    boss: "Person | None" = None


@tool
async def store(person: Person, pin: Annotated[str, Sensitive], note: str) -> Person:
    """Store a person."""
    if note == "fail":
        raise ValueError(f"pin {pin} is wrong for {person.iban}")
    return person


PERSON = {"name": "Ada", "iban": "DE99-1234", "cards": ["4111-1", "4111-2"], "boss": None}
ARGUMENTS = {"person": PERSON, "pin": "9876-pin", "note": "x"}
HIDDEN = ("DE99-1234", "4111-1", "4111-2", "9876-pin")


class TestSensitive:
    def test_the_mark_is_in_the_contract_and_not_on_the_wire(self) -> None:
        """The API would refuse a keyword that it does not know."""
        contract = store.contract
        assert "/pin" in contract.sensitive_parameters
        assert "/person/iban" in contract.sensitive_parameters
        assert "/person/cards/*" in contract.sensitive_parameters
        assert "/iban" in contract.sensitive_results
        assert "x-sensitive" not in str(contract.wire())
        assert "x-sensitive" not in str(contract.to_json()["parameters"])

    async def test_its_values_reach_the_tool_and_the_caller_but_no_redacted_record(self) -> None:
        """Arguments as text, arguments as a value, and the result."""
        for arguments in (ARGUMENTS, __import__("json").dumps(ARGUMENTS)):
            recorder = MemoryRecorder()
            outcome = await invoke(store, arguments, recorder=recorder, redacting=True)
            assert isinstance(outcome, Success)
            assert outcome.value == PERSON
            recorded = repr((recorder.records, recorder.calls, recorder.arguments))
            assert not [text for text in HIDDEN if text in recorded]
            assert "Ada" in recorded
            assert "[redacted]" in recorded

    @pytest.mark.parametrize(
        "arguments",
        [
            '{"person": 1, "pin": "9876-pin", "note": "x"}',
            '{"person": {"iban": "DE99-1234"}, "pin": ["9876-pin"]}',
            '{"pin": "9876-pin", "pin": "9876-pin"}',
            '{"pin": "9876-pin"',
        ],
    )
    async def test_a_refused_call_is_recorded_without_them(self, arguments: str) -> None:
        """Malformed text is not kept at all: nobody can say where in it the value is."""
        recorder = MemoryRecorder()
        outcome = await invoke(store, arguments, recorder=recorder, redacting=True)
        assert not [text for text in HIDDEN if text in repr((recorder.records, recorder.calls, outcome))]

    async def test_an_error_does_not_repeat_them(self) -> None:
        """A tool's own message often quotes what it was given."""
        outcome = await invoke(store, {**ARGUMENTS, "note": "fail"})
        assert "ValueError (details are withheld" in outcome.message  # type: ignore[union-attr]
        assert outcome.details is None  # type: ignore[union-attr]
        assert not [text for text in HIDDEN if text in outcome.message]  # type: ignore[union-attr]


async def test_a_raw_definition_may_mark_its_values_itself() -> None:
    """The mark stays on the wire, which goes unchanged, and counts like one of a type."""
    definition = {
        "name": "raw",
        "parameters": {"type": "object", "properties": {"pin": {"type": "string", "x-sensitive": True}}},
        "output_schema": {"type": "array", "items": {"type": "string", "x-sensitive": True}},
    }
    raw = define_tool(definition, lambda pin: [pin])  # type: ignore[arg-type]
    assert raw.contract.sensitive_parameters == ("/pin",)
    assert raw.contract.sensitive_results == ("/*",)
    recorder = MemoryRecorder()
    assert await invoke(raw, {"pin": "9876-pin"}, recorder=recorder, redacting=True) == Success(["9876-pin"])
    assert "9876" not in repr((recorder.records, recorder.calls, recorder.arguments))


def test_redaction_keeps_shape_and_nulls() -> None:
    """An auditor sees that a value was there, or that there was none."""
    value = {"a": {"x": 1}, "rows": [{"i": "1"}, {"i": None}, {"j": 2}], "k/l": "s"}
    assert redact(value, ("/rows/*/i", "/k~1l", "/missing/deep")) == {  # type: ignore[arg-type]
        "a": {"x": 1},
        "rows": [{"i": "[redacted]"}, {"i": None}, {"j": 2}],
        "k/l": "[redacted]",
    }


async def test_a_model_that_holds_itself_is_redacted_to_any_depth() -> None:
    """A tree has no last level at which redaction may stop."""
    deep: dict[str, object] = {**PERSON, "iban": "DEEP-0"}
    for level in range(1, 6):
        deep = {**PERSON, "iban": f"DEEP-{level}", "boss": deep}
    recorder = MemoryRecorder()
    outcome = await invoke(store, {**ARGUMENTS, "person": deep}, recorder=recorder, redacting=True)
    assert isinstance(outcome, Success)
    assert outcome.value == deep
    recorded = repr((recorder.records, recorder.calls, recorder.arguments))
    assert "DEEP" not in recorded
    assert "4111" not in recorded
    assert recorded.count("Ada") == 3 * 6


@pytest.mark.parametrize("annotation", [Any, dict[str, Any], list[Any] | dict[str, Any]])
async def test_a_traced_part_of_anything_is_not_sent(annotation: Any) -> None:
    """Its origins are for the record alone, and nobody would look for them there."""

    async def look(n: int):  # type: ignore[no-untyped-def]
        return {"a": Traced.of(n, Source("crm", "origin-canary"))}

    look.__annotations__["return"] = annotation
    outcome = await invoke(tool(look, effects="read", strict=False), {"n": 1})
    assert isinstance(outcome, Failure)
    assert "return one Traced value" in outcome.message
    assert "canary" not in outcome.message
