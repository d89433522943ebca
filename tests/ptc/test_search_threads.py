"""Searches that take long hold up neither the event loop nor the tools of other runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Iterable
from typing import Any

import pytest

import ptc
from ptc.testing import call, say, search
from ptc_tools.search import Document, Hit
from tests.ptc.search_support import RECORDS, peer_of

RUNS = 40
"""More than there are threads for tools."""


class Slow:
    """An index that is not ready before somebody says so; it notes which threads ask it."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.asked: set[int] = set()
        self.asking = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def with_changes(self, add: Iterable[Document] = (), remove: Iterable[str] = ()) -> Slow:
        return self

    def view(self, keys: Collection[str] | None = None) -> Slow:
        return self

    def search(self, query: str, limit: int = 5) -> list[Hit]:
        self.asked.add(threading.get_ident())
        self._loop.call_soon_threadsafe(self.asking.set)
        assert self.ready.wait(60)
        return [Hit("records.lookup", 1.0)]


@pytest.mark.parametrize("programs", [None, "local"])
async def test_tools_run_while_more_runs_than_threads_wait_for_an_index(programs: Any) -> None:
    """The index is ready when a tool of another run has run: nothing would end if tools waited for searches."""
    index = Slow()

    @ptc.tool
    def make_ready() -> str:
        """Make the index ready."""
        index.ready.set()
        return "ready"

    async def one() -> str:
        asks = search("customer") if programs is None else call("search_tools", query="customer")
        async with peer_of(asks, say("done")) as peer:
            runner = peer.runner(ptc.use(RECORDS).defer(), search=index, programs=programs)
            return (await runner.run("go")).output_text

    runs = [asyncio.create_task(one()) for _ in range(RUNS)]
    await index.asking.wait()
    async with peer_of(call("make_ready"), lambda request: say(str(request.outputs[-1]))) as peer:
        result = await peer.runner(make_ready, search=None).run("go")
    assert result.output_text == "ready"
    assert await asyncio.gather(*runs) == ["done"] * RUNS
    assert threading.get_ident() not in index.asked
