"""A program is a pure function of its code and its journal: killed at any call, resumed elsewhere, the same."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest

from ptc_sandbox import (
    Blocked,
    CallCancelled,
    CallRequested,
    Ended,
    Execution,
    Journal,
    JournalHeader,
    ProgramResult,
    ReplayDiverged,
    ReplayIncompatible,
    Sandbox,
)
from ptc_sandbox.journal import CallAnswered, CallMade
from ptc_tools.outcome import Denied, Failure, Outcome, Success
from tests.sandbox.attacks import ATTACKS
from tests.sandbox.conftest import QUICK
from tests.sandbox.granted import TOOLS

PROGRAMS = {
    "in turn": "total = 0\nfor i in range(4):\n    total += await get(i=i)\ntotal",
    "gathered": "import asyncio\nawait asyncio.gather(*[get(i=i) for i in range(5)])",
    "gathered, then more": (
        "import asyncio\na = await asyncio.gather(get(i=1), get(i=2))\nb = await add(a=a[0], b=a[1])\n[a, b]"
    ),
    "as completed": "import asyncio\n[await f for f in asyncio.as_completed([get(i=i) for i in range(5)])]",
    "first completed": (
        "import asyncio\nts = [asyncio.create_task(get(i=i)) for i in range(4)]\n"
        "done, rest = await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)\n"
        "for t in rest:\n    t.cancel()\nawait asyncio.gather(*rest, return_exceptions=True)\n"
        "[sorted(t.result() for t in done), len(rest)]"
    ),
    "task group": (
        "import asyncio\nasync def one(i):\n    return await get(i=i) + await get(i=i + 10)\n"
        "async with asyncio.TaskGroup() as g:\n    ts = [g.create_task(one(i)) for i in range(3)]\n[t.result() for t in ts]"
    ),
    "failures": (
        "out = []\nfor n in ('public', 'secret', 'public'):\n    try:\n        out.append(await read_doc(name=n))\n"
        "    except ToolError as e:\n        out.append(e.code)\nout"
    ),
    "randomness and time": (
        "import random, uuid, time, datetime, secrets\nout = []\nfor i in range(3):\n"
        "    out.append([random.random(), str(uuid.uuid4()), secrets.token_hex(4), random.choice('abc')])\n"
        "    await get(i=random.randrange(100))\nout"
    ),
    "sets": (
        "import asyncio\nts = {asyncio.create_task(get(i=i)) for i in range(6)}\n"
        "out = [await t for t in ts]\n[out, list({'b', 'a', 'c', 'd'}), [hash('x'), hash((1, 'y'))]]"
    ),
    "a worker pool": (
        "import asyncio\nq = asyncio.Queue()\nout = []\nasync def worker(n):\n    while True:\n        i = await q.get()\n"
        "        out.append([n, await get(i=i)])\n        q.task_done()\n"
        "for i in range(6):\n    q.put_nowait(i)\nws = [asyncio.create_task(worker(n)) for n in range(2)]\n"
        "await q.join()\nfor w in ws:\n    w.cancel()\nout"
    ),
    "a semaphore": (
        "import asyncio\ns = asyncio.Semaphore(2)\nasync def one(i):\n    async with s:\n        return await get(i=i)\n"
        "await asyncio.gather(*[one(i) for i in range(5)])"
    ),
}


class Answering:
    """Answers calls as they come, counts them, and stops before the call it is told to stop at."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.ran: Counter[str] = Counter()

    async def drive(self, execution: Execution) -> ProgramResult | None:
        """Until the end, or None where it stopped: the process is killed then, as a crash would."""
        while True:
            event = await execution.next_event()
            if isinstance(event, Ended):
                return event.result
            if isinstance(event, CallRequested):
                if sum(self.ran.values()) == self.stop_at:
                    await execution.aclose()
                    return None
                execution.answer(event.number, self._answer(event))
            assert isinstance(event, (CallRequested, CallCancelled, Blocked))

    def _answer(self, call: CallRequested) -> Outcome:
        self.ran[f"{call.number} {call.name} {json.dumps(call.arguments, sort_keys=True)}"] += 1
        if call.arguments.get("name") == "secret" or not call.arguments:
            return Failure("tool_error", "not public")
        if call.name == "add":
            a, b = call.arguments["a"], call.arguments["b"]
            if not isinstance(a, int) or not isinstance(b, int):
                return Denied("invalid_arguments", "these are not integers")
            return Success(a + b)
        return Success(next(iter(call.arguments.values())))


HEADER = JournalHeader.new(seed=11, epoch_us=1_700_000_000_000_000)


def same(one: ProgramResult, two: ProgramResult) -> bool:
    return (one.status, one.value, one.output, str(one.error)) == (
        two.status,
        two.value,
        two.output,
        str(two.error),
    )


@pytest.mark.parametrize("name", PROGRAMS)
async def test_killed_at_each_call_and_resumed_in_another_process(name: str) -> None:
    """Same output, and every call is run once over both halves, wherever the first half ended."""
    code = PROGRAMS[name]
    async with Sandbox(limits=QUICK, ahead=1) as first, Sandbox(limits=QUICK, ahead=1) as second:
        whole = Answering()
        expected = await whole.drive(await first.start(code, tools=TOOLS, header=HEADER))
        assert expected is not None
        assert expected.status == "completed", expected.error
        for stop_at in range(sum(whole.ran.values())):
            half = Answering(stop_at)
            execution = await first.start(code, tools=TOOLS, header=HEADER)
            assert await half.drive(execution) is None
            stored = Journal.from_json(json.loads(json.dumps(execution.journal.to_json())))
            rest = Answering()
            result = await rest.drive(await second.start(code, tools=TOOLS, journal=stored))
            assert result is not None
            assert same(result, expected), stop_at
            assert half.ran + rest.ran == whole.ran, stop_at


HANDED = {
    attack.name: f"{attack.program}\nresult"
    for attack in ATTACKS
    if attack.both and "await" in attack.program and attack.both.split(":")[0] in ("completed", "raised")
}


@pytest.mark.parametrize("name", HANDED)
async def test_the_programs_of_the_corpus_replay_from_every_call(name: str) -> None:
    """Attacks and ordinary programs of the corpus that make calls: killed at each, resumed, the same end."""
    code = HANDED[name]
    async with Sandbox(limits=QUICK, ahead=1) as first, Sandbox(limits=QUICK, ahead=1) as second:
        whole = Answering()
        expected = await whole.drive(await first.start(code, tools=TOOLS, header=HEADER))
        assert expected is not None
        for stop_at in range(sum(whole.ran.values())):
            half, rest = Answering(stop_at), Answering()
            execution = await first.start(code, tools=TOOLS, header=HEADER)
            assert await half.drive(execution) is None
            result = await rest.drive(await second.start(code, tools=TOOLS, journal=execution.journal))
            assert result is not None
            assert same(result, expected), stop_at
            assert half.ran + rest.ran == whole.ran, stop_at


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_whole_journal_replays_without_a_tool(name: str) -> None:
    """An auditor runs the program against the record: no tool is asked, and the output is the same."""
    code = PROGRAMS[name]
    async with Sandbox(limits=QUICK, ahead=1) as first, Sandbox(limits=QUICK, ahead=1) as second:
        expected = await first.run(code, tools=TOOLS)

        async def refuse(*_: object) -> Outcome:
            raise AssertionError("a tool was asked for during a replay")

        again = await second.run(code, tools=TOOLS, journal=expected.journal, invoke=refuse)
    assert expected.status == "completed", expected.error
    assert same(again, expected)
    assert again.journal == expected.journal


async def test_two_fork_servers_compute_the_same() -> None:
    """Order of sets, hashes, default reprs, randomness and time do not depend on the process."""
    code = (
        "import random, uuid, time, datetime\nclass A: pass\n"
        "[list({'a', 'b', 'c', 'd', 'e', 'f', 'g'}), repr(object()), str(hash('x')), repr(A()), hash(A()),"
        " random.random(), str(uuid.uuid4()), time.time(), datetime.datetime.now().isoformat(),"
        " datetime.date.today().isoformat(), f'{A()}', str(lambda: 0), [str(A) for A in (A,)]]"
    )
    values = []
    for _ in range(2):
        async with Sandbox(limits=QUICK, ahead=1) as sandbox:
            for _ in range(2):
                result = await sandbox.run(code, header=HEADER)
                assert result.status == "completed", result.error
                values.append(json.dumps(result.value))
    assert len(set(values)) == 1
    assert "0x" not in values[0]


async def test_timers_replay_at_the_times_they_had() -> None:
    """Sleeping, timeouts and the clock come from the journal the second time."""
    code = (
        "import asyncio, time\nt = time.time()\nasync def tick():\n    for _ in range(3):\n        await asyncio.sleep(0.002)\n"
        "await asyncio.gather(tick(), get(i=1), tick())\ntry:\n    async with asyncio.timeout(0.001):\n"
        "        await asyncio.sleep(5)\nexcept TimeoutError:\n    pass\ntime.sleep(0.001)\n[time.time() - t, time.monotonic()]"
    )
    async with Sandbox(limits=QUICK) as sandbox:
        first = await sandbox.run(code, tools=TOOLS)
        again = await sandbox.run(code, tools=TOOLS, journal=first.journal)
    assert first.status == "completed", first.error
    assert same(first, again)


async def test_a_virtual_clock_makes_a_run_a_function_of_its_answers() -> None:
    """The peer rebuilds a program from the answers alone: time moves only when nothing is pending."""
    code = (
        "import asyncio, time\nstart = time.monotonic()\nasync def slow():\n    await asyncio.sleep(3600)\n    return 'slept'\n"
        "r = await asyncio.gather(slow(), get(i=1))\n[r, round(time.monotonic() - start)]"
    )
    async with Sandbox(limits=QUICK) as sandbox:
        execution = await sandbox.start(code, tools=TOOLS, header=HEADER, clock="virtual")
        assert isinstance(await execution.next_event(), CallRequested)
        blocked = await execution.next_event()
        assert isinstance(blocked, Blocked)
        assert blocked.pending == (1,)
        execution.answer(1, Success(1))
        ended = await execution.next_event()
        assert isinstance(ended, Ended)
        assert ended.result.value == [["slept", 1], 3600]
        rebuilt = Journal(
            execution.journal.header,
            tuple(
                entry for entry in execution.journal.entries if isinstance(entry, (CallMade, CallAnswered))
            ),
        )
        again = await Answering().drive(
            await sandbox.start(code, tools=TOOLS, journal=rebuilt, clock="virtual")
        )
    assert again is not None
    assert again.value == ended.result.value


async def test_blocked_names_all_pending_calls_at_once() -> None:
    """A hosted-style server answers with every call that the program waits for."""
    code = (
        "import asyncio\na = await asyncio.gather(get(i=1), get(i=2), get(i=3))\nb = await get(i=sum(a))\nb"
    )
    async with Sandbox(limits=QUICK) as sandbox:
        execution = await sandbox.start(code, tools=TOOLS, clock="virtual")
        batches = []
        while not isinstance(event := await execution.next_event(), Ended):
            if isinstance(event, Blocked):
                batches.append(event.pending)
                for number, call in list(execution.pending.items()):
                    execution.answer(number, Success(call.arguments["i"]))
    assert batches == [(1, 2, 3), (4,)]
    assert event.result.value == 6


async def test_another_program_diverges_at_the_first_call_that_differs() -> None:
    """A journal does not fit another program, and the error names where."""
    code = "a = await get(i=1)\nb = await get(i=a + 1)\nb"
    async with Sandbox(limits=QUICK) as sandbox:
        journal = (await sandbox.run(code, tools=TOOLS)).journal
        entries = list(journal.entries)
        made = entries[2]
        assert isinstance(made, CallMade)
        entries[2] = replace(made, arguments={"i": 7})
        with pytest.raises(ReplayDiverged, match="call 2 of get") as caught:
            await sandbox.run(code, tools=TOOLS, journal=Journal(journal.header, tuple(entries)))
        assert caught.value.number == 2
        longer = Journal(journal.header, (*journal.entries, CallMade(3, None, "get", {"i": 1})))
        with pytest.raises(ReplayDiverged, match="ended where"):
            await sandbox.run(code, tools=TOOLS, journal=longer)
        without_answer = Journal(journal.header, (journal.entries[0], *journal.entries[2:]))
        with pytest.raises(ReplayDiverged, match="waits where"):
            await sandbox.run(code, tools=TOOLS, journal=without_answer)


async def test_a_changed_answer_is_noticed_where_the_program_acts_on_it() -> None:
    """A record whose result was edited does not explain the calls that followed."""
    code = "a = await get(i=1)\nawait get(i=a + 1)"
    async with Sandbox(limits=QUICK) as sandbox:
        journal = (await sandbox.run(code, tools=TOOLS)).journal
        answered = journal.entries[1]
        assert isinstance(answered, CallAnswered)
        edited = replace(answered, answer=replace(answered.answer, value=5))
        with pytest.raises(ReplayDiverged, match="call 2"):
            await sandbox.run(
                code,
                tools=TOOLS,
                journal=Journal(journal.header, (journal.entries[0], edited, *journal.entries[2:])),
            )


async def test_a_header_that_does_not_fit_is_refused_before_anything_runs() -> None:
    """Another interpreter, other tools or another program: refused, not tried."""
    code = "await get(i=1)"
    async with Sandbox(limits=QUICK) as sandbox:
        journal = (await sandbox.run(code, tools=TOOLS)).journal
        for field in ("python", "machine", "policy"):
            changed = Journal(replace(journal.header, **{field: "other"}), journal.entries)
            with pytest.raises(ReplayIncompatible, match=field):
                await sandbox.run(code, tools=TOOLS, journal=changed)
        with pytest.raises(ReplayIncompatible, match="code"):
            await sandbox.run(code + " ", tools=TOOLS, journal=journal)
        with pytest.raises(ReplayIncompatible, match="stubs"):
            await sandbox.run(code, tools=TOOLS[:2], journal=journal)


async def test_calls_pending_at_the_crash_go_to_whoever_answers() -> None:
    """A call that was recorded without an answer is asked for again, not lost."""
    code = "import asyncio\nawait asyncio.gather(get(i=1), get(i=2))"
    async with Sandbox(limits=QUICK) as sandbox:
        execution = await sandbox.start(code, tools=TOOLS)
        await execution.next_event()
        await execution.next_event()
        execution.answer(2, Success(2))
        await asyncio.sleep(0)
        journal = execution.journal
        await execution.aclose()
        resumed = await sandbox.start(code, tools=TOOLS, journal=journal)
        event = await resumed.next_event()
        assert isinstance(event, CallRequested)
        assert event.number == 1
        assert list(resumed.pending) == [1]
        resumed.answer(1, Success(1))
        while not isinstance(event := await resumed.next_event(), Ended):
            pass
    assert event.result.value == [1, 2]
