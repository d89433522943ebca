"""The conversation with the Responses API as a plain state machine: raw items in, raw items and events out.

It is told responses and outputs, and says what the next request carries and what is to be done. It never
does I/O, looks at a clock, awaits, or decides whether a call may run; and it never changes an item.

The rules of the machine, which `TRANSITIONS` states and nothing else may:

- A request is made only when there is something to send, and never while a call lacks its output.
- A response is taken only after a request, and wholly or not at all.
- Each pending call is answered exactly once; outputs go back in the order of the calls.
- After the answer the conversation rests until there is new input.
- A response that breaks the protocol ends the conversation: what the service thinks is no longer known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from ptc import wire_json
from ptc.errors import (
    InvalidInput,
    LocalProtocolError,
    RemoteProtocolError,
    UnansweredCalls,
)
from ptc.events import (
    Commentary,
    Continues,
    Event,
    Failed,
    Finished,
    Incomplete,
    PendingCall,
    Refused,
    StillRunning,
)
from ptc.fitting import check_answer, check_input, check_reasoning
from ptc.items import as_items, for_request
from ptc.opened import HostedPrograms
from ptc.reading import (
    Messages,
    check_sendable,
    failure_of,
    incomplete_reason,
    items_in,
    messages_of,
    output_of,
    pending_of,
    text_of,
    without_copies,
)
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson

HistoryMode: TypeAlias = Literal["stateless", "previous_response", "conversation"]
"""Where the history lives: with us (`store=False`), behind the last response's id, or in a conversation."""

ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"


class State(Enum):
    RESTING = "resting"
    READY = "ready"
    SENT = "sent"
    ANSWERING = "answering"
    BROKEN = "broken"


class Step(Enum):
    INPUT = "input"
    REQUEST = "request"
    GIVEN_UP = "request given up"
    CALLS = "response with calls"
    CONTINUES = "response to continue"
    ENDED = "response that ends"
    RUNNING = "response still running"
    FAILED = "response that failed"
    VIOLATED = "response that breaks the protocol"
    ANSWER = "output"
    LAST_ANSWER = "last output"
    LAST_ANSWER_AFTER_END = "last output after the end"


TRANSITIONS: Final[Mapping[State, Mapping[Step, State]]] = MappingProxyType(
    {
        State.RESTING: {Step.INPUT: State.READY},
        State.READY: {Step.INPUT: State.READY, Step.REQUEST: State.SENT},
        State.SENT: {
            Step.GIVEN_UP: State.READY,
            Step.CALLS: State.ANSWERING,
            Step.CONTINUES: State.READY,
            Step.ENDED: State.RESTING,
            Step.RUNNING: State.SENT,
            Step.FAILED: State.READY,
            Step.VIOLATED: State.BROKEN,
        },
        State.ANSWERING: {
            Step.ANSWER: State.ANSWERING,
            Step.LAST_ANSWER: State.READY,
            Step.LAST_ANSWER_AFTER_END: State.RESTING,
        },
        State.BROKEN: {},
    }
)
"""Every legal step; a missing entry is a LocalProtocolError that names step and state."""


class Conversation:
    """One conversation. `history` is the list of raw wire dicts, as sent and received.

    `refused` are the items of a response that failed or broke the protocol: not of the history, never sent.
    `mode` says where the history lives; `previous_response_id` and `conversation_id` continue one that the
    service holds; `include` adds to what every request asks for.
    """

    def __init__(
        self,
        *,
        mode: HistoryMode = "stateless",
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        include: Sequence[str] = (),
    ) -> None:
        if (conversation_id is not None) != (mode == "conversation"):
            raise InvalidInput('conversation_id goes with history="conversation", and only with it')
        if previous_response_id is not None and mode != "previous_response":
            raise InvalidInput('previous_response_id goes with history="previous_response"')
        for name in (conversation_id, previous_response_id):
            if name is not None and not (isinstance(name, str) and name):
                raise InvalidInput(
                    f"{name!r} is no id of a response or a conversation: give the service's own"
                )
        self.mode: HistoryMode = mode
        self.state = State.RESTING
        self.history: list[JsonObject] = []
        self.previous_response_id = previous_response_id
        self.conversation_id = conversation_id
        self._holds_everything = previous_response_id is None and conversation_id is None
        self._include = list(
            dict.fromkeys([*include, ENCRYPTED_REASONING] if mode != "conversation" else include)
        )
        self._unsent_from = 0
        self._pending: dict[str, PendingCall] = {}
        self._answers: dict[str, JsonObject] = {}
        self._programs = HostedPrograms()
        self._after_answers = Step.LAST_ANSWER
        self.refused: tuple[JsonObject, ...] = ()

    # What the driver may look at

    @property
    def pending(self) -> Mapping[str, PendingCall]:
        """Calls without an output, by call id, in order."""
        return {call_id: call for call_id, call in self._pending.items() if call_id not in self._answers}

    @property
    def open_programs(self) -> tuple[str, ...]:
        """Call ids of hosted programs that may make calls now."""
        return tuple(self._programs)

    @property
    def at_boundary(self) -> bool:
        """Whether the history may be cut or summarised here: no call and no program is open (rule 10)."""
        return self.state in (State.RESTING, State.READY) and not self._programs

    @property
    def complete_history(self) -> bool:
        """Whether `history` is the whole conversation, or the service holds a part that we never saw."""
        return self._holds_everything

    @property
    def held_items(self) -> int:
        """How many items at the beginning of `history` the service keeps, and is not sent again."""
        held = self.mode == "conversation" or self.previous_response_id is not None
        return self._unsent_from if held else 0

    @property
    def unsent(self) -> tuple[JsonObject, ...]:
        """What a service that keeps the history has not got: items since its last response. Empty where the
        history is ours, and all of it is sent."""
        if self.mode == "stateless":
            return ()
        return (*self.history[self.held_items :], *self._answers.values())

    @property
    def answers(self) -> Mapping[str, JsonObject]:
        """Outputs of the last response's calls that are known already, while others wait."""
        return dict(self._answers)

    # Steps

    def send(self, value: object) -> None:
        """Adds input: a text, or wire items. Raises InvalidInput, UnansweredCalls, LocalProtocolError."""
        if self.state is State.ANSWERING:
            raise UnansweredCalls(
                f"answer the pending calls first: {', '.join(self.pending)}", call_ids=tuple(self.pending)
            )
        items = as_items(value)
        if not items:
            raise InvalidInput("the input is empty")
        try:
            wire_json.check(items)
        except InvalidJson as error:
            raise InvalidInput(f"the input cannot be sent: {error}") from None
        if self.mode == "stateless":
            check_input(items, self.history)
        self._step(Step.INPUT)
        if not self._holds_everything:
            self._programs.note_waiting(items)
        self._programs.note(items)
        self.history.extend(items)

    def request(self, encode: Callable[[JsonObject], JsonObject] = for_request) -> JsonObject:
        """The fields of the next request that belong to the conversation: input, store, include, …

        `encode` writes an item as it is sent; it never changes one.
        """
        self._step(Step.REQUEST)
        fields: JsonObject = {"store": self.mode != "stateless"}
        if self.mode == "previous_response" and self.previous_response_id is not None:
            fields["previous_response_id"] = self.previous_response_id
        elif self.mode == "conversation":
            fields["conversation"] = self.conversation_id
        items: list[JsonValue] = [encode(item) for item in self.history[self.held_items :]]
        fields["input"] = items
        if self._include:
            fields["include"] = list[JsonValue](self._include)
        return fields

    def give_up(self) -> None:
        """The request was not answered: the same input may be sent again."""
        self._step(Step.GIVEN_UP)

    def forget_server_state(self) -> bool:
        """After `previous_response_not_found`: the full input goes next, if we hold all of it."""
        if (
            self.mode != "previous_response"
            or self.previous_response_id is None
            or not self._holds_everything
        ):
            return False
        self.previous_response_id = None
        return True

    def receive(self, response: object) -> tuple[Event, ...]:
        """Takes a response and says what it asks for. Raises RemoteProtocolError."""
        if self.state is not State.SENT:
            raise LocalProtocolError(f"no response is expected while {self.state.value}")
        if not isinstance(response, Mapping):
            self._step(Step.VIOLATED)
            raise RemoteProtocolError(f"the response is a {type(response).__name__}, not an object")
        status = "completed" if response.get("status") is None else response["status"]
        if not isinstance(status, str):
            self._step(Step.VIOLATED)
            self.refused = tuple(items_in(response))
            raise RemoteProtocolError(f"the response's `status` is a {type(status).__name__}, not a text")
        if status in ("queued", "in_progress"):
            return self._still_running(response, status)
        if status in ("failed", "cancelled"):
            self._step(Step.FAILED)
            self.refused = tuple(items_in(response))
            return (Failed(status, *failure_of(response)),)
        try:
            return self._read(response, whole=status == "completed")
        except RemoteProtocolError:
            self._step(Step.VIOLATED)
            self.refused = tuple(items_in(response))
            raise

    def answer(self, call_id: str, item: JsonObject) -> None:
        """Gives the output item of a pending call. Raises LocalProtocolError for all but one per call."""
        pending = self._pending.get(call_id)
        if pending is None or call_id in self._answers:
            why = "was answered already" if call_id in self._answers else "is not pending"
            raise LocalProtocolError(f"call {call_id!r} {why}", call_id=call_id)
        check_answer(pending, item)
        last = len(self._answers) + 1 == len(self._pending)
        self._step(self._after_answers if last else Step.ANSWER)
        self._answers[call_id] = item
        if last:
            self.history.extend(self._answers[waiting] for waiting in self._pending)
            self._pending, self._answers = {}, {}

    def replace_history(self, items: Sequence[JsonObject]) -> None:
        """Puts a cut or summarised history in place: only at a boundary, only where the history is ours."""
        if not self.at_boundary or self.mode != "stateless":
            raise LocalProtocolError(
                "the history can be replaced only where we hold it, and while no call and no program is open"
            )
        check_input(items, ())
        self.history[:] = items

    def restore(
        self,
        history: Sequence[JsonObject],
        pending: Sequence[PendingCall],
        answers: Mapping[str, JsonObject],
        *,
        previous_response_id: str | None = None,
    ) -> None:
        """Puts a new conversation where a paused one was: calls of the last response wait for their outputs."""
        if self.state is not State.RESTING or self.history or not pending:
            raise LocalProtocolError("only a new conversation is restored, and only to where calls wait")
        self.history.extend(history)
        if self.mode != "stateless":
            self._programs.note_waiting(history)
        self._programs.note(history)
        self._unsent_from = len(history)
        self.previous_response_id = previous_response_id
        self._pending = {call.call.call_id: call for call in pending}
        self.state = State.ANSWERING
        for call_id, item in answers.items():
            self.answer(call_id, item)

    # Inside

    def _step(self, step: Step) -> None:
        following = TRANSITIONS[self.state].get(step)
        if following is None:
            raise LocalProtocolError(
                f"{step.value!r} is not possible while the conversation is {self.state.value}"
            )
        self.state = following

    def _still_running(self, response: Mapping[str, object], status: str) -> tuple[Event, ...]:
        response_id = response.get("id")
        self._step(Step.RUNNING if isinstance(response_id, str) else Step.VIOLATED)
        if not isinstance(response_id, str):
            raise RemoteProtocolError("a response that is still running came without an id")
        return (StillRunning(response_id, status),)

    def _read(self, response: Mapping[str, object], *, whole: bool) -> tuple[Event, ...]:
        output = without_copies(output_of(response))
        check_sendable(output)
        pending = pending_of(output, whole=whole)
        messages = messages_of(output)
        programs = self._programs.events_of(output)
        ends = not whole or (not pending and bool(messages.answer))
        if self.mode == "stateless" and not ends:
            check_reasoning(output)
        self.history.extend(output)
        response_id = response.get("id")
        named = isinstance(response_id, str) and bool(response_id)
        if self.mode == "previous_response" and named:
            self.previous_response_id = str(response_id)
        if self.mode != "previous_response" or named:
            # Nothing goes on from a response without a name: it is sent along, after the last that had one.
            self._unsent_from = len(self.history)
        self._programs.note(output)
        self._pending = {call.call.call_id: call for call in pending}
        self._after_answers = Step.LAST_ANSWER_AFTER_END if _is_final(messages, whole) else Step.LAST_ANSWER
        events: list[Event] = [*programs, *pending, *self._programs.paused_by(pending)]
        events += self._said(messages, ended=ends)
        if pending:
            self._step(Step.CALLS)
        elif ends:
            self._step(Step.ENDED)
        else:
            self._step(Step.CONTINUES)
            events.append(Continues())
        if ends:
            events.append(_ending(messages, incomplete_reason(response), whole))
        return tuple(events)

    def _said(self, messages: Messages, *, ended: bool) -> list[Event]:
        on_the_way = (
            messages.commentary if ended else (*messages.commentary, *messages.final, *messages.unphased)
        )
        if ended and messages.final:
            on_the_way = (*on_the_way, *messages.unphased)
        return [Commentary(text_of(item), item) for item in on_the_way]


def _is_final(messages: Messages, whole: bool) -> bool:
    """Whether a response that still has calls to answer was the last one (rule 7's exception)."""
    return not whole and messages.has_completed_final


def _ending(messages: Messages, reason: str | None, whole: bool) -> Event:
    if not whole and not messages.has_completed_final:
        return Incomplete(reason, messages.text)
    refusal = messages.refusal
    if refusal is not None:
        return Refused(refusal, messages.text)
    return Finished(messages.text, None if whole else reason or "incomplete")
