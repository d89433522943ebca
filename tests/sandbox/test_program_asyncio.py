"""asyncio in a program is the standard library's own: each program here gives what plain CPython gives."""

from __future__ import annotations

import ast
import asyncio
import json
import sys
from typing import Any

import pytest

from ptc_sandbox import Sandbox
from ptc_tools.tool import AnyTool
from tests.sandbox.granted import TOOLS

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROGRAMS = {
    "gather keeps order": "await asyncio.gather(get(i=2), get(i=1))",
    "gather with exceptions": """
async def bad(): raise ValueError("x")
rs = await asyncio.gather(bad(), get(i=1), return_exceptions=True)
[str(r) for r in rs]""",
    "gather raises the first": """
async def bad(n): raise ValueError(n)
try:
    await asyncio.gather(get(i=1), bad("a"), bad("b"))
except ValueError as e:
    r = str(e)
r""",
    "gather of nothing": "await asyncio.gather()",
    "nested gathers": "await asyncio.gather(asyncio.gather(get(i=1), get(i=2)), get(i=3))",
    "task group": """
async with asyncio.TaskGroup() as g:
    a = g.create_task(get(i=1)); b = g.create_task(get(i=2))
[a.result(), b.result()]""",
    "task group with a failure": """
async def bad(): raise KeyError("k")
out = []
try:
    async with asyncio.TaskGroup() as g:
        g.create_task(bad()); t = g.create_task(asyncio.sleep(60))
except* KeyError as group:
    out = [len(group.exceptions), t.cancelled()]
out""",
    "create_task and names": """
t = asyncio.create_task(get(i=1), name="mine")
[t.get_name(), t.done(), await t, t.done(), t.result(), t.exception()]""",
    "timers that are never due": """
out = []
async with asyncio.timeout(float("inf")):
    out.append(await get(i=1))
async with asyncio.timeout(1e300):
    out.append(await get(i=2))
out.append(await asyncio.wait_for(get(i=3), 1e18))
late = asyncio.create_task(asyncio.sleep(float("inf")))
a, b = await asyncio.gather(get(i=4), get(i=5))
late.cancel()
[*out, a, b, await asyncio.gather(late, return_exceptions=True) != []]""",
    "callbacks of the loop": """
loop = asyncio.get_running_loop()
got = []
loop.call_soon(got.append, 1)
handle = loop.call_later(5, got.append, "late")
loop.call_at(loop.time() + 0.01, got.append, 2)
future = loop.create_future()
loop.call_later(0.02, future.set_result, 3)
handle.cancel()
[await future, got, handle.cancelled(), loop.is_running(), loop.is_closed()]""",
    "wait for all": """
ts = [asyncio.create_task(get(i=i)) for i in range(4)]
done, pending = await asyncio.wait(ts)
[sorted(t.result() for t in done), len(pending)]""",
    "wait for the first exception": """
async def bad(): raise ValueError("x")
ts = [asyncio.create_task(bad()), asyncio.create_task(asyncio.sleep(60))]
done, pending = await asyncio.wait(ts, return_when=asyncio.FIRST_EXCEPTION)
for t in pending: t.cancel()
[len(done), len(pending)]""",
    "wait with a timeout": """
done, pending = await asyncio.wait([asyncio.create_task(asyncio.sleep(60))], timeout=0.01)
[len(done), len(pending), [t.cancel() for t in pending]]""",
    "wait_for in time": "await asyncio.wait_for(get(i=1), 5)",
    "wait_for too late": """
try:
    await asyncio.wait_for(asyncio.sleep(60), 0.01)
except asyncio.TimeoutError as e:
    r = [type(e).__name__, isinstance(e, TimeoutError)]
r""",
    "timeout block": """
out = []
try:
    async with asyncio.timeout(0.01) as scope:
        await asyncio.sleep(60)
except TimeoutError:
    out.append(scope.expired())
async with asyncio.timeout(None):
    out.append(await get(i=1))
out""",
    "as_completed": "sorted([await f for f in asyncio.as_completed([get(i=i) for i in range(5)])])",
    "sleep gives its result": "[await asyncio.sleep(0, 'x'), await asyncio.sleep(0.001)]",
    "sleeps end in order": """
out = []
async def nap(s): await asyncio.sleep(s); out.append(s)
await asyncio.gather(nap(0.03), nap(0.01), nap(0.02))
out""",
    "semaphore": """
s = asyncio.Semaphore(2); now = 0; peak = 0
async def work(i):
    global now, peak
    async with s:
        now += 1; peak = max(peak, now)
        await get(i=i)
        now -= 1
await asyncio.gather(*[work(i) for i in range(6)])
[peak, s.locked()]""",
    "bounded semaphore": """
s = asyncio.BoundedSemaphore(1)
try:
    s.release()
except ValueError as e:
    r = "refused"
r""",
    "lock": """
l = asyncio.Lock(); out = []
async def work(n):
    async with l:
        out.append(n); await asyncio.sleep(0); out.append(n)
await asyncio.gather(work(1), work(2))
out""",
    "event": """
e = asyncio.Event(); out = []
async def waiter(): await e.wait(); out.append("woken")
t = asyncio.create_task(waiter()); await asyncio.sleep(0); out.append("set"); e.set(); await t
out""",
    "condition": """
c = asyncio.Condition(); items = []; out = []
async def consume():
    async with c:
        await c.wait_for(lambda: items); out.append(items.pop())
t = asyncio.create_task(consume()); await asyncio.sleep(0)
async with c:
    items.append(7); c.notify_all()
await t
out""",
    "barrier": """
b = asyncio.Barrier(3)
sorted(await asyncio.gather(*[b.wait() for _ in range(3)]))""",
    "queue": """
q = asyncio.Queue(maxsize=2); out = []
async def produce():
    for i in range(5): await q.put(i)
    await q.put(None)
async def consume():
    while (item := await q.get()) is not None: out.append(item)
await asyncio.gather(produce(), consume())
[out, q.empty(), q.qsize()]""",
    "priority and lifo queues": """
p = asyncio.PriorityQueue(); l = asyncio.LifoQueue()
for i in (3, 1, 2): p.put_nowait(i); l.put_nowait(i)
[[p.get_nowait() for _ in range(3)], [l.get_nowait() for _ in range(3)]]""",
    "queue errors": """
q = asyncio.Queue(1); out = []
try: q.get_nowait()
except asyncio.QueueEmpty: out.append("empty")
q.put_nowait(1)
try: q.put_nowait(2)
except asyncio.QueueFull: out.append("full")
out""",
    "cancel and clean up": """
out = []
async def work():
    try: await asyncio.sleep(60)
    except asyncio.CancelledError: out.append("cancelled"); raise
    finally: out.append("cleaned")
t = asyncio.create_task(work()); await asyncio.sleep(0); t.cancel()
try: await t
except asyncio.CancelledError: out.append("seen")
out""",
    "shield": """
async def work(): await asyncio.sleep(0.005); return "done"
t = asyncio.create_task(work())
try: await asyncio.wait_for(asyncio.shield(t), 0.001)
except TimeoutError: pass
await t""",
    "async generators and comprehensions": """
async def numbers(n):
    for i in range(n): yield await get(i=i)
[[x async for x in numbers(3)], {str(x): x * 2 async for x in numbers(2)}, [x async for x in numbers(4) if x % 2]]""",
    "async context managers": """
out = []
class Session:
    async def __aenter__(self): out.append("in"); return self
    async def __aexit__(self, kind, error, tb): out.append(kind.__name__ if kind else None); return True
async with Session() as s:
    raise ValueError("swallowed")
out""",
    "async iterators": """
class Pages:
    def __init__(self): self.n = 0
    def __aiter__(self): return self
    async def __anext__(self):
        self.n += 1
        if self.n > 3: raise StopAsyncIteration
        return await get(i=self.n)
[p async for p in Pages()]""",
    "awaitable objects": """
class Later:
    def __await__(self): return self.load().__await__()
    async def load(self): return await get(i=5)
await Later()""",
    "callbacks of tasks": """
out = []
t = asyncio.create_task(get(i=1)); t.add_done_callback(lambda t: out.append(t.result())); await t; await asyncio.sleep(0)
out""",
    "current task": "[asyncio.current_task() is not None, await get(i=1)]",
    "iscoroutine": """
c = get(i=1)
r = [asyncio.iscoroutine(c), await c]
async def f(): pass
r + [asyncio.iscoroutinefunction(f)]""",
    "retry with backoff": """
tries = 0
async def flaky():
    global tries
    tries += 1
    if tries < 3: raise ConnectionError("again")
    return "ok"
for attempt in range(5):
    try:
        r = await flaky(); break
    except ConnectionError:
        await asyncio.sleep(0.001 * 2 ** attempt)
[r, tries]""",
    "chunks of a gather": """
out = []
for start in range(0, 10, 4):
    out += await asyncio.gather(*[get(i=i) for i in range(start, min(start + 4, 10))])
out""",
    "polling with sleep zero": """
t = asyncio.create_task(get(i=1)); spins = 0
while not t.done():
    spins += 1
    await asyncio.sleep(0)
t.result()""",
    "main with run": """
async def main(): return await get(i=4)
asyncio.run(main())""",
}
if sys.version_info >= (3, 13):
    PROGRAMS["queue shutdown"] = """
q = asyncio.Queue(); q.put_nowait(1); q.shutdown()
r = [await q.get()]
try: await q.get()
except asyncio.QueueShutDown: r.append("shut")
r"""


def waiting(tool: AnyTool) -> Any:
    """The tool's function as a call across a process would be: never done at once."""

    async def call(**arguments: Any) -> Any:
        await asyncio.sleep(0)
        return await tool.function(**arguments)

    return call


async def plainly(code: str) -> Any:
    """The program as CPython runs it, its calls answered by the tools' own functions."""
    tree = ast.parse(code)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    tree.body[-1] = ast.fix_missing_locations(
        ast.Assign([ast.Name("value", ast.Store())], last.value, lineno=1)
    )
    namespace: dict[str, Any] = {"asyncio": asyncio, "__name__": "__main__"}
    namespace.update({tool.contract.name: waiting(tool) for tool in TOOLS})
    running = eval(compile(tree, "plain", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), namespace)
    if running is not None:
        await running
    return namespace["value"]


@pytest.mark.parametrize("name", PROGRAMS)
async def test_as_in_plain_cpython(sandbox: Sandbox, name: str) -> None:
    """The same value as without a sandbox, for what asyncio programs do."""
    code = PROGRAMS[name].strip()
    if "asyncio.run" in code:
        expected = await asyncio.to_thread(lambda: asyncio.run(plainly_in_thread(code)))
    else:
        expected = await plainly(code)
    result = await sandbox.run(f"import asyncio\n{code}", tools=TOOLS)
    assert result.status == "completed", result.error
    assert result.value == json.loads(json.dumps(expected))


OWN_LOOP = """
import asyncio
class L:
    def get_debug(self): return False
    def create_task(self, coro): return coro
async def g(): pass
await asyncio.sleep(0)
"""


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        ("asyncio.Future(loop=L())", "forbidden_call"),
        ("asyncio.Task(None, loop=L())", "forbidden_call"),
        ("asyncio.ensure_future(asyncio.sleep, loop=L())", "forbidden_call"),
        ("super(asyncio.Future, asyncio.Future()).__init__(loop=L())", "TypeError"),
        ("super(asyncio.Task, asyncio.current_task()).__init__(None, loop=L())", "TypeError"),
        ("super(object, asyncio.current_task()).__init__()", "forbidden_attribute"),
    ],
)
async def test_no_future_on_a_loop_of_the_programs(sandbox: Sandbox, attack: str, code: str) -> None:
    """A loop is handed the context of what it calls, and in it things of this process."""
    result = await sandbox.run(OWN_LOOP + attack, tools=TOOLS)
    assert result.error is not None
    assert code in (result.error.code, result.error.type), result.error


async def test_no_task_runs_in_a_context_of_the_programs(sandbox: Sandbox) -> None:
    """Its `run` would be handed the task's own steps, to be taken when and as often as it likes."""
    code = """
import asyncio
class C:
    def run(self, step, *args): return step(*args)
async def one(): return 1
async with asyncio.TaskGroup() as group:
    group.create_task(one(), context=C())
"""
    result = await sandbox.run(code, tools=TOOLS)
    assert result.error is not None
    assert "context must be a Context" in result.error.message


async def test_the_table_of_loops_is_not_looked_up_for_a_program(sandbox: Sandbox) -> None:
    """An object that hashes like the loop would be asked whether it equals it, and be given it for that."""
    code = """
import asyncio
class P:
    def __init__(self, n): self.n = n
    def __hash__(self): return self.n
    def __eq__(self, other): raise KeyError(str(other))
for n in range((1 << 20) - 2, (1 << 20) + 2000):
    asyncio.current_task(P(n))
"""
    result = await sandbox.run(code, tools=TOOLS)
    assert result.error is not None
    assert (result.error.type, result.error.message) == (
        "RefusedCall",
        "Programs may not choose a loop: leave out loop.",
    )


SHADOWS = """
import asyncio
got = []
class L:
    def get_debug(self): return False
    def call_soon(self, callback, *args, context=None): got.append(context)
def called(*args, context=None): got.append(context)
async def one(): return 1
task, future = asyncio.create_task(one()), asyncio.Future()
gathered = asyncio.gather(future)
"""


@pytest.mark.parametrize(
    "attack",
    [
        "future.get_loop = lambda: L()\nasyncio.gather(future).add_done_callback(print)",
        "task.add_done_callback = called\nawait task",
        "gathered.add_done_callback = called\nawait gathered",
        "setattr(task, 'add_done_callback', called)\nawait task",
        "for task.add_done_callback in [called]: pass\nawait task",
        "object.__setattr__(task, 'add_done_callback', called)\nawait task",
    ],
)
async def test_no_method_of_a_future_is_shadowed(sandbox: Sandbox, attack: str) -> None:
    """asyncio hands contexts, and the steps of tasks, to what stands under these names."""
    result = await sandbox.run(SHADOWS + attack, tools=TOOLS)
    assert result.error is not None
    assert result.error.code == "forbidden_attribute", result.error


async def test_a_programs_own_class_may_have_what_futures_have(sandbox: Sandbox) -> None:
    """The names are ordinary on classes of the program's own."""
    code = """
class F:
    def __init__(self): self.add_done_callback = print
    def get_loop(self): return 1
f = F()
f.get_loop = lambda: 2
[f.get_loop(), f.add_done_callback is print]
"""
    result = await sandbox.run(code, tools=TOOLS)
    assert result.value == [2, True], result.error


async def test_futures_are_what_they_say(sandbox: Sandbox) -> None:
    """Futures and tasks are made, awaited and told apart by the names that programs have for them."""
    code = """
import asyncio
async def g() -> "asyncio.Future[int]": return 5
f = asyncio.Future()
t = asyncio.Task(g(), name="a")
f.set_result(3)
[isinstance(f, asyncio.Future), isinstance(t, asyncio.Future), isinstance(t, asyncio.Task), type(f) is asyncio.Future,
 isinstance(f, asyncio.Task), await f, await asyncio.ensure_future(t), t.get_name(), asyncio.Future[int] == asyncio.Future[int]]
"""
    result = await sandbox.run(code, tools=TOOLS)
    assert result.status == "completed", result.error
    assert result.value == [True, True, True, True, False, 3, 5, "a", True]


async def plainly_in_thread(code: str) -> Any:
    """`asyncio.run` cannot be called where a loop runs; what is inside it can be awaited."""
    return await plainly(code.replace("asyncio.run(main())", "await main()"))
