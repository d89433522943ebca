"""The publication contract: what consumers know of a tool, what is refused without it, and what no model sees."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptc
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.compare import compare
from ptc_tools.contract import Contract
from ptc_tools.export import read_declarations
from ptc_tools.registry_protocol import ServerItem
from ptc_tools.templates import Template
from tests.tools.catalog_support import RUN, Client, Yes, call_of, lookup, published, records

CARD = ptc.ServerData("card", "user", {"type": "object", "required": ["id"]}, "What the page shows.")
ASKED = ptc.Confirmation(
    "Move {{ amount | json }} from {{ source.name }}?", title="Transfer", denied="{{ source.name }} keeps it."
)
FULL = ptc.Publication(
    title="Move money",
    search_terms=("transfer", "wire"),
    fields={"/amount": ptc.FieldInfo("integer", "Amount", "In cents.")},
    required_labels=("team",),
    confirmation=ASKED,
    paging=ptc.Paging(cursor="cursor", next_cursor="next"),
    server_data=(CARD,),
)
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "description": "In cents."},
        "source": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "additionalProperties": False,
        },
        "cursor": {"type": "string"},
        "items": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
    },
    "required": ["amount"],
    "additionalProperties": False,
}
OUTPUT: JsonObject = {"type": "object", "properties": {"next": {"type": ["string", "null"]}}}


def contract(publication: ptc.Publication | None = FULL, **changes: object) -> Contract:
    values: dict[str, object] = {
        "name": "move",
        "namespace": "bank",
        "description": "Move money.",
        "parameters": PARAMETERS,
        "output_schema": OUTPUT,
        "strict": False,
        "effects": "read",
        "version": "1",
        "publication": publication,
    }
    return Contract(**{**values, **changes})  # type: ignore[arg-type]


def test_a_publication_crosses_json_unchanged() -> None:
    """Registries, lock files and fingerprints all use that form."""
    whole = contract()
    again = Contract.from_json(json.loads(json.dumps(whole.to_json())))
    assert again == whole
    assert again.publication == FULL
    assert again.fingerprint() == whole.fingerprint()


def test_old_fingerprints_stay() -> None:
    """A contract without a publication is written as before."""
    assert "publication" not in contract(None).to_json()
    assert contract(None).fingerprint() != contract().fingerprint()


def test_an_export_says_what_the_contract_says_already() -> None:
    """Field metadata comes from the schema's own words; nothing is made up."""

    @ptc.tool(effects="read")
    def get(order_id: str) -> str:
        """Get an order.

        Args:
            order_id: The order's number.
        """
        return order_id

    (declaration,) = ptc.Toolset("shop", [get]).export(version="2.0.0").declarations
    read = Contract.from_json(declaration)
    assert read.version == "2.0.0"
    assert read.publication is not None
    assert read.publication.kind == "service"
    assert read.publication.fields["/order_id"].description == "The order's number."


@pytest.mark.parametrize(
    "missing", ["publication", "effects", "output_schema", "version", "description", "allowed_callers"]
)
def test_schema_only_declarations_are_refused(missing: str) -> None:
    """What it does not say is not guessed."""
    declaration = dict(contract().to_json())
    del declaration[missing]
    with pytest.raises(ptc.RegistrationError):
        read_declarations("bank", [declaration])
    assert read_declarations("bank", [contract().to_json()]) == (contract(),)


def test_an_incomplete_tool_cannot_be_exported() -> None:
    """The provider hears of it, and no consumer has to."""

    @ptc.tool
    def undeclared(x: int) -> int:
        """Do something."""
        return x

    with pytest.raises(ptc.RegistrationError, match="effects"):
        ptc.Toolset("t", [undeclared]).export(version="1")
    with pytest.raises(ptc.InvalidPublication, match="version"):
        records().export(version="")


@pytest.mark.parametrize("kind", ["control", "workflow", "", None, 3])
def test_unsupported_kinds_are_refused(kind: object) -> None:
    """They would need something of the consumer that it does not have."""
    declaration = contract().to_json()
    declaration["publication"] = {**FULL.to_json(), "kind": kind}  # type: ignore[dict-item]
    with pytest.raises(ptc.InvalidPublication, match="kind"):
        read_declarations("bank", [declaration])


def test_an_agent_names_its_executor_and_configuration_and_nobody_else_does() -> None:
    """Half of a reference is none."""
    ptc.Publication(kind="agent", executor="writer", configuration="rev/1")
    for values in (
        {"kind": "agent"},
        {"kind": "agent", "executor": "writer"},
        {"executor": "writer", "configuration": "rev/1"},
    ):
        with pytest.raises(ptc.InvalidPublication):
            ptc.Publication(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"surprise": 1},
        {"search_terms": "transfer"},
        {"search_terms": [""]},
        {"search_terms": ["x"] * 65},
        {"required_labels": ["team", 3]},
        {"fields": {"amount": {}}},
        {"fields": {"/nothing": {}}},
        {"fields": {"/amount": {"colour": "red"}}},
        {"confirmation": {}},
        {"confirmation": {"prompt": ""}},
        {"confirmation": {"prompt": "{{ nothing }}"}},
        {"confirmation": {"prompt": "{{ source.nothing }}"}},
        {"confirmation": {"prompt": "{{ amount.nothing }}"}},
        {"confirmation": {"prompt": "ok", "denied": "{{ nothing }}"}},
        {"paging": {"cursor": "nothing", "next_cursor": "next"}},
        {"paging": {"cursor": "cursor", "next_cursor": "nothing"}},
        {"paging": {"cursor": "cursor"}},
        {"server_data": [{"kind": "card", "audience": "everybody", "schema": {}}]},
        {"server_data": [{"kind": "a card", "audience": "user", "schema": {}}]},
        {"server_data": [{"kind": "card", "audience": "user", "schema": {"type": "nothing"}}]},
        {"server_data": [{"kind": "card", "audience": "user", "schema": {}}] * 2},
        {"server_data": [{"kind": "card", "audience": "user"}]},
        {"title": 7},
        {"title": "x" * 4_001},
    ],
)
def test_a_publication_that_does_not_hold_together_is_refused(change: JsonObject) -> None:
    """Each for a reason that names the place."""
    declaration = contract().to_json()
    declaration["publication"] = {**FULL.to_json(), **change}
    with pytest.raises(ptc.RegistrationError):
        read_declarations("bank", [declaration])


def test_paging_by_a_tool_that_cannot_read_on_is_refused() -> None:
    """The partner is of the same toolset, and takes the cursor."""
    paging = ptc.Publication(paging=ptc.Paging("page", "next", continue_tool="more"))
    first = contract(paging).to_json()
    with pytest.raises(ptc.InvalidPublication, match="more"):
        read_declarations("bank", [first])
    wrong = contract(ptc.Publication(), name="more").to_json()
    with pytest.raises(ptc.InvalidPublication, match="'page'"):
        read_declarations("bank", [first, wrong])


def test_comparison_sees_who_runs_what_is_asked_and_what_is_given() -> None:
    """Words are documentation; the rest a pin does not cover."""
    assert compare(contract(None), contract(ptc.Publication())).covered
    titled = compare(contract(ptc.Publication()), contract(ptc.Publication(title="Move")))
    assert titled.verdict == "documentation"
    other = ptc.Publication(server_data=(CARD,))
    assert not compare(contract(ptc.Publication()), contract(other)).covered
    assert not compare(contract(), contract(ptc.Publication())).covered  # the question is gone


# Confirmation


def test_a_confirmation_needs_an_approval_for_every_call() -> None:
    """A question that nobody is asked would be none."""
    assert contract().approval == "always"
    assert contract(ptc.Publication()).approval == "never"


async def test_the_question_is_rendered_over_the_calls_json_keys() -> None:
    """Also for a tool that stands in no registry."""
    tool = ptc.Tool(contract(ptc.Publication(confirmation=ASKED)), lambda **arguments: {"next": None})
    approver = Yes()
    arguments: JsonObject = {"amount": 5, "source": {"name": "savings"}}
    outcome = await ptc.Invoker([tool], approver=approver).invoke(
        call_of("move", arguments, namespace="bank"), RUN
    )
    assert outcome == ptc.Success({"next": None})
    assert approver.asked == ["Transfer\nMove 5 from savings?"]


async def test_a_call_whose_question_cannot_be_asked_is_refused() -> None:
    """An optional key that is not there raises, and the call does not run."""
    ran: list[object] = []
    tool = ptc.Tool(contract(ptc.Publication(confirmation=ASKED)), lambda **arguments: ran.append(arguments))
    outcome = await ptc.Invoker([tool], approver=Yes()).invoke(
        call_of("move", {"amount": 5}, namespace="bank"), RUN
    )
    assert getattr(outcome, "code", None) == "not_approved"
    assert ran == []


async def test_the_denied_template_is_what_the_model_is_told() -> None:
    """In the tool's own words."""

    class No:
        async def approve(self, *_: object) -> ptc.Denied:
            return ptc.Denied("not_approved", "no")

    tool = ptc.Tool(contract(ptc.Publication(confirmation=ASKED)), lambda **arguments: {"next": None})
    arguments: JsonObject = {"amount": 5, "source": {"name": "savings"}}
    outcome = await ptc.Invoker([tool], approver=No()).invoke(
        call_of("move", arguments, namespace="bank"), RUN
    )
    assert outcome == ptc.Denied("not_approved", "savings keeps it.")


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("Delete {{ id }}?", {"id": "r1"}, "Delete r1?"),
        ("{{id}}{{ id }}", {"id": 7}, "77"),
        ("{{ a.b.c }}", {"a": {"b": {"c": True}}}, "true"),
        ("{{ list[1] }}", {"list": ["a", "b"]}, "b"),
        ('{{ a["odd key"][0].x }}', {"a": {"odd key": [{"x": 1.5}]}}, "1.5"),
        ('{{ a["say \\"hi\\" | now"] }}', {"a": {'say "hi" | now': "x"}}, "x"),
        ("{{ a }}", {"a": None}, "null"),
        ("{{ a }}", {"a": {"b": [1]}}, '{"b":[1]}'),
        ("{{ a | json }}", {"a": "text"}, '"text"'),
        ("{{ unit-price }}", {"unit-price": 3}, "3"),
        ("{{ größe }}", {"größe": 3}, "3"),
        ("no places", {}, "no places"),
    ],
)
def test_templates_address_json_keys_with_a_json_filter(
    template: str, arguments: Mapping[str, JsonValue], text: str
) -> None:
    """As JSON has them, not as a language's attributes."""
    assert Template(template).render(arguments) == text


@pytest.mark.parametrize(
    ("template", "arguments"),
    [
        ("{{ key }}", {}),
        ("{{ Key }}", {"key": 1}),
        ("{{ a.b }}", {"a": {}}),
        ("{{ a.b }}", {"a": "text"}),
        ("{{ a.b }}", {"a": [1]}),
        ("{{ a[1] }}", {"a": [1]}),
        ("{{ a[0] }}", {"a": "text"}),
        ("{{ a[0] }}", {"a": {"0": 1}}),
        ("{{ a.keys }}", {"a": {}}),
        ("{{ a.__class__ }}", {"a": {}}),
    ],
)
def test_an_unknown_key_raises(template: str, arguments: Mapping[str, JsonValue]) -> None:
    """A question with a hole in it is not asked, and nothing but JSON is reached."""
    with pytest.raises(ptc.UnknownKey) as raised:
        Template(template).render(arguments)
    assert raised.value.code == "unknown_key"
    assert "which the arguments of this call do not have" in str(raised.value)


@pytest.mark.parametrize(
    "template",
    [
        "",
        " ",
        "{{ }}",
        "{{ a",
        "a }}",
        "{{ a b }}",
        "{{ a | upper }}",
        "{{ .a }}",
        "{{ a..b }}",
        "{{ a[b] }}",
        "{{ [0] }}",
        "{{ a() }}",
        "{{ a | json(1) }}",
        "{{ {{ a }} }}",
        "{{ 1 }}",
        "x" * 4_001,
        "{{ a.[0] }}",
    ],
)
def test_text_that_is_no_template_is_refused_when_it_is_declared(template: str) -> None:
    """Not when somebody waits for the question."""
    with pytest.raises(ptc.InvalidPublication):
        Template(template)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_a_value_stays_on_its_line_and_inside_its_place(value: JsonValue) -> None:
    """A model's words cannot write a line of the question, nor turn its direction around."""
    text = Template("Ask {{ value }}.").render({"value": value})
    assert text.isprintable() or not any(
        ord(character) < 32 or character in "\u202e\u2028\x7f" for character in text
    )
    assert text.startswith("Ask ")
    assert text.endswith(".")
    assert len(text.splitlines()) == 1


def test_a_long_value_is_cut_and_says_so() -> None:
    """What was left out is not hidden."""
    assert Template("{{ a }}").render({"a": "x" * 3_000}) == "x" * 2_000 + "… (1000 more characters)"


# Server-only data


def giving(**attached: JsonValue) -> ptc.Toolset:
    @ptc.tool(effects="read", publication=ptc.Publication(server_data=(CARD,)))
    def show(context: ptc.ToolContext) -> str:
        """Show something."""
        for kind, data in attached.items():
            context.attach(kind, data)
        return "shown"

    return ptc.Toolset("t", [show])


async def shown(registry: ptc.RegistryClient, *, listen: bool = True) -> tuple[ptc.Outcome, list[ServerItem]]:
    """The outcome of a call, and what the application was given beside it."""
    got: list[ServerItem] = []
    registries = ptc.Registries()
    registries.register("company", registry, on_server_data=got.append if listen else None)
    step = await ptc.Sources([ptc.Registry("company")], registries=registries).read()
    return await ptc.Invoker(step.catalog).invoke(call_of("show", {}, namespace="t"), RUN), got


async def test_server_data_goes_to_the_application_and_never_to_the_model() -> None:
    """The outcome, which is what a model sees, has the value alone."""
    outcome, got = await shown(published(giving(card={"id": 7})))
    assert outcome == ptc.Success("shown")
    (item,) = got
    assert (item.kind, item.audience, item.data) == ("card", "user", {"id": 7})
    assert (item.registry, item.toolset, item.tool, item.run_id, item.call_id) == (
        "company",
        "t",
        "show",
        "run_1",
        "call_1",
    )


def test_declared_server_data_is_not_on_the_wire() -> None:
    """A model is not told that there is any."""
    (declaration,) = giving().export(version="1").declarations
    wire = json.dumps(Contract.from_json(declaration).wire())
    assert "card" not in wire
    assert "publication" not in wire


async def test_server_data_that_nobody_takes_is_dropped() -> None:
    """Without a trace in the outcome."""
    outcome, got = await shown(published(giving(card={"id": 7})), listen=False)
    assert (outcome, got) == (ptc.Success("shown"), [])


@pytest.mark.parametrize("attached", [{"other": {"id": 1}}, {"card": {"no": "id"}}, {"card": 7}])
async def test_a_provider_cannot_attach_what_its_tool_does_not_declare(attached: JsonObject) -> None:
    """The tool hears of it."""
    outcome, got = await shown(published(giving(**attached)))
    assert getattr(outcome, "code", None) == "tool_error"
    assert got == []


@pytest.mark.parametrize("pair", [("other", {"id": 1}), ("card", {"no": "id"})])
async def test_undeclared_server_data_of_a_registry_is_refused_here_too(pair: tuple[str, JsonValue]) -> None:
    """A provider's word about its own data is checked, and then none of it is handed on."""

    class Liar(Client):
        async def call_resolved(self, call):  # type: ignore[no-untyped-def]
            return ptc.CallResult("success", "shown", server_data=(("card", {"id": 1}), pair))

    outcome, got = await shown(Liar(published(giving())))
    assert getattr(outcome, "code", None) == "invalid_result"
    assert got == []


async def test_attach_outside_of_a_registry_is_dropped() -> None:
    """The same tool can be used where nobody takes such data."""
    (tool,) = giving(anything=1)
    outcome = await ptc.Invoker([tool]).invoke(call_of("show", {}, namespace="t"), RUN)
    assert outcome == ptc.Success("shown")
    assert lookup.contract.publication is None
