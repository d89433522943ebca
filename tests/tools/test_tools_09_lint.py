"""Point 9: lint finds what makes a tool hard to choose, easy to stretch or unsafe to repeat."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from ptc.cli.tools import app
from ptc_tools import (
    Bounds,
    Contract,
    Idempotency,
    JsonValue,
    Reconciliation,
    Tool,
    ToolContext,
    define_tool,
    tool,
)
from ptc_tools.lint import lint
from ptc_tools.lint_words import alike

Short = Annotated[str, Field(max_length=20, description="A short text.")]


@tool(effects="read", bounds=Bounds(text=100, items=10))
async def find_ticket(ticket_id: Short) -> str:
    """Find one ticket by its id. Returns its title."""
    return ticket_id


@tool(
    effects="write",
    commitment="closes one ticket",
    idempotency=Idempotency("protocol"),
    bounds=Bounds(text=100),
    allowed_callers=["programmatic"],
)
async def close_ticket(ticket_id: Short, ctx: ToolContext) -> Literal["closed"]:
    """Close a ticket for good. Nothing else is changed."""
    return "closed"


GOOD = [find_ticket.contract, close_ticket.contract]


def rules(*contracts: Contract) -> set[str]:
    return {finding.rule for finding in lint(contracts)}


def test_good_tools_have_no_findings() -> None:
    """Advice that always comes is not read."""
    assert lint(GOOD) == []


def test_a_universal_tool() -> None:
    """Object type, operation and free fields: one tool that does anything to anything."""
    schema = {
        "type": "object",
        "properties": {
            "object_type": {"type": "string"},
            "operation": {"type": "string"},
            "fields": {"type": "object"},
        },
    }
    assert "universal-tool" in rules(Contract(name="crm", parameters=schema, strict=False))  # type: ignore[arg-type]
    closed = {"type": "object", "properties": {"operation": {"enum": ["a"]}}, "additionalProperties": False}
    assert "universal-tool" not in rules(Contract(name="crm", parameters=closed, strict=False))  # type: ignore[arg-type]


class Pair(BaseModel):
    key: Short
    value: Short


def in_disguise() -> list[Tool[..., object]]:
    @tool
    async def pairs(entity: Short, do: Short, fields: list[Pair]) -> int:
        return 1

    @tool
    async def text(objectType: Short, operation: Short, payload_json: Short) -> int:
        return 1

    @tool(strict=False)
    async def inside(table: Short, action: Short, rows: list[dict[str, int]]) -> int:
        return 1

    return [pairs, text, inside]


@pytest.mark.parametrize("disguised", in_disguise())
def test_a_universal_tool_in_disguise(disguised: Tool[..., object]) -> None:
    """Strict mode takes no free object, so the free fields come as a list of pairs, or as text."""
    assert "universal-tool" in rules(disguised.contract)


def test_a_tool_with_a_kind_and_an_action_and_no_free_fields_is_none() -> None:
    """What it may do is listed."""

    @tool
    async def vote(kind: Literal["post", "comment"], action: Literal["up", "down"], id: Short) -> int:
        return 1

    assert "universal-tool" not in rules(vote.contract)


def test_a_mapping_of_any_number_of_keys_is_unbounded() -> None:
    """It is a list by another name."""

    def taking(annotation: Any) -> Contract:
        async def take(counts: Any) -> int:
            return 1

        take.__annotations__["counts"] = annotation
        return tool(take, strict=False).contract

    found = {(finding.rule, finding.path) for finding in lint([taking(dict[str, int])])}
    assert ("unbounded-mapping", "$.parameters.counts") in found
    assert "unbounded-mapping" not in rules(taking(Annotated[dict[str, int], Field(max_length=9)]))


def test_fields_inside_a_parameter_are_described_too() -> None:
    """A model fills them in as well; a described class describes what has its type."""

    class Inner(BaseModel):
        """Where it is."""

        street: str
        city: str = Field(description="The city.")

    @tool
    async def send(to: Inner) -> int:
        return 1

    paths = {f.path for f in lint([send.contract]) if f.rule == "parameter-without-description"}
    assert paths == {"$.parameters.$defs.Inner.street"}


def test_two_tools_of_the_same_few_words_are_near_duplicates() -> None:
    """The shortest descriptions are the hardest to tell apart."""

    def described(name: str, words: str) -> Contract:
        return Contract(name=name, description=words, parameters={"type": "object"}, strict=False)

    assert "near-duplicate" in rules(described("a", "Search customers."), described("b", "Search customer."))
    assert "near-duplicate" not in rules(
        described("a", "Search customers."), described("b", "Search orders.")
    )
    assert "near-duplicate" not in rules(described("a", ""), described("b", ""))


@pytest.mark.parametrize(
    ("name", "description", "found"),
    [
        ("close", "Closes the ticket and sends a mail to the customer.", True),
        ("close", "Create the invoice, then charge the card.", True),
        ("close_and_notify", "Close a ticket.", True),
        ("close", "Close a ticket. Searches and bounds do not matter.", False),
        ("close", "Update the name and address of a customer.", False),
        ("close", "Create or replace one entry.", False),
        ("close", "Cancelling the order, refunding the customer.", True),
        ("close", "This tool atomically archives and then deletes one ticket.", True),
        ("close", "Deletes and archives.", True),
        ("close", "Adds a book to the order list and set of posts.", False),
        ("close", "Writes one address and email of a customer.", False),
        ("close", "Sets the open and close times.", False),
        ("close", "Creates orders and posts.", False),
    ],
)
def test_two_commitments(name: str, description: str, found: bool) -> None:
    """If the second fails, the first has happened."""
    contract = Contract(
        name=name, description=description, parameters={"type": "object"}, strict=False, effects="write"
    )
    assert ("two-commitments" in rules(contract)) is found


def test_unbounded_text_and_lists_in_parameters_and_results() -> None:
    """Each is named by its path."""

    @tool
    async def look(
        text: str, tags: list[Short], day: Annotated[str, Field(pattern="^[0-9-]{10}$")]
    ) -> list[str]:
        return []

    found = {(finding.rule, finding.path) for finding in lint([look.contract])}
    assert {
        ("unbounded-text", "$.parameters.text"),
        ("unbounded-list", "$.parameters.tags"),
        ("unbounded-list", "$.output_schema"),
        ("unbounded-text", "$.output_schema[*]"),
    } <= found
    assert ("unbounded-text", "$.parameters.day") not in found


def test_a_mutation_without_idempotency_or_reconciliation() -> None:
    """Nobody could tell whether it happened."""

    def change(**options: Any) -> Contract:
        async def update(n: int) -> int:
            return n

        return tool(update, effects="write", **options).contract

    assert {"mutation-without-recourse", "mutation-without-commitment"} <= rules(change())
    assert "mutation-without-recourse" not in rules(change(idempotency=Idempotency("service")))
    assert "mutation-without-recourse" not in rules(change(reconciliation=Reconciliation("find")))
    assert "reconciliation-missing" in rules(change(reconciliation=Reconciliation("find")))
    assert "mutation-without-commitment" not in rules(change(commitment="sets n"))


def test_a_programmatic_tool_without_output_schema() -> None:
    """A program is written before the result is seen."""

    def raw(**definition: Any) -> Contract:
        return define_tool(
            {"name": "raw", "parameters": {"type": "object"}, **definition}, lambda: 1
        ).contract

    assert "programmatic-without-output-schema" in rules(raw(allowed_callers=["programmatic"]))
    assert "programmatic-without-output-schema" in rules(
        raw(allowed_callers=["programmatic"], output_schema={})
    )
    assert "programmatic-without-output-schema" not in rules(raw())
    typed = raw(allowed_callers=["programmatic"], output_schema={"type": "integer"})
    assert "programmatic-without-output-schema" not in rules(typed)


def test_near_duplicate_descriptions() -> None:
    """Tools that are hard to tell apart; both are named."""

    def described(name: str, description: str) -> Contract:
        return Contract(name=name, description=description, parameters={"type": "object"}, strict=False)

    findings = lint(
        [
            described("a", "Search the customer orders by date and status."),
            described("b", "Searches customer order by status and the date."),
            described("c", "Cancel one shipment that has not left the warehouse."),
        ]
    )
    (found,) = [finding for finding in findings if finding.rule == "near-duplicate"]
    assert found.tool == "b"
    assert "like a" in found.message


def test_descriptions_that_are_missing() -> None:
    """Of the tool and of each parameter; a default alone describes nothing."""

    @tool
    async def look(a: int, b: int = 3) -> int:
        return a

    found = {(finding.rule, finding.path) for finding in lint([look.contract])}
    assert ("tool-without-description", "$.description") in found
    assert ("parameter-without-description", "$.parameters.a") in found
    assert ("parameter-without-description", "$.parameters.b") in found
    assert ("undeclared-effects", "$.effects") in found


def test_each_finding_says_why_and_shows_a_fix() -> None:
    """A rule without a reason is not followed."""

    @tool
    async def look(a: str) -> list[str]:
        return []

    for finding in lint([look.contract]):
        assert finding.why
        assert finding.fix
        assert set(finding.to_json()) == {"rule", "tool", "path", "message", "why", "fix"}


def test_many_tools_of_one_kind_are_no_duplicates() -> None:
    """Common words make nothing alike."""
    contracts = [
        Contract(
            name=f"t{n}",
            description=f"Looks at w{n} x{n % 100} y{n} z{n}.",
            parameters={"type": "object"},
            strict=False,
        )
        for n in range(1_000)
    ]
    assert "near-duplicate" not in rules(*contracts)


MODULE = '''
from typing import Annotated
from pydantic import Field
from typer.testing import CliRunner
from ptc_tools import Catalog, tool

@tool(effects="read", timeout={timeout})
async def look(n: Annotated[int, Field(description="How many.")]) -> int:
    """Look at it for a while."""
    return n

@tool
async def bad(text: str) -> str:
    return text

GOOD = [look]
BAD = Catalog([bad])
'''


class TestCommandLine:
    @pytest.fixture
    def ptc(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        """The sub-command in this process, in a folder with two versions of one module of tools."""
        for version, timeout in (("one", 1), ("two", 20)):
            (tmp_path / f"mytools_{version}.py").write_text(MODULE.format(timeout=timeout))
            monkeypatch.delitem(sys.modules, f"mytools_{version}", raising=False)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        runner = CliRunner()
        return lambda *arguments: runner.invoke(app, list(arguments))

    def test_lint_exits_by_what_it_found(self, ptc: Any) -> None:
        """0 for CI to go on, 1 for findings, 2 for a command that could not be carried out."""
        good, bad, wrong = (ptc("lint", f"mytools_one:{name}") for name in ("GOOD", "BAD", "NO"))
        assert (good.exit_code, bad.exit_code, wrong.exit_code) == (0, 1, 2), good.output
        assert "unbounded-text" in bad.stdout
        assert "fix:" in bad.stdout
        assert "NO" in wrong.stderr
        findings = json.loads(ptc("lint", "--json", "mytools_one:BAD").stdout)["findings"]
        assert {"rule", "tool", "path", "message", "why", "fix"} == set(findings[0])
        assert json.loads(ptc("lint", "--json", "mytools_one:GOOD").stdout) == {"findings": []}

    def test_lock_then_check_then_a_tool_that_grew(self, ptc: Any, tmp_path: Path) -> None:
        """The pin holds until somebody accepts the tool by name."""
        assert ptc("check", "mytools_one:GOOD").exit_code == 2
        assert ptc("lock", "mytools_one:GOOD").exit_code == 0
        assert ptc("check", "mytools_one:GOOD").exit_code == 0
        locked = (tmp_path / "tools.lock").read_text()
        check = ptc("check", "mytools_two:GOOD")
        assert check.exit_code == 1
        assert "$.timeout: 1 → 20 (wider)" in check.stdout
        report = json.loads(ptc("check", "--json", "mytools_two:GOOD").stdout)
        assert report["ok"] is False
        assert report["changes"][0]["state"] == "wider"
        assert ptc("lock", "mytools_two:GOOD").exit_code == 1
        assert (tmp_path / "tools.lock").read_text() == locked
        assert ptc("lock", "--accept", "look", "mytools_two:GOOD").exit_code == 0
        assert ptc("check", "mytools_two:GOOD").exit_code == 0

    def test_it_is_mounted_in_the_command(self, tmp_path: Path) -> None:
        """`ptc tools` as it is typed."""
        done = subprocess.run(
            [sys.executable, "-c", "from ptc.cli import main; main()", "tools", "--help"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert all(command in done.stdout for command in ("lint", "lock", "check"))


WORDS = st.sampled_from(
    ["find", "order", "customer", "invoice", "date", "status", "open", "closed", "list", "ship", "send"]
)


@given(st.lists(st.lists(WORDS, min_size=3, max_size=8).map(" ".join), max_size=12))
def test_near_duplicates_are_those_that_trying_all_pairs_finds(descriptions: list[str]) -> None:
    """The short cut through rare words leaves nothing out."""
    contracts = [
        Contract(name=f"t{n}", description=text, parameters={"type": "object"}, strict=False)
        for n, text in enumerate(descriptions)
    ]
    families = alike(descriptions)
    bags = [{word.removesuffix("s") for word in text.split()} for text in descriptions]

    def are_alike(n: int, m: int) -> bool:
        if min(len(bags[n]), len(bags[m])) < 3:
            return bags[n] == bags[m]
        return len(bags[n] & bags[m]) / len(bags[n] | bags[m]) >= 0.8

    later = {n for n in range(len(bags)) if any(are_alike(n, m) for m in range(n))}
    assert sorted(n for _, others in families for n in others) == sorted(later)
    for first, others in families:
        assert first not in later
        family = [first, *others]
        assert all(any(are_alike(n, m) for m in family if m < n) for n in others)
    assert len([f for f in lint(contracts) if f.rule == "near-duplicate"]) == len(families)


def test_a_family_of_tools_is_one_finding() -> None:
    """A finding for each pair of a thousand tools would be half a million."""
    sentence = "Read the current temperature value measured by the outdoor sensor number {} of our building"
    contracts = [
        Contract(name=f"t{n}", description=sentence.format(n), parameters={"type": "object"}, strict=False)
        for n in range(1_000)
    ]
    (found,) = [finding for finding in lint(contracts) if finding.rule == "near-duplicate"]
    assert found.tool == "t0"
    assert found.message == "999 other tools are described almost like it: t1, t2, t3, t4, t5, …"


class Request(BaseModel):
    object_type: Annotated[str, Field(max_length=20, description="Which.")]
    operation: Annotated[str, Field(max_length=20, description="What to do.")]
    payload: Annotated[str, Field(max_length=500, description="The fields, as JSON.")]


async def test_a_universal_tool_is_one_inside_a_parameter_too() -> None:
    """One object around everything bounds nothing."""

    @tool(effects="write", commitment="handles one request", idempotency=Idempotency("service"))
    async def crud(request: Annotated[Request, Field(description="The request.")]) -> bool:
        """Handle a request."""
        return True

    assert "universal-tool" in rules(crud.contract)


@pytest.mark.parametrize(
    ("commitment", "description", "found"),
    [
        ("sets one status", "Creates the ticket and sends an email.", True),
        ("sets one status", "Reserve stock and charge the card.", True),
        ("creates an order and sends a mail", "Order it.", True),
        ("sets one status", "Sets the status of one ticket and returns it.", False),
    ],
)
def test_a_short_commitment_hides_no_second_one(commitment: str, description: str, found: bool) -> None:
    """Who approves reads the one, and the model the other."""
    contract = Contract(
        name="t",
        description=description,
        commitment=commitment,
        effects="write",
        parameters={"type": "object"},
        strict=False,
    )
    assert ("two-commitments" in rules(contract)) is found


def test_any_json_at_all_is_unbounded() -> None:
    """No bound of a kind holds where no kind is said."""

    @tool(effects="read", strict=False)
    async def blob(payload: Annotated[JsonValue, Field(description="x")]) -> JsonValue:
        """Take it."""
        return payload

    places = [f.path for f in lint([blob.contract]) if f.rule == "unbounded-value"]
    assert places == ["$.parameters.payload", "$.output_schema"]


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ({"type": "object", "additionalProperties": True}, True),
        ({"type": "object", "additionalProperties": {}, "description": "A result."}, True),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, False),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, False),
    ],
)
def test_an_output_schema_that_admits_any_object_says_nothing(output: dict[str, Any], found: bool) -> None:
    """A program cannot be written against it, whatever its words are."""
    contract = Contract(
        name="t",
        parameters={"type": "object"},
        strict=False,
        allowed_callers=("programmatic",),
        output_schema=output,
    )
    assert ("programmatic-without-output-schema" in rules(contract)) is found


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (".*", True),
        ("^.+$", True),
        (r"^[\s\S]*$", True),
        (r"[\s\S]*", True),
        ("^a", True),
        ("a$", True),
        ("^(ab)+$", True),
        ("^[a-z]{3,}$", True),
        ("^[a-z]{3}$", False),
        (r"^[*+]\+\d{1,4}$", False),
    ],
)
def test_a_pattern_that_any_text_fits_is_no_bound(pattern: str, found: bool) -> None:
    """It would hide that the text is unbounded."""
    text: dict[str, Any] = {"type": "string", "pattern": pattern}
    contract = Contract(name="t", parameters={"type": "object", "properties": {"q": text}}, strict=False)
    assert ("unbounded-text" in rules(contract)) is found


def test_near_duplicates_are_found_in_every_script() -> None:
    """Words are not written in Latin letters alone."""
    first, second = (
        Contract(
            name=name, description="Поиск клиентов по имени", parameters={"type": "object"}, strict=False
        )
        for name in ("a", "b")
    )
    assert "near-duplicate" in rules(first, second)
