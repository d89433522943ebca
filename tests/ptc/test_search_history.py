"""Search records in the history: stored, cut, paused, replayed; old definitions explain, today's authorise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ptc
from ptc.testing import call, program, run_code, say, search
from tests.ptc.search_registry import DEFERRED, NEW, OLD, ORDERS, registry
from tests.ptc.search_support import RAN, found_in, gadget, of_type, outputs, peer_of, weather

FIND = search("customer record")
CALL = call("lookup", customer="a", namespace="records")
ORDER = call("orders", customer="a", namespace="records")
CALL_NEW = call("lookup", customer="a", number=2, namespace="records")
KEY = b"the key of these paused runs"


def doing(act: Any, part: Any) -> Any:
    """A turn during which something happens elsewhere."""

    def turn(request: Any) -> Any:
        act()
        return part

    return turn


def one_by_one(*parts: Any) -> Any:
    """Turns by the count of requests: a history that was cut does not say how far it is."""
    left = list(parts)
    return lambda request: left.pop(0)


def definitions(body: Any) -> list[Any]:
    """The properties of each loaded definition of `records.lookup` that a request has."""
    return [
        sorted(tool["parameters"]["properties"])
        for output in of_type(body, "tool_search_output")
        for space in output["tools"]
        for tool in space["tools"]
        if tool["name"] == "lookup"
    ]


async def test_what_one_run_loaded_the_next_one_may_call() -> None:
    """The records are in the history, and nowhere else."""
    with registry(OLD):
        async with peer_of(FIND, say("found"), CALL, say("done")) as peer:
            first = await peer.runner(DEFERRED).run("go")
            second = await peer.runner(DEFERRED).run(first.to_input("and now?"))
    assert (first.output_text, second.output_text, RAN) == ("found", "done", ["lookup"])


async def test_search_records_survive_storage(tmp_path: Path) -> None:
    """A run that is recovered in another process goes on with what it had loaded."""
    with registry(OLD) as corp:
        async with peer_of(FIND, CALL, say("done")) as peer:
            path = tmp_path / "runs.db"
            async with ptc.SQLiteRunStore(path) as store:
                corp_down = peer.runner(DEFERRED, store=store, max_requests=2)
                with pytest.raises(ptc.RequestLimitExceeded):
                    await corp_down.run("go", run_id="r1")
            reads = corp.reads
            async with ptc.SQLiteRunStore(path) as store:
                result = await peer.runner(DEFERRED, store=store).recover("r1")
            assert definitions(peer.bodies[-1]) == [["customer"]]
    assert (result.output_text, RAN) == ("done", ["lookup"])
    assert corp.reads == reads + 1, "only the request that is new reads"


@pytest.mark.parametrize("programs", [None, "local"])
async def test_a_search_that_a_process_did_not_survive_is_made_again(tmp_path: Path, programs: Any) -> None:
    """It changes nothing, so nobody has to be asked what became of it."""
    index = DyingIndex(ptc.ToolIndex())
    find = call("search_tools", query="customer") if programs else FIND
    with registry(OLD):
        async with peer_of(find, say("done")) as peer:
            async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
                options: dict[str, Any] = {"store": store, "programs": programs}
                with pytest.raises(Died):
                    await peer.runner(DEFERRED, search=index, **options).run("go", run_id="r1")
                result = await peer.runner(DEFERRED, **options).recover("r1")
            last = peer.bodies[-1]
            found = outputs(last)[0]["tools"][0]["name"] if programs else definitions(last)
    assert found == ("records.lookup" if programs else [["customer"]])
    assert (result.output_text, [one.resolution for one in result.uncertain]) == ("done", ["run_again"])


class Died(ptc.HostControlFlow):
    """Ends the run where it is raised, as the end of its process would."""


class DyingIndex:
    """Searches once, and never comes back from it."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def with_changes(self, add: Any = (), remove: Any = ()) -> DyingIndex:
        return DyingIndex(self.inner.with_changes(add, remove))

    def view(self, keys: Any = None) -> Any:
        raise Died


@pytest.mark.parametrize("history", ["stateless", "previous_response"])
async def test_a_waiting_call_of_a_tool_without_a_namespace_is_resumed(history: Any) -> None:
    """On the wire it is called by its name twice; here it is one tool, before and after the pause."""
    careful = ptc.tool(defer_loading=True, approval="always", name="gadget")(gadget.function)
    turn = [call("gadget", size=1), call("weather", city="Rome")]
    async with peer_of(search("gadget"), turn, say("done")) as peer:
        options: dict[str, Any] = {"approver": ptc.PauseForApproval(), "history": history}
        runner = peer.runner(careful, weather, **options)
        paused = await runner.run("go")
        assert paused.state is not None
        (request,) = paused.approvals
        state = ptc.RunState.unseal(paused.state.seal(KEY), KEY)
        result = await runner.resume(state, decisions={request.call_id: ptc.Approve()})
    assert (request.name, request.namespace) == ("gadget", None)
    assert (result.output_text, sorted(RAN)) == ("done", ["gadget", "weather"])
    assert [one.call.qualified_name for one in result.calls] == ["tool_search_call", "weather", "gadget"]


@pytest.mark.parametrize("programs", [None, "hosted", "local"])
@pytest.mark.parametrize("stopped_after", [1, 2, 3, 4])
async def test_a_run_with_searches_goes_on_wherever_it_stopped(
    tmp_path: Path, stopped_after: int, programs: Any
) -> None:
    """Nothing is asked for again, nothing runs twice, and what was loaded is loaded."""
    if programs == "local":
        code = run_code("await records_orders(customer='p')")
        turns = [call("load", names=["records.lookup"]), call("load", names=["records.orders"]), CALL, code]
    else:
        last = program("await records_orders(customer='p')") if programs else ORDER
        turns = [FIND, search("open orders"), CALL, last]
    with registry(OLD, ORDERS):
        async with peer_of(*turns, say("done")) as peer:
            async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
                options: dict[str, Any] = {"store": store, "programs": programs, "search_limit": 1}
                with pytest.raises(ptc.RequestLimitExceeded):
                    await peer.runner(DEFERRED, max_requests=stopped_after, **options).run("go", run_id="r1")
                asked = len(peer.bodies)
                result = await peer.runner(DEFERRED, **options).recover("r1")
            assert (asked, len(peer.bodies)) == (stopped_after, 5)
    assert (result.output_text, RAN) == ("done", ["lookup", "orders"])


@pytest.mark.parametrize("how", ["all but the question", "a summary", "trim"])
async def test_search_records_survive_compaction(how: str) -> None:
    """Whoever cuts the history: the model can still call what it has loaded."""

    def cut(items: Any) -> Any:
        if how == "trim":
            return ptc.trim(items, keep=1)
        asked = [item for item in items if item.get("role") in ("user", "developer")]
        summary = {"role": "developer", "content": "You have looked it up."}
        return [summary, *asked] if how == "a summary" and summary not in asked else asked

    with registry(OLD):
        async with peer_of(then=one_by_one(FIND, CALL, CALL, say("done"))) as peer:
            result = await peer.runner(DEFERRED, compact=cut).run("go")
            last = peer.bodies[-1]
    assert (result.output_text, RAN) == ("done", ["lookup", "lookup"])
    assert definitions(last) == [["customer"]]
    assert len(of_type(last, "tool_search_call")) == 1


async def test_searches_that_found_nothing_may_be_cut() -> None:
    """They load nothing, so nothing is lost with them."""
    with registry(OLD):
        async with peer_of(then=one_by_one(search("zzyzx"), FIND, CALL, say("done"))) as peer:
            await peer.runner(DEFERRED, compact=lambda items: ptc.trim(items, keep=1)).run("go")
            assert len(of_type(peer.bodies[-1], "tool_search_call")) == 1


async def test_a_removed_definition_is_left_out_of_the_request_and_stays_in_the_history() -> None:
    """A call of it is refused: today's catalog does not have it."""
    with registry(OLD, ORDERS) as corp:
        remove = doing(lambda: corp.offer(ORDERS), CALL)
        async with peer_of(FIND, remove, CALL, say("done")) as peer:
            result = await peer.runner(DEFERRED).run("go")
            before, after = peer.bodies[1], peer.bodies[2]
            said = outputs(peer.bodies[3])
    assert found_in(of_type(before, "tool_search_output")[0]) == ["records.lookup", "records.orders"]
    assert found_in(of_type(after, "tool_search_output")[0]) == ["records.orders"]
    kept = next(item for item in result.items if item["type"] == "tool_search_output")
    assert found_in(kept) == ["records.lookup", "records.orders"]
    assert said[1]["error"]["type"] == "unknown_tool"


async def test_a_changed_definition_is_left_out_and_has_to_be_found_again() -> None:
    """An old definition explains old calls; it lets no new one through."""
    with registry(OLD) as corp:
        change = doing(lambda: corp.offer(NEW), say("later"))
        async with peer_of(FIND, change, CALL, FIND, CALL_NEW, say("done")) as peer:
            first = await peer.runner(DEFERRED).run("go")
            result = await peer.runner(DEFERRED).run(first.to_input("again"))
            bodies = peer.bodies
            said = outputs(bodies[-1])
    assert definitions(bodies[1]) == [["customer"]]
    assert definitions(bodies[2]) == []
    assert of_type(bodies[2], "tool_search_output")[0]["tools"] == []
    assert definitions(bodies[-1]) == [["customer", "number"]]
    assert "has changed since it was loaded" in said[0]["error"]["message"]
    assert said[1] == "record 2 of a"
    kept = [item for item in result.items if item["type"] == "tool_search_output"]
    assert definitions({"input": kept}) == [["customer"], ["customer", "number"]]
    assert RAN == ["lookup_by_number"]


async def test_the_same_definition_published_anew_stays_loaded() -> None:
    """The definition counts, not the registration; the call is made for the new one."""
    with registry(OLD) as corp:
        again = doing(lambda: corp.offer(OLD), say("later"))
        async with peer_of(FIND, again, CALL, say("done")) as peer:
            first = await peer.runner(DEFERRED).run("go")
            await peer.runner(DEFERRED).run(first.to_input("again"))
            assert outputs(peer.bodies[-1]) == ["record of a"]


async def test_a_definition_that_changed_while_the_model_thought_is_not_admitted() -> None:
    """The call keeps the contract it was made for, and the registry takes it for no other."""
    with registry(OLD) as corp:
        change = doing(lambda: corp.offer(NEW), CALL)
        async with peer_of(FIND, change, say("done")) as peer:
            await peer.runner(DEFERRED).run("go")
            (said,) = outputs(peer.bodies[-1])
    assert said["error"]["type"] == "call_not_admitted"
    assert RAN == []


@pytest.mark.parametrize("history", ["previous_response", "conversation"])
async def test_a_removed_tool_does_not_end_a_conversation_that_the_service_keeps(history: Any) -> None:
    """Nothing of it can be called, so nothing has to be taken back."""
    with registry(OLD, ORDERS) as corp:
        remove = doing(lambda: corp.offer(ORDERS), CALL)
        async with peer_of(FIND, remove, say("done")) as peer:
            options = {"conversation_id": (await peer.client.conversations.create()).id}
            run = options if history == "conversation" else {}
            result = await peer.runner(DEFERRED, history=history).run("go", **run)
    assert (result.output_text, RAN) == ("done", [])


async def test_a_chain_is_sent_whole_where_a_definition_in_it_has_changed() -> None:
    """We hold all of it, so the service can be told the history without the old definition."""
    with registry(OLD) as corp:
        change = doing(lambda: corp.offer(NEW), call("weather", city="Rome"))
        async with peer_of(FIND, change, FIND, CALL_NEW, say("done")) as peer:
            result = await peer.runner(DEFERRED, weather, history="previous_response").run("go")
            bodies = peer.bodies
    assert result.output_text == "done"
    chained = ["previous_response_id" in body for body in bodies]
    assert chained == [False, True, False, True, True], "once whole, and then chained again"
    assert definitions(bodies[2]) == []
    assert len(of_type(bodies[2], "function_call")) == 1
    assert RAN == ["weather", "lookup_by_number"]


async def test_a_conversation_that_the_service_keeps_cannot_take_a_changed_definition_back() -> None:
    """An explicit error, never a silent reset: the model would go on calling by the old definition."""
    with registry(OLD) as corp:
        change = doing(lambda: corp.offer(NEW), call("weather", city="Rome"))
        async with peer_of(FIND, change, say("done")) as peer:
            conversation = (await peer.client.conversations.create()).id
            runner = peer.runner(DEFERRED, weather, history="conversation")
            with pytest.raises(ptc.HistoryNotReplayable, match=r"records\.lookup") as caught:
                await runner.run("go", conversation_id=conversation)
            assert len(peer.bodies) == 2
    assert caught.value.code == "history_not_replayable"
    assert [item["type"] for item in caught.value.items][-1] == "function_call_output"


async def test_a_chain_of_which_a_part_is_not_here_cannot_take_a_changed_definition_back() -> None:
    """The same where the run went on from a response of somebody else's."""
    with registry(OLD) as corp:
        change = doing(lambda: corp.offer(NEW), call("weather", city="Rome"))
        async with peer_of(say("hello"), FIND, change, say("done")) as peer:
            first = await peer.client.responses.create(model="m", input="hi", store=True)
            runner = peer.runner(DEFERRED, weather, history="previous_response")
            with pytest.raises(ptc.HistoryNotReplayable):
                await runner.run("go", previous_response_id=first.id)


async def test_an_open_program_keeps_the_definition_that_it_was_started_with() -> None:
    """Its tools are sent on every continuation; what it calls is decided by today's catalog."""
    code = "[await records_lookup(customer='a'), await records_lookup(customer='b')]"
    with registry(OLD) as corp:

        async def change(invocation: Any, next: Any) -> Any:
            outcome = await next(invocation)
            if invocation.call.name == "lookup":
                corp.offer(NEW)
            return outcome

        async with peer_of(FIND, program(code), lambda r: say(r.program_result), say("done")) as peer:
            runner = peer.runner(DEFERRED, programs="hosted", middleware=[change])
            first = await runner.run("go")
            await runner.run(first.to_input("and now?"))
            bodies = peer.bodies
    told, refused = json.loads(first.output_text)
    assert told == {"result": "record of a"}
    assert "has changed since it was loaded" in refused["error"]["message"]
    assert [definitions(body) for body in bodies[1:]] == [[["customer"]], [["customer"]], [["customer"]], []]
    assert RAN == ["lookup"]


async def test_fields_that_the_service_did_not_send_are_never_invented() -> None:
    """What goes back is what came, but for definitions that are left out."""
    with registry(OLD, ORDERS) as corp:
        change = doing(lambda: corp.offer(ORDERS), say("done"))
        async with peer_of([FIND, call("weather", city="Rome")], change, say("again")) as peer:
            first = await peer.runner(DEFERRED, weather).run("go")
            await peer.runner(DEFERRED, weather).run(first.to_input("more"))
            sent = peer.bodies[-1]["input"][: len(first.items)]
    for before, after in zip(first.items, sent, strict=True):
        assert list(before) == list(after)
        assert {**before, "tools": None} == {**after, "tools": None}
    assert "namespace" not in next(item for item in sent if item["type"] == "function_call")


async def test_a_call_that_waits_for_an_approval_needs_no_catalog() -> None:
    """The run is resumed elsewhere, where the registry cannot be read: what was accepted is kept."""
    careful = ptc.tool(
        effects="read", approval="always", publication=OLD.contract.publication, name="lookup"
    )(OLD.function)
    with registry(careful) as corp:
        async with peer_of(FIND, CALL, say("done")) as peer:
            options: dict[str, Any] = {"approver": ptc.PauseForApproval()}
            paused = await peer.runner(DEFERRED, **options).run("go")
            assert paused.state is not None
            (request,) = paused.approvals
            sealed = paused.state.seal(KEY)
            assert json.loads(sealed)["state"]["admitted"].keys() == {"records.lookup"}
            reads, corp.fails = corp.reads, True
            runner = peer.runner(DEFERRED, **options)
            resumed = runner.resume(
                ptc.RunState.unseal(sealed, KEY), decisions={request.call_id: ptc.Approve()}
            )
            with pytest.raises(ptc.CatalogError):
                await resumed
            assert (RAN, corp.reads) == (["lookup"], reads + 1), "the call ran; the next request reads again"
            corp.fails = False


async def test_a_waiting_call_of_a_source_that_is_not_used_any_more_is_not_admitted() -> None:
    """`allows` governs which sources saved calls may go on using."""
    careful = ptc.tool(
        effects="read", approval="always", publication=OLD.contract.publication, name="lookup"
    )(OLD.function)
    with registry(careful):
        async with peer_of(FIND, CALL, say("done")) as peer:
            options: dict[str, Any] = {"approver": ptc.PauseForApproval()}
            paused = await peer.runner(DEFERRED, **options).run("go")
            assert paused.state is not None
            state = ptc.RunState.unseal(paused.state.seal(KEY), KEY)
            other = peer.runner(ptc.use(ptc.Registry("other")).defer(), **options)
            with pytest.raises(ptc.CallNotAdmitted):
                await other.resume(state, decisions={paused.approvals[0].call_id: ptc.Approve()})
    assert RAN == []


async def test_a_run_whose_process_ended_in_a_batch_recovers_its_calls_without_a_read(tmp_path: Path) -> None:
    """The definition, its token and all were kept with the response."""

    async def dies(invocation: Any, next: Any) -> Any:
        if invocation.call.name == "lookup" and not RAN:
            RAN.append("died")
            raise Died
        return await next(invocation)

    with registry(OLD) as corp:
        async with peer_of(FIND, CALL, say("done")) as peer:
            path = tmp_path / "runs.db"
            async with ptc.SQLiteRunStore(path) as store:
                with pytest.raises(Died):
                    await peer.runner(DEFERRED, store=store, middleware=[dies]).run("go", run_id="r1")
            reads = corp.reads
            async with ptc.SQLiteRunStore(path) as store:
                result = await peer.runner(DEFERRED, store=store, middleware=[dies]).recover("r1")
    assert (result.output_text, RAN) == ("done", ["died", "lookup"])
    assert corp.reads == reads + 1, "for the one request that is new"
