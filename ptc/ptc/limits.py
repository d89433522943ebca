"""What a run may spend, and what it has spent. Nothing here stops anything; the driver asks and obeys."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptc.errors import ConfigurationError
from ptc.usage import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run; None is unbounded.

    `max_requests`: requests to the service, retries of one request not counted. `max_calls`: calls whatever
    their caller. `max_calls_per_program`: calls of one program, hosted or local. `max_failing_batches`:
    consecutive batches in which no call succeeded. `max_tokens`: total tokens that the service reports.
    `wall_clock`: seconds. `max_concurrent_calls`: calls of one batch that run at once.
    A call beyond `max_calls` is denied and ends the run after its batch; one beyond
    `max_calls_per_program` is denied alone, and its program may catch that.
    `final_answer`: after a limit, one last request with `tool_choice="none"`, so that the model may
    answer with what it has; without it the limit is an error at once. There is none after `wall_clock`.
    """

    max_requests: int | None = 32
    max_calls: int | None = 1_000
    max_calls_per_program: int | None = 500
    max_failing_batches: int | None = 5
    max_tokens: int | None = None
    wall_clock: float | None = None
    max_concurrent_calls: int = 16
    final_answer: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.final_answer, bool):
            raise ConfigurationError(f"final_answer is {self.final_answer!r}; give True or False")
        for name in self.__slots__:
            value = getattr(self, name)
            if name == "final_answer" or (value is None and name != "max_concurrent_calls"):
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and value > 0) or (isinstance(value, float) and name != "wall_clock"):
                raise ConfigurationError(
                    f"{name} is {value!r}; a limit is "
                    + ("positive" if name == "wall_clock" else "a positive whole number")
                    + ("" if name == "max_concurrent_calls" else ", or None for no limit")
                )


@dataclass(slots=True)
class Spent:
    """The counters of one run. Every call is admitted here once, before it runs."""

    usage: Usage = field(default_factory=Usage)
    requests: int = 0
    calls: int = 0
    failing_batches: int = 0
    calls_of_program: dict[str, int] = field(default_factory=dict)
    refused: bool = False
    """Whether a call was denied by `max_calls`."""
    let_in: set[tuple[str, str | None]] = field(default_factory=set)
    """Calls that were let in before their process ended, each with its program: limits do not deny them now."""

    def call_refusal(self, limits: Limits, call_id: str, program: str | None) -> str | None:
        """Counts a call, or says which limit forbids it."""
        if (call_id, program) in self.let_in:
            self.let_in.discard((call_id, program))
            self.count_call(program)
            return None
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            self.refused = True
            return f"this run may make {limits.max_calls} calls, and has; answer with what there is"
        used = self.calls_of_program.get(program, 0) if program is not None else 0
        most = None if program is None else limits.max_calls_per_program
        if most is not None and used >= most:
            return f"one program may make {most} calls, and this one has"
        self.count_call(program)
        return None

    def count_call(self, program: str | None) -> None:
        """A call that ran, whatever the limits are now."""
        if program is not None:
            self.calls_of_program[program] = self.calls_of_program.get(program, 0) + 1
        self.calls += 1

    def refuse_again(self, limits: Limits) -> None:
        """A call had been denied by `max_calls`: that ends the run, unless the limit is a wider one now."""
        self.refused = self.refused or (limits.max_calls is not None and self.calls >= limits.max_calls)

    def exceeded(self, limits: Limits) -> tuple[str, str] | None:
        """(limit, message) when the run may make no further request."""
        if limits.max_requests is not None and self.requests >= limits.max_requests:
            return "max_requests", (
                f"the run made {self.requests} requests, its limit, and the model still goes on; raise "
                "max_requests if the task needs more, or look at the transcript for a loop"
            )
        if limits.max_tokens is not None and self.usage.total_tokens >= limits.max_tokens:
            return (
                "max_tokens",
                f"the run used {self.usage.total_tokens} tokens; its limit is {limits.max_tokens}",
            )
        if self.refused:
            return "max_calls", (
                f"the run made {self.calls} calls, its limit, and the model asked for more; raise max_calls "
                "if the task needs more, or look at the transcript for a loop"
            )
        if limits.max_failing_batches is not None and self.failing_batches >= limits.max_failing_batches:
            return "max_failing_batches", (
                f"in {self.failing_batches} requests one after the other every call failed; "
                "look at the outcomes in the transcript"
            )
        return None
