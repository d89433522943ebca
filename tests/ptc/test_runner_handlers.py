"""Calls that are not functions: handled by what the application registered, or answered with an error."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, by_program, function_call, program

CUSTOM = {"type": "custom_tool_call", "id": "ct", "call_id": "c1", "name": "grep", "input": "needle"}
SHELL = {
    "type": "shell_call",
    "id": "sh",
    "call_id": "c1",
    "action": {"commands": ["ls"], "max_output_length": 100},
    "status": "in_progress",
}
LOCAL_SHELL = {
    "type": "local_shell_call",
    "id": "ls",
    "call_id": "c1",
    "action": {"command": ["ls"]},
    "status": "in_progress",
}
PATCH = {
    "type": "apply_patch_call",
    "id": "ap",
    "call_id": "c1",
    "operation": {"type": "delete_file", "path": "a"},
    "status": "in_progress",
}
APPROVAL = {
    "type": "mcp_approval_request",
    "id": "mr_1",
    "server_label": "s",
    "name": "drop",
    "arguments": "{}",
}
SEARCH = {
    "type": "tool_search_call",
    "id": "ts",
    "call_id": "c1",
    "execution": "client",
    "arguments": {"query": "x"},
    "status": "completed",
}
COMPUTER = {
    "type": "computer_call",
    "id": "cc",
    "call_id": "c1",
    "action": {"type": "screenshot"},
    "status": "completed",
}


def runner(endpoint: FakeEndpoint, *tools: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=tools, retry=AT_ONCE, **options)


async def answered(call: dict[str, Any], *tools: Any, **options: Any) -> dict[str, Any]:
    """The output item that a call got."""
    endpoint = FakeEndpoint([call], [answer()])
    await runner(endpoint, *tools, **options).run("go")
    (output,) = endpoint.inputs[1][2:]
    return output


async def test_a_custom_tool_gets_its_text() -> None:
    """And gives text back; the definition goes out as it is."""
    definition: Any = {"type": "custom", "name": "grep", "description": "Find.", "format": {"type": "text"}}
    endpoint = FakeEndpoint([CUSTOM], [answer()])
    await runner(endpoint, ptc.client_tool(definition, lambda input: f"found {input}")).run("go")
    assert endpoint.bodies[0]["tools"] == [definition]
    assert endpoint.inputs[1][2] == {
        "type": "custom_tool_call_output",
        "call_id": "c1",
        "output": "found needle",
    }


async def test_a_shell_call_is_answered_by_its_handler() -> None:
    """With the list of outputs, or with a text for stdout."""
    shell = ptc.client_tool({"type": "shell"}, lambda request: f"ran {request['action']['commands']}")
    assert await answered(SHELL, shell) == {
        "type": "shell_call_output",
        "call_id": "c1",
        "output": [{"stdout": "ran ['ls']", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        "max_output_length": 100,
    }


async def test_patches_and_local_shells_are_answered_by_their_handlers() -> None:
    """Each in the form of its own item."""
    patch = ptc.client_tool({"type": "apply_patch"}, lambda request: f"{request['operation']['type']} done")
    expected = {
        "type": "apply_patch_call_output",
        "call_id": "c1",
        "status": "completed",
        "output": "delete_file done",
    }
    assert await answered(PATCH, patch) == expected
    shell = ptc.client_tool({"type": "local_shell"}, lambda request: "ok")
    assert await answered(LOCAL_SHELL, shell) == {
        "type": "local_shell_call_output",
        "id": "c1",
        "output": "ok",
    }


@pytest.mark.parametrize(
    ("given", "approve"), [(True, True), (False, False), ("too dangerous", False), (1, False)]
)
async def test_only_a_plain_true_approves_a_remote_call(given: Any, approve: bool) -> None:
    """Anything else is a no."""
    server: Any = {
        "type": "mcp",
        "server_label": "s",
        "server_url": "https://mcp.example",
        "require_approval": "always",
    }
    output = await answered(APPROVAL, ptc.client_tool(server, lambda request: given))
    assert (output["type"], output["approval_request_id"], output["approve"]) == (
        "mcp_approval_response",
        "mr_1",
        approve,
    )
    assert output.get("reason") == (given if isinstance(given, str) else None)


async def test_a_search_gives_the_definitions_that_were_found() -> None:
    """Client mode: we send the result and echo the call id."""
    found = [{"type": "function", "name": "rare"}]
    search = ptc.client_tool({"type": "tool_search", "execution": "client"}, lambda request: found)
    assert await answered(SEARCH, search) == {
        "type": "tool_search_output",
        "call_id": "c1",
        "execution": "client",
        "status": "completed",
        "tools": found,
    }


async def test_a_computer_call_gets_its_screenshot() -> None:
    """The one thing that its output can carry."""
    shot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,"}
    computer = ptc.client_tool({"type": "computer"}, lambda request: shot)
    assert await answered(COMPUTER, computer) == {
        "type": "computer_call_output",
        "call_id": "c1",
        "output": shot,
    }


async def test_a_computers_safety_checks_can_be_acknowledged() -> None:
    """By the handler alone, which knows who agreed to which; the service goes on no further without."""
    shot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,"}
    checks = [{"id": "check_1", "code": "malicious_instructions", "message": "Look at it."}]

    def look(request: dict[str, Any]) -> Any:
        return {"output": shot, "acknowledged_safety_checks": request["pending_safety_checks"]}

    computer = ptc.client_tool({"type": "computer"}, look)
    output = await answered({**COMPUTER, "pending_safety_checks": checks}, computer)
    assert (output["output"], output["acknowledged_safety_checks"]) == (shot, checks)


PART = {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}


@pytest.mark.parametrize(
    ("call", "definition", "result"),
    [
        (SHELL, {"type": "shell"}, ["a text"]),
        (SHELL, {"type": "shell"}, [PART, {"stdout": "a", "stderr": ""}]),
        (SHELL, {"type": "shell"}, [{**PART, "stdout": None}]),
        (SHELL, {"type": "shell"}, [{**PART, "outcome": "exit"}]),
        (SEARCH, {"type": "tool_search", "execution": "client"}, ["lookup"]),
        (SEARCH, {"type": "tool_search", "execution": "client"}, [{"name": "lookup"}]),
        (SEARCH, {"type": "tool_search", "execution": "client"}, {"tools": []}),
    ],
)
async def test_a_result_that_its_item_cannot_carry_is_a_failure_of_the_call(
    call: dict[str, Any], definition: dict[str, Any], result: Any
) -> None:
    """A service answers it with 400, and the run would end on one wrong handler."""
    endpoint = FakeEndpoint([call], [answer()])
    ended = await runner(endpoint, ptc.client_tool(definition, lambda request: result)).run("go")
    outcome = ended.calls[0].outcome
    assert isinstance(outcome, ptc.Failure)
    assert outcome.code == "invalid_result"
    output = endpoint.inputs[1][2]
    if call is SEARCH:
        assert output["tools"] == []
    else:
        assert (output["output"][0]["stdout"], output["output"][0]["outcome"]["exit_code"]) == ("", 1)
        assert "schema" in output["output"][0]["stderr"]


@pytest.mark.parametrize("result", ["a text", None, {"image_url": "data:,"}, {"output": "data:,"}, [1]])
async def test_a_handler_that_gives_no_screenshot_is_told_so(result: Any) -> None:
    """And not that there is no handler."""
    computer = ptc.client_tool({"type": "computer"}, lambda request: result)
    with pytest.raises(ptc.ToolCallFailed, match="got no screenshot") as caught:
        await answered(COMPUTER, computer)
    assert caught.value.outcome.code == "invalid_result"
    assert "register" not in str(caught.value)


@pytest.mark.parametrize(
    ("definition", "handler", "why"),
    [
        ({"type": "mcp", "server_url": "https://m"}, lambda request: True, "server_label"),
        ({"type": "mcp", "server_label": 3}, lambda request: True, "server_label"),
        ({"type": "shell"}, lambda: "ok", "request="),
        ({"type": "shell"}, lambda request, more: "ok", "more"),
        ({"type": "custom", "name": "grep"}, lambda request: "ok", "input="),
    ],
)
def test_a_handler_that_could_never_answer_is_refused(definition: Any, handler: Any, why: str) -> None:
    """When it is registered, and not at the first call."""
    with pytest.raises(ptc.RegistrationError, match=why):
        ptc.client_tool(definition, handler)


def test_handlers_of_every_form_are_taken() -> None:
    """What can be called with the one argument, and the context where it asks for it."""

    class Shell:
        def run(self, request: dict[str, Any]) -> str:
            return "ok"

        async def __call__(self, request: dict[str, Any], context: ptc.ToolContext) -> str:
            return "ok"

    handlers: list[Any] = [
        Shell().run,
        Shell(),
        lambda **keywords: "ok",
        lambda request, more=1: "ok",
        partial(lambda more, request: "ok", 1),
    ]
    for handler in handlers:
        assert ptc.client_tool({"type": "shell"}, handler).name == "shell_call"


async def test_a_computer_call_without_a_handler_is_an_error_that_says_so() -> None:
    """There is no way to say on the wire that it failed."""
    with pytest.raises(ptc.RemoteProtocolError, match="screenshot"):
        await answered(COMPUTER)


@pytest.mark.parametrize("call", [CUSTOM, SHELL, LOCAL_SHELL, PATCH, APPROVAL, SEARCH])
async def test_without_a_handler_each_call_is_answered_with_a_clear_error(call: dict[str, Any]) -> None:
    """Never a made-up result, never silence."""
    output = await answered(call)
    kind = output["type"]
    if kind == "mcp_approval_response":
        assert output["approve"] is False
        assert "no handler" in output["reason"]
    elif kind == "tool_search_output":
        assert output["tools"] == []
    elif kind == "apply_patch_call_output":
        assert (output["status"], "no handler" in output["output"]) == ("failed", True)
    elif kind == "shell_call_output":
        assert output["output"][0]["outcome"]["exit_code"] == 1
    else:
        assert "no handler" in output["output"]


async def test_the_caller_of_other_calls_goes_back_too() -> None:
    """Custom, shell and patch calls may come from a program."""
    for call in (CUSTOM, SHELL, PATCH):
        owned = {**call, "caller": by_program(extra=None)}
        endpoint = FakeEndpoint([program(), owned], [answer()])
        await runner(endpoint, programs="hosted").run("go")
        assert endpoint.inputs[1][3]["caller"] == by_program(extra=None)


async def test_a_program_calls_a_custom_tool_only_where_it_is_allowed() -> None:
    """`allowed_callers` holds for them as for functions."""
    calls: list[str] = []
    for callers, ran in ((None, 0), (["programmatic"], 1)):
        calls.clear()
        definition: Any = {"type": "custom", "name": "grep"}
        if callers:
            definition["allowed_callers"] = callers
        tool = ptc.client_tool(definition, lambda input: calls.append(input) or "ok")
        endpoint = FakeEndpoint([program(), {**CUSTOM, "caller": by_program()}], [answer()])
        await runner(endpoint, tool, programs="hosted").run("go")
        assert len(calls) == ran


async def test_a_name_means_nothing_without_its_kind() -> None:
    """A custom call does not reach a function of that name, nor the other way round."""
    ran: list[str] = []

    @ptc.tool(strict=False)
    def grep(input: str) -> str:
        """Find."""
        ran.append("function")
        return ""

    output = await answered(CUSTOM, grep)
    assert "no handler for custom tool 'grep'" in output["output"]
    custom = ptc.client_tool({"type": "custom", "name": "grep"}, lambda input: ran.append("custom"))
    output = await answered(function_call("grep", arguments={"input": "x"}), custom)
    assert "unknown_tool" in output["output"]
    shell = ptc.client_tool({"type": "shell"}, lambda request: ran.append("shell"))
    output = await answered(function_call("shell_call", arguments={"request": {}}), shell)
    assert "unknown_tool" in output["output"]
    assert ran == []


async def test_handlers_are_on_the_one_path() -> None:
    """Policy, audit and failures are those of every other call."""

    class Nobody:
        async def authorize(self, principal: Any, tool: Any, arguments: Any, caller: Any) -> Any:
            return ptc.Denied("not_authorized", f"{principal} may not use {tool.name}")

    shell = ptc.client_tool({"type": "shell"}, lambda request: "never")
    output = await answered(SHELL, shell, policy=Nobody(), principal="ann")
    assert output["output"][0]["stderr"] == "ann may not use shell_call"


def test_handlers_are_registered_for_what_they_can_answer() -> None:
    """Functions have tools; hosted tools have no handler."""
    for kind in ("function", "web_search", None):
        with pytest.raises(ptc.RegistrationError):
            ptc.client_tool({"type": kind}, lambda request: None)
    with pytest.raises(ptc.RegistrationError, match="client_tool"):
        runner(FakeEndpoint(), {"type": "custom", "name": "x"})
    one, two = (ptc.client_tool({"type": "shell"}, lambda request: None) for _ in range(2))
    with pytest.raises(ptc.DuplicateTool):
        runner(FakeEndpoint(), one, two)


async def test_each_mcp_server_has_its_own_approval_handler() -> None:
    """A yes to one server must never be a yes to another; a server without a handler gets a no that says so."""
    asked: list[str] = []

    def server(label: str, decision: bool) -> ptc.ClientTool:
        def decide(request: dict[str, Any]) -> bool:
            asked.append(f"{label} of {request['server_label']}")
            return decision

        return ptc.client_tool({"type": "mcp", "server_label": label, "server_url": "https://m"}, decide)

    trusted, danger = server("trusted", True), server("danger", False)
    requests = [{**APPROVAL, "id": f"mr_{n}", "server_label": n} for n in ("trusted", "danger", "other")]
    for tools in ([trusted, danger], [danger, trusted]):
        asked.clear()
        endpoint = FakeEndpoint(requests, [answer()])
        await runner(endpoint, *tools).run("go")
        replies = [item for item in endpoint.inputs[1] if item.get("type") == "mcp_approval_response"]
        assert sorted(asked) == ["danger of danger", "trusted of trusted"]
        assert [reply["approve"] for reply in replies] == [True, False, False]
        assert "no handler for that server" in replies[2]["reason"]


async def test_two_handlers_for_one_mcp_server_are_refused() -> None:
    """Nobody could say which of them decides."""
    definition: Any = {"type": "mcp", "server_label": "s", "server_url": "https://m"}
    tools = [ptc.client_tool(definition, lambda request: True) for _ in range(2)]
    with pytest.raises(ptc.DuplicateTool):
        await runner(FakeEndpoint([answer()]), *tools).run("go")
