"""The runner reads its sources before each request: once, whole, filtered by policy, and for the last one not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptc
from ptc.testing import call, program, run_code, say, search
from ptc_tools.publication import Publication
from tests.ptc.loop_fakes import FakeEndpoint
from tests.ptc.search_registry import CORP, DEFERRED, OLD, ORDERS, published, registry
from tests.ptc.search_support import RAN, RECORDS, found_in, lookup, of_type, outputs, peer_of, weather

CALL = call("lookup", customer="a", namespace="records")


def doing(act: Any, part: Any) -> Any:
    """A turn during which something happens elsewhere."""

    def turn(request: Any) -> Any:
        act()
        return part

    return turn


def sent(body: Any) -> list[str]:
    """Qualified names of the functions that a request offers from the start."""
    return found_in({"tools": [tool for tool in body["tools"] if tool["type"] in ("namespace", "function")]})


async def test_each_request_reads_the_sources_once_and_the_last_answer_reads_none() -> None:
    """A search round is a request like any other; a final answer has no use for tools."""
    limits = ptc.Limits(max_requests=3, final_answer=True)
    ending: Any = lambda request: say("done") if request.tool_choice == "none" else CALL  # noqa: E731
    with registry(OLD) as corp:
        async with peer_of(search("customer"), CALL, then=ending) as peer:
            result = await peer.runner(DEFERRED, limits=limits).run("go")
            assert (len(peer.bodies), result.limit) == (4, "max_requests")
        assert corp.reads == 3


async def test_the_run_sees_a_change_at_its_next_request() -> None:
    """Eager tools come and go with their registration, and the request says so."""
    with registry(OLD) as corp:
        grow, shrink = doing(lambda: corp.offer(OLD, ORDERS), CALL), doing(lambda: corp.offer(ORDERS), CALL)
        async with peer_of(grow, shrink, CALL, say("done")) as peer:
            await peer.runner(CORP, search=None).run("go")
            offered = [sent(body) for body in peer.bodies]
            said = outputs(peer.bodies[-1])
    assert offered == [
        ["records.lookup"],
        ["records.lookup", "records.orders"],
        ["records.orders"],
        ["records.orders"],
    ]
    assert [one["error"]["type"] for one in said] == [
        "call_not_admitted",
        "call_not_admitted",
        "unknown_tool",
    ]
    assert RAN == []


@pytest.mark.parametrize("deferred", [True, False])
async def test_a_registry_may_be_empty_and_a_named_toolset_may_not(deferred: bool) -> None:
    """The whole registry is optional; what is named is needed, and its lack is an error before the request."""
    named: Any = ptc.use(ptc.Toolset.from_registry(CORP, "records"))
    with registry():
        async with peer_of(say("done")) as peer:
            whole = DEFERRED if deferred else CORP
            assert (await peer.runner(whole).run("go")).output_text == "done"
            with pytest.raises(ptc.SourceMissing, match="records"):
                await peer.runner(named.defer() if deferred else named).run("go")
            assert len(peer.bodies) == 1


async def test_a_read_that_fails_makes_no_request() -> None:
    """Never a part of a catalog, nor the last one in its place."""
    with registry(OLD) as corp:

        def fail() -> None:
            corp.fails = True

        async with peer_of(doing(fail, CALL), say("done")) as peer:
            with pytest.raises(ptc.SourceUnreadable):
                await peer.runner(CORP, search=None).run("go")
            assert len(peer.bodies) == 1
    assert RAN == ["lookup"], "what was accepted before ran"


async def test_one_name_from_two_sources_is_an_error_at_the_step_that_meets_it() -> None:
    """Whether both are registered, or one is the run's own."""
    own = ptc.tool(namespace="records", name="lookup")(lookup.function)
    with registry(OLD):
        async with peer_of(say("done")) as peer:
            with pytest.raises(ptc.DuplicateTool, match=r"records\.lookup"):
                await peer.runner(CORP, own).run("go")
            with pytest.raises(ptc.DuplicateIdentity, match=r"records\.lookup"):
                await peer.runner(CORP, ptc.use(RECORDS)).run("go")
            assert peer.bodies == []


@pytest.mark.filterwarnings("ignore::ptc.ExperimentalWarning")
async def test_a_running_tool_can_add_none_under_a_name_of_a_source() -> None:
    """Refused where it is tried, and not at the next request."""
    own = ptc.tool(namespace="records", name="lookup")(lookup.function)

    @ptc.tool
    def grow(context: ptc.ToolContext) -> str:
        """Add a tool."""
        context.add_tools(own)
        return "added"

    with registry(OLD):
        async with peer_of(call("grow"), say("done")) as peer:
            await peer.runner(CORP, grow).run("go")
            (said,) = outputs(peer.bodies[-1])
    assert "another tool is called 'records.lookup'" in said["error"]["message"]


async def test_a_policy_filters_what_is_offered_for_the_runs_principal_and_labels() -> None:
    """Toolsets, registries and single tools alike."""

    class ByLabel:
        def permits(self, principal: str | None, tool: ptc.Contract, labels: Any) -> bool:
            return tool.name in labels.get("may", "").split() and principal == "ann"

        async def authorize(self, principal: Any, tool: ptc.Contract, arguments: Any, caller: Any) -> Any:
            return None

    with registry(OLD, ORDERS):
        async with peer_of(say("done")) as peer:
            runner = peer.runner(CORP, weather, search=None, policy=ByLabel())
            await runner.run("go", labels={"may": "lookup"}, principal="ann")
            await runner.run("go", labels={"may": "orders weather"}, principal="ann")
            await runner.run("go", labels={"may": "orders weather"}, principal="bob")
            assert [sent(body) if "tools" in body else [] for body in peer.bodies] == [
                ["records.lookup"],
                ["weather", "records.orders"],
                [],
            ]


async def test_a_tool_that_needs_a_label_is_for_runs_that_have_it() -> None:
    """Required labels hold for single tools as for published ones."""
    needs = ptc.tool(effects="read", publication=Publication(required_labels=("tenant",)))(weather.function)
    async with peer_of(say("done")) as peer:
        runner = peer.runner(needs, search=None)
        await runner.run("go", labels={"tenant": "t1"})
        await runner.run("go")
        assert ["tools" in body for body in peer.bodies] == [True, False]


async def test_sources_that_an_application_chooses_by_labels_are_read_for_each_request() -> None:
    """`RegistryTools.resolve` sees a copy of the run's labels."""

    class Choice:
        def __init__(self) -> None:
            self.seen: list[dict[str, str]] = []

        def resolve(self, catalog: Any) -> None:
            self.seen.append(catalog.labels)
            catalog.labels["team"] = "changed"
            if catalog.labels["team"] == "sales":
                catalog.include(DEFERRED)

        def allows(self, source: Any) -> bool:
            return True

    choice = Choice()
    with registry(OLD):
        async with peer_of(search("customer"), say("done")) as peer:
            await peer.runner(choice).run("go", labels={"team": "sales"})
            await peer.runner(choice).run("go", labels={"team": "other"})
            found = [of_type(body, "tool_search_output") for body in peer.bodies]
    assert found_in(found[1][0]) == ["records.lookup"]
    assert found[3][0]["tools"] == []
    assert choice.seen == [{"team": "sales"}] * 2 + [{"team": "other"}] * 2


async def test_an_open_program_keeps_its_tools_on_the_wire_when_a_source_drops_them() -> None:
    """Rule 11 holds whoever takes the tool away; its call is refused, and later requests are without it."""
    code = "[await records_lookup(customer='a'), await records_orders(customer='b')]"
    with registry(OLD, ORDERS) as corp:

        async def drop(invocation: Any, next: Any) -> Any:
            outcome = await next(invocation)
            corp.offer(OLD)
            return outcome

        async with peer_of(program(code), lambda r: say(r.program_result), say("bye")) as peer:
            runner = peer.runner(CORP, search=None, programs="hosted", middleware=[drop])
            first = await runner.run("go")
            await runner.run(first.to_input("and?"))
            offered = [sent(body) for body in peer.bodies]
    assert json.loads(first.output_text)[1]["error"]["type"] == "unknown_tool"
    both = ["records.lookup", "records.orders"]
    assert [sorted(names) for names in offered] == [both, both, both, ["records.lookup"]]


async def test_toolsets_of_a_registry_serve_programs_that_run_here() -> None:
    """Eager ones are in the code tool's description, and are called like any other."""
    turns = [run_code("await records_lookup(customer='p')"), lambda request: say(request.program_result)]
    with registry(OLD):
        async with peer_of(*turns) as peer:
            result = await peer.runner(CORP, search=None, programs="local").run("go")
    assert (result.output_text, RAN) == ("record of p", ["lookup"])


async def test_a_run_that_goes_on_takes_no_other_sources() -> None:
    """It has its runner's."""
    runner = ptc.Runner(client=FakeEndpoint(), model="m", tools=[weather], approver=ptc.PauseForApproval())
    state = ptc.RunState(
        run_id="r",
        model="m",
        mode="stateless",
        programs=None,
        history=(),
        pending=(),
        answers={},
        approvals=(),
        journals={},
        contracts={},
        offered=(),
        hosted_tool=False,
        forced_choice=False,
        spent={},
    )
    with pytest.raises(ptc.ConfigurationError, match="runner's sources"):
        await runner.resume(state, decisions={}, tools=[ptc.use(RECORDS)])


# --- many runs at once -------------------------------------------------------------------------------------

NAMES = [f"part_{number}" for number in range(6)]


def part(name: str) -> Any:
    def give() -> str:
        """Give a part of the machine."""
        return name

    return published(give, name=name)


class PerPrincipal:
    """Each principal is its own set of tools: the names joined by commas."""

    def permits(self, principal: str | None, tool: ptc.Contract, labels: Any) -> bool:
        return tool.name in (principal or "").split(",")

    async def authorize(self, principal: Any, tool: ptc.Contract, arguments: Any, caller: Any) -> Any:
        return None if self.permits(principal, tool, {}) else ptc.Denied("not_authorized", "no")


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(views=st.lists(st.sets(st.sampled_from(NAMES)), min_size=100, max_size=100))
def test_of_a_hundred_runs_at_once_none_sees_or_runs_a_tool_across_the_line(views: list[set[str]]) -> None:
    """One runner, one registry, one index; every run searches for all, and calls all that there are."""
    every = [call(name, namespace="parts") for name in NAMES]

    async def one(runner: ptc.Runner, view: set[str]) -> None:
        result = await runner.run("go", principal=",".join(sorted(view)), run_id=f"r{id(view)}")
        (found,) = [item for item in result.items if item["type"] == "tool_search_output"]
        assert set(found_in(found)) == {f"parts.{name}" for name in view}
        ran = {report.call.name for report in result.calls if report.outcome.status == "success"}
        assert ran - {"tool_search_call"} == view
        said = [item["output"] for item in result.items if item["type"] == "function_call_output"]
        assert (len(said), {text for text in said if not text.startswith("{")}) == (len(NAMES), view)

    async def run() -> None:
        with registry() as corp:
            corp.offer(*map(part, NAMES), name="parts")
            async with peer_of(search("part of the machine"), every, say("done")) as peer:
                runner = peer.runner(DEFERRED, policy=PerPrincipal(), search_limit=10)
                await asyncio.gather(*(one(runner, view) for view in views))

    asyncio.run(run())
