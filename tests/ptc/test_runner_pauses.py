"""Random runs that pause, change their tools and are stopped: what must hold wherever they were interrupted."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptc
from ptc.history import orphans
from ptc.testing import ScriptedModel, call, capture_audit, in_process, run_code, say

KEY = b"a key of at least 16 bytes"
BOTH: Any = ["direct", "programmatic"]
PROGRAMS = [
    "import asyncio\nlen(await asyncio.gather(act(x=1), ask(x=2), act(x=7), ask(x=3), return_exceptions=True))",
    "a = await ask(x=1)\nb = await ask(x=2)\n3",
    "await act(x=7)",
    "try:\n    await ask(x=5)\nexcept Exception:\n    pass\nawait act(x=2)",
]


class Scene:
    """The tools of one run, and how often each call of it ran."""

    def __init__(self, random: Random) -> None:
        self.ran: Counter[str] = Counter()
        self._random = random

        def act(x: int, context: ptc.ToolContext) -> int:
            self.ran[context.call.call_id] += 1
            if x == 7:
                raise ValueError("seven")
            return x

        def change(k: int, context: ptc.ToolContext) -> str:
            self.ran[context.call.call_id] += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ptc.ExperimentalWarning)
                if k % 3 == 1:
                    context.remove_tools(self._random.choice(["extra", "act", "nobody"]))
                else:
                    context.add_tools(self.extra)
            if k % 3 == 2:
                raise ValueError("taken back")
            return "changed"

        self.extra = ptc.tool(act, name="extra", description="Act.", allowed_callers=BOTH)
        self.tools: list[Any] = [
            ptc.tool(act, name="act", description="Act.", allowed_callers=BOTH),
            ptc.tool(
                act, name="ask", description="Act, if allowed.", allowed_callers=BOTH, approval="always"
            ),
            ptc.tool(change, name="change", description="Change the tools."),
        ]

    def turn(self, programs: str | None) -> list[Any]:
        random = self._random
        direct = [
            lambda: call("act", x=random.randint(5, 9)),
            lambda: call("ask", x=random.randint(5, 9)),
            lambda: call("change", k=random.randint(0, 2)),
            lambda: call("extra", x=1),
        ]
        parts: list[Any] = [random.choice(direct)() for _ in range(random.randint(1, 3))]
        return [run_code(random.choice(PROGRAMS)), *parts] if programs and random.random() < 0.6 else parts


def stopping(random: Random) -> Any:
    stop = random.choice([None] * 8 + [ptc.FailRun("enough"), ptc.TerminateRun("enough")])

    async def layer(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        if stop is not None and invocation.call.name == "act":
            raise stop
        return await next(invocation)

    return layer


async def ended(random: Random, runner: ptc.Runner, scene: Scene, run: dict[str, Any]) -> tuple[Any, ...]:
    """The transcript of a run, resumed as another process would until it is over."""
    try:
        result = await (
            runner.run("go", **run) if random.random() < 0.5 else runner.stream("go", **run).finish()
        )
        for _ in range(40):
            if result.status != "paused":
                return result.items
            assert result.state is not None
            decisions: dict[str, Any] = {
                request.call_id: random.choice(
                    [ptc.Approve(), ptc.Deny("no"), ptc.Approve(arguments={"x": 4})]
                )
                for request in result.approvals
                if random.random() < 0.7
            }
            state = ptc.RunState.unseal(result.state.seal(KEY), KEY)
            result = await runner.resume(state, decisions=decisions, tools=[scene.extra])
    except ptc.RunTerminated as error:
        return error.items
    raise AssertionError("the run never ends")


@pytest.mark.parametrize("programs", ["hosted", "local", None])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_a_run_that_pauses_anywhere_runs_each_call_once_and_answers_it(programs: Any, seed: int) -> None:
    """Whatever changed meanwhile: tools of siblings, a stop, a decision that came late or in part."""

    async def check() -> None:
        random = Random(seed)
        scene = Scene(random)
        turns = [scene.turn(programs) for _ in range(random.randint(1, 3))]
        history: Any = random.choice(["stateless", "previous_response", "conversation"])
        with capture_audit() as audit:
            async with in_process(ScriptedModel(*turns, say("done"))) as client:
                runner = ptc.Runner(
                    client=client,
                    model="m",
                    tools=scene.tools,
                    programs=programs,
                    history=history,
                    audit=audit,
                    approver=ptc.PauseForApproval(),
                    middleware=[stopping(random)],
                    max_concurrent_calls=random.choice([1, 2, 16]),
                )
                conversation = await client.conversations.create() if history == "conversation" else None
                run = {} if conversation is None else {"conversation_id": conversation.id}
                items = await ended(random, runner, scene, run)
        assert [call_id for call_id, count in scene.ran.items() if count > 1] == []
        assert [problem for problem in orphans(items) if "has no output" in problem] == []
        assert audit.unfinished == []

    asyncio.run(check())
