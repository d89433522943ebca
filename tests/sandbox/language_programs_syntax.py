"""Ordinary programs about the language itself: see `language_programs`."""

SYNTAX = r'''
=== class with private state
class Account:
    """A bank account."""
    _count = 0
    def __init__(self, owner, balance=0):
        self.owner = owner
        self._balance = balance
        self.__secret = "s" + owner
        Account._count += 1
    @property
    def balance(self):
        return self._balance
    @balance.setter
    def balance(self, value):
        if value < 0:
            raise ValueError("negative")
        self._balance = value
    def _audit(self):
        return f"{self.owner}:{self._balance}:{self.__secret}"
    def audit(self):
        return self._audit()
    def __repr__(self):
        return f"{self.__class__.__name__}({self.owner!r}, {self._balance})"
a = Account("ann", 5)
a.balance += 10
try:
    a.balance = -1
except ValueError as e:
    message = str(e)
[a.audit(), repr(a), Account._count, message, Account.__doc__, Account.__name__]
=== inheritance and super
class Shape:
    sides = 0
    def __init__(self, name):
        self.name = name
    def describe(self):
        return f"{self.name} has {self.sides} sides"
class Square(Shape):
    sides = 4
    def __init__(self, size):
        super().__init__("square")
        self.size = size
    def describe(self):
        return super().describe() + f" of {self.size}"
class Named(Square):
    def __init__(self, size, label):
        Square.__init__(self, size)
        self._label = label
    def describe(self):
        return super(Named, self).describe() + " " + self._label
[Square(2).describe(), Named(3, "x").describe(), isinstance(Named(1, ""), Shape), issubclass(Square, Shape)]
=== multiple inheritance and mixins
class JsonMixin:
    def to_json(self):
        import json
        return json.dumps(self.__dict__, sort_keys=True)
class ReprMixin:
    def __repr__(self):
        return type(self).__name__ + str(sorted(vars(self).items()))
class Item(JsonMixin, ReprMixin, dict):
    def __init__(self, a):
        super().__init__(z=1)
        self.a = a
class Problem(ReprMixin, Exception):
    pass
i = Item(3)
[i.to_json(), repr(i), i["z"], isinstance(Problem("x"), Exception), str(Problem("x"))]
=== operators
class Vec:
    def __init__(self, x, y): self.x, self.y = x, y
    def __add__(self, o): return Vec(self.x + o.x, self.y + o.y)
    def __sub__(self, o): return Vec(self.x - o.x, self.y - o.y)
    def __mul__(self, k): return Vec(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __neg__(self): return Vec(-self.x, -self.y)
    def __eq__(self, o): return (self.x, self.y) == (o.x, o.y)
    def __hash__(self): return hash((self.x, self.y))
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    def __bool__(self): return bool(self.x or self.y)
    def __iter__(self): yield self.x; yield self.y
    def __getitem__(self, i): return (self.x, self.y)[i]
    def __len__(self): return 2
    def __contains__(self, v): return v in (self.x, self.y)
    def __iadd__(self, o): self.x += o.x; self.y += o.y; return self
    def __lt__(self, o): return abs(self) < abs(o)
    def __matmul__(self, o): return self.x * o.x + self.y * o.y
    def __call__(self, k): return self * k
    def __str__(self): return f"({self.x},{self.y})"
    def __format__(self, spec): return f"<{spec}:{self!s}>"
a, b = Vec(3, 4), Vec(1, 2)
a += b
[str(a + b), str(a - b), str(2 * a), str(-a), a == Vec(4, 6), abs(Vec(3, 4)), bool(Vec(0, 0)), list(a), a[1], len(a), 4 in a, a @ b, str(a(2)), f"{a:x}", "{:y}".format(a), str(min([a, b])), len({Vec(1, 1), Vec(1, 1)})]
=== class and static methods, class attributes
class Registry:
    _items = {}
    @classmethod
    def add(cls, name, value):
        cls._items[name] = value
        return cls
    @classmethod
    def create(cls, *names):
        self = cls()
        for n in names:
            cls.add(n, len(n))
        return self
    @staticmethod
    def helper(x):
        return x * 2
    def total(self):
        return sum(self._items.values())
r = Registry.create("a", "bcd")
[r.total(), Registry.helper(4), r._items, Registry.add("q", 1) is Registry]
=== slots
class P:
    __slots__ = ("x", "_y")
    def __init__(self): self.x = 1; self._y = 2
p = P()
try:
    p.z = 1
except AttributeError as e:
    kind = type(e).__name__
[p.x, p._y, kind]
=== new and singletons
class Single:
    _instance = None
    def __new__(cls, *args):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance
    def __init__(self, v): self.v = v
a, b = Single(1), Single(2)
class Upper(str):
    def __new__(cls, s): return super().__new__(cls, s.upper())
class Pair(tuple):
    def __new__(cls, a, b): return tuple.__new__(cls, (a, b))
[a is b, a.v, Upper("abc"), Upper("x") + "y", Pair(1, 2), len(Pair(3, 4))]
=== descriptors and set name
class Positive:
    def __set_name__(self, owner, name): self._name = "_" + name
    def __get__(self, obj, objtype=None):
        return self if obj is None else getattr(obj, self._name)
    def __set__(self, obj, value):
        if value <= 0: raise ValueError("must be positive")
        setattr(obj, self._name, value)
class Order:
    qty = Positive()
    def __init__(self, qty): self.qty = qty
o = Order(3)
try: Order(0)
except ValueError as e: m = str(e)
[o.qty, m, o._qty]
=== getattr and setattr hooks
class Bag:
    def __init__(self): object.__setattr__(self, "data", {})
    def __getattr__(self, name):
        try: return self.data[name]
        except KeyError: raise AttributeError(name) from None
    def __setattr__(self, name, value): self.data[name] = value
    def __delattr__(self, name): del self.data[name]
b = Bag()
b.x = 1
b.y = b.x + 1
del b.x
[b.y, hasattr(b, "x"), getattr(b, "zz", "d"), b.data]
=== init subclass and class getitem
class Plugin:
    found = []
    def __init_subclass__(cls, /, tag="none", **kw):
        super().__init_subclass__(**kw)
        Plugin.found.append((cls.__name__, tag))
    def __class_getitem__(cls, item): return f"{cls.__name__}[{item}]"
class A(Plugin, tag="a"): pass
class B(A): pass
[Plugin.found, Plugin["k"], A[3]]
=== classes that use themselves while they are made
from enum import Enum
class Base:
    _registry = {}
    def __init_subclass__(cls, /, key=None, **kw):
        super().__init_subclass__(**kw)
        cls._key = key or cls.__name__.lower()
        cls._registry[cls._key] = cls
class A(Base): pass
class B(Base, key="bee"): pass
class Field:
    def __set_name__(self, owner, name):
        if "_fields" not in vars(owner): owner._fields = []
        owner._fields.append(name)
        self._name = name
class Model:
    a = Field()
    b = Field()
class Planet(Enum):
    EARTH = (5.97, 6.37)
    MARS = (0.64, 3.39)
    def __init__(self, mass, radius):
        self._mass, self._radius = mass, radius
    @property
    def density(self): return round(self._mass / self._radius ** 3, 4)
class Coded(Enum):
    def __new__(cls, value, label):
        self = object.__new__(cls)
        self._value_ = value
        self._label = label
        return self
    X = (1, "ex")
    Y = (2, "why")
class Meta(str, Enum):
    ONE = "one"
    def __init__(self, v): self._upper = v.upper()
[sorted(Base._registry), B._key, Model._fields, Planet.EARTH.density, Coded(2)._label, Coded.X.value, Meta.ONE._upper, Meta("one") is Meta.ONE]
=== context managers by class
log = []
class Step:
    def __init__(self, name): self.name = name
    def __enter__(self): log.append("enter " + self.name); return self
    def __exit__(self, exc_type, exc, tb):
        log.append(f"exit {self.name} {exc_type.__name__ if exc_type else None} {exc}")
        return exc_type is KeyError
with Step("a") as a, Step("b"):
    log.append("body")
with Step("c"):
    raise KeyError("k")
try:
    with Step("d"): raise ValueError("v")
except ValueError: log.append("caught")
with (Step("e") as e, Step("f") as f):
    log.append(e.name + f.name)
log
=== iterators by class
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n <= 0: raise StopIteration
        self.n -= 1
        return self.n
class Seq:
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i * i
    def __reversed__(self): return iter([9, 9])
[list(Countdown(3)), sum(Countdown(4)), list(Seq()), list(reversed(Seq())), max(Countdown(5)), [*Countdown(2)]]
=== generators
def numbers(n):
    for i in range(n):
        got = yield i
        if got: yield f"got {got}"
def chained():
    x = yield from numbers(2)
    yield x
    return "done"
g = numbers(3)
first = next(g)
second = g.send("hi")
rest = list(g)
def outer():
    r = yield from chained()
    yield r
def cleanup():
    try:
        yield 1
        yield 2
    finally:
        events.append("closed")
events = []
c = cleanup(); next(c); c.close()
t = cleanup(); next(t)
try: t.throw(ValueError("x"))
except ValueError as e: events.append(str(e))
[first, second, rest, list(outer()), events]
=== infinite generators and pipelines
def naturals():
    n = 0
    while True:
        yield n
        n += 1
def take(n, it):
    return [x for _, x in zip(range(n), it)]
evens = (x for x in naturals() if x % 2 == 0)
squares = (x * x for x in evens)
take(5, squares)
=== recursion and memo
from functools import lru_cache
def fact(n): return 1 if n < 2 else n * fact(n - 1)
@lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def flatten(x):
    return [x] if not isinstance(x, list) else [z for y in x for z in flatten(y)]
def hanoi(n, a="A", b="B", c="C"):
    return [] if n == 0 else hanoi(n - 1, a, c, b) + [(a, c)] + hanoi(n - 1, b, a, c)
def perms(s): return [s] if len(s) < 2 else [c + p for i, c in enumerate(s) for p in perms(s[:i] + s[i+1:])]
[fact(10), fib(60), flatten([1, [2, [3, []], 4]]), len(hanoi(5)), perms("abc"), fib.cache_info().misses]
=== closures and nonlocal
def counter():
    n = 0
    def inc(by=1):
        nonlocal n
        n += by
        return n
    def peek(): return n
    return inc, peek
inc, peek = counter()
inc(); inc(5)
adders = [lambda x, i=i: x + i for i in range(3)]
late = [lambda: j for j in range(3)]
def make(op):
    return {"+": lambda a, b: a + b, "-": lambda a, b: a - b}[op]
[peek(), [f(10) for f in adders], [f() for f in late], make("-")(5, 3)]
=== globals and scoping
total = 0
def add(n):
    global total, created
    total += n
    created = "yes"
for i in range(4): add(i)
x = "outer"
def f():
    x = "inner"
    return [x for x in range(3)], x
class C:
    x = "class"
    def g(self): return x
[total, created, f(), C().g(), i, x]
=== decorators
import functools, time
calls = []
def logged(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        calls.append((fn.__name__, args, kwargs))
        return fn(*args, **kwargs)
    wrapper.count = 0
    return wrapper
def repeat(n):
    def deco(fn):
        @functools.wraps(fn)
        def wrapper(*a, **k): return [fn(*a, **k) for _ in range(n)]
        return wrapper
    return deco
class Memo:
    def __init__(self, fn): self.fn = fn; self.cache = {}
    def __call__(self, *a):
        if a not in self.cache: self.cache[a] = self.fn(*a)
        return self.cache[a]
def retry(times, exceptions=(ValueError,)):
    def deco(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            last = None
            for attempt in range(times):
                try: return fn(*args, **kwargs)
                except exceptions as e: last = e
            raise last
        return wrapper
    return deco
@logged
def f(a, b=2):
    "doc of f"
    return a + b
@repeat(3)
@Memo
def sq(x): return x * x
n = 0
@retry(3)
def flaky():
    global n
    n += 1
    if n < 3: raise ValueError(n)
    return n
def add_repr(cls):
    cls.__repr__ = lambda self: f"<{cls.__name__}>"
    return cls
@add_repr
class Thing: pass
[f(1), f(1, b=5), f.__name__, f.__doc__, calls, f.count, sq(4), flaky(), repr(Thing())] if False else [f(1), f.__name__, f.__doc__, f.count, flaky(), repr(Thing())]
=== argument passing of all kinds
def f(a, b=2, /, c=3, *args, d, e=5, **kw): return [a, b, c, list(args), d, e, kw]
def g(*, x, **rest): return (x, rest)
def h(first, *rest): return (first, rest)
[f(1, d=4), f(1, 2, 3, 4, 5, d=6, z=7), f(*[1, 2], **{"d": 3, "q": 4}), g(x=1, y=2), h(*range(3)), (lambda *a, k=1, **kw: (a, k, kw))(1, k=2, m=3)]
=== mutable defaults and unpacking calls
def append(x, to=None):
    to = [] if to is None else to
    to.append(x)
    return to
def m(a, b, c): return a * 100 + b * 10 + c
d = {"b": 2, "c": 3}
[append(1), append(2, [0]), m(1, **d), m(*(1, 2), c=3), m(*[1], *[2, 3]), {**d, "a": 1}, [*range(2), *"ab"], (*[1], 2), {*[1, 1], 2} == {1, 2}]
=== comprehensions
rows = [{"n": "a", "v": 1}, {"n": "b", "v": 2}, {"n": "a", "v": 3}]
pairs = [(x, y) for x in range(3) for y in range(x) if (x + y) % 2]
by = {r["n"]: [s["v"] for s in rows if s["n"] == r["n"]] for r in rows}
matrix = [[1, 2, 3], [4, 5, 6]]
[pairs, by, [list(r) for r in zip(*matrix)], sorted({len(r["n"]) for r in rows}), sum(r["v"] for r in rows if r["v"] > 1), [y for x in range(5) if (y := x * x) > 3], {i: c for i, c in enumerate("abc") if i != 1}, [[i * j for j in range(3)] for i in range(3)]]
=== comprehension scoping
x = 10
l = [x for x in range(3)]
def f():
    return [(lambda: i)() for i in range(3)], [i + x for i in range(2)]
class K:
    items = [1, 2]
    doubled = [i * 2 for i in items]
[x, l, f(), K.doubled, list(map(lambda v: v + x, [1]))]
=== walrus
import re
lines = ["a=1", "bad", "b=22"]
found = [(m[1], int(m[2])) for line in lines if (m := re.match(r"(\w+)=(\d+)", line))]
total = 0
data = iter([3, 4, 0, 9])
while (v := next(data)): total += v
print(y := 5, y)
[found, total, (z := [1, 2])[0], z, any((hit := n) > 3 for n in [1, 5, 2]), hit]
=== slices and sequences
s = list(range(10))
s[2:4] = ["x"]
s[-1:] = []
del s[0]
t = s[:]
t[::2] = [0] * len(t[::2])
class Sl:
    def __getitem__(self, k): return (k.start, k.stop, k.step) if isinstance(k, slice) else k
[s, t, s[::-1], "hello"[1:-1], Sl()[1:2:3], Sl()[1, 2], "abc" * 2, (1, 2) + (3,), s.index("x"), "abcabc".rfind("b")]
=== augmented assignments
d = {"a": 1, "l": [1]}
d["a"] += 5; d["l"] += [2]; d["a"] **= 2; d["a"] //= 5; d["a"] %= 4; d["a"] <<= 3; d["a"] |= 1; d["a"] ^= 2; d["a"] &= 0xff; d["a"] >>= 1; d["a"] -= 2; d["a"] *= 7; d["a"] /= 2
class O: pass
o = O(); o.n = 1; o.n += 1; o.l = []; o.l += [1]; o.d = {}; o.d["k"] = 0; o.d["k"] += 1
x = y = [1]; x += [2]
m = [[0] * 2 for _ in range(2)]; m[1][0] += 5
s = {1}; s |= {2}; t = (1,); t += (2,)
[d, o.n, o.l, o.d, y, m, sorted(s), t]
=== unpacking targets
a, (b, *c), d = 1, (2, 3, 4), 5
[e, f] = "xy"
(g, h), i = (1, 2), 3
*init, last = range(4)
first, *_ = "abc"
o = {}
o["k"], z = 7, 8
for n, (p, q) in enumerate([(1, 2), (3, 4)]): pass
x = y = 0
x, y = y + 1, x + 2
[a, b, c, d, e, f, g, h, i, init, last, first, _, o, z, n, p, q, x, y]
=== loops with else, break, continue
found = []
for n in range(2, 20):
    for d in range(2, n):
        if n % d == 0: break
    else:
        found.append(n)
i = 0
while True:
    i += 1
    if i < 5: continue
    break
else:
    i = -1
for _ in []: pass
else: e = "empty"
[found, i, e]
=== conditional expressions and chaining
def grade(s): return "A" if s > 90 else "B" if s > 80 else "C"
x = 5
[grade(95), grade(85), grade(1), 1 < x < 10, 1 < x > 7, x == 5 != 4, not x, x and "y", None or "z", [] or {} or 0, x if x else None, 3 in [1, 2, 3] and 4 not in [1]]
=== exceptions in all forms
log = []
class AppError(Exception):
    def __init__(self, code, message="m"):
        super().__init__(message)
        self.code = code
class Sub(AppError): pass
def risky(n):
    try:
        if n == 0: raise AppError(1)
        if n == 1: raise Sub(2, "sub")
        if n == 2: {}["k"]
        if n == 3: int("x")
        if n == 4: return "returned"
        log.append("no error")
    except Sub as e: log.append(("sub", e.code, str(e)))
    except AppError as e: log.append(("app", e.code, e.args))
    except (KeyError, IndexError) as e: log.append((type(e).__name__, repr(e)))
    except Exception as e: log.append(str(e)); return "exc"
    else: log.append("else")
    finally: log.append("finally")
    return "end"
[[risky(n) for n in range(6)], log]
=== exception chaining and notes
def f():
    try:
        try: 1 / 0
        except ZeroDivisionError as e: raise ValueError("bad") from e
    except ValueError as e:
        return [str(e), str(e.__cause__), type(e.__cause__).__name__, e.__suppress_context__]
def g():
    try:
        try: [][1]
        except IndexError: raise KeyError("k")
    except KeyError as e: return [type(e.__context__).__name__, e.__cause__]
try:
    try: raise RuntimeError("r")
    except RuntimeError as e:
        e.add_note("a note")
        raise
except RuntimeError as e: h = e.__notes__
try: raise ValueError("x") from None
except ValueError as e: n = e.__cause__
[f(), g(), h, n]
=== exception groups
def run():
    caught = []
    try:
        raise ExceptionGroup("several", [ValueError("v"), TypeError("t"), ExceptionGroup("in", [KeyError("k")])])
    except* ValueError as g: caught.append(("v", [str(e) for e in g.exceptions]))
    except* (TypeError, KeyError) as g: caught.append(("t", g.message, len(g.exceptions)))
    try:
        raise ExceptionGroup("g", [OSError("o"), ValueError("w")])
    except ExceptionGroup as g:
        m, rest = g.split(ValueError)
        caught.append([str(m.exceptions[0]), str(rest.exceptions[0])])
    return caught
run()
=== assert and raise class
out = []
try: assert 1 == 2, "math"
except AssertionError as e: out.append(str(e))
try: raise NotImplementedError
except NotImplementedError as e: out.append(repr(e))
try: raise StopIteration(5)
except StopIteration as e: out.append(e.value)
try: undefined_name
except NameError as e: out.append(str(e))
try: (1).nothing
except AttributeError as e: out.append(str(e))
try: "a" + 1
except TypeError as e: out.append(str(e))
try: [1][5]
except IndexError as e: out.append(str(e))
try: int("z")
except ValueError as e: out.append(str(e))
try: def_ = {}["q"]
except KeyError as e: out.append(str(e))
out
=== finally order and return
def f():
    for i in range(3):
        try:
            if i == 1: continue
            if i == 2: return "r"
        finally:
            seen.append(i)
def g():
    try: return "try"
    finally: seen.append("g")
seen = []
[f(), g(), seen]
=== match on values and sequences
def kind(x):
    match x:
        case 0: return "zero"
        case -1 | -2: return "minus"
        case "a" | "b": return "letter"
        case None: return "none"
        case True: return "true"
        case []: return "empty"
        case [x]: return f"one {x}"
        case [1, *rest]: return f"one and {rest}"
        case [a, [b, c], *_]: return f"nested {a}{b}{c}"
        case (x, y) if x == y: return "pair"
        case str() as s: return f"str {s}"
        case int(n) | float(n): return f"number {n}"
        case _: return "other"
[kind(v) for v in [0, -2, "b", None, True, [], [7], [1, 2, 3], [5, [6, 7], 8], (4, 4), "zz", 3.5, 12, {1}, (1, 2)]]
=== match on mappings
def handle(e):
    match e:
        case {"type": "click", "pos": (x, y)}: return f"click {x},{y}"
        case {"type": "key", "key": str(k), **rest}: return f"key {k} {rest}"
        case {"type": ("a" | "b") as t}: return f"ab {t}"
        case {"user": {"name": n, "age": int(a)}} if a > 17: return f"adult {n}"
        case {}: return "empty or other"
[handle(e) for e in [{"type": "click", "pos": [1, 2]}, {"type": "key", "key": "q", "shift": True}, {"type": "b"}, {"user": {"name": "x", "age": 20}}, {"user": {"name": "x", "age": 2}}, {}]]
=== match on classes
from dataclasses import dataclass
from enum import Enum
class Color(Enum):
    RED = 1
    BLUE = 2
@dataclass
class Point:
    x: int
    y: int
class Old:
    __match_args__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
def where(p):
    match p:
        case Point(0, 0): return "origin"
        case Point(x=0, y=y): return f"y axis {y}"
        case Point(x, 0): return f"x axis {x}"
        case Point(): return "somewhere"
        case Old(a, b=2): return f"old {a}"
        case Color.RED: return "red"
        case Color(): return "color"
        case dict(): return "dict"
        case list([a, b]): return f"list {a} {b}"
        case int() | float(): return "num"
[where(v) for v in [Point(0, 0), Point(0, 5), Point(5, 0), Point(1, 1), Old(1, 2), Color.RED, Color.BLUE, {}, [1, 2], 3.0]]
=== strings of all kinds
name, n, pi = "World", 42, 3.14159265
d = {"k": "v", "n": {"m": [1, 2]}}
class P:
    x = 5
    items = ["a", "b"]
[f"{name!r:>10}|{n:05d}|{n:x}|{n:#b}|{pi:.3f}|{pi:10.2e}|{n:,}|{1234567.891:,.2f}|{n:+}|{0.256:.1%}", f"{name:*^11}|{name[:3]}|{name.lower()}|{d['k']}", f"{'nested ' + f'{n + 1}'}", f"{n=} {name=!s} {pi=:.2f}", f"{{literal}} {n!s}", "{} {} {}".format(1, "two", [3]), "{0} {1} {0}".format("a", "b"), "{name:>5}|{n[k]}".format(name="ab", n=d), "{0.x} {0.items[1]}".format(P()), "{:{w}.{p}f}".format(pi, w=8, p=2), "{a} {b}".format(**{"a": 1, "b": 2}), "{k}".format_map(d), "%s %d %05.1f %x %r %%" % ("s", 3, pi, 255, "q"), "%(a)s-%(b)03d" % {"a": 1, "b": 2}, f"{n:>{n // 4}}", f"{'a' if n > 1 else 'b'}", f"{max([1, 2])}{[i for i in range(3)]}"]
=== format by other routes
fmt = "{}-{}".format
template = "Hello {name}, you are {age:>3}"
rows = [("a", 1), ("b", 22)]
pad = "{:<5}|{:>4}"
class Money:
    def __init__(self, v): self.v = v
    def format(self, style): return f"{style}{self.v}"
    def __format__(self, spec): return f"${self.v:{spec or '.2f'}}"
[fmt(1, 2), template.format(name="Al", age=7), [pad.format(*r) for r in rows], list(map("<{}>".format, "ab")), Money(5).format("EUR"), f"{Money(2)} {Money(3):.0f}", format(3.14159, ".2f"), format(255, "x"), format("a", ">3"), str.format("{}{}", 1, 2)]
=== string methods
s = "  The quick brown Fox, the lazy dog.  "
w = s.strip().lower().replace(",", "").rstrip(".").split()
[w, s.strip().title(), " ".join(reversed(w)), "a-b-c".partition("-"), "x=1;y=2".split(";"), "abc".center(9, "*"), "42".zfill(5), "Hello".swapcase(), "a,b,,c".split(","), "one\ntwo\r\nthree".splitlines(), "abc".translate(str.maketrans("ab", "xy")), "tést".encode("utf-8").decode("latin-1"), "ß".casefold(), "abc".isalpha(), "12".isdigit(), "prefix_x".removeprefix("prefix_"), "f.txt".removesuffix(".txt"), "%".join("abc"), "banana".count("an"), "a\tb".expandtabs(4), ascii("é"), chr(8364), ord("€"), "abc" < "abd", "Z" in "XYZ"]
=== bytes and numbers
b = "héllo".encode()
[b.hex(), list(b[:2]), bytes([65, 66]).decode(), bytearray(b"abc").upper().decode(), int("ff", 16), int("0b101", 0), bin(10), hex(255), oct(8), 7 // 2, -7 // 2, -7 % 3, divmod(17, 5), 2 ** 100, pow(3, 4, 5), round(2.5), round(1.2345, 2), abs(-3), 1e3, 0.1 + 0.2, 10 / 4, 5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 4, int.from_bytes(b"\x01\x00", "big"), (300).to_bytes(2, "big").hex(), (10).bit_length(), 1_000, 0xff, 3 + 4j == complex(3, 4), (2.5).is_integer(), float("1e5"), sum([0.1] * 3), max("b", "a"), isinstance(True, int), float("inf") > 10]
=== builtins over collections
nums = [3, 1, 4, 1, 5, 9, 2, 6]
people = [("ann", 30), ("bob", 25), ("cat", 30)]
[sorted(nums, reverse=True), sorted(people, key=lambda p: (-p[1], p[0])), list(enumerate("ab", 1)), list(zip("ab", [1, 2], strict=True)), list(map(str, nums))[:2], list(filter(None, [0, 1, "", "a"])), list(reversed(nums))[:2], min(people, key=lambda p: p[1]), max(nums, default=0), max([], default=None), sum(nums, 100), all(n > 0 for n in nums), any([]), list(range(10, 0, -3)), dict(zip("ab", [1, 2])), set("hello") == {"h", "e", "l", "o"}, next(iter([]), "none"), list(iter(lambda it=iter([1, 2, 0, 3]): next(it), 0)), tuple(x for x in "ab"), frozenset([1]) == {1}, callable(len), callable(3), type(3).__name__, isinstance("a", (int, str)), issubclass(bool, int), len({}), repr("a'b"), hash(1), slice(1, 2).indices(5), str(None), bool("False")]
=== dict and set methods
d = {"a": 1, "b": 2}
d.update(c=3); d.setdefault("e", []).append(4); popped = d.pop("a"); missing = d.pop("zz", None)
inv = {v: k for k, v in {"x": 1, "y": 2}.items()}
a, b = {1, 2, 3}, {2, 3, 4}
l = [3, 1, 2]; l.sort(); l.insert(0, 9); l.extend([7, 8]); l.remove(1); l.reverse()
[d, popped, missing, inv, d | {"n": 0}, list(d.keys()), sorted(a & b), sorted(a | b), sorted(a - b), sorted(a ^ b), a.issubset({1, 2, 3, 4}), a.isdisjoint({9}), l, l.pop(), l.count(3), dict.fromkeys("ab", 0), list({"a": 1}.items()), {"a": {"b": 1}}["a"]["b"], d.get("nope", "dflt"), "b" in d, {1: "a"} == {1: "a"}, sorted(d, key=str)]
=== type checks and reflection
class A:
    kind = "a"
    def m(self): return "m"
a = A()
setattr(a, "x", 5)
values = [getattr(a, n) for n in ("x", "kind")]
delattr(a, "x")
class B(A): pass
[values, hasattr(a, "x"), getattr(a, "m")(), type(a).__name__, type(a) is A, type(B()) == A, isinstance(B(), A), A.__name__, a.__class__.__name__, type(None).__name__, type(len).__name__, type(lambda: 0).__name__, type(A).__name__, type([]) in (list, tuple), vars(a), "m" in dir(a), callable(a.m), a.m.__name__, [t.__name__ for t in (int, str, list, dict)], type(type(1)).__name__, isinstance(A, type), type(ValueError("x")).__name__, type(3)("4")]
=== main guard and helpers
def _helper(x):
    return x + 1
_CONST = 5
__version__ = "1.0"
def main():
    return _helper(_CONST)
result = None
if __name__ == "__main__":
    result = main()
[result, __name__, __version__]
=== annotations of every kind
from typing import Optional, Union, Callable, Any, Literal, TypeAlias, Final
Number: TypeAlias = Union[int, float]
LIMIT: Final = 3
x: int
y: "list[int]" = [1]
def f(a: int, b: Optional[str] = None, *c: float, d: Callable[[int], str] | None = None, **e: Any) -> dict[str, "Undefined"]:
    z: list[Undefined2] = []
    return {"a": [a, b, c, d, e, z]}
class K:
    n: int = 0
    names: list[str]
    def m(self: "K", v: Literal["a", "b"]) -> "K": return self
[f(1), K().m("a").n, LIMIT, y, K.__annotations__["n"].__name__, sorted(f.__annotations__)]
=== future annotations
from __future__ import annotations
from dataclasses import dataclass, field
from typing import ClassVar
@dataclass
class Node:
    value: int
    children: list[Node] = field(default_factory=list)
    total: ClassVar[int] = 0
    def add(self, child: Node) -> Node:
        self.children.append(child)
        return self
n = Node(1).add(Node(2)).add(Node(3))
[repr(n), len(n.children)]
=== lambdas and functional style
compose = lambda *fs: lambda x: __builtins_free(fs, x)
def __builtins_free(fs, x):
    for f in reversed(fs): x = f(x)
    return x
ops = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b}
[compose(str, lambda x: x + 1)(4), {k: f(3, 4) for k, f in ops.items()}, sorted("bca", key=lambda c: -ord(c)), (lambda: (yield))  is None, list(map(lambda p: p[0] + p[1], [(1, 2)]))]
=== async functions and gather
import asyncio
async def fetch(i):
    await asyncio.sleep(0)
    return await get(i=i) * 10
async def main():
    results = await asyncio.gather(*(fetch(i) for i in range(4)))
    errors = await asyncio.gather(bad(), fetch(1), return_exceptions=True)
    return results, [str(e) for e in errors]
async def bad(): raise ValueError("bad")
await main()
=== async generators and comprehensions
import asyncio
async def ticks(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i
class Rows:
    def __init__(self, n): self.n = n
    def __aiter__(self): self.i = 0; return self
    async def __anext__(self):
        if self.i >= self.n: raise StopAsyncIteration
        self.i += 1
        return await get(i=self.i)
out = []
async for t in ticks(3): out.append(t)
async for r in Rows(2): out.append(r)
squares = [x * x async for x in ticks(4) if x % 2]
d = {x: await get(i=x) async for x in ticks(2)}
[out, squares, {str(k): v for k, v in d.items()}, [await get(i=i) for i in range(3)], sum([x async for x in Rows(3)])]
=== async context managers and tasks
import asyncio
log = []
class Conn:
    async def __aenter__(self): log.append("open"); return self
    async def __aexit__(self, *exc): log.append("close"); return False
    async def query(self, q): return await echo(x=q)
async def worker(q, out):
    while True:
        item = await q.get()
        if item is None: break
        out.append(await get(i=item))
        q.task_done()
async def main():
    async with Conn() as c: log.append(await c.query("select"))
    q, out = asyncio.Queue(), []
    t = asyncio.create_task(worker(q, out))
    for i in range(3): await q.put(i)
    await q.put(None)
    await t
    sem = asyncio.Semaphore(2)
    async def limited(i):
        async with sem: return await get(i=i)
    async with asyncio.TaskGroup() as tg:
        ts = [tg.create_task(limited(i)) for i in range(3)]
    try:
        async with asyncio.timeout(0.01): await asyncio.sleep(5)
    except TimeoutError: log.append("timeout")
    return out, [t.result() for t in ts]
[await main(), log]
=== asyncio run and top level await
import asyncio
async def main():
    a = await get(i=1)
    b = await add(a=a, b=2)
    return {"sum": b}
value = await main()
print("value", value)
value
=== tools in comprehension with errors
async def safe(name):
    try:
        return await read_doc(name=name)
    except Exception as e:
        return f"failed: {type(e).__name__}"
[await safe(n) for n in ("public", "secret")]
=== printing
import io
print("a", 1, None, sep="-", end="!\n")
print()
print(*[1, 2], sep="")
buffer = io.StringIO()
print("to buffer", file=buffer)
print({"k": [1, 2.5]}, flush=True)
buffer.getvalue()
=== star imports and aliases
from math import *
from collections import Counter as C, defaultdict
import itertools as it, json as j
[sqrt(16), floor(pi), C("aab")["a"], j.dumps([1]), list(it.chain([1], [2])), defaultdict(int)["x"]]
=== optional imports
try:
    import not_installed_here as np
    have = True
except ImportError:
    np = None
    have = False
try:
    from not_installed_either import DataFrame
except (ImportError, ModuleNotFoundError) as e:
    DataFrame = None
def load():
    import math
    from json import dumps as d
    return d([math.floor(2.5)])
[have, DataFrame, load()]
=== deleting and rebinding
x = [1, 2, 3]
del x[0], x[-1]
d = {"a": 1, "b": 2}
del d["a"]
y = 5
del y
try: y
except NameError: gone = True
list_ = list
len_ = len
def max(*a): return "mine"
input = "a value"
id = 7
[x, d, gone, list_("ab"), len_("abc"), max(1, 2), input, id]
=== nested data transformation
orders = [{"id": i, "customer": c, "lines": [{"sku": s, "qty": q, "price": p} for s, q, p in ls]} for i, c, ls in [(1, "ann", [("a", 2, 1.5), ("b", 1, 4.0)]), (2, "bob", [("a", 5, 1.5)]), (3, "ann", [])]]
totals = {}
for o in orders:
    t = sum(l["qty"] * l["price"] for l in o["lines"])
    totals[o["customer"]] = totals.get(o["customer"], 0) + t
by_sku = {}
for o in orders:
    for l in o["lines"]:
        by_sku.setdefault(l["sku"], []).append((o["id"], l["qty"]))
best = max(totals, key=totals.get)
{"totals": totals, "by_sku": by_sku, "best": best, "empty": [o["id"] for o in orders if not o["lines"]], "top": sorted(orders, key=lambda o: len(o["lines"]), reverse=True)[0]["id"]}
=== algorithms
def bsearch(a, x):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < x: lo = mid + 1
        else: hi = mid
    return lo
def quicksort(a):
    if len(a) < 2: return a
    p, *rest = a
    return quicksort([x for x in rest if x < p]) + [p] + quicksort([x for x in rest if x >= p])
def sieve(n):
    ok = [True] * (n + 1); ok[0:2] = [False] * 2
    for i in range(2, int(n ** 0.5) + 1):
        if ok[i]: ok[i*i::i] = [False] * len(ok[i*i::i])
    return [i for i, v in enumerate(ok) if v]
def bfs(g, s):
    seen, queue = {s: 0}, [s]
    while queue:
        n = queue.pop(0)
        for m in g[n]:
            if m not in seen: seen[m] = seen[n] + 1; queue.append(m)
    return seen
def lev(a, b):
    prev = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        cur = [i]
        for j, cb in enumerate(b, 1): cur.append(min(prev[j] + 1, cur[-1] + 1, prev[j-1] + (ca != cb)))
        prev = cur
    return prev[-1]
[bsearch([1, 3, 5, 7], 5), quicksort([3, 1, 2, 3]), sieve(30), bfs({1: [2, 3], 2: [4], 3: [4], 4: []}, 1), lev("kitten", "sitting")]
=== linked list and tree
class Node:
    def __init__(self, value, next=None): self.value, self._next = value, next
class LinkedList:
    def __init__(self): self._head = None; self._size = 0
    def push(self, v): self._head = Node(v, self._head); self._size += 1; return self
    def __iter__(self):
        n = self._head
        while n is not None:
            yield n.value
            n = n._next
    def __len__(self): return self._size
    def reverse(self):
        prev, cur = None, self._head
        while cur: cur._next, prev, cur = prev, cur, cur._next
        self._head = prev
class Tree:
    def __init__(self, v): self.v, self._l, self._r = v, None, None
    def insert(self, v):
        side = "_l" if v < self.v else "_r"
        child = getattr(self, side)
        if child is None: setattr(self, side, Tree(v))
        else: child.insert(v)
        return self
    def walk(self):
        if self._l: yield from self._l.walk()
        yield self.v
        if self._r: yield from self._r.walk()
l = LinkedList().push(1).push(2).push(3)
before = list(l); l.reverse()
t = Tree(5)
for v in [3, 8, 1, 4]: t.insert(v)
[before, list(l), len(l), list(t.walk())]
=== state machine and matrix
class Machine:
    TRANSITIONS = {("idle", "start"): "running", ("running", "stop"): "idle", ("running", "fail"): "error"}
    def __init__(self): self.state = "idle"; self._history = [self.state]
    def fire(self, event):
        key = (self.state, event)
        if key not in self.TRANSITIONS: raise ValueError(f"invalid {event!r} in {self.state!r}")
        self.state = self.TRANSITIONS[key]
        self._history.append(self.state)
m = Machine()
for e in ("start", "stop", "start", "fail"): m.fire(e)
try: m.fire("start")
except ValueError as e: err = str(e)
A, B = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
mul = [[sum(a * b for a, b in zip(r, c)) for c in zip(*B)] for r in A]
[m._history, err, mul]
=== parsing a small language
import re
TOKEN = re.compile(r"\s*(?:(\d+\.?\d*)|(.))")
def tokens(s):
    for num, op in TOKEN.findall(s):
        if num: yield ("num", float(num))
        elif op.strip(): yield ("op", op)
    yield ("end", None)
class Parser:
    def __init__(self, s): self._t = list(tokens(s)); self._i = 0
    def _peek(self): return self._t[self._i]
    def _next(self): t = self._t[self._i]; self._i += 1; return t
    def expr(self):
        v = self.term()
        while self._peek() in (("op", "+"), ("op", "-")):
            v = v + self.term() if self._next()[1] == "+" else v - self.term()
        return v
    def term(self):
        v = self.factor()
        while self._peek() in (("op", "*"), ("op", "/")):
            v = v * self.factor() if self._next()[1] == "*" else v / self.factor()
        return v
    def factor(self):
        k, v = self._next()
        if k == "num": return v
        if v == "(":
            r = self.expr(); self._next(); return r
        if v == "-": return -self.factor()
        raise SyntaxError(f"unexpected {v}")
[Parser(s).expr() for s in ("1+2*3", "(1+2)*3", "-4/2+10", "2*(3+(4-1))")]
=== sets of objects and hashing
class Tag:
    def __init__(self, n): self.n = n
tags = [Tag(i) for i in range(8)]
s = set(tags)
class Key:
    def __init__(self, k): self.k = k
    def __hash__(self): return hash(self.k)
    def __eq__(self, o): return isinstance(o, Key) and self.k == o.k
d = {Key(1): "a"}
[len(s), tags[0] in s, Tag(1) in s, d[Key(1)], Key(2) in d, sorted(t.n for t in s), len({print, len, print}), len({int, str, int}), {None: 1}[None]]
=== default reprs hold no address
class A: pass
def f(): pass
async def c(): pass
texts = [repr(A()), str(f), f"{A()}", "%r" % A(), "{}".format(lambda: 0), repr([A()]), repr((x for x in [])), repr(A().__init__), repr(iter([])), repr(object()), str({"k": A()}), repr(map(str, []))]
[all("0x" not in t for t in texts), repr(A), repr(int), repr(ValueError("x"))]
=== type parameters and generics
from typing import TypeVar, Generic, Protocol, runtime_checkable
T = TypeVar("T")
K = TypeVar("K", bound="Comparable")
class Stack(Generic[T]):
    def __init__(self) -> None: self._items: list[T] = []
    def push(self, x: T) -> None: self._items.append(x)
    def pop(self) -> T: return self._items.pop()
    def __len__(self) -> int: return len(self._items)
@runtime_checkable
class Sized2(Protocol):
    def size(self) -> int: ...
class Box:
    def size(self): return 3
def first(xs: list[T]) -> T: return xs[0]
s = Stack[int](); s.push(1); s.push(2)
[s.pop(), len(s), isinstance(Box(), Sized2), isinstance(3, Sized2), first([7])]
'''
