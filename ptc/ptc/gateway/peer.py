"""What the peer does with each request, apart from HTTP: create, poll, cancel, and keep.

It is told parsed JSON and gives back JSON or raises `Rejected`. Everything of one peer hangs together here:
script, sandbox, key, and what is stored.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from ptc.gateway.engine import Conversation, Engine, Reply
from ptc.gateway.faults import Fault, FaultPlan, disturb_output
from ptc.gateway.history import History, read_history
from ptc.gateway.programs import HostedPrograms
from ptc.gateway.rejection import Rejected, invalid
from ptc.gateway.request import Request, finish, new_id, read_request, response_object
from ptc.gateway.script import Script
from ptc.gateway.seal import Seal
from ptc.gateway.store import Store, StoredConversation, StoredResponse
from ptc.gateway.verbatim import Verbatim
from ptc_sandbox.limits import Limits
from ptc_sandbox.sandbox import Sandbox
from ptc_tools.call import JsonObject, JsonValue

# A paused program waits for people and for other machines; what it may compute is bounded by its CPU time.
PROGRAM_LIMITS = Limits(wall_seconds=3600.0, cpu_seconds=20)
_KEPT_REQUESTS = 1000
_EXPIRE_SECONDS = 15.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Settings:
    """How a peer is to behave.

    `api_key`: what a client must present, None for anything. `programs`: whether the deployment runs
    programs, `tool_search`: whether it knows tool search. `control`: whether requests are kept and faults
    can be planned under `/_peer`. `max_body_bytes` bounds a request. `paused_programs` and `idle_seconds`
    bound what keeps a process between requests.
    """

    api_key: str | None = None
    programs: bool = True
    tool_search: bool = True
    control: bool = False
    max_body_bytes: int = 32 * 1024 * 1024
    paused_programs: int = 32
    idle_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Made:
    """A response that was made: as it was when it began, and as it is."""

    opened: JsonObject
    done: JsonObject


class Peer:
    """One embedded Responses peer. Use it as an async context manager: it owns its sandbox."""

    def __init__(
        self,
        script: Script,
        key: bytes,
        *,
        settings: Settings | None = None,
        sandbox: Sandbox | None = None,
        faults: Iterable[Fault] = (),
    ) -> None:
        self.settings = settings or Settings()
        self.faults = FaultPlan(faults)
        self.requests: deque[JsonValue] = deque(maxlen=_KEPT_REQUESTS)
        self._seal = Seal(key)
        self._sandbox = sandbox or Sandbox(limits=PROGRAM_LIMITS)
        self._owns_sandbox = sandbox is None
        self._programs = HostedPrograms(
            self._sandbox,
            capacity=self.settings.paused_programs,
            idle_seconds=self.settings.idle_seconds,
        )
        self._verbatim = Verbatim()
        self._engine = Engine(script, self._programs, self._seal, self._verbatim)
        self._store = Store()
        self._expirer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._expirer = asyncio.create_task(self._expire())
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [entry.task for entry in self._store.responses.values() if entry.task is not None]
        tasks += [self._expirer] if self._expirer is not None else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._programs.aclose()
        if self._owns_sandbox:
            await self._sandbox.aclose()

    @property
    def paused_programs(self) -> int:
        """How many paused programs have a process now."""
        return self._programs.paused

    async def expire(self) -> None:
        """End what has waited too long. It happens by itself, every few seconds."""
        await self._programs.expire()

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRE_SECONDS)
            await self.expire()

    # --- responses --------------------------------------------------------------------------------------

    def read(self, body: JsonValue) -> Request:
        """Check a body; raises `Rejected`. `create` takes what this gives."""
        if self.settings.control:
            self.requests.append(body)
        return read_request(
            body,
            programs_supported=self.settings.programs,
            tool_search_supported=self.settings.tool_search,
        )

    async def create(self, request: Request, faults: tuple[Fault, ...] = ()) -> Made:
        """Make a response, or in background mode begin one; raises `Rejected`."""
        opened = response_object(request, new_id("resp"), int(time.time()), "in_progress")
        base = self._base(request)
        history = self._history(request, base)
        if not request.background:
            with self._busy(request):
                return Made(opened, await self._make(request, opened, history, faults))
        entry = StoredResponse({**opened, "status": "queued"}, _dicts(request.items))
        entry.task = asyncio.create_task(self._make_later(request, entry, history, faults))
        self._store.keep(entry)
        return Made(opened, entry.response)

    async def retrieve(self, response_id: str) -> JsonObject:
        """The response as it is now; one that is still made is waited for, for a moment."""
        entry = self._store.response(response_id)
        if entry.task is not None and not entry.task.done():
            await asyncio.wait([entry.task], timeout=_POLL_SECONDS)
        return entry.response

    def input_items(self, response_id: str) -> JsonObject:
        return _page(self._store.response(response_id).input_items)

    def delete(self, response_id: str) -> JsonObject:
        entry = self._store.response(response_id)
        if entry.task is not None:
            entry.task.cancel()
        del self._store.responses[response_id]
        return {"id": response_id, "object": "response", "deleted": True}

    async def cancel(self, response_id: str) -> JsonObject:
        """Stop a background response; one that has ended stays as it is."""
        entry = self._store.response(response_id)
        if not entry.response.get("background"):
            raise invalid("response_id", "Cannot cancel a synchronous response.")
        if entry.task is not None and not entry.task.done():
            entry.task.cancel()
            await asyncio.gather(entry.task, return_exceptions=True)
        if entry.response["status"] in ("queued", "in_progress"):
            entry.response = {**entry.response, "status": "cancelled"}
        return entry.response

    # --- conversations ----------------------------------------------------------------------------------

    def create_conversation(self, body: JsonValue) -> JsonObject:
        data = body if isinstance(body, dict) else {}
        items = data.get("items")
        if isinstance(items, list) and len(items) > 20:
            raise invalid("items", "Invalid 'items': at most 20 items can be added at a time.")
        conversation: JsonObject = {
            "id": new_id("conv"),
            "object": "conversation",
            "created_at": int(time.time()),
            "metadata": data.get("metadata") or {},
        }
        kept = _dicts(items) if isinstance(items, list) else ()
        self._store.keep_conversation(StoredConversation(conversation, kept))
        return conversation

    def conversation(self, conversation_id: str) -> JsonObject:
        return self._store.conversation(conversation_id).conversation

    def conversation_items(self, conversation_id: str) -> JsonObject:
        return _page(self._store.conversation(conversation_id).items)

    def delete_conversation(self, conversation_id: str) -> JsonObject:
        self._store.conversation(conversation_id)
        del self._store.conversations[conversation_id]
        return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}

    # --- how a response is made -------------------------------------------------------------------------

    def _base(self, request: Request) -> tuple[JsonObject, ...]:
        """What the request goes on from."""
        if request.previous_response_id is not None:
            return self._store.previous(request.previous_response_id).context
        if request.conversation_id is not None:
            return self._store.conversation(request.conversation_id).items
        return ()

    def _history(self, request: Request, base: tuple[JsonObject, ...]) -> History:
        known = {item.get("id") for item in base}
        items: list[JsonValue] = [*base, *(self._dereference(item) for item in request.items)]
        return read_history(
            items,
            request.tools,
            self._seal,
            model=request.model,
            known_reasoning=lambda item_id: item_id in known or self._store.find_item(item_id) is not None,
            verbatim=self._verbatim,
        )

    def _dereference(self, item: JsonValue) -> JsonValue:
        if isinstance(item, dict) and (item.get("type") == "item_reference" or set(item) == {"id"}):
            return self._store.find_item(str(item.get("id"))) or item
        return item

    async def _make(
        self, request: Request, opened: JsonObject, history: History, faults: tuple[Fault, ...]
    ) -> JsonObject:
        reply = await self._engine.respond(
            Conversation(
                history=history,
                model=request.model,
                instructions=request.instructions,
                tools=request.wire_tools,
                tool_choice=request.body.get("tool_choice"),
                encrypt_reasoning=request.encrypt_reasoning,
            )
        )
        reply.items = disturb_output(reply.items, faults)
        done = finish(opened, reply, history.items, int(time.time()))
        self._keep(request, done, history, reply)
        return done

    async def _make_later(
        self, request: Request, entry: StoredResponse, history: History, faults: tuple[Fault, ...]
    ) -> None:
        entry.response = {**entry.response, "status": "in_progress"}
        opened = entry.response
        try:
            with self._busy(request):
                await self._make(request, opened, history, faults)
        except Rejected as rejected:
            entry.response = {
                **opened,
                "status": "failed",
                "error": {"code": rejected.code or "server_error", "message": rejected.message},
            }

    def _keep(self, request: Request, done: JsonObject, history: History, reply: Reply) -> None:
        context = (*history.items, *reply.items)
        if request.store:
            previous = self._store.responses.get(str(done["id"]))
            entry = previous or StoredResponse(done, _dicts(request.items))
            entry.response, entry.context = done, context
            self._store.keep(entry)
        if request.conversation_id is not None:
            self._store.conversation(request.conversation_id).items = context

    @contextmanager
    def _busy(self, request: Request) -> Iterator[None]:
        """One response at a time in a conversation, as the service has it."""
        if request.conversation_id is None:
            yield
            return
        entry = self._store.conversation(request.conversation_id)
        if entry.busy:
            raise Rejected(
                "Another process is currently operating on this conversation. Please retry in a few seconds.",
                status=409,
                code="conversation_locked",
            )
        entry.busy = True
        try:
            yield
        finally:
            entry.busy = False


def _dicts(items: Iterable[JsonValue]) -> tuple[JsonObject, ...]:
    return tuple(item for item in items if isinstance(item, dict))


def _page(items: tuple[JsonObject, ...]) -> JsonObject:
    ids = [str(item.get("id", "")) for item in items]
    return {
        "object": "list",
        "data": list(items),
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "has_more": False,
    }
