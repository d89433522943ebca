"""Wrong uses are refused where they are made, as typed errors that say what to give instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

import ptc
import ptc_tools.experimental
from ptc.errors import InvalidOutput
from ptc.gateway.faults import Fault, InvalidFault
from ptc_tools.errors import RegistrationError
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call, response


@ptc.tool
def read() -> str:
    """Read."""
    return "x"


def runner(**options: Any) -> ptc.Runner:
    merged: dict[str, Any] = {
        "client": FakeEndpoint([answer()]),
        "model": "m",
        "tools": [read],
        "retry": AT_ONCE,
    }
    merged |= options
    return ptc.Runner(**merged)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: runner(tools=read), "tools= is a list"),
        (lambda: runner(tools="read"), "tools= is a list"),
        (lambda: runner(middleware=3), "middleware= is a list"),
        (lambda: runner(middleware=[3]), "middleware= is a list"),
        (lambda: runner(output_type="str"), "output_type is a text"),
        (lambda: runner(output_type=lambda: 1), "output_type is a function"),
        (lambda: runner(tool_choice={"mode": "required", "until_called": "yes"}), "until_called"),
        (
            lambda: runner(
                tool_choice={"mode": "required", "required_function_name": "read", "allowed_tools": ["write"]}
            ),
            "not among allowed_tools",
        ),
        (lambda: ptc.Limits(final_answer=1), "final_answer"),  # type: ignore[arg-type]
        (lambda: ptc.RetryPolicy(attempts=0), "attempts"),
        (lambda: ptc.RetryPolicy(attempts="3"), "attempts"),  # type: ignore[arg-type]
        (lambda: ptc.RetryPolicy(base_delay=-1), "base_delay"),
        (lambda: ptc.RetryPolicy(max_delay=float("nan")), "max_delay"),
        (lambda: ptc.RetryPolicy(max_wait=None), "max_wait"),  # type: ignore[arg-type]
        (lambda: ptc.RetryPolicy(base_delay=float("inf"), max_delay=float("inf")), "infinite"),
        (lambda: runner(retry=0), "retry= is a int"),
        (lambda: runner(limits={}), "limits= is a dict"),
        (lambda: runner(limits=3, max_requests=1), "limits= is a int"),
        (lambda: runner(request=3), "request= is a int"),
        (lambda: runner(request={"x": object()}), "cannot be sent as JSON"),
        (lambda: runner(request={"x": float("nan")}), "cannot be sent as JSON"),
        (lambda: runner(request={"x": {1: 2}}), "cannot be sent as JSON"),
        (lambda: runner(request={"include": "reasoning.encrypted_content"}), "include"),
        (lambda: runner(namespaces=3), "namespaces="),
        (lambda: runner(namespaces={"a": 3}), "namespaces="),
        (lambda: runner(errors_in_schema="no"), "errors_in_schema="),
        (lambda: runner(background="no", history="previous_response"), "background="),
    ],
)
def test_a_runner_says_what_it_cannot_work_with(make: Callable[[], object], said: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ptc.ConfigurationError, match=said):
        make()


def test_other_wrong_uses_are_typed_errors_too() -> None:
    """Nobody has to read a traceback of ours."""
    with pytest.raises(RegistrationError, match="definition first"):
        ptc.client_tool("shell", lambda request: "x")  # type: ignore[arg-type]
    with pytest.raises(ptc.CredentialsMissing, match="empty"):
        ptc.azure_client("https://x.openai.azure.com", api_key="")
    for wrong in ({"status": 200}, {"seconds": -1}, {"retry_after": -1.0}, {"after": -1}):
        with pytest.raises(InvalidFault):
            Fault("status", **wrong)


@pytest.mark.parametrize("wrong", ["", 3, b"resp_1"])
@pytest.mark.parametrize(
    ("history", "name"), [("previous_response", "previous_response_id"), ("conversation", "conversation_id")]
)
async def test_what_is_no_id_of_the_services_is_refused(history: Any, name: str, wrong: Any) -> None:
    """An empty name would quietly begin anew."""
    options: Any = {name: wrong}
    with pytest.raises(ptc.InvalidInput, match="is no id"):
        await runner(history=history).run("go", **options)


def test_an_ending_without_a_text_or_with_no_outcome_is_refused() -> None:
    """Where it is raised, and not where the run looks for its outcome."""
    for wrong in ({"output_text": None}, {"outcome": "done"}):
        with pytest.raises(TypeError, match="TerminateRun takes"):
            ptc.TerminateRun(**wrong)


@pytest.mark.parametrize("made", [None, [], (), "text", 3])
async def test_a_compaction_that_gives_no_history_is_refused(made: Any) -> None:
    """A request without any input is not what anybody meant."""
    with pytest.raises(ptc.ConfigurationError, match="compact="):
        await runner(compact=lambda items: made).run("go")


def test_an_output_without_an_output_is_refused() -> None:
    """The service would refuse the request, and would not say which call it is."""
    conversation = ptc.Conversation()
    conversation.send("x")
    conversation.request()
    conversation.receive(response(function_call("a", "c1")))
    with pytest.raises(ptc.LocalProtocolError, match="no `output`"):
        conversation.answer("c1", {"type": "function_call_output", "call_id": "c1"})


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/openai",
        "/openai/v1/",
        "/openai/deployments/foo/responses?api-version=2025-01-01",
        "/openai/responses?api-version=preview",
    ],
)
def test_an_azure_address_may_be_the_portals_target_uri(path: str) -> None:
    """That is what people copy."""
    client = ptc.azure_client(f"https://x.openai.azure.com{path}", api_key="k")
    assert str(client.base_url) == "https://x.openai.azure.com/openai/v1/"
    behind = ptc.azure_client(f"https://gateway.example/team{path}", api_key="k")
    assert str(behind.base_url) == "https://gateway.example/team/openai/v1/"


@pytest.mark.parametrize("body", [{"error": {"message": "overloaded"}}, {"id": "r", "object": "response"}])
async def test_an_answer_that_is_no_response_is_not_gone_on_from(body: dict[str, Any]) -> None:
    """It would be asked again until the limit, and the error never be told."""
    endpoint = FakeEndpoint(body, [answer()])
    with pytest.raises(ptc.RemoteProtocolError, match="no response") as caught:
        await runner(client=endpoint).run("go")
    assert ("overloaded" in str(caught.value)) == ("error" in body)
    assert len(endpoint.bodies) == 1


class Count(pydantic.BaseModel):
    """A structured answer."""

    n: int


async def test_a_structured_answer_of_another_type_is_not_turned_into_it() -> None:
    """An answer that does not fit is an error, never a half-read value."""
    good = await runner(client=FakeEndpoint([answer('{"n": 1}')]), output_type=Count).run("go")
    assert good.output == Count(n=1)
    with pytest.raises(InvalidOutput):
        await runner(client=FakeEndpoint([answer('{"n": "1"}')]), output_type=Count).run("go")


async def test_the_warning_about_experiments_points_at_the_users_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A filter by module, and a reader, look there."""
    monkeypatch.setattr(ptc_tools.experimental, "_warned", set())

    @ptc.tool
    async def load(ctx: ptc.ToolContext) -> str:
        """Change the tools."""
        ctx.remove_tools("nothing")
        return "ok"

    endpoint = FakeEndpoint([function_call("load", "c", "{}")], [answer()])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        await runner(client=endpoint, tools=[load]).run("go")
    assert [warning.filename for warning in seen] == [__file__]
