"""tool_choice: sent to the service, enforced here, and relaxed after it was obeyed."""

from __future__ import annotations

from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, by_program, function_call, outputs_in, program

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(allowed_callers=["direct", "programmatic"])
def read(x: int) -> int:
    """Read."""
    RAN.append("read")
    return x


@ptc.tool
def write(x: int) -> int:
    """Write."""
    RAN.append("write")
    if x < 0:
        raise ValueError("negative")
    return x


def runner(endpoint: FakeEndpoint, choice: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(
        client=endpoint, model="m", tools=[read, write], tool_choice=choice, retry=AT_ONCE, **options
    )


def denied(body: dict[str, Any], call_id: str) -> str:
    error = outputs_in(body)[call_id]["error"]
    assert error["type"] == "not_admitted"
    return str(error["message"])


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        ({"mode": "auto"}, None),
        ({"mode": "required", "required_function_name": "read"}, {"type": "function", "name": "read"}),
        ({"type": "function", "name": "read"}, {"type": "function", "name": "read"}),
        (
            {"mode": "auto", "allowed_tools": ["read"]},
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read"}]},
        ),
        ({"type": "mcp", "server_label": "s"}, {"type": "mcp", "server_label": "s"}),
        ({"type": "programmatic_tool_calling"}, {"type": "programmatic_tool_calling"}),
    ],
)
async def test_every_form_reaches_the_wire(choice: Any, sent: Any) -> None:
    """Words, the function form, allowed tools, and what the API alone knows."""
    endpoint = FakeEndpoint([answer()])
    await runner(endpoint, choice, programs="hosted").run("go")
    assert endpoint.bodies[0].get("tool_choice") == sent


async def test_a_forced_choice_goes_back_to_automatic() -> None:
    """Otherwise the model could never answer."""
    for choice in ("required", {"mode": "required", "required_function_name": "read"}):
        endpoint = FakeEndpoint([function_call("read")], [answer()])
        await runner(endpoint, choice).run("go")
        assert "tool_choice" in endpoint.bodies[0]
        assert "tool_choice" not in endpoint.bodies[1]


async def test_until_called_keeps_the_choice_until_the_tool_ran() -> None:
    """A call that was refused is not one."""
    choice = {"mode": "required", "required_function_name": "write", "until_called": True}
    endpoint = FakeEndpoint(
        [function_call("write", "a", {"y": 1})], [function_call("write", "b", {"x": 1})], [answer()]
    )
    await runner(endpoint, choice).run("go")
    assert [body.get("tool_choice") for body in endpoint.bodies] == [
        {"type": "function", "name": "write"}
    ] * 2 + [None]


async def test_with_none_nothing_runs() -> None:
    """Whatever the service lets through."""
    endpoint = FakeEndpoint([function_call("read")], [answer()])
    await runner(endpoint, "none").run("go")
    assert RAN == []
    assert "no tool may be called" in denied(endpoint.bodies[1], "c1")
    assert endpoint.bodies[1]["tool_choice"] == "none"


async def test_outside_allowed_tools_nothing_runs() -> None:
    """In every turn: what was ruled out stays ruled out when a forced choice relaxes."""
    choice = {"mode": "required", "allowed_tools": ["read"]}
    endpoint = FakeEndpoint(
        [function_call("write", "a"), function_call("read", "b")], [function_call("write", "c")], [answer()]
    )
    await runner(endpoint, choice).run("go")
    assert RAN == ["read"]
    assert "not among the tools allowed now: read" in denied(endpoint.bodies[1], "a")
    assert "read" in denied(endpoint.bodies[2], "c")
    assert [body["tool_choice"]["mode"] for body in endpoint.bodies] == ["required", "auto", "auto"]


async def test_instead_of_the_required_function_nothing_runs() -> None:
    """The model is told what has to come first; afterwards it is free."""
    choice = {"mode": "required", "required_function_name": "read"}
    endpoint = FakeEndpoint(
        [function_call("write", "a"), function_call("read", "b")], [function_call("write", "c")], [answer()]
    )
    await runner(endpoint, choice).run("go")
    assert RAN == ["read", "write"]
    assert "read has to be called first" in denied(endpoint.bodies[1], "a")


async def test_a_forced_program_forbids_direct_calls() -> None:
    """The program's own calls are what was asked for."""
    choice = {"type": "programmatic_tool_calling"}
    calls = [function_call("write", "a"), program(), function_call("read", "b", caller=by_program())]
    endpoint = FakeEndpoint(calls, [answer()])
    await runner(endpoint, choice, programs="hosted").run("go")
    assert RAN == ["read"]
    assert "a program has to be written first" in denied(endpoint.bodies[1], "a")


async def test_a_run_may_have_its_own_choice() -> None:
    """One runner, many turns."""
    endpoint = FakeEndpoint([answer()], [answer()])
    face = runner(endpoint, None)
    await face.run("go", tool_choice="required")
    await face.run("go")
    assert [body.get("tool_choice") for body in endpoint.bodies] == ["required", None]


@pytest.mark.parametrize(
    "choice",
    [
        "sometimes",
        7,
        {"mode": "maybe"},
        {"mode": "auto", "required_function_name": "read"},
        {"mode": "required", "required_function_name": "gone"},
        {"mode": "auto", "allowed_tools": "read"},
        {"mode": "auto", "allowed_tools": ["gone"]},
        {"mode": "auto", "function": "read"},
        {"type": "programmatic_tool_calling"},
    ],
)
def test_a_choice_that_cannot_be_kept_is_refused_at_construction(choice: Any) -> None:
    """The service would refuse it, or worse, ignore it."""
    with pytest.raises(ptc.ConfigurationError):
        runner(FakeEndpoint(), choice)


@pytest.mark.filterwarnings("ignore::ptc.ExperimentalWarning")
async def test_a_choice_outlives_the_tools_that_it_names() -> None:
    """A gate may take a tool away: nothing is demanded that is not there, and nothing more is allowed."""

    @ptc.tool
    def shut(context: ptc.ToolContext) -> str:
        """Take the others away."""
        context.remove_tools(["read", "shut"])
        return "shut"

    choice = {"mode": "auto", "allowed_tools": ["read", "shut"]}
    endpoint = FakeEndpoint([function_call("shut", "a", "{}")], [function_call("write", "b")], [answer()])
    face = ptc.Runner(client=endpoint, model="m", tools=[read, write, shut], tool_choice=choice)
    await face.run("go")
    assert endpoint.bodies[1]["tool_choice"] == "none"
    assert "not among the tools allowed now: none" in denied(endpoint.bodies[2], "b")
