"""What the tests of the tools share: a recorder that remembers, and short ways to make calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptc_tools import Call, Catalog, Direct, Invoker, Outcome, Program, RunContext, Tool
from ptc_tools.call import Caller, JsonObject, JsonValue
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied
from ptc_tools.redacting import Redacting


@dataclass
class MemoryRecorder:
    """Remembers every record in order; `fail` names the kinds of record that raise."""

    records: list[tuple[str, object]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    arguments: list[JsonValue] = field(default_factory=list)
    fail: frozenset[str] = frozenset()

    async def started(self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext) -> object:
        self._check("started")
        self.records.append(("started", call.name))
        self.calls.append(call)
        self.arguments.append(arguments)
        return len(self.records)

    async def finished(self, token: object, outcome: Outcome, duration_us: int) -> None:
        self._check("finished")
        self.records.append(("finished", outcome))

    async def denied(self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext) -> None:
        self._check("denied")
        self.records.append(("denied", outcome))
        self.calls.append(call)

    async def event(self, type: str, data: JsonObject, run: RunContext) -> None:
        self.records.append((type, data))

    def _check(self, kind: str) -> None:
        if kind in self.fail:
            raise OSError("the disk is full")

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.records]

    @property
    def last(self) -> object:
        return self.records[-1][1]


RUN = RunContext("run_1")


def run_with(*open_programs: str, **values: object) -> RunContext:
    run = RunContext("run_1", **values)  # type: ignore[arg-type]
    for caller_id in open_programs:
        run.programs.open(caller_id)
    return run


def call(
    tool: Tool[..., object] | str,
    arguments: object = None,
    *,
    caller: Caller = Direct(),  # noqa: B008 - a frozen value
    call_id: str = "call_1",
) -> Call:
    if isinstance(tool, Tool):
        return Call(call_id, tool.contract.name, arguments, caller, tool.contract.namespace)  # type: ignore[arg-type]
    return Call(call_id, tool, arguments, caller)  # type: ignore[arg-type]


async def invoke(
    tool: Tool[..., object], arguments: object = None, *, run: RunContext = RUN, **options: object
) -> Outcome:
    """Invoke one tool directly, in a catalog of its own."""
    if isinstance(options.get("recorder"), MemoryRecorder) and options.pop("redacting", False):
        options["recorder"] = Redacting(options["recorder"])  # type: ignore[arg-type]
    invoker = Invoker(Catalog([tool]), **options)  # type: ignore[arg-type]
    return await invoker.invoke(call(tool, arguments), run)


PROGRAM = Program("prog_1")
