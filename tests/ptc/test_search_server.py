"""Tool search that the service executes: what it is told, what it finds, and what holds here all the same."""

from __future__ import annotations

from typing import Any

import pytest

import ptc
from ptc.testing import call, program, say, search
from tests.ptc.loop_fakes import FakeEndpoint, answer, function_call
from tests.ptc.search_registry import DEFERRED, NEW, OLD, registry
from tests.ptc.search_support import RAN, RECORDS, TOOLS, found_in, of_type, outputs, peer_of, weather

SEARCH = search("customer", finds=["records.lookup"])
CALL = call("lookup", customer="a", namespace="records")


def deferred(body: Any) -> list[str]:
    """Names of the tools that a request says are deferred."""
    found = []
    for tool in body["tools"]:
        for one in tool["tools"] if tool["type"] == "namespace" else [tool]:
            if one.get("defer_loading"):
                found.append(one["name"])
    return found


async def test_the_service_is_told_all_and_which_of_it_is_deferred() -> None:
    """It searches what the request has; nothing is asked of us."""
    async with peer_of(SEARCH, CALL, say("done")) as peer:
        result = await peer.runner(search="server").run("go")
        first, second = peer.bodies
    assert [tool["type"] for tool in first["tools"]] == ["function", "function", "namespace", "tool_search"]
    assert first["tools"][-1] == {"type": "tool_search"}
    assert deferred(first) == ["gadget", "lookup", "orders", "purge"]
    asked, found = of_type(second, "tool_search_call")[0], of_type(second, "tool_search_output")[0]
    assert (asked["call_id"], found["call_id"], found_in(found)) == (None, None, ["records.lookup"])
    assert (result.output_text, result.requests, RAN) == ("done", 2, ["lookup"])
    assert [report.call.name for report in result.calls] == ["lookup"]


async def test_what_the_service_did_not_load_is_not_run() -> None:
    """Whoever executes the search, the rule holds here."""
    async with peer_of(SEARCH, call("purge", namespace="records"), say("done")) as peer:
        await peer.runner(search="server").run("go")
        (said,) = outputs(peer.bodies[1])
    assert "search first" in said["error"]["message"]
    assert RAN == []


async def test_a_hosted_program_calls_what_the_service_loaded() -> None:
    """In one response: search, program, call."""
    code = "await records_lookup(customer='p')"
    async with peer_of(SEARCH, program(code), lambda request: say(request.program_result)) as peer:
        result = await peer.runner(search="server", programs="hosted").run("go")
    assert (result.requests, RAN) == (2, ["lookup"])
    assert "record of p" in result.output_text


async def test_a_forced_choice_makes_that_tool_eager_there_too() -> None:
    """The service could not be made to call what it has not loaded."""
    choice: Any = {"type": "function", "name": "gadget"}
    async with peer_of(call("gadget", size=1), say("done")) as peer:
        await peer.runner(search="server", tool_choice=choice).run("go")
        assert [deferred(body) for body in peer.bodies] == [["lookup", "orders", "purge"]] * 2
    assert RAN == ["gadget"]


async def test_a_definition_that_changed_is_left_out_of_what_the_service_had_found() -> None:
    """Today's definition stands among the tools; the old one is not told beside it."""
    with registry(OLD) as corp:

        def change(request: Any) -> Any:
            corp.offer(NEW)
            return say("later")

        again = [SEARCH, call("lookup", customer="a", number=2, namespace="records")]
        async with peer_of(SEARCH, change, CALL, *again, say("done")) as peer:
            first = await peer.runner(DEFERRED, search="server").run("go")
            await peer.runner(DEFERRED, search="server").run(first.to_input("again"))
            bodies = peer.bodies
    assert of_type(bodies[1], "tool_search_output")[0]["tools"] == []
    refused, said = outputs(bodies[-1])
    assert "has changed" in refused["error"]["message"]
    assert (said, RAN) == ("record 2 of a", ["lookup_by_number"])


async def test_a_service_may_write_definitions_in_a_form_of_its_own() -> None:
    """What it adds to a schema is no change of the tool."""
    own_form = {
        "type": "function",
        "name": "gadget",
        "description": "Measure a seldom used gadget.",
        "strict": True,
        "output_schema": None,
        "parameters": {
            "type": "object",
            "title": "gadget",
            "properties": {"size": {"type": "integer", "title": "S"}},
        },
    }
    call_id: Any = None
    found = {
        "type": "tool_search_output",
        "id": "tso",
        "call_id": call_id,
        "execution": "server",
        "status": "completed",
        "tools": [own_form],
    }
    asked = {**found, "type": "tool_search_call", "id": "tsc", "arguments": {}}
    del asked["tools"]
    called = function_call("gadget", "c1", {"size": 2}, namespace="gadget")
    endpoint = FakeEndpoint([asked, found, called], [answer()])
    RAN.clear()
    await ptc.Runner(client=endpoint, model="m", tools=TOOLS, search="server", max_output_tokens=999).run(
        "go"
    )
    assert RAN == ["gadget"]
    assert found in endpoint.inputs[1]


async def test_only_permitted_tools_are_told() -> None:
    """The policy filters before the service sees anything."""

    class NoPurge:
        def permits(self, principal: Any, tool: ptc.Contract, labels: Any) -> bool:
            return tool.name != "purge"

        async def authorize(self, principal: Any, tool: ptc.Contract, arguments: Any, caller: Any) -> Any:
            return None

    async with peer_of(say("done")) as peer:
        await peer.runner(search="server", policy=NoPurge()).run("go")
        assert deferred(peer.bodies[0]) == ["gadget", "lookup", "orders"]


async def test_where_nothing_is_deferred_no_search_is_offered() -> None:
    """A service refuses a search of nothing."""
    async with peer_of(say("done")) as peer:
        await peer.runner(weather, search="server").run("go")
        assert [tool["type"] for tool in peer.bodies[0]["tools"]] == ["function"]


@pytest.mark.parametrize("programs", ["local", "auto"])
def test_programs_that_run_here_need_a_search_that_runs_here(programs: Any) -> None:
    """What the service loads is in its context, not in our sandbox."""
    with pytest.raises(ptc.ConfigurationError, match='search="lexical"'):
        ptc.Runner(
            client=FakeEndpoint(),
            model="m",
            tools=TOOLS,
            programs=programs,
            search="server",
            max_output_tokens=99,
        )


async def test_a_deployment_without_tool_search_is_an_error_here_too() -> None:
    """All definitions stand in the request, and still they are not sent without `defer_loading`."""
    async with peer_of(say("done"), tool_search=False) as peer:
        with pytest.raises(ptc.ToolSearchUnsupported):
            await peer.runner(ptc.use(RECORDS).defer(), search="server").run("go")
        assert len(peer.bodies) == 1
