"""Attacks by objects that answer for themselves, by names that are made attributes, by the library's own readers
and writers of attributes, and by what is shared: see `language_attacks`."""

OBJECTS = r"""
=== reading by name: a cached property that is told its name -> forbidden_attribute
from functools import cached_property
cp = cached_property(lambda o: 0)
cp.__set_name__(None, "__class__")
cp.__get__(object, None)
=== reading by name: a cached property with its name set -> raises AttributeError
from functools import cached_property
cp = cached_property(lambda o: 0)
cp.attrname = "__class__"
cp.__get__(object, None)
=== reading by name: a cached property of a class that is not the program's -> forbidden_attribute
from functools import cached_property
import math
cp = cached_property(lambda o: 0)
cp.__set_name__(None, "sqrt")
cp.__get__(math, None)
=== reading by name: a cached property that writes to a function -> forbidden_attribute
from functools import cached_property
cp = cached_property(lambda o: 5)
cp.__set_name__(None, "x")
cp.__get__(print, None)
=== reading by name: a cached property whose name lies -> forbidden_attribute
from functools import cached_property
class N(str):
    def __eq__(self, o): return True
    def __hash__(self): return hash("__globals__")
cached_property(lambda o: 0).__set_name__(None, N("x"))
=== reading by name: the namespace of a class under a cache -> raises AttributeError
import functools, datetime
functools.lru_cache(datetime.datetime).now.__get__(None, datetime.datetime)()
=== reading by name: the namespace of a class under a cache, plain -> raises AttributeError
import functools
functools.cache(dict).fromkeys
=== reading by name: the namespace of a class under a context manager -> raises AttributeError
import contextlib, datetime
contextlib.contextmanager(datetime.datetime).now.__get__(None, datetime.datetime)()
=== reading by name: the redirection of an enumeration under a context manager -> raises AttributeError
import contextlib
from enum import Enum
class Mixin:
    @property
    def foo(self): return 5
class E(Mixin, Enum):
    foo = 1
p = contextlib.contextmanager(E).foo
p.name = "gi_frame"
=== reading by name: enum.property -> forbidden_import
from enum import property
=== reading by name: a name that only an enumeration adds -> forbidden_attribute
from enum import Enum
class E(Enum):
    A = 1
E.A._add_alias_("__getattribute__")
=== class bodies: an expression among the slots -> forbidden_attribute
class A:
    __slots__ = {"a": print.__globals__["os"].getpid()}
    x = __slots__
=== class bodies: an expression in the annotation of the slots -> forbidden_attribute
class A:
    __slots__: [g := print.__globals__] = ()
=== class bodies: a call in the annotation of the match arguments -> forbidden_name
class A:
    __match_args__: exec("1") = ("a",)
=== class bodies: slots out of another dict -> forbidden_name
class A:
    __slots__ = {**{"__reduce_ex__": 1}}
=== class bodies: a starred slot -> forbidden_name
class A:
    __slots__ = (*["__reduce_ex__"],)
=== class bodies: slots assigned twice -> forbidden_name
class A:
    __slots__ = x = ("a",)
=== imports: special names where a failure is expected -> forbidden_import
try: from math import __dict__ as d, __class__ as F
except ImportError: pass
=== imports: a private name where a failure is expected -> forbidden_import
try: from json import _default_decoder
except ImportError: pass
=== imports: a class of the asyncio stand-in -> forbidden_import
try: from asyncio import __class__ as F
except ImportError: pass
=== patterns: a field that is an attribute of generators -> forbidden_attribute
from dataclasses import dataclass
from abc import ABC
import collections.abc
@dataclass
class G(ABC):
    gi_frame: object
=== patterns: a named tuple with such a field -> forbidden_attribute
from collections import namedtuple
namedtuple("G", "gi_frame")
=== patterns: typing's named tuple with such a field -> forbidden_attribute
import typing
typing.NamedTuple("N", [("tb_frame", object)])
=== patterns: typing's named tuple as a class -> forbidden_attribute
from typing import NamedTuple
class N(NamedTuple):
    f_globals: object
=== patterns: a private field by position -> raises TypeError
from dataclasses import dataclass
from abc import ABC
import asyncio
@dataclass
class G(ABC):
    _loop: object
G.register(asyncio.Lock)
match asyncio.Lock():
    case G(l): print(l)
=== patterns: str.format by position -> raises TypeError
from dataclasses import dataclass
from abc import ABC
@dataclass
class F(ABC):
    format: object
F.register(str)
match "{0.gi_frame}":
    case F(f): f(i for i in [])
=== patterns: str.format by position of a named tuple -> raises TypeError
from collections import namedtuple
from abc import ABCMeta
class F(namedtuple("F", "format"), metaclass=ABCMeta): pass
F.register(str)
match "{0.gi_frame}":
    case F(f): f(i for i in [])
=== patterns: the machine's clock by position -> raises TypeError
from dataclasses import dataclass
from abc import ABC
import datetime
@dataclass
class N(ABC):
    now: object
N.register(datetime.datetime)
match datetime.datetime(2020, 1, 1):
    case N(now): now()
=== patterns: by position, out of the table of an enumeration -> raises TypeError
from enum import Enum
class E(Enum):
    A = 1
E._member_map_["__match_args__"] = ("gi_frame",)
E.__members__ == 1
match E.A:
    case E(x): print(x)
=== patterns: fields that are ordinary in order -> gives [1, 2]
from dataclasses import dataclass
@dataclass
class P:
    x: int
    y: int
    _z: int = 0
match P(1, 2):
    case P(a, b): r = [a, b]
r
=== names as Python reads them: a field -> forbidden_attribute
from dataclasses import make_dataclass
make_dataclass("W", ["__match_args_＿"])
=== names as Python reads them: a field of letters that fold -> forbidden_attribute
from dataclasses import make_dataclass
make_dataclass("W", ["ﬀ"])
=== names as Python reads them: a field of an annotation -> forbidden_attribute
from dataclasses import dataclass
@dataclass
class W:
    gi_ｆrame: int
=== names as Python reads them: a named tuple -> forbidden_attribute
from collections import namedtuple
namedtuple("W", ["gi_ｆrame"])
=== names as Python reads them: typing's named tuple -> forbidden_attribute
import typing
typing.NamedTuple("W", [("gi_ｆrame", int)])
=== copying: what the object says of itself -> forbidden_attribute
import copy, types
class D: pass
copy.copy(types.SimpleNamespace(**{"__reduce_ex__": lambda p: ((lambda: D), (), (None, {"__match_args__": ("gi_frame",)}))}))
=== copying: what an object of its own class says of itself -> forbidden_attribute
import copy
class C: pass
c = C()
vars(c)["__getstate__"] = lambda: (None, {"__class__": int})
copy.copy(c)
=== copying: what an object says deep down -> forbidden_attribute
import copy
class C: pass
c = C()
vars(c)["__reduce__"] = lambda: (print, ())
copy.deepcopy([{"a": (c,)}])
=== copying: what an exception says of itself -> forbidden_attribute
import copy
class E(Exception): pass
e = E()
vars(e)["__class__"] = int
copy.copy(e)
=== copying: a key that is no plain str -> forbidden_attribute
import copy
class K(str):
    def __hash__(self): return hash("__reduce_ex__")
    def __eq__(self, o): return True
class C: pass
c = C()
vars(c)[K("a")] = 1
copy.copy(c)
=== copying: by the library -> gives "U"
import collections
class U(collections.UserDict): pass
u = U()
vars(u)["__reduce_ex__"] = lambda p: (print, ())
type(u.copy()).__name__
=== copying: what a deep copy remembers -> gives [{}, [], {}]
import copy, random
memo = {}
copy.deepcopy(random.shuffle, memo)
seen = []
class K:
    def __deepcopy__(self, memo):
        seen.append(memo)
        return self
copy.deepcopy([[1], K(), random.shuffle])
[memo, list(seen[0]), dict(seen[0])]
=== copying: the inside of what it remembers -> forbidden_attribute
import copy
class K:
    def __deepcopy__(self, memo): return memo._copies
copy.deepcopy([[1], K()])
=== copying: slots that grew -> gives [1, false]
import copy
class A:
    __slots__ = ["a"]
    x = __slots__
A.x.append("__class__")
a = A(); a.a = 1
[copy.copy(a).a, copy.copy(a) is a]
=== copying: a lock -> raises TypeError
import asyncio, copy
copy.deepcopy(asyncio.Lock())
=== generated methods: a frozen class on a module -> raises TypeError
from dataclasses import dataclass
import math
@dataclass(frozen=True)
class X:
    sqrt: object
X.__init__(math, 5)
=== generated methods: on a task -> raises TypeError
from dataclasses import dataclass
import asyncio
@dataclass
class Y:
    _log_destroy_pending: object
await asyncio.sleep(0)
Y.__init__(asyncio.current_task(), 5)
=== a metaclass's own: the registry of an abstract class printed -> forbidden_attribute
from abc import ABC
class Writer:
    def write(self, text): print(text)
class A(ABC): pass
A._dump_registry(Writer())
=== a metaclass's own: by a computed name -> forbidden_attribute
from abc import ABC
class A(ABC): pass
getattr(A, "_abc_" + "registry_clear")()
=== a metaclass's own: through super in a class method -> forbidden_attribute
from abc import ABC
class A(ABC):
    @classmethod
    def f(cls): return cls._abc_caches_clear()
A.f()
=== a metaclass's own: the data behind an abstract class -> forbidden_attribute
from abc import ABC
class A(ABC): pass
A._abc_impl
=== a metaclass's own: of a protocol -> forbidden_attribute
from typing import Protocol
class P(Protocol):
    x: int
P._dump_registry()
=== generated methods: on a class that an ABC takes for an instance -> raises TypeError
from dataclasses import dataclass
from abc import ABC
import types
@dataclass
class Y(ABC):
    x: object
Y.register(types.FunctionType)
Y.__init__(print, 5)
=== generated methods: repr of a function -> raises TypeError
from dataclasses import dataclass
@dataclass
class Y:
    _x: object
Y.__repr__(print)
=== generated methods: with slots -> raises TypeError
from dataclasses import dataclass
@dataclass(slots=True)
class Y:
    _x: object
Y.__repr__(print)
=== generated methods: comparing hands out str.format -> forbidden_attribute
from dataclasses import dataclass, field
got = []
class Evil:
    def __eq__(self, other):
        got.append(other)
        return True
@dataclass(init=False)
class F(str):
    format: object
a, b = F("{0.gi_frame}"), F("x")
b.format = Evil()
F.__eq__(a, b)
got[0](i for i in [])
=== generated methods: asdict hands out str.format -> forbidden_attribute
from dataclasses import dataclass, field, asdict
@dataclass(init=False)
class F(str):
    format: object
asdict(F("{0.gi_frame}"))["format"](i for i in [])
=== classes: bases that say something else the second time -> raises TypeError
import asyncio, dataclasses
class T(tuple):
    def __iter__(self): return iter((object,))
X = dataclasses.make_dataclass("X", ["a"], bases=T((asyncio.Lock,)))
if not issubclass(X, asyncio.Lock): raise TypeError
=== classes: bases by an iterator -> gives true
import dataclasses
class T:
    def __init__(self): self.n = 0
    def __iter__(self):
        self.n += 1
        return iter((object,) if self.n == 1 else (type(print),))
issubclass(dataclasses.make_dataclass("X", ["a"], bases=T()), object)
=== enumerations: members by a function, of one that has members in its table -> forbidden_attribute
from enum import Enum
class E(Enum): pass
E._member_map_["x"] = 1
E("N", {"__getattribute__": 1})
=== enumerations: a type that says it is int -> forbidden_class
from enum import Enum
class Liar:
    def __eq__(self, other): return True
Enum("N", ["A"], type=Liar())
=== enumerations: a mixed-in group of exceptions -> forbidden_class
from enum import Enum
Enum("N", ["A"], type=BaseExceptionGroup)
=== enumerations: the table behind the members -> gives [["A"], ["A"], ["A"]]
from enum import Enum
class E(Enum):
    A = 1
class Evil:
    def __eq__(self, other):
        self.got = other
        return True
e = Evil()
E.__members__ == e
e.got["B"] = 2
E._member_map_["C"] = 3
E._member_names_.append("D")
[list(E.__members__), list(E._member_map_), E._member_names_]
=== enumerations: the table in the namespace -> raises KeyError
from enum import Enum
class E(Enum):
    A = 1
vars(E)["_member_map_"]
=== enumerations: the table of a library's enumeration -> gives true
import re
class Evil:
    def __eq__(self, other):
        self.got = other
        return True
e = Evil()
re.RegexFlag.__members__ == e
e.got.clear()
re.RegexFlag["ASCII"] is re.ASCII
=== enumerations: a table of the program's own -> forbidden_attribute
from enum import Enum
class E(Enum):
    A = 1
E._member_map_ = {}
=== shared things: classes of asyncio -> raises TypeError
import asyncio
asyncio.Lock.acquire = None
=== shared things: a class of asyncio, by setattr -> raises TypeError
import asyncio
setattr(asyncio.Event, "is_set", print)
=== shared things: the class of a task -> forbidden_attribute
import asyncio
await asyncio.sleep(0)
type(asyncio.current_task()).done = lambda self: True
=== shared things: the class of a field -> raises TypeError
import dataclasses
dataclasses.Field.name = 1
=== shared things: what dispatches by type -> gives ["object"]
import functools
@functools.singledispatch
def f(x): pass
class Evil:
    def __eq__(self, other):
        self.got = other
        return True
e = Evil()
f.registry == e
e.got[int] = print
[t.__name__ for t in f.registry]
=== shared things: split of a group, by an alias that passes it on -> forbidden_attribute
import typing
g = ExceptionGroup("g", [ValueError(1)])
setattr(typing.Annotated[g, 1], "split", lambda *a: (1, 2))
=== memory: a number that moves the buffer -> gives [0, 1]
class B:
    def __index__(self):
        global other
        del ba[:]
        other = bytearray()
        ba.extend([0] * 56)
        return 1
ba = bytearray(56)
ba[23] = B()
[len(other), ba[23]]
=== memory: array -> forbidden_import
import array
=== memory: the buffer of bytes in memory -> forbidden_attribute
import io
io.BytesIO(b"x").getbuffer()
=== memory: the buffer by way of a class of its own -> forbidden_attribute
import io
class B(io.BytesIO): pass
getattr(B(b"x"), "getbuffer")()
=== system: the modules -> forbidden_attribute
import sys
sys.modules
=== system: what a stream writes with -> forbidden_attribute
import sys
sys.stdout._write
=== system: a stream is written to by text only -> raises TypeError
import sys
sys.stderr.write(5)
=== system: text that says it is other text -> gives 1
import sys
class S(str):
    def __str__(self): return 5
sys.stderr.write(S("x"))
=== system: the logger above -> forbidden_attribute
import logging
logging.getLogger("a")._root
=== system: a format that reads attributes -> gives null
import logging
logging.error("{0.__class__} %s", len)
=== system: a literal with a call -> raises ValueError
import ast
ast.literal_eval("print(1)")
=== system: a tree -> raises TypeError
import ast
class T(str):
    def __str__(self): return "print(1)"
ast.literal_eval(5)
=== system: files by way of a time zone -> forbidden_attribute
import zoneinfo
zoneinfo.ZoneInfo("UTC").no_cache("Europe/Paris")
=== shared things: what a stand-in holds, by a static method -> raises AttributeError
import math
staticmethod(math).sqrt
=== evaluating text: an annotation that became a reference -> gives "print(1)"
import typing
class TD(typing.TypedDict):
    a: "print(1)"
TD.__annotations__["a"]
=== enumerations: match arguments among the members -> forbidden_attribute
from enum import Enum
class E(tuple, Enum):
    __match_args__ = ("gi_frame",)
=== patterns: the field names of a named tuple, changed -> gives ["x"]
import collections
P = collections.namedtuple("P", "x")
P._fields = ("gi_frame",)
match P("x"):
    case P(a): r = [a]
r
=== real types: a class method bound to a type by hand -> forbidden_attribute
classmethod(lambda c: c).__get__(int)()
=== real types: a class method bound to a function by hand, by name -> forbidden_attribute
getattr(classmethod(lambda c: c), "__get__")(print)()
=== real types: the binding itself of class methods -> forbidden_attribute
classmethod.__get__(classmethod(lambda c: c), int)()
=== real types: an abstract class method bound by hand -> forbidden_attribute
import abc
abc.abstractclassmethod(lambda c: c).__get__(int)()
=== real types: a partial class method bound by hand -> forbidden_attribute
import functools
functools.partialmethod(classmethod(lambda c: c)).__get__(int)()
=== real types: the binding itself of partial methods -> forbidden_attribute
import functools
functools.partialmethod.__get__(functools.partialmethod(classmethod(lambda c: c)), int)()
=== real types: a dispatched class method bound by hand -> forbidden_attribute
import functools
functools.singledispatchmethod(classmethod(lambda c, x: c)).__get__(int)(5)
=== real types: a class method out of a namespace -> forbidden_attribute
class B:
    @classmethod
    def f(cls): return cls
vars(B)["f"].__get__(int)()
=== real types: a class method bound in a pattern -> forbidden_attribute
match classmethod(lambda c: c):
    case object(__get__=g): r = g(int)()
r
=== real types: what lacked an attribute -> gives [true, true]
import typing
try:
    typing.Type[int].zzz
except AttributeError as e:
    t = e.obj
[t is type, t is type(int)]
=== real types: what lacked an attribute, by the field's own reader -> forbidden_attribute
AttributeError.obj.__get__(AttributeError())
=== real types: what lacked an attribute, behind a generic alias -> gives true
import typing
try:
    typing.Type[int].zzz
except AttributeError as e:
    try:
        t = typing.Annotated[e, 1].obj
    except AttributeError:
        t = type  # some versions do not pass it on
t is type
=== real types: what lacked an attribute, by a pattern -> forbidden_attribute
import typing
try:
    typing.Type[int].zzz
except AttributeError as e:
    match e:
        case AttributeError(obj=t): pass
t("X", (), {})
=== real types: what lacked an attribute, behind another error -> gives true
import contextlib
try:
    contextlib.ExitStack().enter_context(int)
except TypeError as e:
    t = e.__context__ and e.__context__.obj
t is type or t is int or t is None
=== real types: what two protocols could not tell apart -> gives [null, null]
import functools, typing
@typing.runtime_checkable
class P(typing.Protocol):
    def __len__(self): ...
@typing.runtime_checkable
class Q(typing.Protocol):
    def __contains__(self, x): ...
@functools.singledispatch
def f(x): pass
f.register(P, lambda x: 1)
f.register(Q, lambda x: 2)
try:
    f([])
except RuntimeError as e:
    r = [e.__context__, e.__cause__]
r
=== own objects: a super object made anew after the check -> forbidden_attribute
import asyncio
class A:
    def m(self, then):
        then()
        return self._loop
s = super(A)
i = s.__init__
i(A, A())
A.m(s, lambda: i(asyncio.Task, asyncio.current_task()))
=== own objects: a super object made anew, read in place -> forbidden_attribute
class A: pass
super(A).__init__(A, A())
=== own objects: telling the library's object its name -> forbidden_attribute
import functools
functools.partial(print).func.__set_name__(int, "x")
=== chance: the seed of the machine, past the class -> gives [true, false]
import random
r = random.Random(1)
super(random.Random, r).seed()
random.seed(5)
s = random.Random.__new__(random.Random)
a = super(random.Random, random.Random).__new__(random.Random).random()
b = super(random.Random, random.Random).__new__(random.Random).random()
[a == b == s.random(), super(random.Random, r).seed.__module__ == 'random']
=== chance: the seed of the machine, by the class's own method -> gives true
import random
class L: pass
r, q = random.Random(1), random.Random(1)
super(random.Random, r).seed(3)
q.seed(3)
r.random() == q.random()
=== foreign self: a list of the library's that multiplies a class -> raises TypeError
import collections
class A: pass
class S:
    def __mul__(self, n): return A
A.data = S()
T = collections.UserList.__mul__(A, 1)
T("M", (T,), {"__instancecheck__": lambda c, o: True})
=== foreign self: a chain of maps that is copied -> raises TypeError
import collections
class A: pass
A.maps = [(object,), {"__getattribute__": lambda s, n: 5}]
collections.ChainMap.new_child(A, "X")
=== foreign self: a property's own function -> raises TypeError
import collections
class A: pass
A.maps = [0, A]
collections.ChainMap.parents.fget(A)
=== foreign self: a property bound by hand -> raises TypeError
import collections
class A: pass
A.maps = [0, A]
collections.ChainMap.parents.__get__(A)
=== foreign self: a counter that copies a class -> raises TypeError
import collections
class A: pass
collections.Counter.copy(A)
=== foreign self: a flag that combines -> raises TypeError
import enum
class A: pass
class V:
    def __or__(self, o): return A
A._get_value = lambda o: 0
A._value_ = V()
enum.Flag.__or__(A, 1)
=== foreign self: a fraction that is copied -> raises TypeError
from fractions import Fraction
class A: pass
A._numerator, A._denominator = "X", ()
Fraction.__copy__(A)
=== foreign self: a task group that looks for the loop -> raises TypeError
import asyncio
class X: pass
x = X()
x._entered, x._loop, x._parent_task = False, None, None
await asyncio.TaskGroup.__aenter__(x)
x._loop.call_soon
=== foreign self: through super -> raises TypeError
import collections
class L(collections.UserList): pass
class A: pass
A.data = [A]
super(L, L).__getitem__(A, slice(1))
=== foreign self: an ABC that counts it among its own -> raises TypeError
import collections.abc
class A: pass
collections.abc.Sequence.register(A)
collections.abc.Sequence.index(A(), 1)
=== foreign self: a method that picks by the type -> raises TypeError
import functools, types
got = []
class P:
    def dispatch(self, kind):
        got.append(kind)
        return print
class Q: pass
picks = types.SimpleNamespace(_dispatcher=types.SimpleNamespace(_real=P()))
functools.singledispatchmethod.__get__(picks, None, Q)(Q)
got[0]("X", (), {})
=== made anew: a dispatcher as the member of an enumeration -> raises TypeError
import enum, functools
class P:
    def dispatch(self, kind): return lambda *a: kind
@functools.singledispatch
def f(x): return 1
class E(enum.Enum):
    def __new__(cls, *a): return f
    A = (P(), len)
f(E)("X", (), {})
=== made anew: a task as the member of an enumeration -> raises TypeError
import asyncio, enum
async def one(): return 1
task = asyncio.create_task(one())
await asyncio.sleep(0)
class E(enum.Enum):
    def __new__(cls, *a): return task
    A = (one(),)
=== made anew: by a builtin in the place of __new__ -> raises TypeError
import enum, io
text = io.StringIO("a")
class E(enum.Enum):
    __new__ = lambda cls, *a: max(a, key=bool)
    A = (text, "")
=== made anew: by the __new__ of the enumeration that is derived from -> raises TypeError
import enum, io
class Base(enum.Enum):
    def __new__(cls, *a): return a[0]
class E(Base):
    A = (io.StringIO("a"), "b")
=== tables by hash: the types that a generic function knows -> raises TypeError
import functools, zlib
got = []
class P:
    def __hash__(self): return zlib.crc32(b"<class 'type'>")
    def __eq__(self, o):
        got.append(o)
        return False
class Q: pass
@functools.singledispatch
def f(x): return 1
f(Q)
f.dispatch(P())
=== tables by hash: the types in the annotations of the library -> gives []
import typing, zlib
got = []
class P:
    def __init__(self, name): self.n = zlib.crc32(b"<class '" + name + b"'>")
    def __hash__(self): return self.n
    def __call__(self): pass
    def __eq__(self, o):
        got.append(str(o))
        return False
for name in (b"type", b"module", b"traceback", b"code", b"function", b"method", b"frame"):
    for form in (typing.Optional, typing.List, typing.Type, typing.Union, typing.Iterable, typing.Callable, typing.Dict):
        for given in (P(name), (P(name), ...), (str, P(name)), (P(name), None), ([typing.Any], P(name))):
            try:
                form[given]
            except TypeError:
                pass
[t for t in got if name.decode() in t and "typing" not in t]
=== types that are called: the mean of a class -> raises TypeError
import statistics
from abc import ABC
from typing import Protocol, runtime_checkable
class W(ABC): pass
class A: pass
A.as_integer_ratio = staticmethod(lambda: (1, 1))
class Z:
    def is_finite(self): return False
    def __truediv__(self, n): return W
@runtime_checkable
class Proto(Protocol):
    def mro(self): ...
class S(Proto):
    def mro(self): ...
    def as_integer_ratio(self): raise ValueError
    def is_finite(self): return False
    def __radd__(self, o): return Z()
y = S()
S._is_protocol = True
S._is_runtime_protocol = True
meta = statistics.mean([A, y])
meta("X", (), {})
=== types that are called: the mean of one class -> raises TypeError
import statistics
class A: pass
A.as_integer_ratio = staticmethod(lambda: (1, 1))
statistics.mean([A])
=== types that are shown: the category of what is no warning -> raises TypeError
import warnings
class A: pass
class W(UserWarning):
    def __new__(cls, *a): return A
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    warnings.warn("x", W)
seen[0].category("X", (), {})
=== memory: a bytearray emptied while it is searched -> gives [-1, -1, 0, false, false, -1, -1]
got = []
class P:
    def __index__(self):
        buffer.clear()
        return 0
for search in ("find", "rfind", "count", "startswith", "endswith", "index", "rindex"):
    buffer = bytearray(b"a" * 5000)
    try:
        got.append(getattr(buffer, search)(b"a", P()))
    except ValueError:
        got.append(-1)
got
=== memory: a bytearray emptied while it is looked into -> gives false
class P:
    def __index__(self):
        buffer.clear()
        return 97
buffer = bytearray(b"a" * 5000)
P() in buffer
=== memory: a bytearray emptied while it is formatted -> gives ["1", 4999, 0]
class P:
    def __index__(self):
        buffer.clear()
        return 1
buffer = bytearray(b"%d" + b"a" * 4998)
made = buffer % P()
[chr(made[0]), len(made), len(buffer)]
=== memory: a bytearray emptied while it is printed -> gives true
class S(str):
    def __len__(self):
        buffer.clear()
        return 1
buffer = bytearray(b"a" * 5000)
buffer.hex(S("-")).startswith("61-61-61")
"""
