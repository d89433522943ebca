"""Sources and publications that are used wrongly: each is an error with words, at the place of the mistake."""

from __future__ import annotations

from typing import Any

import pytest

import ptc
from ptc_tools.registry_protocol import CallResult, ResolvedCall, ResolvedToolset, ToolsetInfo

LONE = "not\ud800sendable"


@ptc.tool(effects="read", publication=ptc.Publication())
def lookup(key: str) -> str:
    """Look one record up."""
    return f"record {key}"


class Client:
    """A client of somebody's own, with one answer."""

    def __init__(self, **changes: Any) -> None:
        declarations = ptc.Toolset("records", [lookup]).export(version="1").declarations
        given: dict[str, Any] = {"name": "records", "token": "t", "tools": declarations, "version": "1"}
        self.answer = ResolvedToolset(**{**given, **changes})

    async def list_toolsets(self) -> list[ToolsetInfo]:
        return [ToolsetInfo("records")]

    async def resolve_toolset(self, name: str, *, known: str | None = None) -> ResolvedToolset:
        return self.answer

    async def call_resolved(self, call: ResolvedCall) -> CallResult:
        raise AssertionError("nobody calls")


@pytest.mark.parametrize("client", [None, "http://registry", object(), ptc.LocalRegistry, Client])
def test_what_is_no_client_is_refused_where_it_is_registered(client: Any) -> None:
    """A run would find it out at its first step, far from the mistake."""
    with pytest.raises(ptc.InvalidSource, match="no client"):
        ptc.Registries().register("company", client)


@pytest.mark.parametrize("tools", [lookup, "lookup", None, 5])
def test_tools_that_are_no_list_are_refused(tools: Any) -> None:
    """One tool without its brackets is the commonest slip."""
    with pytest.raises(ptc.RegistrationError, match="list of tools"):
        ptc.Toolset("records", tools)


@pytest.mark.parametrize("said", [{"executor": "writer"}, {"configuration": "c-1"}])
@pytest.mark.parametrize("kind", ["service", "agent"])
def test_an_executor_and_its_configuration_go_with_agents_alone_and_together(
    said: dict[str, Any], kind: Any
) -> None:
    """A tool that runs at its provider has neither, and an agent both."""
    with pytest.raises(ptc.InvalidPublication, match="executor and configuration"):
        ptc.Publication(kind=kind, **said)


@pytest.mark.parametrize(
    "changes", [{"description": 5}, {"description": LONE}, {"version": 7}, {"version": LONE}]
)
async def test_what_a_client_says_of_a_toolset_is_text(changes: dict[str, Any]) -> None:
    """It would go on to the service, which refuses the whole request."""
    registries = ptc.Registries({"company": Client(**changes)})
    with pytest.raises(ptc.CatalogError, match="no text"):
        await ptc.Sources([ptc.Registry("company")], registries=registries).read()


async def test_a_choice_that_cannot_say_whether_a_saved_call_may_go_on_is_told_as_such() -> None:
    """The call is neither refused nor let through, and its run can be tried again."""

    class Choice:
        def resolve(self, catalog: ptc.SourceCatalog) -> None:
            catalog.include(ptc.Registry("company"))

        def allows(self, source: ptc.RegistryToolset) -> bool:
            raise OSError("the list of customers is away")

    sources = ptc.Sources([Choice()], registries=ptc.Registries({"company": Client()}))
    admission = (await sources.read()).admit(ptc.Call("call_1", "lookup", {"key": "1"}, namespace="records"))
    assert admission is not None
    saved = admission.to_json()
    assert saved is not None
    with pytest.raises(ptc.CatalogError, match=r"Choice could not say .*: the list of customers is away"):
        sources.restore(saved)


def test_texts_that_no_request_can_carry_are_refused_where_they_are_written() -> None:
    """A lone surrogate is no Unicode: JSON cannot say it."""

    def other(key: str) -> str:
        return key

    with pytest.raises(ptc.RegistrationError, match="surrogate"):
        ptc.tool(other, description=LONE)
    with pytest.raises(ptc.RegistrationError, match="surrogate"):
        ptc.Toolset("records", [lookup], description=LONE)
    with pytest.raises(ptc.InvalidPublication, match="surrogate"):
        ptc.Publication(title=LONE)
    with pytest.raises(ptc.InvalidPublication, match="list of words"):
        ptc.Publication(search_terms=(LONE,))


@pytest.mark.parametrize(
    ("written", "key"),
    [
        (r'"\u00e9t\u00e9"', "été"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"a\"b"', 'a"b'),
        (r'"a\\b"', "a\\b"),
        (r'"a\tb"', "a\tb"),
        ('"a|b"', "a|b"),
    ],
)
def test_a_quoted_key_of_a_template_is_read_as_json(written: str, key: str) -> None:
    """Templates address the keys that JSON has, so they are written as JSON writes them."""
    assert ptc.Confirmation(f"Take {{{{ of[{written}] }}}}?").ask({"of": {key: "it"}}) == "Take it?"


@pytest.mark.parametrize("written", [r'"\x41"', r'"\ud800"', r'"\u12"'])
def test_a_quoted_key_that_is_no_json_is_refused(written: str) -> None:
    """When the template is made, and not before somebody is asked."""
    with pytest.raises(ptc.InvalidPublication):
        ptc.Confirmation(f"Take {{{{ of[{written}] }}}}?")
