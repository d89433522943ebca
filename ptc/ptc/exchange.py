"""One request and its response: body, fallbacks, background polling, and what the conversation makes of it.

It falls back at most once for each reason, and only where nothing has run: from hosted programs to local
ones, and from a chain that the service lost to the full input.
"""

from __future__ import annotations

from ptc.asking import Asker, Emit
from ptc.conversation import Conversation
from ptc.durable import Durable
from ptc.errors import EndpointError, ProgramsUnsupported, RemoteProtocolError, RequestRejected
from ptc.events import Event, Failed, StillRunning
from ptc.exposure import LiveExposure
from ptc.limits import Spent
from ptc.providers.failures import is_lost_chain, is_misplaced_field
from ptc.reading import speaks_of_programs
from ptc.recording import RunRecords
from ptc.replaying import Replay
from ptc.rounds import Rounds
from ptc.settings import Settings, base_body
from ptc.steps import Steps
from ptc.toolbox import Step
from ptc.usage import Usage
from ptc_tools.call import JsonObject

_UNDER_WAY = ("queued", "in_progress")


class Exchange:
    """The exchanges of one run. `in_doubt` stays set once a hosted program may have started, or a conversation
    may have taken something in that nobody knows of: running again could do or say it twice."""

    def __init__(
        self,
        settings: Settings,
        conversation: Conversation,
        *,
        steps: Steps,
        exposure: LiveExposure,
        replay: Replay,
        rounds: Rounds,
        spent: Spent,
        records: RunRecords,
        emit: Emit | None,
        durable: Durable | None = None,
    ) -> None:
        self._durable = durable
        self._settings = settings
        self._conversation = conversation
        self._steps = steps
        self._exposure = exposure
        self._replay = replay
        self._rounds = rounds
        self._spent = spent
        self._records = records
        self._asker = Asker(settings.endpoint, settings.retry, settings.request_timeout, emit)
        self._base = base_body(settings)
        self.in_doubt = False
        self.response_id: str | None = None

    async def next(self, step: Step) -> tuple[Event, ...]:
        """Sends the conversation and says what came back. Raises EndpointError, RemoteProtocolError."""
        self._spent.requests += 1
        response = await self._recorded() or await self._ask_with_fallbacks(step)
        events = await self._received(step, response)
        while events and isinstance(events[0], StillRunning):
            self.in_doubt |= self._may_run(step)
            if not self._settings.background:
                raise RemoteProtocolError(
                    "the response is still running, and no background response was asked for"
                )
            response = self._next_recorded() or await self._asker.poll(
                events[0].response_id, self._settings.poll_interval
            )
            events = await self._received(step, response)
        self._rounds.received(response, events, step)
        self._steps.answered()
        response_id = response.get("id")
        self.response_id = response_id if isinstance(response_id, str) else None
        return events

    async def _received(self, step: Step, response: JsonObject) -> tuple[Event, ...]:
        """Notes what came before anything is made of it: a response that is refused may have run programs."""
        if isinstance(response, dict):
            self.in_doubt |= speaks_of_programs(response)
            fresh = self._durable is None or await self._durable.received(response, self._exposure.programs)
            if self._durable is not None and fresh and (kept := self._steps.admissions_for(response, step)):
                self._durable.note("selected", {"request": self._spent.requests, "tools": {**kept}})
            if response.get("status") not in _UNDER_WAY:
                self._spent.usage += Usage.of_response(response)
                if fresh:
                    await self._records.received(response)
        try:
            events = self._conversation.receive(response)
        except RemoteProtocolError:
            self.in_doubt |= self._may_run(step)  # what cannot be read may hide a program
            raise
        if any(isinstance(event, Failed) for event in events):
            self.in_doubt |= self._may_run(step)  # as after a 5xx: its output may not be all
        return events

    async def _recorded(self) -> JsonObject | None:
        """The response of a run that is recovered: it came once, and is not asked for again."""
        response = self._next_recorded()
        if response is None or self._durable is None:
            return None
        past, exposure = self._durable.past, self._exposure
        if past.local_from == self._spent.requests and exposure.programs == "hosted":
            await self._steps.fall_back_to_local()
        self._conversation.request()
        return response

    def _next_recorded(self) -> JsonObject | None:
        if self._durable is None:
            return None
        return self._durable.next_response(conversation=self._conversation.mode == "conversation")

    def _may_run(self, step: Step) -> bool:
        return step.programs == "hosted" or bool(self._conversation.open_programs)

    async def _ask_with_fallbacks(self, step: Step) -> JsonObject:
        for _ in range(3):
            encode = self._replay.encode(step)
            body = self._steps.add_to({**self._base, **self._conversation.request(encode)}, step)
            self._rounds.add_to(body)
            try:
                return await self._ask(step, body)
            except ProgramsUnsupported as error:
                if is_misplaced_field(error, body.get("tools")):
                    said = error.message.partition("the service says: ")
                    raise RequestRejected(
                        f"the service refused the request (HTTP {error.status}); {said[1]}{said[2]}",
                        status=error.status,
                        error_code=error.error_code,
                    ) from error.__cause__
                may = self._settings.programs == "auto" and self._spent.requests == 1
                if not may or self._exposure.programs != "hosted":
                    raise
                self._conversation.give_up()
                step = await self._steps.fall_back_to_local()
            except EndpointError as error:
                if not is_lost_chain(error):
                    raise
                self._conversation.give_up()
                if not self._conversation.forget_server_state():
                    raise
        raise AssertionError("each fallback is taken once")

    async def _ask(self, step: Step, body: JsonObject) -> JsonObject:
        # What a conversation took in stays there: sent again, it would be said twice.
        once = self._may_run(step) or self._conversation.mode == "conversation"
        try:
            return await self._asker.ask(
                body,
                self._spent.requests,
                only_once=once,
                sent=lambda attempt: self._records.sent(step, body, attempt),
            )
        except EndpointError as error:
            self.in_doubt |= once and error.retry == "ambiguous"
            raise
        except RemoteProtocolError:
            self.in_doubt |= once
            raise
