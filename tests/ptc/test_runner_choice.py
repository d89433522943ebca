"""tool_choice: sent to the service, enforced here, and relaxed after it was obeyed."""

from __future__ import annotations

from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import (
    AT_ONCE,
    FakeEndpoint,
    answer,
    by_program,
    function_call,
    outputs_in,
    program,
    program_output,
)

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


def several(endpoint: FakeEndpoint, choice: Any, *tools: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=tools, tool_choice=choice, retry=AT_ONCE, **options)


async def test_what_is_allowed_after_a_required_function_stays_allowed() -> None:
    """The function is demanded once; afterwards the model is free within the list."""
    choice = {"mode": "required", "required_function_name": "read", "allowed_tools": ["read"]}
    endpoint = FakeEndpoint([function_call("read")], [function_call("write", "c2")], [answer()])
    await runner(endpoint, choice).run("go")
    sent = [body["tool_choice"] for body in endpoint.bodies]
    assert [(form["type"], form.get("mode")) for form in sent] == [
        ("function", None),
        ("allowed_tools", "auto"),
        ("allowed_tools", "auto"),
    ]
    assert "read" in denied(endpoint.bodies[2], "c2")


async def test_a_local_program_may_call_no_more_than_is_allowed() -> None:
    """As a hosted one: the list holds whoever calls."""

    @ptc.tool(allowed_callers=["direct", "programmatic"])
    def inside() -> int:
        """In."""
        RAN.append("inside")
        return 1

    code = function_call("run_program", "p", {"code": "print(await read(x=1))\nawait inside()"})
    for programs_tool in ("run_program", "programmatic_tool_calling"):
        RAN.clear()
        endpoint = FakeEndpoint([code], [answer()])
        choice = {"mode": "auto", "allowed_tools": [programs_tool, "read"]}
        await several(endpoint, choice, read, inside, programs="local").run("go")
        assert RAN == ["read"]
        assert outputs_in(endpoint.bodies[1])["p"]["error"]["code"] == "not_admitted"
        names = [entry["name"] for entry in endpoint.bodies[0]["tool_choice"]["tools"]]
        assert names == ["run_program", "read"]


async def test_what_only_local_programs_may_call_is_allowed_and_not_sent() -> None:
    """The service does not know it, and would refuse the request."""

    @ptc.tool(allowed_callers=["programmatic"])
    def only() -> int:
        """Only."""
        return 7

    code = function_call("run_program", "p", {"code": "await only()"})
    endpoint = FakeEndpoint([code], [answer()])
    choice = {"mode": "auto", "allowed_tools": ["run_program", "only"]}
    await several(endpoint, choice, only, programs="local").run("go")
    assert outputs_in(endpoint.bodies[1])["p"]["value"] == 7
    tools = endpoint.bodies[0]["tool_choice"]["tools"]
    assert tools == [{"type": "function", "name": "run_program"}]


async def test_the_apis_form_means_the_code_tool_where_programs_run_here() -> None:
    """The same words serve both places."""
    tools = [{"type": "programmatic_tool_calling"}, {"type": "function", "name": "read"}]
    endpoint = FakeEndpoint([function_call("run_program", "p", {"code": "1"})], [answer()])
    choice = {"type": "allowed_tools", "mode": "auto", "tools": tools}
    await several(endpoint, choice, read, programs="local").run("go")
    assert outputs_in(endpoint.bodies[1])["p"]["status"] == "completed"
    assert endpoint.bodies[0]["tool_choice"]["tools"][0] == {"type": "function", "name": "run_program"}


@pytest.mark.parametrize(
    ("definition", "choice", "item"),
    [
        (
            {"type": "mcp", "server_label": "s", "server_url": "http://s"},
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "s"}]},
            {"type": "mcp_approval_request", "id": "c1", "server_label": "s", "name": "f", "arguments": "{}"},
        ),
        (
            {"type": "shell"},
            {"mode": "auto", "allowed_tools": ["shell"]},
            {"type": "shell_call", "id": "i", "call_id": "c1", "action": {"commands": ["ls"]}},
        ),
    ],
)
async def test_a_call_without_a_tool_name_is_allowed_by_its_type(
    definition: Any, choice: Any, item: Any
) -> None:
    """Shells by their type, MCP approvals by their server; another server is outside."""

    async def handle(request: dict[str, Any]) -> Any:
        RAN.append(request.get("server_label", "ran"))
        return True if "server_label" in request else "ran"

    others = [{**definition, "server_label": "t"}] if "server_label" in definition else []
    tools = [ptc.client_tool(each, handle) for each in [definition, *others]]
    again = {**item, "id": "c2", "call_id": "c2"} | ({"server_label": "t"} if others else {})
    endpoint = FakeEndpoint([item], [again], [answer()])
    await several(endpoint, choice, *tools).run("go")
    assert (["s"] if others else ["ran", "ran"]) == RAN


async def test_a_required_custom_tool_is_sent_and_enforced() -> None:
    """By the name alone, as a function."""
    custom = ptc.client_tool({"type": "custom", "name": "say", "description": "Say."}, lambda input: input)
    call = {"type": "custom_tool_call", "id": "i", "call_id": "b", "name": "say", "input": "hello"}
    endpoint = FakeEndpoint([function_call("read", "a"), call], [answer()])
    await several(endpoint, {"mode": "required", "required_function_name": "say"}, custom, read).run("go")
    assert endpoint.bodies[0]["tool_choice"] == {"type": "custom", "name": "say"}
    assert "say has to be called first" in denied(endpoint.bodies[1], "a")
    assert RAN == []


async def test_a_tool_in_a_namespace_is_named_in_full() -> None:
    """Its namesake in another namespace is another tool, and a name that could be both is refused."""
    tools = [
        ptc.tool(lambda: 1, name="get", description="Get.", namespace=namespace)
        for namespace in ("one", "two")
    ]
    names = {"one": "One.", "two": "Two."}
    for choice in (
        {"mode": "required", "required_function_name": "one.get"},
        {"mode": "auto", "allowed_tools": ["one.get"]},
    ):
        calls = [function_call("get", space, "{}", namespace=space) for space in ("one", "two")]
        endpoint = FakeEndpoint(calls, [answer()])
        await several(endpoint, choice, *tools, namespaces=names).run("go")
        assert outputs_in(endpoint.bodies[1])["one"] == 1
        assert "one.get" in denied(endpoint.bodies[1], "two")
    with pytest.raises(ptc.ConfigurationError, match=r"may be one\.get, two\.get"):
        several(FakeEndpoint(), {"mode": "required", "required_function_name": "get"}, *tools)


async def test_a_forced_program_that_called_nothing_was_written_all_the_same() -> None:
    """With `until_called` it would be demanded for ever."""
    choice = {"type": "programmatic_tool_calling", "until_called": True}
    endpoint = FakeEndpoint([program(), program_output()], [answer()])
    await several(endpoint, choice, read, programs="hosted").run("go")
    assert [body.get("tool_choice") for body in endpoint.bodies] == [
        {"type": "programmatic_tool_calling"},
        None,
    ]


@ptc.tool(allowed_callers=["programmatic"])
def inside(x: int) -> int:
    """For programs alone."""
    RAN.append("inside")
    return x


@pytest.mark.parametrize(
    "choice",
    [
        {"mode": "required", "required_function_name": "inside"},
        {"mode": "required", "required_function_name": "inside", "until_called": True},
        {"type": "function", "name": "inside"},
        {"mode": "auto", "allowed_tools": ["inside"]},
        {"mode": "required", "allowed_tools": ["inside"]},
    ],
)
@pytest.mark.parametrize("programs", ["local", "auto"])
async def test_a_choice_that_leaves_nothing_to_the_model_is_refused(choice: Any, programs: Any) -> None:
    """Where programs run here the service is not told of it: every call, that of the program itself too, would be
    ruled out until the limits end the run. With the code tool named it can be kept."""
    refused = ptc.ProgramsUnsupported("no programs", status=400)
    endpoint = FakeEndpoint(*([refused] if programs == "auto" else []), [answer()])
    with pytest.raises(ptc.ConfigurationError, match="name 'run_program' in its place"):
        await several(endpoint, choice, inside, programs=programs).run("go")
    assert len(endpoint.bodies) == (programs == "auto")
