"""One run, from its input to its result: the driver that all faces of the runner share.

It moves values between the conversation (what is said), the endpoint (how it is sent) and the batch (how
calls run), and keeps the run's limits. It decides nothing that one of those decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import cast

from ptc.answering import Answers
from ptc.asking import Emit
from ptc.batch import failing
from ptc.bounding import Bounds
from ptc.calls import Calls
from ptc.cancelling import Cancellation, uncut
from ptc.compacting import compact_history
from ptc.control import FailRun, TerminateRun, ToolFailed
from ptc.conversation import Conversation
from ptc.ending import Ending, Last, ending_of, tell_transcript
from ptc.errors import (
    LimitExceeded,
    ResponseIncomplete,
    RunError,
    RunTerminated,
)
from ptc.events import (
    ApprovalRequested,
    CallRequested,
    Commentary,
    Event,
    Failed,
    Finished,
    Incomplete,
    PendingCall,
    ProgramClosed,
    ProgramOpened,
    ProgramPaused,
    Refused,
    SearchRequested,
)
from ptc.exchange import Exchange
from ptc.exposure import LiveExposure
from ptc.limits import Spent
from ptc.loading import LoadedTools
from ptc.pausing import (
    check_contracts,
    entries_of,
    removed_of,
    restore,
    restore_ledger,
    restore_reports,
    restore_spent,
    retired_of,
    state_of,
)
from ptc.progress import CallFinished, CallStarted, RunEvent, RunFinished, RunStarted
from ptc.recording import RunRecords
from ptc.replaying import Replay
from ptc.reporting import RunReporter
from ptc.result import RunResult
from ptc.rounds import Rounds
from ptc.settings import Settings, includes
from ptc.start import Start
from ptc.state import RunState
from ptc.steps import Steps
from ptc.toolbox import ProgramsMode, Step
from ptc_tools.call import JsonObject
from ptc_tools.context import RunContext


class Run:
    """Drives one run; `drive` is called once."""

    def __init__(self, settings: Settings, start: Start, emit: Emit | None = None) -> None:
        if (durable := start.durable) is not None:
            settings = durable.settings(settings, watched=emit is not None)
        self._settings, self._start, self._emit, self._durable = settings, start, emit, durable
        self._conversation = Conversation(
            mode=settings.history,
            previous_response_id=start.previous_response_id,
            conversation_id=start.conversation_id,
            include=includes(settings.request),
        )
        state = start.state
        programs: ProgramsMode | None = "hosted" if settings.programs == "auto" else settings.programs
        if state is not None:
            programs = cast("ProgramsMode | None", state.programs)
        self._exposure = LiveExposure(
            settings.entries if state is None else entries_of(state, settings.known),
            programs=programs,
            open_programs=lambda: self._conversation.open_programs,
            functions=settings.functions,
            retired=() if state is None else retired_of(state, settings.known),
            search=settings.search,
        )
        acting = start.acting
        self._context = RunContext(
            start.run_id,
            acting.principal,
            acting.labels,
            exposure=self._exposure,
            tenant=acting.tenant,
            credentials=acting.credentials,
        )
        self._reporter = RunReporter(
            settings.recorder,
            on_start=None if emit is None else lambda call: emit(CallStarted(call)),
            on_finish=None if emit is None else lambda report: emit(CallFinished(report)),
        )
        self._spent = Spent()
        self._records = RunRecords(settings, self._reporter, self._context, self._spent)
        self._resources = AsyncExitStack()
        self._loaded = LoadedTools(self._conversation.history)
        self._rounds = Rounds(settings.max_output_tokens)
        self._steps = Steps(
            settings, self._exposure, acting, self._loaded, self._resources, start.journals, durable
        )
        if state is not None:
            self._steps.eager |= set(state.eager)
        self._calls = Calls(
            settings,
            self._context,
            self._reporter,
            spent=self._spent,
            exposure=self._exposure,
            loaded=self._loaded,
            decided=start.decided(),
            again=start.approved_again,
            asked=start.asked,
            durable=durable,
        )
        self._answers = Answers(
            self._conversation,
            self._calls,
            reporter=self._reporter,
            records=self._records,
            spent=self._spent,
            limits=settings.limits,
            durable=durable,
        )
        self._exchange = Exchange(
            settings,
            self._conversation,
            steps=self._steps,
            exposure=self._exposure,
            replay=Replay(self._conversation, self._loaded),
            rounds=self._rounds,
            spent=self._spent,
            records=self._records,
            emit=emit,
            durable=durable,
        )
        if durable is not None:
            durable.watch(self._exposure, lambda: self._spent.requests, settings.entries)
        self._bounds = Bounds(
            settings.limits, self._spent, rounds=self._rounds, steps=self._steps, durable=durable
        )

    async def drive(self) -> RunResult[object]:
        """Runs to the result. Raises RunError (and ToolCallError with `on_tool_error="raise"`)."""
        if self._durable is None:
            return await self._drive()
        async with self._durable:
            return await self._drive()

    async def _drive(self) -> RunResult[object]:
        self._tell(RunStarted(self._start.run_id))
        self._cancellation = Cancellation()
        async with self._resources:
            try:
                ending = await self._within_time()
                result = self._result(ending)
            except BaseException as error:
                await uncut(self._failed(error), after=error)
                raise
        await self._records.ended(result.status, output_text=result.output_text)
        self._tell(RunFinished(result))
        return result

    async def _within_time(self) -> Ending:
        seconds = self._settings.limits.wall_clock
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await self._loop()
        except TimeoutError:
            if not deadline.expired():
                raise
            raise LimitExceeded(f"the run took longer than {seconds:g} seconds", limit="wall_clock") from None

    async def _loop(self) -> Ending:
        if self._start.state is not None:
            ending = await self._go_on(self._start.state)
            if ending is not None:
                return ending
            return await self._requests()
        self._conversation.send(self._start.input)
        for program in self._conversation.open_programs:  # the input may go on where another run broke off
            self._context.programs.open(program)
        if self._durable is not None:
            await self._durable.begin(self._start.to_json(self._settings, self._conversation.history))
        step = await self._next_step()
        await self._records.started(step, self._conversation.history, self._start.acting.labels)
        for call_id, decision in self._start.new_decisions.items():
            if self._durable is not None:
                self._durable.decided(call_id, decision, self._start.decided_us)
            await self._records.decided(call_id, decision)
        return await self._requests()

    async def _go_on(self, state: RunState) -> Ending | None:
        """A resumed run begins with the calls that wait."""
        restore(self._conversation, state)
        restore_spent(self._spent, state.spent)
        restore_reports(self._reporter, state)
        self._exposure.hosted_tool = state.hosted_tool
        self._reporter.request = self._spent.requests
        if not state.forced_choice:
            self._steps.choice = self._steps.choice.relaxed()
        open_programs = self._conversation.open_programs
        for program in open_programs:
            self._context.programs.open(program)
        removed = removed_of(state, self._settings.known, self._steps.restored)
        step = await self._steps.again(removed, state.later)
        assert self._calls.desk is not None
        check_contracts(state, step, self._calls.desk.refuses)
        known = (*state.history, *state.answers.values())
        restore_ledger(self._calls.ledger, known, step, self._reporter.calls)
        await self._records.started(step, self._conversation.history, self._start.acting.labels)
        for call_id, decision in self._start.decisions.items():
            await self._records.decided(call_id, decision)
        ending = await self._run_batch(step, tuple(self._conversation.pending.values()), open_programs)
        self._steps.relax_choice(self._reporter.ran)
        return ending

    async def _requests(self) -> Ending:
        while True:
            self._bounds.check()
            if self._durable is not None:
                self._durable.offered.restore(self._spent.requests + 1)
            await compact_history(
                self._settings.compact,
                self._conversation,
                request=self._spent.requests + 1,
                loaded=self._loaded,
                records=self._records,
                durable=self._durable,
            )
            step = await self._next_step()
            self._cancellation.check()
            open_before = self._conversation.open_programs
            self._reporter.request = self._spent.requests + 1
            events = await self._exchange.next(step)
            step = self._steps.current or step  # programs="auto" may have fallen back meanwhile
            ending = await self._act(step, events, open_before)
            if ending is not None:
                return ending
            if self._bounds.limit is None and not self._rounds.searching:
                self._steps.relax_choice(self._reporter.ran)

    async def _next_step(self) -> Step:
        """Of a request that was answered before, in another process, nothing is read again."""
        durable, number = self._durable, self._spent.requests + 1
        if durable is None:
            return await self._steps.next()
        past = durable.past
        return await self._steps.next(past.selection(number), searches=past.searches(number))

    # What a response asks for

    async def _act(self, step: Step, events: Sequence[Event], open_before: tuple[str, ...]) -> Ending | None:
        pending: list[PendingCall] = []
        ending: Last | None = None
        for event in events:
            match event:
                case CallRequested() | ApprovalRequested() | SearchRequested():
                    pending.append(event)
                case ProgramOpened():
                    self._context.programs.open(event.call_id)
                    self._exchange.in_doubt = True
                    await self._records.opened(event)
                case ProgramClosed():
                    self._context.programs.close(event.call_id)
                    await self._records.closed(event)
                case Finished() | Refused() | Incomplete() | Failed():
                    ending = event
            if isinstance(
                event, (ProgramOpened, ProgramPaused, ProgramClosed, Commentary, Finished, Refused)
            ):
                self._tell(event)
        if pending:
            stopped = await self._run_batch(step, pending, open_before)
            if stopped is not None:
                return stopped
        return None if ending is None else ending_of(ending)

    async def _run_batch(
        self, step: Step, pending: Sequence[PendingCall], open_before: tuple[str, ...]
    ) -> Ending | None:
        self._cancellation.check()
        pending = step.meant(pending)
        result = self._answers.given_before(pending)
        if result is None:
            result = await self._calls.run(step, pending, self._steps.choice, open_before)
        self._answers.give(pending, result, step)
        if result.waiting:
            return Ending("paused", "")
        if any(call.whole for call in pending):
            self._spent.failing_batches = self._spent.failing_batches + 1 if failing(result.outcomes) else 0
        if isinstance(result.stop, TerminateRun):
            if self._durable is not None:
                told: JsonObject = {"request": self._spent.requests, "text": result.stop.output_text}
                self._durable.note("terminated", told)
            return Ending("terminated", result.stop.output_text)
        if isinstance(result.stop, FailRun):
            raise RunTerminated(result.stop.message)
        if isinstance(result.stop, ToolFailed):
            raise result.stop.error
        if result.stop is not None:
            raise result.stop
        failure = self._calls.failure(pending, result.outcomes)
        if failure is not None and self._settings.on_tool_error == "raise":
            raise failure
        return None

    # Endings

    def _result(self, ending: Ending) -> RunResult[object]:
        output = None
        if self._settings.output is not None and ending.status == "completed":
            output = self._settings.output.read(ending.text)
        state = self._state() if ending.status == "paused" else None
        return RunResult(
            run_id=self._start.run_id,
            output_text=ending.text,
            items=tuple(self._conversation.history),
            calls=self._reporter.calls,
            programs=self._reporter.programs,
            usage=self._spent.usage,
            requests=self._spent.requests,
            status=ending.status,
            refusal=ending.refusal,
            output=output,
            incomplete_reason=ending.incomplete_reason,
            limit=self._bounds.limit,
            response_id=self._exchange.response_id or self._conversation.previous_response_id,
            approvals=() if state is None else state.approvals,
            state=state,
            uncertain=() if self._calls.recovery is None else tuple(self._calls.recovery.uncertain),
            unsent=self._conversation.unsent,
        )

    def _state(self) -> RunState:
        assert self._calls.desk is not None
        return state_of(
            run_id=self._start.run_id,
            model=self._settings.model,
            conversation=self._conversation,
            desk=self._calls.desk,
            reporter=self._reporter,
            exposure=self._exposure,
            steps=self._steps,
            spent=self._spent,
        )

    async def _failed(self, error: BaseException) -> None:
        """Answers what is open, tells the error what is known, and records the end; hides nothing."""
        self._answers.give_the_rest(self._steps.current)
        refused = await self._answers.refuse_response(self._steps.current, error)
        if isinstance(error, RunError):
            error.run_id, error.usage = self._start.run_id, self._spent.usage
            error.safe_to_retry = not self._reporter.anything_ran and not self._exchange.in_doubt
            tell_transcript(error, self._conversation, refused)
        status = "cancelled" if isinstance(error, asyncio.CancelledError) else "failed"
        if isinstance(error, ResponseIncomplete):
            status = "incomplete"
        if self._durable is not None:
            status = self._durable.status_after(error, status)
        try:
            await self._records.ended(status, error=error)
        except Exception as trouble:  # noqa: BLE001 - what ended the run matters more
            error.add_note(f"the end of the run could not be recorded: {type(trouble).__name__}")

    def _tell(self, event: RunEvent) -> None:
        if self._emit is not None:
            self._emit(event)
