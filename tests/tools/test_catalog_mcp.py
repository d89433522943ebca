"""MCP servers as sources: a real server process behind a session, declared schemas or ones that are read."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pydantic
import pytest

import ptc
from tests.tools.catalog_support import RUN, call_of, names, table

SERVER = Path(__file__).with_name("mcp_server.py")


class StdioSession:
    """A session over a child's pipes, with the two methods of the official SDK's that sources use."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._next = 0
        self._lock = asyncio.Lock()
        self.asked: list[str] = []

    async def list_tools(self, cursor: str | None = None) -> Any:
        return await self.request("tools/list", {} if cursor is None else {"cursor": cursor})

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}})

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._lock:
            self.asked.append(method)
            self._next += 1
            message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()
            answer = json.loads(await self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer["result"]


@asynccontextmanager
async def session(*more: str) -> AsyncIterator[StdioSession]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), *more, stdin=pipe, stdout=pipe
    )
    try:
        opened = StdioSession(process)
        await opened.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
        yield opened
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


DECLARED = [
    {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
        "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
    },
    {"name": "files/read", "inputSchema": {"type": "object"}},
]


async def test_named_deferral_works_with_declared_schemas() -> None:
    """They are known before a run; nothing is asked of the server for that."""
    async with session() as opened:
        asked = list(opened.asked)
        server = ptc.McpServer(opened, rename={"files/read": "read"})
        toolset = ptc.mcp_toolset("maths", server, DECLARED)  # type: ignore[arg-type]
        step = ptc.Sources([ptc.use(toolset).defer("read")]).fixed()
        assert step.deferred == {"maths.read"}
        assert opened.asked == asked
        outcome = await ptc.Invoker(step.catalog).invoke(
            call_of("add", {"a": 2, "b": 3}, namespace="maths"), RUN
        )
        assert outcome == ptc.Success({"sum": 5})
        read = await ptc.Invoker(step.catalog).invoke(call_of("read", {"path": "x"}, namespace="maths"), RUN)
        assert read == ptc.Success("contents of x\n[image image/png]")


async def test_a_name_that_no_model_can_call_is_refused_with_a_way_out() -> None:
    """`files/read` is a name in MCP, and none here."""
    async with session() as opened:
        with pytest.raises(ptc.InvalidName):
            ptc.mcp_toolset("maths", opened, DECLARED)  # type: ignore[arg-type]


async def test_a_server_behind_a_registry_is_listed_at_each_step() -> None:
    """All of its pages."""
    async with session() as opened:
        registry = ptc.McpRegistry({"maths": ptc.McpServer(opened, rename={"files/read": "read"})})
        sources = ptc.Sources([ptc.Registry("servers")], registries=table(servers=registry))
        step = await sources.read()
        assert names(step) == ["maths.add", "maths.read", "maths.fail"]
        outcome = await ptc.Invoker(step.catalog).invoke(
            call_of("add", {"a": 2, "b": 3}, namespace="maths"), RUN
        )
        assert outcome == ptc.Success({"sum": 5})


async def test_a_tool_that_changed_is_not_called() -> None:
    """The list is read before the call, and what the model chose is not there any more."""
    async with session() as opened:
        registry = ptc.McpRegistry({"maths": ptc.McpServer(opened, rename={"files/read": "read"})})
        sources = ptc.Sources([ptc.Registry("servers")], registries=table(servers=registry))
        before = await sources.read()
        await opened.request("test/change", {})
        late = await ptc.Invoker(before.catalog).invoke(
            call_of("add", {"a": 2, "b": 3}, namespace="maths"), RUN
        )
        assert getattr(late, "code", None) == "call_not_admitted"
        assert "tools/call" not in opened.asked
        after = await sources.read()
        assert after.fingerprint != before.fingerprint
        outcome = await ptc.Invoker(after.catalog).invoke(
            call_of("add", {"a": 2, "b": 3}, namespace="maths"), RUN
        )
        assert outcome == ptc.Success({"sum": 5})


async def test_a_notified_change_refuses_calls_of_the_old_list_even_if_it_is_equal() -> None:
    """The application forwards the server's notification."""
    async with session() as opened:
        server = ptc.McpServer(opened, rename={"files/read": "read"}, check_each_call=False)
        registry = ptc.McpRegistry({"maths": server})
        sources = ptc.Sources([ptc.Registry("servers")], registries=table(servers=registry))
        step = await sources.read()
        registry.changed("maths")
        late = await ptc.Invoker(step.catalog).invoke(
            call_of("add", {"a": 2, "b": 3}, namespace="maths"), RUN
        )
        assert getattr(late, "code", None) == "call_not_admitted"


async def test_a_servers_error_is_a_failure_of_the_call() -> None:
    """With its words for the model."""
    async with session() as opened:
        registry = ptc.McpRegistry({"maths": ptc.McpServer(opened, rename={"files/read": "read"})})
        step = await ptc.Sources([ptc.Registry("servers")], registries=table(servers=registry)).read()
        outcome = await ptc.Invoker(step.catalog).invoke(call_of("fail", {}, namespace="maths"), RUN)
        assert isinstance(outcome, ptc.Failure)
        assert "it broke" in outcome.message


async def test_hints_about_effects_are_believed_only_where_the_application_says_so() -> None:
    """A server could call anything harmless."""
    async with session() as opened:
        for trusted, expected in ((False, [None, None, None]), (True, ["read", "destructive", "write"])):
            server = ptc.McpServer(opened, rename={"files/read": "read"}, trust_annotations=trusted)
            registries = table(servers=ptc.McpRegistry({"maths": server}))
            step = await ptc.Sources([ptc.Registry("servers")], registries=registries).read()
            assert [entry.contract.effects for entry in step.catalog] == expected


async def test_a_server_that_is_gone_fails_the_step() -> None:
    """There is no catalog without it."""
    async with session() as opened:
        registries = table(servers=ptc.McpRegistry({"maths": opened}))
        sources = ptc.Sources([ptc.Registry("servers")], registries=registries)
    with pytest.raises(ptc.SourceUnreadable):
        await sources.read()


async def test_sessions_may_give_models_instead_of_mappings() -> None:
    """As the official SDK does."""

    class Page(pydantic.BaseModel):
        tools: list[dict[str, Any]]
        next_cursor: str | None = pydantic.Field(None, serialization_alias="nextCursor")

    class Result(pydantic.BaseModel):
        content: list[Any] = []
        structured_content: Any = pydantic.Field(serialization_alias="structuredContent")
        is_error: bool = pydantic.Field(False, serialization_alias="isError")

    class Session:
        async def list_tools(self, *, params: Any = None) -> Any:
            return Page(tools=[]) if params == {"cursor": "2"} else Page(tools=[DECLARED[0]], next_cursor="2")

        async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
            assert arguments is not None
            return Result(structured_content={"sum": arguments["a"] + arguments["b"]})

    registries = table(servers=ptc.McpRegistry({"maths": Session()}))
    step = await ptc.Sources([ptc.Registry("servers")], registries=registries).read()
    outcome = await ptc.Invoker(step.catalog).invoke(call_of("add", {"a": 2, "b": 3}, namespace="maths"), RUN)
    assert outcome == ptc.Success({"sum": 5})
