"""Random conversations that search, call and run programs while a registry changes: the strict peer takes them all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptc
from ptc.history import orphans
from ptc.testing import call, commentary, program, reason, run_code, say, search
from tests.ptc.search_registry import DEFERRED, NEW, OLD, ORDERS, registry
from tests.ptc.search_support import RAN, gadget, peer_of, weather

CODE = """\
import asyncio
async def attempt(name, **given):
    try:
        return str(await globals()[name](**given)) if name in globals() else "absent"
    except ToolError as error:
        return str(error)
await asyncio.gather(attempt('records_lookup', customer='p'), attempt('records_orders', customer='p'))"""
HOSTED = (
    "import asyncio\nlen(await asyncio.gather(records_lookup(customer='p'), records_orders(customer='p')))"
)
SEARCHES = st.sampled_from(
    [
        search("customer record"),
        search("open orders of a customer"),
        search("gadget"),
        search("zzyzx"),
        search(other="x"),
    ]
)
CALLS = st.sampled_from(
    [
        call("weather", city="Rome"),
        call("gadget", size=1),
        call("lookup", customer="a", namespace="records"),
        call("lookup", customer="a", number=1, namespace="records"),
        call("orders", customer="a", namespace="records"),
        call("orders", "{", namespace="records"),
        call("nobody", namespace="records"),
    ]
)
PAIR = st.sampled_from(
    [
        call("search_tools", query="customer record"),
        call("load", names=["records.lookup", "records_orders", "gadget"]),
        call("load", names=["nobody"]),
        call("load", names=[]),
    ]
)
LOOKUP = call("lookup", customer="a", namespace="records")
CHANGES = st.sampled_from([None] * 12 + [(OLD,), (NEW,), (ORDERS,), (OLD, ORDERS), (NEW, ORDERS)])


@st.composite
def scripts(draw: st.DrawFn) -> tuple[str, str | None, str, list[Any]]:
    """(where the history lives, where programs run, who searches, turns with the change that comes before each)."""
    history = draw(st.sampled_from(["stateless", "previous_response", "conversation"]))
    programs = draw(st.sampled_from([None, "hosted", "local"]))
    searcher = "lexical" if programs == "local" else draw(st.sampled_from(["lexical", "server"]))
    parts = [CALLS] if programs == "local" else [CALLS, SEARCHES, SEARCHES]
    if programs == "local":
        parts += [PAIR, st.just(run_code(CODE))]
    if programs == "hosted":
        parts += [st.just(program(HOSTED)), st.just(program("await records_lookup(customer='p')"))]
    turn = st.one_of(
        st.lists(st.one_of(*parts), min_size=1, max_size=3),
        st.one_of(*parts).map(lambda part: [reason("hm"), part]),
        st.just([commentary("Let me see.")]),
    )
    find = [search("customer record", finds=["records.lookup", "records.orders"])]
    load = [call("load", names=["records.lookup", "records.orders"])]
    use = {None: LOOKUP, "hosted": program(HOSTED), "local": run_code(CODE)}[programs]
    in_order = [load if programs == "local" else find, [use]]
    moves = st.one_of(turn.map(lambda one: [one]), st.just(in_order))
    turns = [one for move in draw(st.lists(moves, max_size=4)) for one in move]
    return history, programs, searcher, [(draw(CHANGES), one) for one in [*turns, [say("done")]]]


async def played(
    history: str, programs: str | None, searcher: str, turns: list[Any], *, trimmed: bool
) -> Any:
    """The result of the run, or how it ended."""
    with registry(OLD, ORDERS) as corp:

        def doing(change: Any, parts: Any) -> Any:
            def turn(request: Any) -> Any:
                if change is not None:
                    corp.offer(*change)
                return [part(request) if callable(part) else part for part in parts]

            return turn

        left = [doing(*turn) for turn in turns]
        async with peer_of(then=lambda request: left.pop(0)(request)) as peer:
            run: dict[str, Any] = {}
            if history == "conversation":
                run["conversation_id"] = (await peer.client.conversations.create()).id
            runner = peer.runner(
                weather,
                gadget,
                DEFERRED,
                history=history,
                programs=programs,
                search=searcher,
                max_output_tokens=100_000,
                compact=(lambda items: ptc.trim(items, keep=3)) if trimmed else None,
            )
            return await runner.run("go", **run)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=scripts(), trimmed=st.booleans())
def test_whatever_happens_the_service_takes_the_history_and_every_call_has_its_output(
    script: Any, trimmed: bool
) -> None:
    """A run ends with its answer, or says that the service's own history cannot be changed any more."""
    history, programs, searcher, turns = script
    trimmed = trimmed and history == "stateless"
    try:
        result = asyncio.run(played(history, programs, searcher, turns, trimmed=trimmed))
    except ptc.HistoryNotReplayable as error:
        ended = (history, orphans(error.items))
    else:
        ended = None
    if ended is not None:
        assert ended == ("conversation", [])
        return
    assert result.output_text == "done"
    assert orphans(list(result.items)) == []
    succeeded = [one.call for one in result.calls if one.outcome.status == "success"]
    own = {"tool_search_call", "search_tools", "load", "run_program"}
    assert sorted(RAN) == sorted(
        "lookup_by_number" if one.name == "lookup" and "number" in str(one.arguments) else one.name
        for one in succeeded
        if one.name not in own
    )


@pytest.mark.soak
@settings(max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=scripts(), trimmed=st.booleans())
def test_soak_of_random_searches(script: Any, trimmed: bool) -> None:
    """The same for longer."""
    test_whatever_happens_the_service_takes_the_history_and_every_call_has_its_output.hypothesis.inner_test(  # type: ignore[attr-defined]
        script, trimmed
    )
