"""A run that is recovered while a registry still knows its calls: each is the call that it was, and runs once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

import ptc
from ptc.registry import HttpRegistry, Keys, Provider, RegistryStore, create_app, new_key
from ptc.testing import ScriptedModel, call, in_process, say

PUBLISHER, PUBLISHERS_KEY = new_key("publisher", "shop")
CONSUMER, CONSUMERS_KEY = new_key("consumer", "assistant")


class Bank:
    """A mutation that says which of its registrations ran it, as which attempt; it waits while it is told to."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []
        self.began = asyncio.Event()
        self.go = asyncio.Event()

    def export(self, version: str) -> ptc.Export:
        @ptc.tool(effects="write", commitment="moves money", idempotency=ptc.Idempotency("protocol"))
        async def pay(to: str, context: ptc.ToolContext) -> str:
            """Pay somebody."""
            self.ran.append((version, context.attempt))
            self.began.set()
            await self.go.wait()
            return f"paid {to} by {version}"

        return ptc.Toolset("bank", [pay]).export(version=version)


@pytest.mark.parametrize("meanwhile", ["nothing", "replaced", "removed"])
async def test_a_mutation_that_was_cut_off_runs_once(tmp_path: Path, meanwhile: str) -> None:
    """Its consumer left in the middle of it; whatever became of the registration, the result is the one it made."""
    bank, store = Bank(), RegistryStore(tmp_path / "registry.db")
    transport = httpx2.ASGITransport(create_app(store, Keys([PUBLISHERS_KEY, CONSUMERS_KEY])))
    publisher, consumer = (
        HttpRegistry("http://registry.test", key=key, transport=transport) for key in (PUBLISHER, CONSUMER)
    )
    model = ScriptedModel(
        call("pay", to="ann", namespace="bank"), lambda request: say(str(request.outputs[-1]))
    )
    ptc.register_registry("shop", consumer)
    try:
        async with in_process(model) as client, Provider(publisher, bank.export("1")) as first:
            runs = ptc.SQLiteRunStore(tmp_path / "runs.db")
            runner = ptc.Runner(client=client, model="m", tools=[ptc.Registry("shop")], store=runs)
            running = asyncio.create_task(runner.run("pay ann", run_id="run_1"))
            await bank.began.wait()
            running.cancel()
            await asyncio.wait([running])
            if meanwhile == "replaced":
                await publisher.publish(bank.export("2"))
            elif meanwhile == "removed":
                await publisher.remove("bank", first.token)
            recovering = asyncio.create_task(runner.recover("run_1"))
            bank.go.set()
            result = await recovering
            await runs.aclose()
    finally:
        ptc.unregister_registry("shop")
        await store.aclose()
    assert "paid ann by 1" in result.output_text
    assert [uncertain.resolution for uncertain in result.uncertain] == ["same_key"]
    assert bank.ran == [("1", 1)]
