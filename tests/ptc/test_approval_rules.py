"""Rules of approvals: by tool, effects, risk and caller, or a function of call and context."""

from __future__ import annotations

from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, by_program, function_call, outputs_in, program

RAN: list[str] = []
BOTH: Any = {"allowed_callers": ["direct", "programmatic"]}


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(effects="read", risk_level="low", **BOTH)
def look(x: int) -> int:
    """Look."""
    RAN.append("look")
    return x


@ptc.tool(effects="write", risk_level="medium", **BOTH)
def note(x: int) -> int:
    """Note."""
    RAN.append("note")
    return x


@ptc.tool(effects="destructive", risk_level="high", **BOTH)
def wipe(x: int) -> int:
    """Wipe."""
    RAN.append("wipe")
    return x


@ptc.tool(**BOTH)
def untold(x: int) -> int:
    """Says nothing of what it does."""
    RAN.append("untold")
    return x


@ptc.tool(effects="read", risk_level="low", approval="always", **BOTH)
def asked(x: int) -> int:
    """Always asks."""
    RAN.append("asked")
    return x


TOOLS = (look, note, wipe, untold, asked)
NAMES = [tool.contract.name for tool in TOOLS]


def runner(endpoint: Any, rule: ptc.PauseForApproval, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=TOOLS, approver=rule, retry=AT_ONCE, **options)


@pytest.mark.parametrize(
    ("ask", "waits"),
    [
        (None, ["asked"]),
        (ptc.ask_for(), NAMES),
        (ptc.ask_for(tools=["wi*", "note"]), ["note", "wipe", "asked"]),
        (ptc.ask_for(effects=["destructive"]), ["wipe", "untold", "asked"]),
        (ptc.ask_for(effects=["write", "destructive"]), ["note", "wipe", "untold", "asked"]),
        (ptc.ask_for(risk=["high"]), ["wipe", "untold", "asked"]),
        (ptc.ask_for(effects=["write"], risk=["high"]), ["untold", "asked"]),
        (ptc.ask_for(callers=["programmatic"]), ["asked"]),
        (lambda call, contract, arguments, run: arguments["x"] > 2, ["wipe", "untold", "asked"]),
        (lambda call, contract, arguments, run: run.principal == "ann", ["asked"]),
        (lambda call, contract, arguments, run: run.principal == "bob", NAMES),
    ],
)
async def test_a_rule_says_which_calls_wait(ask: Any, waits: list[str]) -> None:
    """Beside those whose tools ask by themselves; the others run, and nothing that waits has run."""
    turn = [function_call(name, f"c{index}", {"x": index}) for index, name in enumerate(NAMES)]
    turn[2]["arguments"] = '{"x": 3}'
    able = runner(FakeEndpoint(turn, [answer("done")]), ptc.PauseForApproval(ask=ask), principal="bob")
    paused = await able.run("go")
    assert [request.name for request in paused.approvals] == waits
    assert sorted(RAN) == sorted(set(NAMES) - set(waits))
    assert paused.state is not None
    done = await able.resume(
        paused.state, decisions={request.call_id: ptc.Approve() for request in paused.approvals}
    )
    assert (done.output_text, sorted(RAN)) == ("done", sorted(NAMES))


@pytest.mark.parametrize("where", ["hosted", "local"])
async def test_a_rule_by_caller_asks_about_programs(where: Any) -> None:
    """The same tool runs for the model itself. A local program is not asked about, its calls are."""
    rule = ptc.PauseForApproval(ask=ptc.ask_for(callers=["programmatic"]))
    turn = {
        "hosted": [program("cp"), function_call("note", "c1", caller=by_program("cp"))],
        "local": [function_call("run_program", "p", {"code": "await note(x=1)"})],
    }[where]
    able = runner(FakeEndpoint(turn), rule, programs=where)
    paused = await able.run("go")
    assert ([request.name for request in paused.approvals], RAN) == (["note"], [])


async def test_a_rule_of_everything_does_not_ask_whether_a_program_may_run() -> None:
    """It is confined, and what it calls is asked about."""
    code = function_call("run_program", "p", {"code": "1 + 1"})
    able = runner(
        FakeEndpoint([code], [answer("two")]), ptc.PauseForApproval(ask=ptc.ask_for()), programs="local"
    )
    assert (await able.run("go")).output_text == "two"


async def test_a_rule_that_fails_refuses_the_call() -> None:
    """What cannot decide has not approved anything."""

    def broken(*_: Any) -> bool:
        raise RuntimeError("no database")

    endpoint = FakeEndpoint([function_call("note")], [answer("well")])
    done = await runner(endpoint, ptc.PauseForApproval(ask=broken)).run("go")
    assert (done.status, RAN) == ("completed", [])
    assert outputs_in(endpoint.bodies[1])["c1"]["error"]["type"] == "not_approved"


async def test_outside_a_run_a_rule_refuses_what_it_would_ask_about() -> None:
    """Nobody can be asked later there; and the path is the same for whoever uses it."""
    rule = ptc.PauseForApproval(ask=ptc.ask_for(effects=["write"]))
    path = ptc.Invoker([look, note], approver=rule)
    run = ptc.RunContext("r1")
    assert (await path.invoke(ptc.Call("c1", "look", {"x": 1}), run)).status == "success"
    assert (await path.invoke(ptc.Call("c2", "note", {"x": 1}), run)).status == "denied"
    assert RAN == ["look"]


@pytest.mark.parametrize("given", [{"effects": ["deletes"]}, {"risk": ["severe"]}, {"callers": ["hosted"]}])
def test_a_word_that_there_is_not_is_refused(given: Any) -> None:
    """A rule with a typing error would ask about nothing."""
    with pytest.raises(ptc.ConfigurationError, match=r"there are \w+"):
        ptc.ask_for(**given)
