"""The peers of the loop's benchmark: other runners over the same client and transport; missing ones are None.

Each is a coroutine function that runs the conversation of `Script` once and returns its answer.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import openai

REQUESTS = 10
CALLS = 5
Run = Callable[[], Awaitable[str]]


class Script:
    """An in-process transport that plays one conversation: calls in every response, then an answer.

    The bodies are made beforehand, so that the transport costs every contender the same.
    """

    def __init__(self) -> None:
        self.bodies = [_body(number) for number in range(REQUESTS)]
        self._next = 0

    def handler(self, request: httpx2.Request) -> httpx2.Response:
        body = self.bodies[self._next % REQUESTS]
        self._next += 1
        return httpx2.Response(200, content=body, headers={"content-type": "application/json"})

    def http(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self.handler))

    def client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(api_key="k", base_url="http://fake/v1", http_client=self.http())


def _body(number: int) -> bytes:
    output: list[dict[str, Any]]
    if number == REQUESTS - 1:
        content = [{"type": "output_text", "text": "done", "annotations": []}]
        output = [
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        ]
    else:
        output = [
            {
                "type": "function_call",
                "id": f"fc_{number}_{index}",
                "call_id": f"call_{number}_{index}",
                "name": "add",
                "arguments": json.dumps({"a": number, "b": index}),
                "status": "completed",
            }
            for index in range(CALLS)
        ]
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details}
    fields = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "usage": usage,
    }
    return json.dumps({**fields, "output": output}).encode()


def ours(client: openai.AsyncOpenAI) -> Run:
    """This project's runner, with the defaults of an application that keeps no audit log."""
    import ptc

    @ptc.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    runner = ptc.Runner(client=client, model="m", tools=[add])

    async def run() -> str:
        return (await runner.run("go")).output_text

    return run


def openai_agents(client: openai.AsyncOpenAI) -> Run | None:
    """The runner of openai-agents, without tracing."""
    if importlib.util.find_spec("agents") is None:
        return None
    import agents

    agents.set_tracing_disabled(True)

    @agents.function_tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    model = agents.OpenAIResponsesModel(model="m", openai_client=client)
    agent = agents.Agent(name="bench", model=model, tools=[add])

    async def run() -> str:
        return str((await agents.Runner.run(agent, "go", max_turns=REQUESTS + 1)).final_output)

    return run


def agent_framework(client: openai.AsyncOpenAI) -> Run | None:
    """The agent of agent-framework over its Responses client."""
    if importlib.util.find_spec("agent_framework_openai") is None:
        return None
    from agent_framework import Agent
    from agent_framework_openai import OpenAIChatClient

    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    agent = Agent(OpenAIChatClient("m", async_client=client), tools=[add])

    async def run() -> str:
        return str((await agent.run("go")).text)

    return run


def floor(http: httpx2.AsyncClient) -> Run:
    """The transport alone: as many requests, and nothing around them."""

    async def run() -> str:
        for _ in range(REQUESTS):
            response = await http.post("http://fake/v1/responses", content=b"{}")
        return str(response.status_code)

    return run
