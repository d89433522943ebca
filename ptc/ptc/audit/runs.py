"""What the log remembers of runs in flight, so that a call's record can say where the call belongs.

Identities are encoded once for a run and reused for each of its calls. Only bookkeeping is kept here, and
for a bounded number of runs; a forgotten run is still recorded, with less about its turn and programs.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ptc.audit.values import quoted, quoted_name
from ptc_tools.call import Call, JsonValue
from ptc_tools.context import RunContext

MAX_RUNS: Final = 10_000
MAX_PROGRAMS: Final = 1_000


class RunState:
    """One run: its identity as JSON texts, its turn, and the digests of its programs."""

    __slots__ = ("_after", "_before", "_labels", "_principal", "_tail", "programs", "tenant")

    def __init__(self, run: RunContext) -> None:
        labels = run.labels
        self._principal = run.principal
        self._labels = labels
        self.tenant = labels.get("tenant") if run.tenant is None else run.tenant
        self.programs: dict[str, str] = {}
        self._before = f'{{"actor":{quoted(run.principal)}' if run.principal is not None else ""
        self._tail = ""
        for name in ("span", "tenant", "trace"):
            value = self.tenant if name == "tenant" else labels.get(name)
            if value is not None:
                self._tail += f',"{name}":{quoted_name(value)}'
        self._after = f'"run":{quoted_name(run.run_id)}{self._tail}}}'

    def fits(self, run: RunContext) -> bool:
        """Whether this is the same run: a run id used again for somebody else is another one."""
        tenant = run.labels.get("tenant") if run.tenant is None else run.tenant
        return (self._principal, self.tenant, self._labels) == (run.principal, tenant, run.labels)

    def turn(self, run_id: str, request: JsonValue, response: JsonValue) -> None:
        """From now on calls belong to this request and response."""
        after = ""
        if isinstance(response, str):
            after += f'"response":{quoted_name(response)},'
        after += f'"run":{quoted_name(run_id)}{self._tail}'
        if isinstance(request, int):
            after += f',"turn":{request}'
        self._after = after + "}"

    def program(self, call_id: str, digest: str) -> None:
        if len(self.programs) < MAX_PROGRAMS:
            self.programs[call_id] = digest

    def identity(self, call_id: str | None) -> str:
        """The record's `identity`, as JSON."""
        before = f"{self._before}," if self._before else "{"
        if call_id is None:
            return before + self._after
        return f'{before}"call":{quoted_name(call_id)},{self._after}'

    def of_call(self, call: Call, key_digest: str | None) -> str:
        """The same for the record of a call. `key_digest` is of what its service knows the call by."""
        before = f"{self._before}," if self._before else "{"
        named = f'{before}"attempt":{call.attempt},"call":{quoted_name(call.call_id)},'
        if key_digest is not None:
            named += f'"idempotency_key":"{key_digest}",'
        return named + self._after


class Runs:
    """The runs in flight, by run id; the least recently used is forgotten first."""

    def __init__(self) -> None:
        self._states: OrderedDict[str, RunState] = OrderedDict()

    def of(self, run: RunContext) -> RunState:
        state = self._states.get(run.run_id)
        if state is None or not state.fits(run):
            state = self._states[run.run_id] = RunState(run)
            if len(self._states) > MAX_RUNS:
                self._states.popitem(last=False)
        return state

    def forget(self, run_id: str) -> None:
        self._states.pop(run_id, None)
