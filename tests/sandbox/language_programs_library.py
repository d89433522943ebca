"""Ordinary programs about the modules that programs may import: see `language_programs`."""

LIBRARY = r'''
=== json round trips
import json
data = {"a": [1, 2.5, None, True], "ü": {"n": "x\ny"}, "big": 9007199254740993}
text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False)
class Point:
    def __init__(self, x, y): self.x, self.y = x, y
class Enc(json.JSONEncoder):
    def default(self, o):
        if isinstance(o, Point): return {"x": o.x, "y": o.y}
        if isinstance(o, set): return sorted(o)
        return super().default(o)
try: json.loads("{bad")
except json.JSONDecodeError as e: err = [e.msg, e.pos, e.lineno]
try: json.dumps(object())
except TypeError as e: terr = str(e)
[json.loads(text) == data, json.dumps({"p": Point(1, 2), "s": {2, 1}}, cls=Enc), json.dumps([Point(1, 2)], default=vars), json.loads('{"a": 1}', object_hook=lambda d: {**d, "seen": True}), json.loads("[1.5, 2]", parse_float=str), json.dumps({"a": 1}, separators=(",", ":")), err, terr, json.dumps("é"), json.loads('{"a": 1, "b": 2}', object_pairs_hook=list)]
=== json files in memory
import json, io
buf = io.StringIO()
json.dump({"a": [1]}, buf)
buf.seek(0)
[json.load(buf), [json.loads(l) for l in '{"a":1}\n{"a":2}'.splitlines()]]
=== math functions
import math
[math.sqrt(2), math.gcd(12, 18), math.lcm(4, 6), math.factorial(5), math.comb(5, 2), math.perm(5, 2), math.prod([1, 2, 3]), math.isclose(0.1 + 0.2, 0.3), math.ceil(1.2), math.floor(-1.2), math.trunc(1.9), math.log(8, 2), math.log10(1000), math.log2(8), math.hypot(3, 4), math.degrees(math.pi), math.fsum([0.1] * 10), math.isnan(math.nan), math.inf > 1, math.dist([0, 0], [3, 4]), math.modf(2.5), math.copysign(1, -2), math.isqrt(17), round(math.e, 4), math.tau == 2 * math.pi]
=== re in all forms
import re
text = "Contact: ann@example.com, bob.smith@test.org (tel 555-1234) on 2024-01-15"
pat = re.compile(r"(?P<user>[\w.]+)@(?P<host>[\w.]+)", re.IGNORECASE)
m = pat.search(text)
[pat.findall(text), m.group("user"), m.groupdict(), m.span(), m.groups(), m[0], re.sub(r"\d", "#", "a1b2"), re.sub(r"(\w+) (\w+)", r"\2 \1", "hello world"), re.sub(r"\d+", lambda m: str(int(m[0]) * 2), "3 4"), re.split(r"[,;]\s*", "a, b;c"), bool(re.match("a", "ba")), bool(re.fullmatch(r"\d+", "123")), [x.start() for x in re.finditer("o", "foo boo")], re.findall(r"(\d{4})-(\d{2})-(\d{2})", text), re.subn("o", "0", "foo"), re.escape("a.b"), re.search("x", "y") is None, re.compile("a", re.M | re.S).flags & re.M == re.M, re.findall(r"^\w+", "a\nb", flags=re.MULTILINE), pat.sub(r"<\g<user>>", text)[:14], re.compile(r"""
  (\d+)  # digits
""", re.VERBOSE).findall("a12")]
=== datetime construction and arithmetic
from datetime import datetime, date, time, timedelta, timezone
import datetime as dt
a = datetime(2024, 1, 31, 12, 30, 15, 500)
b = a + timedelta(days=30, hours=5, minutes=-10)
d = date(2024, 2, 29)
[repr(a), str(b), (b - a).days, (b - a).total_seconds(), a.isoformat(), a.strftime("%Y/%m/%d %H:%M:%S %j %A %b"), d.weekday(), d.isoweekday(), d.isocalendar()[1], str(d.replace(year=2023, day=28)), repr(d - date(2024, 1, 1)), a.date().isoformat(), a.time().isoformat(), datetime.strptime("03 Feb 2021 04:05", "%d %b %Y %H:%M").isoformat(), datetime.fromisoformat("2024-05-06T07:08:09+02:00").utcoffset().total_seconds(), date.fromisoformat("2020-02-29").toordinal(), datetime(2024, 1, 1, tzinfo=timezone.utc).timestamp(), datetime.fromtimestamp(0, timezone.utc).isoformat(), datetime.combine(d, time(1, 2)).isoformat(), a < b, a == datetime(2024, 1, 31, 12, 30, 15, 500), max(date(2020, 1, 1), d).year, str(timedelta(seconds=3661)), timedelta(days=1) / timedelta(hours=6), timedelta(hours=5) // timedelta(hours=2), repr(timedelta(days=-1)), isinstance(a, date), type(a).__name__, type(a.date()) is date, str(dt.date(2024, 1, 1)), timezone(timedelta(hours=2)).utcoffset(None).seconds, date.max.year, f"{a:%d.%m.%Y}", "{:%H:%M}".format(a), d.ctime(), a.timetuple()[:6], repr(datetime.min), dt.datetime.fromordinal(738000).isoformat()]
=== datetime in collections and json
import json
from datetime import date, datetime, timedelta
start = date(2024, 1, 29)
days = [start + timedelta(days=i) for i in range(5)]
week = {d.isoformat(): d.strftime("%a") for d in days}
months = {}
for d in days: months.setdefault(d.strftime("%Y-%m"), []).append(d.day)
class D(json.JSONEncoder):
    def default(self, o): return o.isoformat() if isinstance(o, (date, datetime)) else super().default(o)
[week, months, json.dumps({"d": days[0], "t": datetime(2024, 1, 1)}, cls=D), sorted(days, reverse=True)[0].day, len({date(2024, 1, 1), date(2024, 1, 1)}), json.dumps(days[:1], default=str)]
=== timezones
from datetime import datetime, timezone, timedelta
utc = datetime(2024, 6, 1, 12, tzinfo=timezone.utc)
est = timezone(timedelta(hours=-5), "EST")
local = utc.astimezone(est)
try: utc < datetime(2024, 1, 1)
except TypeError as e: err = str(e)
[local.isoformat(), local.tzname(), (utc - local).total_seconds(), utc == local, repr(est), utc.replace(tzinfo=None).isoformat(), err, str(timezone.utc), utc.strftime("%z")]
=== named zones
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError
from datetime import datetime, timedelta
try:
    berlin, tokyo = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Tokyo")
    t = datetime(2024, 3, 31, 1, 30, tzinfo=berlin)
    r = [t.isoformat(), (t + timedelta(hours=1)).utcoffset().total_seconds(), t.astimezone(tokyo).isoformat(), repr(berlin), str(tokyo),
         berlin.key, isinstance(berlin, ZoneInfo), t.tzname(), ZoneInfo("Europe/Berlin") is berlin, datetime(2024, 7, 1, tzinfo=ZoneInfo("America/New_York")).strftime("%Z %z")]
except ZoneInfoNotFoundError as e:
    r = [str(e)]
try: ZoneInfo("Mars/Base")
except ZoneInfoNotFoundError as e: r.append(type(e).__name__)
r
=== text in many encodings
names = ["utf-8", "utf-16-le", "utf-8-sig", "latin-1", "cp1252", "cp437", "ascii", "utf-32-be", "iso8859-15", "mac-roman"]
found = {n: "Aé".encode(n, "replace").hex() for n in names}
try: "x".encode("nonsense")
except LookupError as e: err = str(e)
try: b"\xff".decode("utf-8")
except UnicodeDecodeError as e: bad = [e.reason, e.start, e.end]
[found, "日本".encode("shift_jis").hex(), "\u00fc".encode("idna").decode(), err, bad, "ä€".encode("ascii", "xmlcharrefreplace").decode(), "ä".encode("ascii", "namereplace").decode(), "\N{EURO SIGN}"]
=== tracebacks as text
import traceback
def f(): raise ValueError("bad")
try: f()
except ValueError as e:
    text = traceback.format_exc()
    lines = traceback.format_exception(e)
    only = traceback.format_exception_only(e)
[text.splitlines()[0], text.splitlines()[-1], text.count("in f"), lines[-1], only, traceback.format_exc()]
=== html parser
from html.parser import HTMLParser
class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self._text = [], []
    def handle_starttag(self, tag, attrs):
        if tag == "a": self.links.append(dict(attrs).get("href"))
    def handle_data(self, data): self._text.append(data.strip())
p = Links(); p.feed("<p>Hi <a href='/x'>there</a> &amp; <a href=y>you</a></p>")
[p.links, [t for t in p._text if t]]
=== the clock is there
from datetime import datetime, date, timezone, timedelta
import time
now = datetime.now()
aware = datetime.now(timezone.utc)
t0 = time.time(); t1 = time.perf_counter()
age = (date.today() - date(2000, 1, 1)).days
[now.year > 2000, aware.tzinfo is timezone.utc, isinstance(now, datetime), isinstance(date.today(), date), time.time() >= t0, time.perf_counter() >= t1, age > 1000, (datetime.today() - now) < timedelta(days=1), type(now) is datetime, datetime.now(tz=timezone(timedelta(hours=3))).utcoffset() == timedelta(hours=3), repr(now).startswith("datetime.datetime(20"), time.strftime("%Y") > "2000", time.gmtime(0).tm_year, time.strptime("2024", "%Y").tm_year, time.monotonic_ns() > 0]
=== counters
from collections import Counter
c = Counter("mississippi")
c.update("miss")
d = Counter(a=3, b=1)
[c.most_common(2), dict(d - Counter(a=1)), dict(d + Counter(b=2)), dict(d & Counter(a=1, b=5)), dict(d | Counter(c=1)), sum(c.values()), list(d.elements()), c["zz"], Counter(["x", "y", "x"]).most_common(1)[0][0], d.total(), repr(Counter("aab")), sorted(Counter({"a": 1, "b": 2}).items(), key=lambda kv: -kv[1])]
=== defaultdict, deque, OrderedDict, ChainMap
from collections import defaultdict, deque, OrderedDict, ChainMap, UserDict, UserList
g = defaultdict(list)
for k, v in [("a", 1), ("b", 2), ("a", 3)]: g[k].append(v)
tree = lambda: defaultdict(tree)
t = tree(); t["x"]["y"] = 1
q = deque([1, 2, 3], maxlen=3); q.append(4); q.appendleft(0); q.rotate(1)
o = OrderedDict(a=1, b=2); o.move_to_end("a"); first = o.popitem(last=False)
ch = ChainMap({"a": 1}, {"a": 2, "b": 3})
class Lower(UserDict):
    def __setitem__(self, k, v): super().__setitem__(k.lower(), v)
l = Lower(ABC=1); l["Q"] = 2
class Twice(UserList):
    def append(self, x): super().append(x); super().append(x)
tw = Twice(); tw.append(1)
[dict(g), t["x"]["y"], list(q), list(o), first, ch["a"], ch["b"], dict(ch.new_child({"z": 1})), dict(l), list(tw), repr(g), repr(q), dict(defaultdict(int, {"a": 1}))]
=== namedtuples
from collections import namedtuple
P = namedtuple("P", "x y z", defaults=[0])
p = P(1, 2)
class Emp(namedtuple("Emp", ["name", "pay"])):
    __slots__ = ()
    @property
    def yearly(self): return self.pay * 12
    def raised(self, by): return self._replace(pay=self.pay + by)
e = Emp("a", 10)
[p, p.z, p._asdict(), p._replace(x=9), P._fields, P._make([7, 8, 9]), e.yearly, e.raised(5), repr(p), p == (1, 2, 0), dict(zip(P._fields, p)), [*p], P(x=1, y=2, z=3), sorted([P(3, 1), P(1, 2)]), P._field_defaults]
=== itertools
import itertools
from itertools import *
[list(chain([1], "a")), list(islice(count(5, 2), 3)), list(combinations("abc", 2)), len(list(permutations(range(4)))), list(product("ab", [1, 2])), list(accumulate([1, 2, 3])), list(accumulate([3, 1, 2], max)), [(k, list(g)) for k, g in groupby(sorted("aabbbc"))], list(zip_longest("ab", "c", fillvalue="-")), list(takewhile(lambda x: x < 3, [1, 2, 3, 1])), list(dropwhile(lambda x: x < 3, [1, 2, 3, 1])), list(starmap(pow, [(2, 3), (3, 2)])), list(filterfalse(lambda x: x % 2, range(5))), list(compress("abc", [1, 0, 1])), list(pairwise("abc")), list(repeat(1, 2)), [next(c) for c in [cycle("xy")] for _ in range(3)], list(chain.from_iterable([[1], [2, 3]])), [list(x) for x in tee([1, 2])], list(combinations_with_replacement("ab", 2))]
=== functools
import functools
from functools import partial, reduce, cached_property, total_ordering, cmp_to_key, singledispatch, singledispatchmethod, partialmethod
@total_ordering
class V:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o): return self.v < o.v
class Data:
    calls = 0
    def __init__(self, xs): self._xs = xs
    @cached_property
    def mean(self):
        Data.calls += 1
        return sum(self._xs) / len(self._xs)
    def set(self, v): self._xs = v; return v
    clear = partialmethod(set, [])
    @singledispatchmethod
    def show(self, x): return f"? {x}"
    @show.register(int)
    def _(self, x): return f"int {x}"
@singledispatch
def describe(x): return "object"
@describe.register
def _(x: int): return "int"
@describe.register(list)
def _(x): return f"list of {len(x)}"
@functools.cache
def slow(n): return n * 2
d = Data([1, 2, 3])
[reduce(lambda a, b: a * b, [1, 2, 3, 4]), reduce(lambda a, b: a + b, [], 10), partial(int, base=2)("101"), partial(pow, 2)(5), V(1) <= V(2), V(3) >= V(4), d.mean, d.mean, Data.calls, sorted([3, 1, 2], key=cmp_to_key(lambda a, b: b - a)), describe(1), describe([1]), describe("s"), slow(4), d.clear(), d.show(3), d.show("x"), describe.dispatch(int) is not None, partial(max, 3).args]
=== operator
import operator
from operator import itemgetter, attrgetter, methodcaller
class R:
    def __init__(self, n, inner=None): self.n, self.inner = n, inner
    def up(self, s="!"): return str(self.n).upper() + s
rows = [R("b", R(1)), R("a", R(2))]
[sorted([("a", 2), ("b", 1)], key=itemgetter(1)), itemgetter(0, 2)("abc"), [r.n for r in sorted(rows, key=attrgetter("n"))], attrgetter("inner.n", "n")(rows[0]), list(map(methodcaller("up", "?"), rows)), methodcaller("upper")("x"), operator.add(1, 2), operator.mul(3, 4), operator.contains([1], 1), operator.truediv(1, 4), operator.neg(3), operator.eq(1, 1), operator.getitem({"a": 1}, "a"), operator.not_(0), operator.iadd([1], [2]), operator.concat("a", "b"), operator.itemgetter(slice(1, 3))("abcd")]
=== statistics
import statistics as st
x = [2.5, 3.25, 5.5, 11.25, 11.75]
n = st.NormalDist(100, 15)
[st.mean([1, 2, 3, 4]), st.median(x), st.mode("aab"), st.stdev(x), st.pstdev(x), st.variance(x), st.quantiles([1, 2, 3, 4, 5], n=4), st.fmean([1, 2]), st.geometric_mean([1, 4]), st.harmonic_mean([40, 60]), st.multimode("aabb"), st.median_low([1, 2]), st.correlation([1, 2, 3], [1, 2, 4]), list(st.linear_regression([1, 2, 3], [2, 4, 6])), round(n.cdf(115), 4), n.mean, round(n.inv_cdf(0.9), 3), st.median_grouped([1, 2, 2, 3]), st.covariance([1, 2], [3, 5])]
=== statistics errors
import statistics
try: statistics.mean([])
except statistics.StatisticsError as e: m = str(e)
m
=== decimal
from decimal import Decimal, getcontext, localcontext, ROUND_HALF_UP, InvalidOperation, Context
a, b = Decimal("10.25"), Decimal("3")
with localcontext() as ctx:
    ctx.prec = 5
    short = str(a / b)
getcontext().prec = 28
try: Decimal("x")
except InvalidOperation: bad = "invalid"
[str(a / b), short, str(a.quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)), str(sum([Decimal("0.1")] * 3)), bad, repr(a), str(a % b), int(a), float(b), a > b, str(round(Decimal("2.675"), 2)), str(a.sqrt())[:8], f"{a:.1f}", f"{Decimal('1234567.5'):,}", str(Decimal(1) / Decimal(7))[:10], Decimal("1.10") == Decimal("1.1"), str(Decimal("1E+3").normalize()), a.as_tuple().digits, max(a, b) is a, str(Decimal.from_float(0.5))]
=== fractions and numbers
from fractions import Fraction
from numbers import Number, Integral, Real
a = Fraction(3, 4)
[str(a + Fraction(1, 4)), str(Fraction("0.125")), str(a * 2), float(a), a.numerator, a.denominator, str(Fraction(0.5)), repr(a), str(Fraction(3.14159).limit_denominator(100)), a > 0.5, isinstance(a, Number), isinstance(1, Integral), isinstance(1.0, Real), str(sum([Fraction(1, 3)] * 3)), round(a), str(a ** 2)]
=== heapq and bisect
import heapq, bisect
h = []
for p, n in [(3, "c"), (1, "a"), (2, "b")]: heapq.heappush(h, (p, n))
order = [heapq.heappop(h)[1] for _ in range(3)]
g = {"A": {"B": 1, "C": 4}, "B": {"C": 2, "D": 5}, "C": {"D": 1}, "D": {}}
def dijkstra(s):
    dist, q = {s: 0}, [(0, s)]
    while q:
        d, n = heapq.heappop(q)
        if d > dist[n]: continue
        for m, w in g[n].items():
            if d + w < dist.get(m, 1e9):
                dist[m] = d + w
                heapq.heappush(q, (d + w, m))
    return dist
l = [1, 3, 5]; bisect.insort(l, 4)
x = [5, 2, 8]; heapq.heapify(x)
[order, dijkstra("A"), l, bisect.bisect_left(l, 4), bisect.bisect([1, 2, 2], 2), heapq.nsmallest(2, [3, 1, 2]), heapq.nlargest(1, ["a", "bbb"], key=len), x[0], list(heapq.merge([1, 4], [2, 3])), heapq.heapreplace(x, 1)]
=== string and textwrap
import string, textwrap
t = string.Template("Hi $name, ${amount}% of $$5")
class Form(string.Formatter):
    def get_value(self, key, args, kwargs): return kwargs.get(key, f"<{key}>") if isinstance(key, str) else args[key]
[t.substitute(name="Al", amount=3), t.safe_substitute(name="x"), string.ascii_uppercase[:3], string.digits, string.punctuation[:3], string.capwords("a bc"), textwrap.fill("the quick brown fox jumps", 10), textwrap.dedent("  a\n   b"), textwrap.shorten("hello big world", 12), textwrap.indent("a\nb", "> "), textwrap.wrap("aa bb cc", 5), Form().format("{a} {0} {b!r:>5}", 1, b="z"), string.Formatter().format("{0[1]} {x.real:>3}", [1, 2], x=5), string.Formatter().format("{} {}", 1, 2), string.Formatter().vformat("{a}", (), {"a": 1})]
=== csv
import csv, io
src = 'name,qty,note\n"Smith, J",3,"say ""hi"""\nLee,4,\n'
rows = list(csv.DictReader(io.StringIO(src)))
out = io.StringIO()
w = csv.writer(out, quoting=csv.QUOTE_MINIMAL)
w.writerow(["a", 'b"c', "d,e", 1.5, None]); w.writerows([[1, 2], [3, 4]])
o2 = io.StringIO()
dw = csv.DictWriter(o2, fieldnames=["x", "y"], extrasaction="ignore", lineterminator="\n")
dw.writeheader(); dw.writerow({"x": 1, "y": 2, "z": 3})
[rows, out.getvalue(), o2.getvalue(), list(csv.reader(["a;b", "c;d"], delimiter=";")), csv.Sniffer().sniff("a;b;c\n1;2;3\n").delimiter, sum(int(r["qty"]) for r in rows)]
=== io in memory
import io
s = io.StringIO("line1\nline2\n")
b = io.BytesIO(b"abc")
b.seek(0, io.SEEK_END); b.write(b"d")
with io.StringIO() as t:
    t.write("x"); t.writelines(["y", "z"])
    v = t.getvalue()
[s.readline(), s.read(), [l.strip() for l in io.StringIO("a\nb")], b.getvalue().decode(), v, io.StringIO("q").read(1)]
=== enums
from enum import Enum, IntEnum, Flag, auto, unique, StrEnum, IntFlag
@unique
class Status(Enum):
    ACTIVE = "active"
    CLOSED = "closed"
    @property
    def label(self): return self.value.title()
    @classmethod
    def default(cls): return cls.ACTIVE
    def __str__(self): return f"Status:{self.name}"
    @classmethod
    def _missing_(cls, value): return cls.CLOSED if value == "shut" else None
class Level(IntEnum):
    LOW = 1
    HIGH = 10
class Perm(Flag):
    R = auto(); W = auto(); X = auto()
class Kind(StrEnum):
    ALPHA = auto()
    BETA = "b"
class Planet(Enum):
    EARTH = (5.97e24, 6.37e6)
    def __init__(self, mass, radius): self.mass, self.radius = mass, radius
class Auto(Enum):
    def _generate_next_value_(name, start, count, last): return name.lower()
    ONE = auto(); TWO = auto()
Color = Enum("Color", "RED GREEN")
Sized = Enum("Sized", {"S": 1, "L": 2})
try: Status("nope")
except ValueError as e: err = str(e)
[Status("active").label, str(Status.default()), Status["CLOSED"].name, [s.name for s in Status], len(Status), Status("shut").name, err, Level.HIGH > Level.LOW, Level.LOW + 1, (Perm.R | Perm.W).value, Perm.R in (Perm.R | Perm.X), Kind.ALPHA, f"{Kind.BETA}", Planet.EARTH.mass, Auto.ONE.value, [c.name for c in Color], Sized.L.value, isinstance(Status.ACTIVE, Status), isinstance(Status.ACTIVE, Enum), isinstance(Level.LOW, int), Status.ACTIVE is Status("active"), {Status.ACTIVE: 1}[Status.ACTIVE], repr(Status.ACTIVE), repr(Perm.R | Perm.W), list(Status.__members__), Status.ACTIVE in Status, hash(Status.ACTIVE) == hash(Status.ACTIVE), Color.RED.value, repr(Level.LOW), "active" in Status._value2member_map_]
=== enum aliases and comparison
from enum import Enum
class A(Enum):
    X = 1
    Y = 1
    Z = 2
try: A.X < A.Z
except TypeError as e: t = str(e)
try: A.X.value = 3
except AttributeError: ro = True
[A.Y.name, [m.name for m in A], A.X == A.Y, A.X != A.Z, t, ro, A.Z.value, A(2).name]
=== dataclasses
from dataclasses import dataclass, field, asdict, astuple, replace, fields, is_dataclass, FrozenInstanceError, KW_ONLY, InitVar, make_dataclass
from typing import ClassVar, Optional
@dataclass
class Item:
    name: str
    price: float = 0.0
    tags: list[str] = field(default_factory=list)
    _hidden: int = field(default=7, repr=False, compare=False)
    count: ClassVar[int] = 0
    def total(self, n=1): return self.price * n
    def __post_init__(self):
        Item.count += 1
        if self.price < 0: raise ValueError("price")
@dataclass(frozen=True, order=True)
class Point:
    x: int
    y: int = 0
    def moved(self, dx): return replace(self, x=self.x + dx)
@dataclass
class Base:
    a: int
    b: int = 2
@dataclass
class Child(Base):
    c: int = 3
    _: KW_ONLY
    d: int = 4
@dataclass(slots=True)
class Slotted:
    v: int
    def double(self): return self.v * 2
@dataclass(kw_only=True)
class Kw:
    q: int
    r: Optional[str] = None
@dataclass
class Init:
    base: InitVar[int]
    result: int = field(init=False)
    def __post_init__(self, base): self.result = base * 2
@dataclass(eq=False)
class NoEq: v: int = 1
@dataclass(unsafe_hash=True)
class Hashed: v: int = 1
i = Item("a", 2.0)
try: Point(1).x = 5
except FrozenInstanceError as e: fr = str(e)
try: Item("x", -1)
except ValueError as e: bad = str(e)
try: Item()
except TypeError as e: miss = str(e)
try: hash(i)
except TypeError as e: unhash = str(e)
Made = make_dataclass("Made", ["p", ("q", int, field(default=5))], namespace={"s": lambda self: self.q + 1})
[repr(i), i == Item("a", 2.0), i.total(3), i.tags, asdict(i), astuple(Point(1, 2)), repr(Point(1).moved(4)), Point(1) < Point(2), sorted([Point(3), Point(1)])[0].x, fr, bad, miss, unhash, repr(Child(1, d=9)), Slotted(4).double(), repr(Kw(q=1)), Init(4).result, is_dataclass(i), [f.name for f in fields(Item)], len({Point(1), Point(1)}), Item.count, NoEq() == NoEq(), hash(Hashed()) == hash(Hashed()), repr(Made(1)), Made(2).s(), asdict(Child(1)), i._hidden, fields(Point)[1].default, asdict(Item("n", tags=["t"]), dict_factory=lambda kv: {k: v for k, v in kv if v})]
=== dataclass nesting and inheritance
from dataclasses import dataclass, asdict, field
import json
@dataclass
class Address:
    city: str
    zip: str = ""
@dataclass
class Person:
    name: str
    address: Address
    friends: list["Person"] = field(default_factory=list)
    meta: dict = field(default_factory=dict)
class Greeter:
    def greet(self): return "hi " + self.name
@dataclass
class Emp(Person, Greeter):
    pay: int = 0
p = Person("a", Address("x"), [Person("b", Address("y"))], {"k": (1, 2)})
e = Emp("z", Address("q"), pay=3)
try:
    @dataclass
    class Bad:
        a: int = 1
        b: int
except TypeError as t: order = str(t)
try:
    @dataclass
    class Mutable:
        a: list = []
except ValueError as v: mut = str(v)[:40]
[json.dumps(asdict(p)), e.greet(), repr(e), p == Person("a", Address("x"), [Person("b", Address("y"))], {"k": (1, 2)}), mut, order[:48]]
=== typing constructs
from typing import NamedTuple, TypedDict, Any, Union, Optional, List, Dict, Tuple, Callable, Iterable, NewType, cast, get_origin, get_args, Annotated, Literal, overload, Self, Type
class Point(NamedTuple):
    x: int
    y: int = 0
    def dist(self): return (self.x ** 2 + self.y ** 2) ** 0.5
class Movie(TypedDict, total=False):
    title: str
    year: int
UserId = NewType("UserId", int)
@overload
def f(x: int) -> int: ...
@overload
def f(x: str) -> str: ...
def f(x): return x
class B:
    def me(self) -> Self: return self
Alias = Dict[str, List[Tuple[int, ...]]]
m: Movie = {"title": "t"}
[Point(3, 4).dist(), Point(1)._asdict(), Point(1, 2).x, Point(5) == (5, 0), m, Movie(year=1), UserId(5), cast(str, 3), get_origin(List[int]) is list, get_args(Dict[str, int])[1] is int, f(1), str(Optional[int]), get_args(Literal["a", "b"]), B().me() is not None, isinstance(Point(1), tuple), get_args(Union[int, str])[0] is int, str(Alias), get_args(Annotated[int, "m"])[1]]
=== abstract classes
from abc import ABC, abstractmethod
class Shape(ABC):
    @abstractmethod
    def area(self): ...
    @property
    @abstractmethod
    def name(self): ...
    @classmethod
    @abstractmethod
    def make(cls): ...
    def describe(self): return f"{self.name}: {self.area():.2f}"
class Circle(Shape):
    def __init__(self, r): self._r = r
    def area(self): return 3.14159 * self._r ** 2
    @property
    def name(self): return "circle"
    @classmethod
    def make(cls): return cls(1)
try: Shape()
except TypeError: abstract = True
[Circle.make().describe(), abstract, isinstance(Circle(2), Shape)]
=== collections.abc subclasses
from collections.abc import Mapping, MutableMapping, Sequence, Iterable, Iterator, Callable, Hashable
class Case(MutableMapping):
    def __init__(self, *a, **k): self._d = {}; self.update(*a, **k)
    def __getitem__(self, k): return self._d[k.lower()]
    def __setitem__(self, k, v): self._d[k.lower()] = v
    def __delitem__(self, k): del self._d[k.lower()]
    def __iter__(self): return iter(self._d)
    def __len__(self): return len(self._d)
class R(Sequence):
    def __init__(self, n): self._n = n
    def __len__(self): return self._n
    def __getitem__(self, i):
        if not 0 <= i < self._n: raise IndexError(i)
        return i * i
c = Case(A=1); c["B"] = 2
[c["a"], "B" in c, dict(c), c.get("zz", 0), c.pop("a"), len(c), list(R(3)), 4 in R(3), R(5).index(9), list(reversed(R(3))), isinstance({}, Mapping), isinstance([], Sequence), isinstance("a", Iterable), isinstance(iter([]), Iterator), isinstance(len, Callable), isinstance([], Hashable), isinstance(c, Mapping)]
=== contextlib
from contextlib import contextmanager, suppress, closing, ExitStack, nullcontext, asynccontextmanager, ContextDecorator
log = []
@contextmanager
def tag(name):
    log.append(f"<{name}>")
    try: yield name.upper()
    except KeyError: log.append("swallowed")
    finally: log.append(f"</{name}>")
with tag("a") as a: log.append(a)
with tag("b"): raise KeyError
with suppress(ZeroDivisionError): 1 / 0
class C:
    def close(self): log.append("closed")
with closing(C()): pass
with ExitStack() as stack:
    names = [stack.enter_context(tag(n)) for n in "xy"]
    stack.callback(log.append, "callback")
with nullcontext(5) as n: pass
@asynccontextmanager
async def conn():
    log.append("open")
    yield 1
    log.append("shut")
async with conn() as c: pass
class Track(ContextDecorator):
    def __enter__(self): log.append("in"); return self
    def __exit__(self, *e): log.append("out")
@Track()
def work(): return "worked"
@tag("deco")
def other(): return "other"
[names, n, work(), other(), log]
=== random from a seed
import random
random.seed(42)
a = [random.randint(1, 100) for _ in range(5)]
random.seed(42)
b = [random.randint(1, 100) for _ in range(5)]
r = random.Random(7)
l = list(range(10)); r.shuffle(l)
[a == b, a, l, r.choice("abc"), r.sample(range(100), 3), round(r.random(), 6), round(r.gauss(0, 1), 6), r.choices("ab", weights=[1, 9], k=4), round(r.uniform(1, 2), 6), r.randrange(0, 10, 2), r.getrandbits(8), random.Random("text").random()]
=== unseeded randomness is usable
import random, uuid, secrets
x = random.random()
u = uuid.uuid4()
l = [1, 2, 3]; random.shuffle(l)
[0 <= x < 1, random.choice([5]) == 5, sorted(l), str(u).count("-"), u.version, len(secrets.token_hex(8)), secrets.choice("a"), 0 <= secrets.randbelow(5) < 5, random.Random().random() < 1, uuid.uuid4() != uuid.uuid4(), len(random.sample(range(10), 3))]
=== uuid, hashlib, base64, hmac
import uuid, hashlib, base64, hmac, binascii, zlib
u = uuid.UUID("12345678-1234-5678-1234-567812345678")
[str(u), u.hex, u.int % 1000, str(uuid.uuid5(uuid.NAMESPACE_DNS, "example.com")), str(uuid.uuid3(uuid.NAMESPACE_URL, "x")), hashlib.sha256(b"abc").hexdigest(), hashlib.md5("é".encode()).hexdigest(), hashlib.new("sha1", b"x").hexdigest(), base64.b64encode(b"hello").decode(), base64.b64decode("aGVsbG8=").decode(), base64.urlsafe_b64encode(b"\xff\xfe").decode(), base64.b32encode(b"a").decode(), hmac.new(b"k", b"m", "sha256").hexdigest(), hmac.compare_digest("a", "a"), binascii.hexlify(b"ab").decode(), zlib.crc32(b"abc"), zlib.decompress(zlib.compress(b"x" * 50)).decode(), hashlib.blake2b(b"a", digest_size=4).hexdigest(), base64.b85encode(b"abc").decode(), u == uuid.UUID(u.hex), repr(u), hashlib.sha256().name]
=== copy
import copy
class N:
    def __init__(self, v): self.v = v; self._c = []
a = {"x": [1, [2]], "n": N(1)}
s, d = copy.copy(a), copy.deepcopy(a)
a["x"][1].append(3); a["n"]._c.append(1)
class K:
    def __init__(self): self.n = 0
    def __copy__(self): k = K(); k.n = 99; return k
    def __deepcopy__(self, memo): k = K(); k.n = 77; return k
[s["x"], d["x"], d["n"]._c, d["n"].v, copy.copy(K()).n, copy.deepcopy([K()])[0].n, copy.copy([1, 2]), copy.deepcopy((1, [2]))]
=== urllib parse and html
from urllib.parse import urlparse, quote, unquote, urlencode, parse_qs, urljoin, urlsplit, parse_qsl, urlunparse
import urllib.parse, html
u = urlparse("https://user@ex.com:8080/a/b;p?q=1&r=a%20b#frag")
[u.scheme, u.netloc, u.hostname, u.port, u.path, u.query, u.fragment, parse_qs(u.query), quote("a b/ü"), unquote("a%20b"), urlencode({"a": 1, "b": "x y"}), urljoin("http://a/b/c", "../d"), u._replace(query="").geturl(), urllib.parse.quote_plus("a b"), html.escape("<a & 'b'>"), html.unescape("&lt;&eacute;"), parse_qsl("a=1&a=2"), urlsplit("http://x/y").path, u._asdict()["port"] if "port" in u._asdict() else None]
=== difflib, pprint, calendar
import difflib, pprint, calendar
nested = {"b": list(range(30)), "a": {"k": "v" * 20, "z": "w" * 40}}
pprint.pprint({"x": 1})
[difflib.get_close_matches("appel", ["ape", "apple", "peach"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 3), list(difflib.unified_diff(["a", "b"], ["a", "c"], lineterm="")), pprint.pformat(nested, width=60), calendar.monthrange(2024, 2), calendar.isleap(2023), calendar.month_name[3], calendar.day_abbr[0], calendar.monthcalendar(2024, 2)[0], calendar.timegm((1970, 1, 2, 0, 0, 0)), calendar.month(2024, 1)[:20]]
=== types, struct, graphlib
import types, struct, graphlib, unicodedata, colorsys, cmath, keyword
from types import SimpleNamespace, MappingProxyType
ns = SimpleNamespace(a=1, b=[2]); ns.c = 3; ns._d = 4
ro = MappingProxyType({"a": 1})
try: ro["b"] = 2
except TypeError: frozen = True
[ns.a, repr(ns), vars(ns)["c"], ns._d, ro["a"], frozen, struct.unpack("<ih", struct.pack("<ih", 7, -1)), list(graphlib.TopologicalSorter({"c": {"b"}, "b": {"a"}}).static_order()), unicodedata.normalize("NFC", "e\u0301") == "é", unicodedata.category("A"), unicodedata.name("€"), colorsys.rgb_to_hsv(1, 0, 0), cmath.sqrt(-1) == 1j, keyword.iskeyword("for"), isinstance(len, types.BuiltinFunctionType), isinstance(lambda: 0, types.FunctionType), isinstance((i for i in []), types.GeneratorType), isinstance(None, types.NoneType)]
=== group by and aggregate
from itertools import groupby
from collections import defaultdict, Counter
from operator import itemgetter
from statistics import mean
sales = [{"region": r, "rep": p, "amount": a} for r, p, a in [("n", "x", 10), ("s", "y", 20), ("n", "z", 30), ("s", "y", 5), ("e", "x", 7)]]
sales.sort(key=itemgetter("region"))
grouped = {k: sum(s["amount"] for s in g) for k, g in groupby(sales, key=itemgetter("region"))}
by_rep = defaultdict(lambda: {"n": 0, "total": 0, "all": []})
for s in sales:
    e = by_rep[s["rep"]]
    e["n"] += 1; e["total"] += s["amount"]; e["all"].append(s["amount"])
ranked = sorted(((k, v["total"], mean(v["all"])) for k, v in by_rep.items()), key=lambda t: (-t[1], t[0]))
pivot = {}
for s in sales: pivot.setdefault(s["region"], Counter())[s["rep"]] += s["amount"]
[grouped, ranked, {k: dict(v) for k, v in pivot.items()}, max(grouped.items(), key=itemgetter(1))]
=== text report
rows = [("Widget", 12, 3.5), ("Gadget long name", 5, 12.25)]
lines = [f"{'Item':<12}{'Qty':>5}{'Price':>10}", "-" * 27]
for name, qty, price in rows:
    lines.append(f"{name[:12]:<12}{qty:>5}{price:>10.2f}")
lines.append(f"{'Total':<17}{sum(q * p for _, q, p in rows):>10,.2f}")
print("\n".join(lines))
lines[-1]
=== tool results aggregated
import asyncio, json
async def inventory(sku):
    row = await echo(x={"sku": sku, "units": len(sku) * 3, "tags": ["a"]})
    return row["sku"], row["units"]
skus = ["a", "bb", "ccc"]
pairs = await asyncio.gather(*[inventory(s) for s in skus])
stock = dict(pairs)
low = [s for s, n in stock.items() if n < 5]
print(json.dumps(stock))
{"stock": stock, "low": low, "total": sum(stock.values())}
=== as completed and wait
import asyncio
async def job(n):
    await asyncio.sleep(0.001 * n)
    return await get(i=n)
done_order = []
for next_done in asyncio.as_completed([job(3), job(1), job(2)]):
    done_order.append(await next_done)
tasks = [asyncio.create_task(job(i)) for i in (1, 2)]
done, pending = await asyncio.wait(tasks)
first = await asyncio.wait_for(job(1), timeout=5)
[sorted(done_order), len(done), len(pending), first]
=== sum of squares
sum(n * n for n in range(1, 11))
=== word count
text = "the cat and the hat and the bat"
counts = {}
for word in text.split(): counts[word] = counts.get(word, 0) + 1
sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:3]
=== transpose and flatten
m = [[1, 2, 3], [4, 5, 6]]
[[*map(list, zip(*m))], [x for row in m for x in row]]
=== fizzbuzz
["FizzBuzz" if i % 15 == 0 else "Fizz" if i % 3 == 0 else "Buzz" if i % 5 == 0 else i for i in range(1, 16)]
=== roman numerals
def roman(n):
    out = ""
    for v, s in [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]:
        while n >= v: out += s; n -= v
    return out
[roman(n) for n in (4, 9, 14, 1994)]
=== palindromes and anagrams
is_pal = lambda s: (t := "".join(c.lower() for c in s if c.isalnum())) == t[::-1]
groups = {}
for w in ["eat", "tea", "tan", "ate", "nat"]: groups.setdefault("".join(sorted(w)), []).append(w)
[is_pal("A man, a plan, a canal: Panama"), is_pal("x y"), list(groups.values())]
=== primes with all
[n for n in range(2, 40) if all(n % d for d in range(2, int(n ** 0.5) + 1))]
=== collatz with cache
cache = {1: 1}
def steps(n):
    if n not in cache: cache[n] = 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)
    return cache[n]
max(range(1, 500), key=steps)
=== pascal's triangle
rows = [[1]]
for _ in range(5): rows.append([1, *(a + b for a, b in zip(rows[-1], rows[-1][1:])), 1])
rows
=== caesar cipher
def shift(s, k): return "".join(chr((ord(c) - 97 + k) % 26 + 97) if c.islower() else c for c in s)
[shift("hello, world", 3), shift(shift("hello", 5), -5)]
=== running averages
from collections import deque
def moving(xs, n):
    window, out = deque(maxlen=n), []
    for x in xs:
        window.append(x)
        out.append(round(sum(window) / len(window), 3))
    return out
moving([1, 2, 3, 4, 10], 3)
=== merge of intervals
def merge(xs):
    out = []
    for a, b in sorted(xs):
        if out and a <= out[-1][1]: out[-1][1] = max(out[-1][1], b)
        else: out.append([a, b])
    return out
merge([(1, 3), (8, 10), (2, 6), (15, 18), (17, 20)])
=== topological order by hand
graph = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}
seen, order = set(), []
def visit(n):
    if n in seen: return
    seen.add(n)
    for m in graph[n]: visit(m)
    order.append(n)
for n in graph: visit(n)
order[::-1]
=== lru cache by hand
from collections import OrderedDict
class LRU:
    def __init__(self, size): self._size, self._d = size, OrderedDict()
    def get(self, k):
        if k not in self._d: return None
        self._d.move_to_end(k); return self._d[k]
    def put(self, k, v):
        self._d[k] = v; self._d.move_to_end(k)
        if len(self._d) > self._size: self._d.popitem(last=False)
c = LRU(2); c.put("a", 1); c.put("b", 2); c.get("a"); c.put("c", 3)
[c.get("a"), c.get("b"), list(c._d)]
=== event emitter
class Emitter:
    def __init__(self): self._handlers = {}
    def on(self, name):
        def deco(f): self._handlers.setdefault(name, []).append(f); return f
        return deco
    def emit(self, name, *a, **k): return [f(*a, **k) for f in self._handlers.get(name, ())]
e = Emitter()
@e.on("x")
def first(v): return v + 1
@e.on("x")
def second(v): return v * 10
[e.emit("x", 4), e.emit("none")]
=== builder with chained calls
class Query:
    def __init__(self): self._parts = []
    def where(self, **kw): self._parts += [f"{k}={v!r}" for k, v in kw.items()]; return self
    def order(self, by, desc=False): self._order = (by, desc); return self
    def __str__(self): return " and ".join(self._parts) + f" order {self._order[0]}{' desc' if self._order[1] else ''}"
str(Query().where(a=1, b="x").order("a", desc=True))
=== observer with weak coupling
class Subject:
    def __init__(self): self.__observers = []; self.__state = 0
    def attach(self, o): self.__observers.append(o)
    @property
    def state(self): return self.__state
    @state.setter
    def state(self, v):
        self.__state = v
        for o in self.__observers: o(v)
seen = []
s = Subject(); s.attach(seen.append); s.attach(lambda v: seen.append(-v)); s.state = 5
[seen, s.state]
=== money with decimal
from decimal import Decimal, ROUND_HALF_UP
items = [("a", "19.99", 3), ("b", "0.05", 7)]
total = sum(Decimal(p) * q for _, p, q in items)
tax = (total * Decimal("0.0825")).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
{"total": str(total), "tax": str(tax), "grand": f"{total + tax:,.2f}"}
=== percentiles
from statistics import quantiles, median
xs = [12, 5, 7, 9, 31, 4, 18, 22]
def pct(xs, p):
    xs = sorted(xs); k = (len(xs) - 1) * p / 100; f = int(k)
    return xs[f] if f + 1 >= len(xs) else xs[f] + (xs[f + 1] - xs[f]) * (k - f)
[median(xs), quantiles(xs, n=4), pct(xs, 90)]
=== business days
from datetime import date, timedelta
def add_days(d, n):
    while n:
        d += timedelta(days=1)
        n -= d.weekday() < 5
    return d
[add_days(date(2024, 3, 1), 1).isoformat(), add_days(date(2024, 3, 1), 10).isoformat()]
=== months between
from datetime import date
def months(a, b): return (b.year - a.year) * 12 + b.month - a.month - (b.day < a.day)
[months(date(2023, 1, 31), date(2024, 3, 1)), months(date(2024, 1, 1), date(2024, 1, 31))]
=== durations for people
from datetime import timedelta
def human(td):
    h, r = divmod(int(td.total_seconds()), 3600)
    m, s = divmod(r, 60)
    return " ".join(f"{v}{u}" for v, u in ((h, "h"), (m, "m"), (s, "s")) if v) or "0s"
[human(timedelta(seconds=s)) for s in (0, 59, 3600, 7325)]
=== log lines by regex
import re
from collections import Counter
log = """2024-01-01 10:00:01 ERROR db: timeout
2024-01-01 10:00:05 INFO web: ok
2024-01-01 11:12:00 ERROR web: 500"""
rx = re.compile(r"^(?P<day>\S+) (?P<hour>\d\d):\S+ (?P<level>[A-Z]+) (?P<where>\w+): (?P<text>.*)$", re.M)
rows = [m.groupdict() for m in rx.finditer(log)]
[Counter(r["level"] for r in rows).most_common(), [r["text"] for r in rows if r["where"] == "web"], sorted({r["hour"] for r in rows})]
=== slugs and cases
import re
def slug(s): return re.sub(r"[^a-z0-9]+", "-", s.lower()).strip("-")
def snake(s): return re.sub(r"(?<!^)(?=[A-Z])", "_", s).lower()
def camel(s): h, *t = s.split("_"); return h + "".join(w.title() for w in t)
[slug("Hello, World! Again"), snake("someValueHere"), camel("some_value_here")]
=== key value parsing
import re
pairs = dict(re.findall(r'(\w+)=("[^"]*"|\S+)', 'a=1 b="two words" c=x'))
{k: v.strip('"') for k, v in pairs.items()}
=== nested get and set
def dig(d, path, default=None):
    for k in path.split("."):
        try: d = d[int(k)] if isinstance(d, list) else d[k]
        except (KeyError, IndexError, ValueError, TypeError): return default
    return d
def put(d, path, v):
    *ks, last = path.split(".")
    for k in ks: d = d.setdefault(k, {})
    d[last] = v
data = {"a": [{"b": 1}, {"b": {"c": 2}}]}
put(data, "x.y.z", 9)
[dig(data, "a.1.b.c"), dig(data, "a.7.b", "none"), data["x"]]
=== deep merge and diff
def merge(a, b):
    out = dict(a)
    for k, v in b.items(): out[k] = merge(out[k], v) if isinstance(v, dict) and isinstance(out.get(k), dict) else v
    return out
def diff(a, b, path=""):
    for k in sorted(a.keys() | b.keys()):
        p = f"{path}.{k}" if path else k
        if k not in b: yield f"-{p}"
        elif k not in a: yield f"+{p}"
        elif isinstance(a[k], dict) and isinstance(b[k], dict): yield from diff(a[k], b[k], p)
        elif a[k] != b[k]: yield f"~{p}"
a, b = {"x": 1, "y": {"z": 1, "w": 2}}, {"y": {"z": 5, "v": 3}, "q": 0}
[merge(a, b), list(diff(a, b))]
=== table of text
rows = [{"name": "ann", "age": 30}, {"name": "bobby", "age": 4}]
cols = list(rows[0])
w = {c: max(len(c), *(len(str(r[c])) for r in rows)) for c in cols}
"\n".join([" | ".join(f"{c:<{w[c]}}" for c in cols), "-+-".join("-" * w[c] for c in cols), *(" | ".join(f"{r[c]!s:<{w[c]}}" for c in cols) for r in rows)])
=== histogram
data = [1, 2, 2, 3, 3, 3, 7]
lo, hi, n = min(data), max(data), 3
step = (hi - lo) / n
bins = [0] * n
for x in data: bins[min(int((x - lo) / step), n - 1)] += 1
["#" * b for b in bins]
=== chunks and windows
from itertools import islice
def chunks(it, n):
    it = iter(it)
    while batch := list(islice(it, n)): yield batch
def windows(xs, n): return [xs[i:i + n] for i in range(len(xs) - n + 1)]
[list(chunks(range(7), 3)), windows("abcd", 2)]
=== cartesian choices
from itertools import product, combinations
sizes, colors = ["S", "M"], ["red", "blue"]
[["-".join(p) for p in product(sizes, colors)], sum(1 for c in combinations([1, 2, 3, 4, 5], 3) if sum(c) % 3 == 0)]
=== knapsack
def knap(items, cap):
    best = [0] * (cap + 1)
    for w, v in items:
        for c in range(cap, w - 1, -1): best[c] = max(best[c], best[c - w] + v)
    return best[cap]
knap([(2, 3), (3, 4), (4, 5), (5, 6)], 8)
=== game of life
def step(cells):
    near = {}
    for x, y in cells:
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if dx or dy: near[x + dx, y + dy] = near.get((x + dx, y + dy), 0) + 1
    return {c for c, n in near.items() if n == 3 or (n == 2 and c in cells)}
sorted(step(step({(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)})))
=== matrix determinant
def det(m): return m[0][0] if len(m) == 1 else sum((-1) ** j * m[0][j] * det([r[:j] + r[j + 1:] for r in m[1:]]) for j in range(len(m)))
det([[2, 0, 1], [1, 3, 2], [1, 1, 4]])
=== newton and bisection
def newton(f, df, x, n=20):
    for _ in range(n): x -= f(x) / df(x)
    return x
def bisect(f, a, b, eps=1e-9):
    while b - a > eps:
        m = (a + b) / 2
        a, b = (a, m) if f(a) * f(m) <= 0 else (m, b)
    return a
[round(newton(lambda x: x * x - 2, lambda x: 2 * x, 1.0), 9), round(bisect(lambda x: x ** 3 - x - 2, 1, 2), 6)]
=== run length
from itertools import groupby
import re
enc = lambda s: "".join(f"{len(list(g))}{c}" for c, g in groupby(s))
dec = lambda s: "".join(c * int(n) for n, c in re.findall(r"(\d+)(\D)", s))
[enc("aaabcc"), dec(enc("aaabcc"))]
=== trie
class Trie:
    def __init__(self): self._root = {}
    def add(self, w):
        n = self._root
        for c in w: n = n.setdefault(c, {})
        n["$"] = True
    def starts(self, p):
        n = self._root
        for c in p:
            if c not in n: return []
            n = n[c]
        def walk(n, acc):
            for c, m in n.items():
                if c == "$": yield acc
                else: yield from walk(m, acc + c)
        return sorted(walk(n, p))
t = Trie()
for w in ("car", "cart", "dog"): t.add(w)
[t.starts("ca"), t.starts("x")]
=== priority tasks
import heapq
from dataclasses import dataclass, field
@dataclass(order=True)
class Task:
    priority: int
    name: str = field(compare=False)
q = []
for p, n in [(3, "low"), (1, "high"), (2, "mid")]: heapq.heappush(q, Task(p, n))
[heapq.heappop(q).name for _ in range(3)]
=== validation with errors collected
class Invalid(ValueError):
    def __init__(self, errors): super().__init__("; ".join(errors)); self.errors = errors
def check(u):
    errors = []
    if not u.get("name"): errors.append("name missing")
    if not isinstance(u.get("age"), int) or not 0 <= u["age"] < 150: errors.append("age wrong")
    if errors: raise Invalid(errors)
    return u
out = []
for u in ({"name": "a", "age": 3}, {"age": "x"}, {"name": "b", "age": 200}):
    try: out.append(check(u)["name"])
    except Invalid as e: out.append(e.errors)
out
=== retry with tools
attempts = []
async def unsteady(n):
    attempts.append(n)
    if len(attempts) < 3: raise ConnectionError(f"attempt {len(attempts)}")
    return await get(i=n)
async def retry(f, *a, times=5):
    for i in range(times):
        try: return await f(*a)
        except ConnectionError as e: last = e
    raise last
[await retry(unsteady, 7), attempts]
=== paging through a tool
async def page(offset): return await echo(x={"items": list(range(offset, min(offset + 3, 8))), "next": offset + 3 if offset + 3 < 8 else None})
items, offset = [], 0
while offset is not None:
    p = await page(offset)
    items.extend(p["items"])
    offset = p["next"]
items
=== bounded concurrency
import asyncio
sem, active, peak = asyncio.Semaphore(2), 0, 0
async def job(i):
    global active, peak
    async with sem:
        active += 1; peak = max(peak, active)
        await asyncio.sleep(0)
        active -= 1
        return await get(i=i * i)
[await asyncio.gather(*map(job, range(5))), peak]
=== producer and consumer
import asyncio
q, got = asyncio.Queue(maxsize=2), []
async def produce():
    for i in range(5): await q.put(i)
    await q.put(None)
async def consume():
    while (x := await q.get()) is not None: got.append(await get(i=x))
await asyncio.gather(produce(), consume())
got
=== errors from a group of tasks
import asyncio
async def fail(n): raise ValueError(n)
caught = []
try:
    async with asyncio.TaskGroup() as tg:
        tg.create_task(fail(1)); tg.create_task(get(i=2))
except* ValueError as g: caught = [str(e) for e in g.exceptions]
caught
=== cancelling a task
import asyncio
log = []
async def slow():
    try: await asyncio.sleep(30)
    except asyncio.CancelledError: log.append("cancelled"); raise
    finally: log.append("cleaned")
t = asyncio.create_task(slow())
await asyncio.sleep(0)
t.cancel()
try: await t
except asyncio.CancelledError: log.append("seen")
[log, t.cancelled(), t.done()]
=== text of shells, patterns and literals, and the streams
import ast, fnmatch, shlex, sys
sys.stdout.write("to the output\n")
print("and this", file=sys.stdout, flush=True)
[ast.literal_eval("[1, -2.5, {'k': (None, True)}]"),
 shlex.split("cp 'a b' c"), shlex.quote("a b"), fnmatch.fnmatch("a.txt", "*.txt"), fnmatch.filter(["a.py", "b.txt"], "*.py"),
 sys.version_info >= (3, 11), sys.maxsize > 2**31, sys.float_info.max > 1e300, sys.byteorder in ("little", "big")]
=== a class with caches
import functools, collections
@functools.lru_cache(maxsize=2)
def square(x): "squares"; return x * x
class Report:
    calls = 0
    def __init__(self, rows): self.rows = rows
    @functools.cached_property
    def total(self): "the total"; Report.calls += 1; return sum(self.rows)
    @functools.cached_property
    def _hidden(self): return self.total + 1
r = Report([1, 2]); s = Report([5])
values = [r.total, r.total, r._hidden, s.total, Report.calls, "total" in vars(r)]
del r.total
values += [r.total, Report.calls, Report.total.__doc__]
Point = collections.namedtuple("Point", "x y format", defaults=[0])
p = Point(1, 2)
match p:
    case Point(a, b): values += [a, b]
[values, [square(i) for i in (1, 2, 3, 1)], square.cache_info(), square.cache_parameters(), square.__name__, square.__doc__,
 p.format, p._asdict(), p._replace(x=5), Point._fields, Point.__name__, collections.namedtuple("R", "a def a", rename=True)._fields]
=== copies of all kinds
import collections, copy, dataclasses
class A:
    def __init__(self): self.x, self.me = [1], self
class S:
    __slots__ = ("a", "_b")
    def __init__(self): self.a, self._b = [1], 2
@dataclasses.dataclass(frozen=True, slots=True)
class D:
    a: list
    _b: int = 2
class L(list): pass
class M(dict):
    def __init__(self): self.z = 1
class T(tuple): pass
class E(Exception):
    def __init__(self, code): super().__init__(code); self.code = [code]
class U(collections.UserDict): pass
l = L([1, [2]]); l.q = 3
m = M(); m["k"] = [2]
t = T([1, [2]]); t.w = [5]
a = A(); b = copy.deepcopy(a)
out = [b.me is b, b.x == a.x, b.x is a.x, copy.copy(a).x is a.x]
for v in (D([1]), l, m, t, U(a=[1]), collections.deque([[1]], 5), collections.Counter("abc"), collections.defaultdict(list, a=[1])):
    c, d = copy.copy(v), copy.deepcopy(v)
    out.append([type(c) is type(v), c == v, d == v, d is v])
e = copy.deepcopy(E(4))
s = copy.deepcopy(S())
x = [1]; y = copy.deepcopy([x, x]); r = []; r.append(r); q = copy.deepcopy(r)
[out, e.code, e.args, s.a, s._b, copy.copy(l).q, copy.deepcopy(t).w, copy.deepcopy(m).z, y[0] is y[1], q[0] is q, U(a=1).copy() == {"a": 1}]
=== methods bound to an object, and what was wrapped
import types, functools
class A:
    def __init__(self):
        self.v = 3
        self.m = types.MethodType(lambda self, x: (self.v, x), self)
@functools.lru_cache
def f(x): return x + 1
def twice(g):
    @functools.wraps(g)
    def inner(x): return g(g(x))
    return inner
@twice
def h(x):
    "adds one"
    return x + 1
[A().m(4), isinstance(A().m, types.MethodType), f.__wrapped__(3), h(1), h.__wrapped__(1), h.__doc__, getattr(h, "__wrapped__")(2), hasattr(len, "__wrapped__")]
=== output that is caught
import contextlib, io, sys
first, second = io.StringIO(), io.StringIO()
with contextlib.redirect_stdout(first) as given:
    print("one")
    with contextlib.redirect_stdout(second):
        print("two")
        sys.stdout.write("three")
    print("four", file=given)
    with contextlib.redirect_stdout(first):
        print("five")
errors = io.StringIO()
with contextlib.redirect_stderr(errors):
    print("six", file=sys.stderr)
try:
    with contextlib.redirect_stdout(second):
        raise KeyError("k")
except KeyError:
    print("seven")
[first.getvalue(), second.getvalue(), errors.getvalue()]
=== warnings by filters
import warnings
got = []
class Late(UserWarning): pass
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    warnings.warn("one")
    warnings.warn("two", Late)
    warnings.warn(DeprecationWarning("three"))
    got.append([(str(w.message), w.category.__name__) for w in seen])
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="noise.*")
    warnings.filterwarnings("error", category=Late)
    warnings.warn("Noise, nothing else")
    try:
        warnings.warn("late", Late)
    except Late as e:
        got.append(repr(e))
with warnings.catch_warnings(record=True) as seen:
    warnings.resetwarnings()
    for _ in range(3): warnings.warn("again")
    for _ in range(2): warnings.warn("again", Late)
    warnings.simplefilter("ignore")
    warnings.warn("hidden")
    got.append([(str(w.message), w.lineno > 0) for w in seen])
for bad in ("nonsense", 5):
    try:
        warnings.simplefilter(bad)
    except (ValueError, TypeError, AssertionError) as e:
        got.append("refused")
try:
    warnings.warn("x", int)
except TypeError as e:
    got.append("refused")
got
=== a dataclass in its own words, and printed over several lines
from dataclasses import dataclass, field, InitVar
from typing import Optional
import pprint, io
@dataclass
class Line:
    sku: str
    quantity: int
    note: str = "a rather long note that will not fit into one line of the output"
@dataclass
class Order:
    lines: list = field(default_factory=list)
    customer: Optional[str] = "somebody with a long name"
    hidden: int = field(default=1, repr=False)
    scale: InitVar[int] = 2
    last: "str" = field(default="x", kw_only=True)
@dataclass(repr=False)
class Own:
    a: str = "x" * 50
    b: str = "y" * 50
    def __repr__(self): return f"Own({self.a!r}, {self.b!r})"
o = Order([Line("a" * 20, 1), Line("b", 2)])
out = io.StringIO()
pprint.pprint(o, stream=out, width=60)
pprint.pp([o, {"k": o.lines[0]}], out)
[Line.__doc__, Order.__doc__, Own.__doc__, out.getvalue(), pprint.pformat(Own()), pprint.pformat([Line("c", 3)], indent=4, compact=True)]
=== bytes that change
class B(bytearray): pass
b, got = bytearray(b"hello %d"), []
for make in (lambda: b % 5, lambda: b.find(b"l"), lambda: b.find(108), lambda: b.find(b"l", 3), lambda: b.find(b"l", None, -1), lambda: b.count(b"l", 3), lambda: b.startswith((b"h", b"x")), lambda: b.endswith(b"d", -3), lambda: 104 in b, lambda: b"he" in b, lambda: b.hex(), lambda: b.hex("-", 2), lambda: b.hex(sep=":"), lambda: B(b"abc%s") % b"q", lambda: 97 in B(b"a"), lambda: b.find("x"), lambda: "x" in b, lambda: b % "x", lambda: 300 in b, lambda: b.index(b"zz"), lambda: 5 % b, lambda: b.startswith(1), lambda: b.rindex(b"l"), lambda: b.rfind(True)):
    try:
        got.append(repr(make()))
    except (TypeError, ValueError) as e:
        got.append(type(e).__name__)
got
'''
