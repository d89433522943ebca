"""Nothing that a program sees depends on where memory happened to be."""

from __future__ import annotations

import pytest

from ptc_sandbox.guest.guards_identity import Numbers
from tests.sandbox.language_server import LanguageServer

PROGRAMS = {
    "reprs": """
import functools, re, io, hashlib, itertools, asyncio, contextlib
class A: pass
class S: __slots__ = ("x",)
def f(): yield
async def c(): pass
async def g(): yield
waiting = c()
things = [object(), A(), S(), A, A().__init__, f, f(), c, waiting, g(), lambda: 0, len, [].append, "".join, iter([]), map(str, []),
    zip(), (x for x in []), functools.partial(f), functools.lru_cache(f), re.compile("x"), io.StringIO(), hashlib.sha256(),
    itertools.count(), property(), staticmethod(f), classmethod(f), print, getattr, asyncio, re, asyncio.Lock(), asyncio.Queue(),
    contextlib.nullcontext(), {}.items(), type(len), type(f), range(3), super, type, Exception, ValueError(A()), {"k": [A()]},
    contextlib.suppress(ValueError), asyncio.Event(), A().__eq__, str.upper, int.real, iter({}), reversed([]), enumerate([])]
await waiting
[repr(t) for t in things] + [f"{A()}", "%s" % A(), "{}".format(A()), str(A()), ascii(A()), f"{A()!r:>30}"]
""",
    "sets of objects": """
class A:
    def __init__(self, n): self.n = n
class S:
    __slots__ = ("n",)
    def __init__(self, n): self.n = n
import random, string
items = [A(i) for i in range(50)]
slotted = [S(i) for i in range(20)]
functions = [(lambda i=i: i) for i in range(30)]
objects = {object() for _ in range(5)}
[[x.n for x in set(items)], [x.n for x in set(slotted)], [f() for f in set(functions)], [x.n for x in {*items[:9], *slotted}],
 [str(t) for t in {int, str, A, list, dict, None, ..., NotImplemented, 1, "a", 2.5}], list({None, "a", "b", 3}), [f.__name__ for f in {len, print, abs, sum}],
 sorted(items, key=id)[0].n, [x.n for x in frozenset(items[:7])]]
""",
    "hashes and ids": """
class A: pass
a, b = A(), A()
class Mixed(dict): __hash__ = object.__hash__
[hash(a), hash(b), hash(A), hash(int), hash(None), hash(len), hash(a.__init__), id(a) == id(a), id(a) != id(b), id(a), id([]), hash(object()), hash(lambda: 0),
 hash("x"), hash((1, None, A)), object.__hash__(a) == hash(a), hash(Mixed()), hash(...)]
""",
    "dicts keep their order, sets theirs": """
import collections
names = ["delta", "alpha", "omega", "beta"]
[list(set(names)), list(dict.fromkeys(names)), list(collections.Counter(names)), list({n[0] for n in names}), list(frozenset(names) | {"x"})]
""",
    "clock and chance": """
import random, uuid, time, datetime, secrets
[random.random(), str(uuid.uuid4()), time.time(), datetime.datetime.now().isoformat(), datetime.date.today().isoformat(), secrets.token_hex(4),
 random.Random().random(), random.sample(range(100), 5), time.perf_counter(), datetime.datetime.now(datetime.timezone.utc).isoformat()]
""",
    "not a number": """
import decimal, math
values = [math.nan, float("nan"), 1.5, 2.5, "a", complex("nan"), decimal.Decimal("NaN"), 10**20, -0.5]
class F(float): pass
[hash(math.nan), hash(float("nan")), hash(complex(1, math.nan)), hash(decimal.Decimal("NaN")), hash(F("nan")), hash((math.nan, 1)),
 [str(v) for v in set(values)], [str(v) for v in frozenset(values[::-1])], hash(2.0) == hash(2), len({1, 1.0, decimal.Decimal(1)}), math.nan in [math.nan]]
""",
    "tasks and errors": """
import asyncio
async def work(): await asyncio.sleep(0)
tasks = [asyncio.create_task(work()), asyncio.create_task(asyncio.sleep(0))]
together = asyncio.gather(*tasks)
class C:
    def __enter__(self): return self
    def __exit__(self, kind, error, place):
        self.place = repr(place)
        return True
with C() as c: 1 / 0
told = [c.place, *("/" in repr(t) for t in (*tasks, together))]
await together
told
""",
    "errors": """
class A: pass
found = []
for attempt in (lambda: A().x, lambda: A() + 1, lambda: A()(), lambda: {A(): 1}[2], lambda: [][A()], lambda: int(A()), lambda: iter(A()), lambda: len(A())):
    try: attempt()
    except Exception as e: found.append(str(e))
found
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_in_every_process(name: str) -> None:
    """A replay on another machine compares what it prints; addresses differ there, and here from run to run."""
    answers = []
    for _ in range(3):
        with LanguageServer() as server:
            answers.append(server.run(PROGRAMS[name]))

    assert answers[0]["status"] == "completed", answers[0]
    assert answers == [answers[0]] * 3
    assert "0x" not in str(answers[0]["value"])


def test_each_program_starts_with_the_same_numbers() -> None:
    """Programs that ran before in the same server leave no trace in hashes."""
    with LanguageServer() as server:
        first = server.run(PROGRAMS["hashes and ids"])
        server.run(PROGRAMS["sets of objects"])

        assert server.run(PROGRAMS["hashes and ids"]) == first


def test_numbers_restart_at_the_same_one() -> None:
    """A child that rehearsed and one that did not give the same numbers; the library's own are kept."""

    class Thing:
        pass

    numbers = Numbers()
    early, late, later = Thing(), Thing(), Thing()
    of_library = numbers.of(early)
    numbers.restart()
    first = numbers.of(late)
    numbers.restart()

    assert numbers.of(later) == first
    assert numbers.of(early) == of_library
    assert numbers.of(late) != first
