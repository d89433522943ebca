"""Agents as tools of toolsets and of registries: deferral by name, and calls that keep executor and result contract."""

from __future__ import annotations

from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call, outputs_in


def runner(endpoint: FakeEndpoint, *tools: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=tools, retry=AT_ONCE, **options)


def call_of(name: str, call_id: str, text: str) -> Any:
    return {**function_call(name, call_id, {"input": text}), "namespace": "helpers"}


async def test_named_deferral_works_for_agents_as_tools() -> None:
    """A runner that is a tool is a member like every other."""
    inner = FakeEndpoint([answer("seven")])
    agent = runner(inner).as_tool("write", "Writes.")
    helpers = ptc.Toolset("helpers", [agent, runner(inner).as_tool("read", "Reads.")])
    step = ptc.Sources([ptc.use(helpers).defer("write")]).fixed()
    assert step.deferred == {"helpers.write"}
    call = ptc.Call("c1", "write", {"input": "How many?"}, namespace="helpers")
    assert await ptc.Invoker(step.catalog).invoke(call, ptc.RunContext("r")) == ptc.Success("seven")


async def test_an_agent_of_a_registry_runs_here_by_the_configuration_that_was_published() -> None:
    """A runner for each configuration; an object is asked for as structured output."""
    schema: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    inner = {"rev/1": FakeEndpoint([answer('{"n": 7}')]), "rev/2": FakeEndpoint([answer('{"n": 8}')])}
    asked: list[str] = []

    def runner_for(configuration: str) -> ptc.Runner:
        asked.append(configuration)
        return runner(inner[configuration])

    def agents(configuration: str) -> ptc.Export:
        agent = ptc.agent_reference(
            "count",
            "Counts.",
            executor="counter",
            configuration=configuration,
            output_schema=schema,
            effects="read",
        )
        return ptc.Toolset("helpers", [agent]).export(version="1")

    registry = ptc.LocalRegistry()
    registry.publish(agents("rev/1"))
    outer = FakeEndpoint(
        [call_of("count", "c1", "How many?")], [call_of("count", "c2", "And now?")], [answer("8, it was 7.")]
    )
    ptc.register_registry("agents_here", registry)
    ptc.register_executor("counter", ptc.agent_executor(runner_for))
    try:

        class Replace:
            async def __call__(self, invocation: ptc.Invocation, next: ptc.Next, /) -> ptc.Outcome:
                outcome = await next(invocation)
                registry.publish(agents("rev/2"))
                return outcome

        result = await runner(outer, ptc.Registry("agents_here"), middleware=[Replace()]).run("go")
    finally:
        ptc.unregister_registry("agents_here")
    assert result.output_text == "8, it was 7."
    assert asked == ["rev/1", "rev/2"]
    assert outputs_in(outer.bodies[1])["c1"] == {"n": 7}
    assert outputs_in(outer.bodies[2])["c2"] == {"n": 8}
    assert inner["rev/1"].bodies[0]["text"]["format"]["schema"] == schema
    assert inner["rev/1"].inputs[0][0]["content"] == "How many?"


async def test_an_unknown_configuration_fails_the_call() -> None:
    """The application knows its revisions; what it does not know it does not run."""

    def none(configuration: str) -> ptc.Runner:
        raise LookupError(f"there is no {configuration}")

    agent = ptc.agent_reference(
        "count",
        "Counts.",
        executor="none",
        configuration="rev/9",
        output_schema={"type": "string"},
        effects="read",
    )
    registry = ptc.LocalRegistry()
    registry.publish(ptc.Toolset("helpers", [agent]).export(version="1"))
    registries = ptc.Registries({"agents": registry})
    registries.register_executor("none", ptc.agent_executor(none))
    step = await ptc.Sources([ptc.Registry("agents")], registries=registries).read()
    call = ptc.Call("c1", "count", {"input": "x"}, namespace="helpers")
    outcome = await ptc.Invoker(step.catalog).invoke(call, ptc.RunContext("r"))
    assert isinstance(outcome, ptc.Failure)
    assert "there is no rev/9" in outcome.message


def test_a_reference_is_no_function_to_be_called() -> None:
    """It runs where a registry's consumer calls it."""
    agent = ptc.agent_reference(
        "count",
        "Counts.",
        executor="none",
        configuration="rev/9",
        output_schema={"type": "string"},
        effects="read",
    )
    with pytest.raises(RuntimeError, match="consumer"):
        agent(input="x")
