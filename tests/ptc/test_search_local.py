"""Programs that run here: a model searches and loads with a pair of tools before a program starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ptc
from ptc.testing import call, run_code, say, search
from tests.ptc.loop_fakes import FakeEndpoint
from tests.ptc.search_registry import DEFERRED, NEW, OLD, ORDERS, registry
from tests.ptc.search_support import RAN, RECORDS, SECRET_WORDS, gadget, outputs, peer_of

FIND = call("search_tools", query="look up a customer record")
LOAD = call("load", names=["records.lookup"])
CODE = run_code("await records_lookup(customer='p')")
KEY = b"the key of these paused runs"


def names(body: Any) -> list[str]:
    return [tool.get("name", tool["type"]) for tool in body["tools"]]


async def test_the_pair_takes_the_place_of_the_query_tool() -> None:
    """Nothing is asked of the service, so any model can do it; a program still sees no deferred name."""
    async with peer_of(say("done"), tool_search=False) as peer:
        await peer.runner(programs="local").run("go")
        (body,) = peer.bodies
    assert names(body) == ["weather", "run_program", "search_tools", "load"]
    assert [word for word in SECRET_WORDS if word in json.dumps(body)] == []


async def test_what_was_found_and_loaded_the_next_program_can_call() -> None:
    """Search gives names and first sentences; load gives the signature; the code tool stays as it was."""
    async with peer_of(FIND, LOAD, CODE, lambda request: say(request.program_result)) as peer:
        result = await peer.runner(programs="local").run("go")
        found, loaded, _ = outputs(peer.bodies[3])
    assert found["tools"][0] == {
        "name": "records.lookup",
        "description": "Look up a customer record by its identifier.",
    }
    (record,) = loaded["loaded"]
    assert record["name"] == "records.lookup"
    assert record["signature"].startswith("async def records_lookup(*, customer: str) -> str:")
    code_tools = [next(t for t in body["tools"] if t.get("name") == "run_program") for body in peer.bodies]
    assert code_tools[0] == code_tools[1] == code_tools[2] == code_tools[3]
    assert (result.output_text, RAN) == ("record of p", ["lookup"])


async def test_a_program_has_no_tool_that_was_not_loaded_and_cannot_search() -> None:
    """Neither by the tool's name nor by the pair's."""
    code = run_code(
        "[await f() for f in ()]\nprint('records_lookup' in globals())\nawait search_tools(query='x')"
    )
    async with peer_of(CODE, code, lambda request: say(" ".join(request.outputs))) as peer:
        result = await peer.runner(programs="local").run("go")
    assert "name 'records_lookup' is not defined" in result.output_text
    assert "search_tools" in result.output_text
    assert RAN == []


async def test_a_loaded_tool_is_called_directly_too_where_it_allows_that() -> None:
    """Its definition is in the next request, without the words that are for programs."""
    direct = call("lookup", customer="a", namespace="records")
    async with peer_of(direct, LOAD, direct, say("done")) as peer:
        await peer.runner(programs="local").run("go")
        refused, _, said = outputs(peer.bodies[-1])
    assert "search_tools, then load it" in refused["error"]["message"]
    assert names(peer.bodies[1]) == ["weather", "run_program", "search_tools", "load"]
    assert names(peer.bodies[2]) == ["weather", "records", "run_program", "search_tools", "load"]
    (space,) = [tool for tool in peer.bodies[2]["tools"] if tool["type"] == "namespace"]
    assert [set(tool) & {"defer_loading", "allowed_callers", "output_schema"} for tool in space["tools"]] == [
        set()
    ]
    assert (said, RAN) == ("record of a", ["lookup"])


async def test_names_are_loaded_as_they_were_found_or_as_programs_say_them() -> None:
    """What is not there is named as unknown; nothing is loaded twice."""
    load = call("load", names=["records_lookup", "records.lookup", "gadget", "nobody", "weather"])
    async with peer_of(load, say("done")) as peer:
        await peer.runner(programs="local").run("go")
        (said,) = outputs(peer.bodies[1])
    assert [record["name"] for record in said["loaded"]] == ["records.lookup", "gadget"]
    assert said["unknown"] == ["nobody", "weather"]
    assert "signature" not in said["loaded"][1], "it is for the model alone"


async def test_nothing_found_is_an_empty_list() -> None:
    """As over the wire."""
    async with peer_of(call("search_tools", query="zzyzx"), FIND, LOAD, CODE, say("done")) as peer:
        await peer.runner(programs="local").run("go")
        assert outputs(peer.bodies[1]) == [{"tools": []}]


async def test_the_pair_finds_and_loads_permitted_tools_alone() -> None:
    """A name that the policy hides is unknown, however it was come by."""

    class OnlyOrders:
        def permits(self, principal: Any, tool: ptc.Contract, labels: Any) -> bool:
            return tool.name == "orders"

        async def authorize(self, principal: Any, tool: ptc.Contract, arguments: Any, caller: Any) -> Any:
            return None

    load = call("load", names=["records.lookup", "records.orders"])
    async with peer_of(FIND, load, say("done")) as peer:
        await peer.runner(ptc.use(RECORDS).defer(), programs="local", policy=OnlyOrders()).run("go")
        found, loaded = outputs(peer.bodies[-1])
    assert [tool["name"] for tool in found["tools"]] == ["records.orders"]
    assert ([record["name"] for record in loaded["loaded"]], loaded["unknown"]) == (
        ["records.orders"],
        ["records.lookup"],
    )


async def test_rounds_of_the_pair_share_one_budget() -> None:
    """Searching and loading are rounds; a program begins the next invocation."""
    async with peer_of(FIND, LOAD, CODE, say("done")) as peer:
        await peer.runner(programs="local", max_output_tokens=1_000).run("go")
        allowed = [body["max_output_tokens"] for body in peer.bodies]
    assert allowed[0] == allowed[3] == 1_000
    assert 1_000 > allowed[1] > allowed[2]


async def test_what_was_loaded_survives_compaction_and_the_next_run() -> None:
    """The record is an output of `load` in the history."""
    parts = [FIND, LOAD, CODE, say("found"), CODE, say("done")]

    def one(request: Any) -> Any:
        part = parts.pop(0)
        return part(request) if callable(part) else part

    async with peer_of(then=one) as peer:
        runner = peer.runner(programs="local", compact=lambda items: ptc.trim(items, keep=1))
        first = await runner.run("go")
        second = await runner.run(first.to_input("again"))
    assert (second.output_text, RAN) == ("done", ["lookup", "lookup"])


async def test_what_was_found_over_the_wire_is_loaded_here_as_well() -> None:
    """A conversation may begin with programs of the service and go on with ours."""
    async with peer_of(
        search("customer record"), say("found"), CODE, lambda r: say(r.program_result)
    ) as peer:
        first = await peer.runner(programs="hosted").run("go")
        second = await peer.runner(programs="local").run(first.to_input("again"))
    assert (second.output_text, RAN) == ("record of p", ["lookup"])


async def test_a_tool_that_changed_has_to_be_loaded_again() -> None:
    """A program that was written for the old signature does not get the new tool under it."""
    with registry(OLD) as corp:

        def change(request: Any) -> Any:
            corp.offer(NEW)
            return say("later")

        new_code = run_code("await records_lookup(customer='p', number=2)")
        turns = [LOAD, change, CODE, LOAD, new_code, lambda request: say(request.program_result)]
        async with peer_of(*turns) as peer:
            runner = peer.runner(DEFERRED, programs="local")
            first = await runner.run("go")
            second = await runner.run(first.to_input("again"))
            told = outputs(peer.bodies[-1])
    assert "not defined" in json.dumps(told[1])
    assert second.output_text == "record 2 of p"
    assert RAN == ["lookup_by_number"]


async def test_a_program_that_waits_is_resumed_with_what_was_loaded(tmp_path: Path) -> None:
    """In another process, where the registry cannot be read: the journal's tools are kept with the state."""
    careful = ptc.tool(
        effects="read",
        approval="always",
        publication=OLD.contract.publication,
        name="lookup",
        allowed_callers=["programmatic"],
    )(OLD.function)
    with registry(careful, ORDERS) as corp:
        async with peer_of(LOAD, CODE, lambda request: say(request.program_result)) as peer:
            options: dict[str, Any] = {"approver": ptc.PauseForApproval(), "programs": "local"}
            paused = await peer.runner(DEFERRED, **options).run("go")
            assert paused.state is not None
            sealed = paused.state.seal(KEY)
            assert list(json.loads(sealed)["state"]["admitted"]) == ["records.lookup"], "and none that waits"
            reads = corp.reads
            state = ptc.RunState.unseal(sealed, KEY)
            decided = {paused.approvals[0].call_id: ptc.Approve()}
            result = await peer.runner(DEFERRED, **options).resume(state, decisions=decided)
            assert corp.reads == reads + 1, "for the next request"
    assert (result.output_text, RAN) == ("record of p", ["lookup"])


@pytest.mark.parametrize("name", ["search_tools", "load"])
@pytest.mark.parametrize("programs", ["local", "auto"])
def test_the_names_of_the_pair_are_taken(name: str, programs: Any) -> None:
    """Found at construction; in a namespace they are free."""

    def make(tool: Any) -> ptc.Runner:
        return ptc.Runner(
            client=FakeEndpoint(),
            model="m",
            tools=[tool, gadget],
            programs=programs,
            search="lexical",
            max_output_tokens=99,
        )

    with pytest.raises(ptc.ConfigurationError, match="rename the tool"):
        make(ptc.tool(lambda: None, name=name))
    make(ptc.tool(lambda: None, name=name, namespace="mine"))


async def test_a_deployment_without_programs_falls_back_to_the_pair() -> None:
    """`auto`: the first request offers the service's own, the next one ours."""
    turns = [LOAD, CODE, lambda request: say(request.program_result)]
    async with peer_of(*turns, programs=False) as peer:
        result = await peer.runner(programs="auto").run("go")
        offered = [names(body) for body in peer.bodies[:2]]
    assert offered == [
        ["weather", "tool_search", "programmatic_tool_calling"],
        ["weather", "run_program", "search_tools", "load"],
    ]
    assert (result.output_text, RAN) == ("record of p", ["lookup"])


async def test_a_search_over_the_wire_is_not_offered_where_programs_run_here() -> None:
    """One way to search is enough, and a script that takes the other one is told so."""
    async with peer_of(search("x")) as peer:
        with pytest.raises(ptc.RequestRejected, match="no 'tool_search' tool"):
            await peer.runner(programs="local").run("go")
