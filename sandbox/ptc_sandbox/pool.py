"""The pool: confined children, forked ahead, each used once.

Bounded and fair: at most `concurrency` programs at once, the rest wait in the order they came. A child that
was used or has died is replaced in the background; so is a fork server. After `aclose` nothing is left: no
process, no descriptor.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from itertools import islice

from ptc_sandbox.confine import Confinement, Resources
from ptc_sandbox.errors import ConfinementUnavailable, SandboxBroken, SandboxClosed
from ptc_sandbox.forkserver import Child, ForkServer
from ptc_tools.call import JsonObject

_REHEARSED = 2
"""How many of the children that wait have rehearsed: each takes some megabytes for it."""


_QUIET_SECONDS = 0.002
"""Without a new program for so long, there is time for rehearsals."""


class Pool:
    """Children of one confinement and one set of resources, on the event loop it was made on."""

    def __init__(
        self, confinement: Confinement, resources: Resources, *, ahead: int, concurrency: int
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._confinement = confinement
        self._resources = resources
        self._ahead = ahead
        self._slots = asyncio.Semaphore(concurrency)
        self._idle: deque[Child] = deque()
        self._server: ForkServer | None = None
        self._starting = asyncio.Lock()
        self._refilling: asyncio.Task[None] | None = None
        self._used: set[Child] = set()
        self._acquired = 0.0
        self._rehearsal: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def layers(self) -> list[JsonObject]:
        """What the fork server enforces once for all children, as it reported it."""
        return self._server.layers if self._server else []

    @property
    def foreign(self) -> bool:
        """Whether it is another process's: this one was forked from it, and has neither its loop nor its children."""
        return self._pid != os.getpid()

    async def acquire(self) -> Child:
        """A fresh child for one program; waits for its turn. Give it back with `release`."""
        self._check_open()
        await self._slots.acquire()
        try:
            child = self._take_idle() or await self._fork()
            self._check_open(child)
        except BaseException:
            self._slots.release()
            raise
        self._used.add(child)
        self._acquired = self.loop.time()
        if not self._idle:
            self._refill()  # else when this program has ended: forking beside it would slow it down
        return child

    def _check_open(self, child: Child | None = None) -> None:
        """Raise SandboxClosed once the pool is closed, also where it was closed while somebody waited."""
        if self._closed:
            if child is not None:
                child.close()
            raise SandboxClosed("the sandbox is closed: make a new one")

    def release(self, child: Child) -> None:
        """The program of this child is over. The child is not used again."""
        self._used.discard(child)
        child.close()
        self._slots.release()
        if not self._closed:
            self._refill()

    def _take_idle(self) -> Child | None:
        while self._idle:
            child = self._idle.popleft()
            if child.alive():
                return child
            child.close()
        return None

    async def _fork(self) -> Child:
        """A new child; a fork server that has gone is replaced once."""
        server = await self._live_server()
        try:
            return await server.fork()
        except SandboxBroken:
            return await (await self._live_server()).fork()

    async def _live_server(self) -> ForkServer:
        async with self._starting:
            self._check_open()
            if self._server is None or not self._server.alive:
                if self._server is not None:
                    await self._server.aclose()
                self._server = await ForkServer.start(self._confinement, self._resources)
            return self._server

    def _refill(self) -> asyncio.Task[None]:
        if self._refilling is None or self._refilling.done():
            self._refilling = self.loop.create_task(self._fork_ahead())
        return self._refilling

    async def _fork_ahead(self) -> None:
        """Fork until enough children wait. A failure here shows at the next `acquire`."""
        try:
            while len(self._idle) < self._ahead and not self._closed:
                self._idle.append(await self._fork())
        except (SandboxBroken, SandboxClosed, ConfinementUnavailable):
            return
        self._rehearse_when_quiet()

    def _rehearse_when_quiet(self) -> None:
        """A rehearsal costs about what a program's start costs: it is for pauses, not for busy times."""
        if self._rehearsal is None:
            self._rehearsal = self.loop.call_later(_QUIET_SECONDS, self._rehearse)

    def _rehearse(self) -> None:
        self._rehearsal = None
        if self._closed:
            return
        if self.loop.time() - self._acquired < _QUIET_SECONDS:
            self._rehearse_when_quiet()
            return
        for child in islice(self._idle, _REHEARSED):
            child.rehearse()

    async def warm_up(self) -> None:
        """Have a fork server and its children ready. Raises what a first program would have raised."""
        await self._live_server()
        await self._refill()

    async def aclose(self) -> None:
        """Kill every child and end the server; programs that run end as cancelled."""
        self._closed = True
        if self._rehearsal:
            self._rehearsal.cancel()
        if self._refilling:
            self._refilling.cancel()
            await asyncio.wait([self._refilling])
        for child in [*self._idle, *self._used]:
            child.close()
        self._idle.clear()
        async with self._starting:  # one that is being started is there when this goes on
            if self._server:
                await self._server.aclose()
                self._server = None

    def abandon(self) -> None:
        """`aclose` where the event loop has ended already, and nothing can be awaited. Of another process's: no more
        than its descriptors are closed here."""
        self._closed = True
        for child in [*self._idle, *self._used]:
            child.close(kill=not self.foreign)
        self._idle.clear()
        self._used.clear()
        if self._server:
            self._server.abandon(wait=not self.foreign)
            self._server = None
