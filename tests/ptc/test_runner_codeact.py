"""A CodeAct's code tool in a run with a model: its tools are for its programs, on the run's one path."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

import ptc
from ptc_tools.call import JsonObject
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call, outputs_in

RAN: list[str] = []


@ptc.tool(allowed_callers=["programmatic"])
async def look(x: int) -> int:
    """Look."""
    RAN.append("look")
    return x


@ptc.tool(allowed_callers=["programmatic"], approval="always")
async def pay(x: int) -> int:
    """Pay."""
    RAN.append("pay")
    return x


@ptc.tool
def extra(x: int) -> int:
    """Something more."""
    return x


@ptc.tool
def gone(x: int) -> int:
    """Something that somebody would like to see gone."""
    return x


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    RAN.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptc.ExperimentalWarning)
        yield


@pytest_asyncio.fixture
async def sandbox() -> AsyncIterator[ptc.Sandbox]:
    async with ptc.Sandbox() as made:
        yield made


def program(code: str, call_id: str = "c1") -> dict[str, Any]:
    return function_call("run_program", call_id, {"code": code})


def offered(body: dict[str, Any]) -> list[str]:
    return [tool.get("name") or tool["type"] for tool in body["tools"]]


def runner(endpoint: FakeEndpoint, *tools: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=tools, retry=AT_ONCE, **options)


MODES = pytest.mark.parametrize("programs", [None, "hosted"])


@MODES
async def test_its_tools_need_not_be_given_to_the_runner(sandbox: ptc.Sandbox, programs: Any) -> None:
    """The model sees the code tool alone; the calls are the program's own, and in the result."""
    act = ptc.CodeAct(tools=[look], sandbox=sandbox)
    endpoint = FakeEndpoint([program("await look(x=4)")], [answer()])
    result = await runner(endpoint, act.tool(), programs=programs).run("go")
    assert outputs_in(endpoint.bodies[1])["c1"] == {"status": "completed", "value": 4}
    assert ("look", ptc.Program("c1")) in [(report.call.name, report.call.caller) for report in result.calls]


async def test_the_policy_is_asked_about_them_as_about_others(sandbox: ptc.Sandbox) -> None:
    """A grant says where a name is looked up, never that its call may run."""

    class Nobody:
        async def authorize(
            self, principal: str | None, contract: Contract, arguments: JsonObject, caller: object
        ) -> Denied | None:
            return Denied("not_authorized", "not you") if contract.name == "look" else None

    act = ptc.CodeAct(tools=[look], sandbox=sandbox)
    endpoint = FakeEndpoint([program("await look(x=4)")], [answer()])
    await runner(endpoint, act.tool(), policy=Nobody()).run("go")
    assert outputs_in(endpoint.bodies[1])["c1"]["error"]["code"] == "not_authorized"
    assert RAN == []


async def test_nobody_else_has_them(sandbox: ptc.Sandbox) -> None:
    """Neither the model itself, nor a call that names the program when it is over."""
    act = ptc.CodeAct(tools=[look], sandbox=sandbox)
    forged = function_call("look", "c3", {"x": 1}, caller={"type": "program", "caller_id": "c1"})
    endpoint = FakeEndpoint([program("1")], [function_call("look", "c2", {"x": 1}), forged], [answer()])
    await runner(endpoint, act.tool()).run("go")
    outputs = outputs_in(endpoint.bodies[2])
    assert [outputs[call_id]["error"]["type"] for call_id in ("c2", "c3")] == ["unknown_tool"] * 2
    assert RAN == []


@MODES
async def test_a_call_that_would_wait_for_a_decision_is_denied(sandbox: ptc.Sandbox, programs: Any) -> None:
    """The code tool is any tool to the run: resumed, its program would begin anew and make its calls twice."""
    act = ptc.CodeAct(tools=[look, pay], sandbox=sandbox)
    endpoint = FakeEndpoint([program("await look(x=1)\nawait pay(x=2)")], [answer()])
    face = runner(endpoint, act.tool(), programs=programs, approver=ptc.PauseForApproval())
    result = await face.run("go")
    assert result.status == "completed"
    error = outputs_in(endpoint.bodies[1])["c1"]["error"]
    assert error["code"] == "not_approved"
    assert 'programs="local"' in error["message"]
    assert RAN == ["look"]


class Heard:
    """A recorder that keeps what was refused to whoever would change the tools."""

    def __init__(self) -> None:
        self.details: list[str] = []

    async def started(self, *_: object) -> object:
        return None

    async def finished(self, *_: object) -> None: ...

    async def denied(self, *_: object) -> None: ...

    async def event(self, type: str, data: JsonObject, run: ptc.RunContext) -> None:
        if type == "sandbox.violation":
            self.details.append(str(data["detail"]))


@MODES
@pytest.mark.parametrize("registered", [False, True])
async def test_a_tool_that_its_program_called_changes_nothing_of_the_run(
    sandbox: ptc.Sandbox, programs: Any, registered: bool
) -> None:
    """Whatever kind of programs the run has besides: that program is a local one, and its tools are fixed."""
    errors: list[str] = []

    def attempt(context: ptc.ToolContext) -> None:
        for change, what in ((context.add_tools, extra), (context.remove_tools, "gone")):
            try:
                change(what)
            except RuntimeError as error:
                errors.append(str(error))

    @ptc.tool(allowed_callers=["direct", "programmatic"])
    async def change(context: ptc.ToolContext) -> str:
        """Try to change what there is."""
        attempt(context)
        thread = threading.Thread(target=attempt, args=(context,))
        thread.start()
        await asyncio.to_thread(thread.join)
        return "done"

    act = ptc.CodeAct(tools=[change], sandbox=sandbox)
    endpoint = FakeEndpoint([program("await change()")], [answer()])
    heard = Heard()
    tools = [act.tool(), gone, *([change] if registered else [])]
    await runner(endpoint, *tools, programs=programs, audit=heard).run("go")
    assert outputs_in(endpoint.bodies[1])["c1"] == {"status": "completed", "value": "done"}
    assert len(errors) == 4
    assert all("fixed" in error for error in errors)
    assert offered(endpoint.bodies[1]) == offered(endpoint.bodies[0])
    assert len(heard.details) == 4
