"""Attacks by names and values that are made while the program runs: see `language_attacks`."""

VALUES = (
    r"""
=== getattr: a dunder -> forbidden_attribute
getattr((), "__class__")
=== getattr: with a default -> forbidden_attribute
getattr((), "__subclasses__", None)
=== getattr: a built name -> forbidden_attribute
getattr(object, "__sub" + "classes__")()
=== getattr: a str subclass -> forbidden_attribute
class N(str):
    def startswith(self, *a): return False
    def __eq__(self, o): return True
    def __hash__(self): return 1
getattr((), N("__class__"))
=== getattr: by map -> forbidden_attribute
list(map(getattr, [len], ["__self__"]))
=== getattr: by reduce -> forbidden_attribute
from functools import reduce
reduce(getattr, ["__class__", "__base__"], 1)
=== getattr: by partial -> forbidden_attribute
from functools import partial
partial(getattr, len)("__self__")
=== getattr: private of a facade -> forbidden_attribute
import random
getattr(random, "_os")
=== getattr: private of a library object -> forbidden_attribute
from fractions import Fraction
getattr(Fraction(1, 2), "_numerator")
=== getattr: frame -> forbidden_attribute
getattr((x for x in []), "gi_frame")
=== getattr: as a sort key -> forbidden_attribute
sorted(["__class__"], key=lambda n: getattr(1, n))
=== getattr: as a default factory -> forbidden_attribute
from collections import defaultdict
from functools import partial
defaultdict(partial(getattr, 1, "__class__"))["x"]
=== getattr: called through its dunder -> forbidden_attribute
getattr.__call__((), "__class__")
=== getattr: hasattr says no -> gives [false, false, false]
[hasattr(len, "__self__"), hasattr((), "__subclasses__"), hasattr((x for x in []), "gi_frame")]
=== getattr: attrgetter -> forbidden_attribute
from operator import attrgetter
attrgetter("__class__")(1)
=== getattr: attrgetter, dotted -> forbidden_attribute
from operator import attrgetter
attrgetter("real.__class__")(1)
=== getattr: attrgetter, a str subclass -> forbidden_attribute
from operator import attrgetter
class N(str):
    def split(self, *a): return ["real"]
attrgetter(N("__class__"))(1)
=== getattr: attrgetter of many -> forbidden_attribute
from operator import attrgetter
attrgetter("real", "__class__")(1)
=== getattr: attrgetter of format -> forbidden_attribute
from operator import attrgetter
attrgetter("format")("{0.__class__}")(1)
=== getattr: attrgetter of a frame in max -> forbidden_attribute
from operator import attrgetter
max([(x for x in [])], key=attrgetter("gi_frame"))
=== getattr: methodcaller -> forbidden_attribute
from operator import methodcaller
methodcaller("__reduce_ex__", 2)([])
=== getattr: methodcaller of format -> forbidden_attribute
from operator import methodcaller
methodcaller("format", 1)("{0.__class__}")
=== getattr: methodcaller of format_map -> forbidden_attribute
from operator import methodcaller
methodcaller("format_map", {"x": 1})("{x.__class__}")
=== getattr: methodcaller, a str subclass -> forbidden_attribute
from operator import methodcaller
class N(str): pass
methodcaller(N("__class__"))(1)
=== setattr: class -> forbidden_attribute
class A: pass
setattr(A(), "__class__", int)
=== setattr: on a module -> forbidden_attribute
import json
setattr(json, "dumps", 1)
=== setattr: private on a library object -> forbidden_attribute
from fractions import Fraction
setattr(Fraction(1, 2), "_numerator", 5)
=== setattr: on a library class -> raises TypeError
import json
setattr(json.JSONEncoder, "default", lambda s, o: 1)
=== setattr: by delattr -> forbidden_attribute
class A: pass
delattr(A, "__dict__")
=== setattr: by object's own, on another -> forbidden_attribute
class A: pass
object.__setattr__(A, "__bases__", ())
=== setattr: by object's own, a module -> forbidden_attribute
import json
object.__setattr__(json, "dumps", 1)
=== setattr: by object's own, the class of an instance -> forbidden_attribute
class A: pass
class B: pass
object.__setattr__(A(), "__class__", B)
=== setattr: by super's -> forbidden_attribute
class A:
    def go(self): super().__setattr__("__class__", int)
A().go()
=== setattr: by super's in a str subclass name -> forbidden_attribute
class N(str): pass
class A:
    def go(self): super().__setattr__(N("__class__"), int)
A().go()
=== setattr: type's own -> forbidden_attribute
class A: pass
type.__setattr__(A, "__bases__", ())
=== setattr: split of an exception group -> forbidden_attribute
g = ExceptionGroup("g", [ValueError()])
setattr(g, "split", lambda t: 5)
=== setattr: split of an exception group, plain -> forbidden_attribute
g = ExceptionGroup("g", [ValueError()])
g.split = lambda t: 5
try: raise g
except* ValueError: pass
=== setattr: split in a group's own namespace -> forbidden_attribute
g = ExceptionGroup("g", [ValueError()])
g.__dict__["split"] = lambda t: 5
=== setattr: split by vars -> forbidden_attribute
g = ExceptionGroup("g", [ValueError()])
vars(g)["split"] = lambda t: 5
=== setattr: split in a class derived from a group -> forbidden_class
class G(ExceptionGroup):
    def split(self, t): return 5
=== setattr: split in a generic alias of a group -> forbidden_class
class G(ExceptionGroup[ValueError]):
    def split(self, t): return 5
=== format: a dunder in the text -> forbidden_attribute
"{0.__class__}".format(1)
=== format: nested in an index -> forbidden_attribute
"{0[0].__class__}".format([1])
=== format: nested in a spec -> forbidden_attribute
"{0:{1.__class__}}".format(1, 2)
=== format: text from a variable -> forbidden_attribute
t = "{x.__init__.__globals__}"
t.format(x=1)
=== format: text put together -> forbidden_attribute
("{0." + "_" * 2 + "class" + "_" * 2 + "}").format(1)
=== format: before a malformed end -> forbidden_attribute
t = "{0.__class__}{"
t.format(1)
=== format: bound and aliased -> forbidden_attribute
f = "{0.__class__}".format
f(1)
=== format: through the type -> forbidden_attribute
str.format("{0.__class__}", 1)
=== format: through the type by getattr -> forbidden_attribute
getattr(str, "format")("{0.__class__}", 1)
=== format: map over the method -> forbidden_attribute
list(map("{.__class__}".format, [1]))
=== format: format_map -> forbidden_attribute
t = "{x.__class__}"
t.format_map({"x": 1})
=== format: format_map of a literal -> forbidden_attribute
"{x.__class__}".format_map({"x": 1})
=== format: through the type, format_map -> forbidden_attribute
str.format_map("{x.__class__}", {"x": 1})
=== format: a str subclass -> forbidden_attribute
class S(str): pass
S("{0.__class__}").format(1)
=== format: a str subclass's type -> forbidden_attribute
class S(str): pass
S.format("{0.__class__}", 1)
=== format: super in a str subclass -> forbidden_attribute
class S(str):
    def format(self, *a): return super().format(*a)
S("{0.__class__}").format(1)
=== format: super of two arguments -> forbidden_attribute
class S(str): pass
super(S, S("{0.__class__}")).format(1)
=== format: augmented assignment hands over the method -> forbidden_attribute
class E:
    def __radd__(self, other): return other
s = "{0.__class__}"
s.format += E()
=== format: a class attribute of the method -> forbidden_attribute
class A:
    f = str.format
A.f("{0.__class__}", 1)
=== format: partial of the method -> forbidden_attribute
import functools
functools.partial(str.format, "{0.__class__}")(1)
=== format: Formatter -> forbidden_attribute
import string
string.Formatter().format("{0.__class__}", 1)
=== format: Formatter's vformat -> forbidden_attribute
import string
string.Formatter().vformat("{0.__class__}", (1,), {})
=== format: Formatter's get_field -> forbidden_attribute
import string
string.Formatter().get_field("0.__class__", (1,), {})
=== format: Formatter with its own parse -> forbidden_attribute
import string
class F(string.Formatter):
    def parse(self, s): return [("", "0.__class__", "", None)]
F().format("x", 1)
=== format: Formatter with a str subclass field -> forbidden_attribute
import string
class N(str): pass
class F(string.Formatter):
    def parse(self, s): return [("", N("0.__class__"), "", None)]
F().format("x", 1)
=== format: a private attribute in the text -> forbidden_attribute
from fractions import Fraction
"{0._numerator}".format(Fraction(1, 2))
=== format: a frame in the text -> forbidden_attribute
"{0.gi_frame}".format(x for x in [])
=== format: partialmethod of it -> forbidden_attribute
import functools
class S(str):
    go = functools.partialmethod(str.format, 1)
S("{0.__class__}").go()
=== format: percent has no attributes -> gives "{'x': 1}"
"%(a)s" % {"a": {"x": 1}}
=== types: three arguments -> forbidden_call
type("X", (), {})
=== types: through type of a class -> forbidden_call
type(int)("X", (), {"__getattribute__": 1})
=== types: through type of type -> forbidden_call
type(type(int))("X", (), {})
=== types: through the class of a class -> forbidden_attribute
class A: pass
A.__class__("X", (), {})
=== types: through the class of self -> forbidden_attribute
class A:
    def m(self): return self.__class__.__class__
=== types: by the alias of type -> forbidden_call
type[int]("X", (), {})
=== types: by the origin of an alias -> forbidden_call
import typing
typing.get_origin(typing.Type[int])("X", (), {})
=== types: by the origin of the builtin alias -> forbidden_call
import typing
typing.get_origin(type[int])("X", (), {})
=== types: by calling the typing alias -> raises TypeError
import typing
typing.Type[int]("X", (), {})
=== types: deriving from the typing alias -> forbidden_class
import typing
class M(typing.Type[int]): pass
=== types: deriving from the builtin alias -> forbidden_class
class M(type[int]): pass
=== types: by the origin of a union -> forbidden_call
import typing
typing.get_origin(int | str)()
=== types: a task initialised anew -> forbidden_attribute
import asyncio
await get(i=0)
asyncio.Lock.__init__(asyncio.Lock())
=== types: the type of an exception in exit, changed -> raises TypeError
class C:
    def __enter__(self): return self
    def __exit__(self, t, e, tb): t.code = "mine"
with C(): getattr(1, "__class__")
=== types: the type of an exception in exit, derived from -> forbidden_class
class C:
    def __enter__(self): return self
    def __exit__(self, t, e, tb):
        class D(t): pass
with C(): getattr(1, "__class__")
=== printing: a separator with a join of its own -> gives null
class S(str):
    def join(self, x): return 5
print(1, 2, sep=S("-"), end=S("!"))
=== printing: not a string -> raises TypeError
print(1, sep=3)
=== waiting: not a number -> raises ValueError
import time
time.sleep(float("nan"))
=== waiting: a number with operators of its own -> gives null
import time
class F(float):
    def __lt__(self, o): return False
    def __mul__(self, o): return "x"
    __rmul__ = __mul__
time.sleep(F(0.001))
=== types: deriving from type -> forbidden_class
class M(type): pass
=== types: deriving from a class's type -> forbidden_class
class M(type(int)): pass
=== types: deriving from ABCMeta -> forbidden_class
from abc import ABCMeta
class M(ABCMeta): pass
=== types: calling ABCMeta -> forbidden_call
from abc import ABCMeta
ABCMeta("X", (), {})
=== types: calling EnumMeta -> forbidden_call
from enum import EnumMeta
EnumMeta("X", (), {})
=== types: metaclass by a function -> forbidden_class
class A(metaclass=lambda *a: 1): pass
=== types: metaclass by keywords -> forbidden_class
class A(**{"metaclass": lambda *a: 1}): pass
=== types: type of an enum class -> forbidden_call
from enum import Enum
class E(Enum): A = 1
type(E)("X", (), {})
=== types: type of a protocol -> forbidden_call
from typing import Protocol
type(Protocol)("X", (), {})
=== types: type of a function -> forbidden_call
type(lambda: 0)(1, {})
=== types: type of code is not to be had -> forbidden_attribute
type((lambda: 0).__code__)
=== types: type of a builtin derived from -> forbidden_class
class B(type(len)): pass
=== types: type of a generator -> forbidden_call
type(x for x in [])()
=== types: type of a module -> forbidden_call
import json
type(json)("os")
=== types: type of a module derived from -> forbidden_class
import json
class M(type(json)): pass
=== types: type of a tool -> forbidden_call
type(get)("admin_delete")
=== types: type of a coroutine -> forbidden_call
c = get(i=1)
type(c)()
=== types: type of a super -> forbidden_call
class A:
    def m(self): return type(super())
A().m()(A)
=== types: type of a bound method -> forbidden_attribute
class A:
    def m(self): pass
type(A().m)(getattr, 1)("__class__")
=== types: deriving from a task -> forbidden_class
import asyncio
class T(type(asyncio.current_task())): pass
await get(i=1)
=== types: deriving from an asyncio class -> forbidden_class
import asyncio
class Q(asyncio.Queue):
    def loop(self): return self._loop
=== types: deriving from a library class that is not for it -> forbidden_class
import uuid
class U(uuid.UUID): pass
=== types: a base that lies about its bases -> forbidden_class
class A:
    def __getattr__(self, n): return lambda bases: (object,)
class B(A()): pass
=== types: new_class -> forbidden_attribute
import types
types.new_class("X")
=== types: FunctionType called -> forbidden_call
import types
types.FunctionType(1, {})
=== types: a stand-in changed -> forbidden_attribute
type.x = 1
=== types: a stand-in's new -> raises TypeError
type.__new__(type, "X", (), {})
=== types: a stand-in's call -> forbidden_call
type.__call__("X", (), {})
=== types: deriving from a facade's class -> forbidden_class
import json
class F(type(json)):
    def __init__(self): pass
=== classes: a library class changed -> raises TypeError
import collections
collections.Counter.most_common = lambda self: "mine"
=== classes: a library class changed by a decorator -> raises TypeError
import functools, fractions
functools.total_ordering(fractions.Fraction)
fractions.Fraction.x = 1
=== classes: an exception class changed -> raises TypeError
ValueError.x = 1
=== classes: the wall's own exception changed -> raises TypeError
try: getattr(1, "__class__")
except Exception as e: t = e
object.__setattr__ if False else None
import json
json.JSONDecodeError.x = 1
=== classes: a module's member changed -> forbidden_attribute
import json
json.dumps = lambda *a, **k: "{}"
=== classes: a module's member deleted -> forbidden_attribute
import json
del json.dumps
=== classes: asyncio changed -> forbidden_attribute
import asyncio
asyncio.sleep = 1
=== classes: a module made anew -> forbidden_attribute
import json
json.__init__()
=== classes: a builtin changed -> raises TypeError
int.x = 1
=== classes: object changed -> raises TypeError
object.x = 1
=== classes: a property initialised anew -> forbidden_attribute
from fractions import Fraction
Fraction.numerator.__init__(lambda self: 5)
=== classes: a property initialised anew through the type -> forbidden_attribute
from fractions import Fraction
property.__init__(Fraction.numerator, lambda self: 5)
=== classes: a property initialised anew through a class derived from it -> forbidden_attribute
from fractions import Fraction
class P(property): pass
P.__init__(Fraction.numerator, lambda self: 5)
=== classes: a private name of a class, mangled by hand -> forbidden_attribute
import asyncio
class Lock:
    def m(self, l): return l.__waiters
Lock().m(asyncio.Lock())
=== classes: self is not what it seems -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self): return self._loop
A.m(asyncio.current_task())
=== classes: self rebound -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self):
        self = asyncio.current_task()
        return self._loop
A().m()
=== classes: self rebound by a nested function -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self):
        def n():
            nonlocal self
            self = asyncio.current_task()
        n()
        return self._loop
A().m()
=== classes: self in a loop -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self):
        for self in [asyncio.current_task()]: pass
        return self._loop
A().m()
=== classes: self in a comprehension -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self): return [self._loop for self in [asyncio.current_task()]]
A().m()
=== classes: self in a lambda -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self): return (lambda self: self._loop)(asyncio.current_task())
A().m()
=== classes: self in a pattern -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self):
        match asyncio.current_task():
            case self: return self._loop
A().m()
=== classes: self by walrus -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self):
        (self := asyncio.current_task())
        return self._loop
A().m()
=== classes: self by import -> forbidden_attribute
class A:
    def m(self):
        import random as self
        return self._os
A().m()
=== classes: self as an exception -> forbidden_attribute
class A:
    def m(self):
        try: raise ValueError
        except ValueError as self: return self._x
A().m()
=== classes: self with with -> forbidden_attribute
import asyncio, contextlib
await get(i=0)
class A:
    def m(self):
        with contextlib.nullcontext(asyncio.current_task()) as self: return self._loop
A().m()
=== classes: self of a nested class -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self):
        class B:
            self = asyncio.current_task()
            x = self._loop
        return B.x
A().m()
=== classes: a static method's self -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    @staticmethod
    def m(self): return self._loop
A.m(asyncio.current_task())
=== classes: self by a descriptor of a function -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self): return self._loop
A.m.__get__(asyncio.current_task())()
=== classes: self by a partial -> forbidden_attribute
import asyncio, functools
await get(i=0)
class A(dict):
    def m(self): return self._loop
functools.partial(A.m, asyncio.current_task())()
=== classes: self in a generator -> forbidden_attribute
import asyncio
await get(i=0)
class A:
    def m(self): yield self._loop
next(A.m(asyncio.current_task()))
=== classes: another's object while a class is made -> forbidden_attribute
import asyncio
class Base:
    def __init_subclass__(cls): cls.stolen = asyncio.Lock()._get_loop
class A(Base): pass
=== classes: a library's class while a class is made -> forbidden_attribute
import fractions
class A:
    x = fractions.Fraction._from_coprime_ints
=== classes: class reassigned -> forbidden_attribute
class A: pass
class B: pass
a = A()
a.__class__ = B
=== copying attributes: wraps with a code -> forbidden_call
import functools
def evil(): pass
functools.update_wrapper(evil, evil, assigned=("__code__",))
=== copying attributes: wraps over a library function -> forbidden_attribute
import functools, json
def evil(*a, **k): return "mine"
functools.update_wrapper(json.dumps, evil)
=== copying attributes: wraps over a module -> forbidden_attribute
import functools, json
functools.wraps(print)(json)
=== copying attributes: name of a library function -> forbidden_attribute
import json
json.dumps.__name__ = "x"
=== copying attributes: a method under the name of an attribute, copied -> gives true
import copy
def f(self): return "mine"
f.__name__ = "__subclasses__"
m = f.__get__(object)
copy.copy(m) is m and copy.copy(m)() == "mine"
=== copying attributes: a method under such a name, copied deep -> gives "mine"
import copy
def f(self): return "mine"
f.__name__ = "__subclasses__"
copy.deepcopy(f.__get__(object))()
=== copying attributes: a method under such a name, inside what is copied -> gives ["mine"]
import copy
def f(self): return "mine"
f.__name__ = f.__qualname__ = "__globals__"
[m() for m in copy.deepcopy([f.__get__(f)])]
=== copying attributes: a member under the name of an attribute, copied -> gives true
import copy
from enum import Enum
class E(Enum):
    A = 1
E.A._name_ = "__subclasses__"
copy.copy(E.A) is E.A and copy.deepcopy([E.A])[0] is E.A
=== copying attributes: the internals of an enumeration in its namespace -> gives ["_missing_names", "foo"]
from enum import Enum
class E(Enum):
    _ignore_ = []
    _missing_names = staticmethod(print)
    foo = 1
sorted(n for n in vars(E) if n not in ("_value_", "_member_names_", "_member_map_", "_value2member_map_", "_generate_next_value_", "_name_"))
=== copying attributes: the redirection of an enumeration -> gives []
from enum import Enum
class Mixin:
    @property
    def foo(self): return 5
class E(Mixin, Enum):
    foo = 1
    bar = 2
[n for n, v in vars(E).items() if hasattr(v, "fget")]
=== copying attributes: a state with a name of its own -> gives true
import copy
class A:
    __slots__ = ("x",)
    def __getattr__(self, name):
        if name == "__setstate__": raise AttributeError(name)
        if name == "__getnewargs__": return lambda: ()
        raise AttributeError(name)
a = A(); a.x = 1
copy.copy(a).x == 1
=== waiting: a future of the program's own making -> forbidden_name
import asyncio
class Fake:
    _asyncio_future_blocking = True
    def get_loop(self): return self
    def add_done_callback(self, callback, context=None): self.callback = callback
class Awaitable:
    def __await__(self): yield Fake()
await Awaitable()
=== waiting: a future that answers for itself -> raises RuntimeError
class Fake:
    def __getattr__(self, name):
        if name == "_asyncio_" + "future_blocking": return True
        raise AttributeError(name)
    def get_loop(self): return self
    def add_done_callback(self, callback, context=None): self.callback = callback
class Awaitable:
    def __await__(self): yield Fake()
await Awaitable()
=== waiting: a future by an attribute set later -> forbidden_attribute
class Fake: pass
setattr(Fake, "_asyncio_" + "future_blocking", False)
=== waiting: a future by the slots of its class -> forbidden_attribute
class Fake:
    __slots__ = ("_asyncio_future_blocking",)
=== waiting: a future by the members of an enumeration -> forbidden_attribute
from enum import Enum
import asyncio
Fake = Enum("Fake", {"_asyncio_" + "future_blocking": 1, "get_loop": lambda self: self})
await asyncio.gather(*Fake)
=== waiting: a future by the fields of a dataclass -> forbidden_attribute
import dataclasses
dataclasses.make_dataclass("Fake", ["_asyncio_" + "future_blocking"])
=== waiting: something that is no future -> raises RuntimeError
class Awaitable:
    def __await__(self): yield 5
await Awaitable()
=== copying attributes: copy of a module is the module -> gives true
import copy, json
copy.copy(json) is json and copy.deepcopy(json) is json
=== copying attributes: deep copy of a guard is the guard -> gives true
import copy
copy.deepcopy(getattr) is getattr
=== copying attributes: namespace of an object -> forbidden_attribute
from fractions import Fraction
vars(Fraction)
=== copying attributes: namespace of a function of a library -> forbidden_attribute
import json
vars(json.dumps)
=== copying attributes: namespace of a facade -> forbidden_attribute
import json
vars(json)
=== evaluating text: type hints -> forbidden_attribute
import typing
class A:
    x: "__import__('os')"
typing.get_type_hints(A)
=== evaluating text: type hints imported -> forbidden_import
from typing import get_type_hints
=== evaluating text: forward references are text -> gives ["open('/etc/passwd')"]
import typing
[a for a in typing.get_args(typing.Optional["open('/etc/passwd')"]) if isinstance(a, str)]
=== evaluating text: ForwardRef -> forbidden_import
from typing import ForwardRef
=== evaluating text: evaluate a type variable's bound -> forbidden_attribute
import typing
typing.TypeVar("T", bound="open('/etc/passwd')").evaluate_bound
=== evaluating text: singledispatch by annotation -> forbidden_call
import functools
@functools.singledispatch
def f(x): pass
@f.register
def _(x: "open('/etc/passwd')"): pass
=== evaluating text: a dataclass field's name -> raises TypeError
import dataclasses
dataclasses.make_dataclass("A", ["x=print(1)"])
=== evaluating text: a dataclass field's name as a str subclass -> raises TypeError
import dataclasses
class N(str):
    def isidentifier(self): return True
dataclasses.make_dataclass("A", [N("x=print(1)")])
=== evaluating text: a dataclass field changed -> forbidden_attribute
import dataclasses
@dataclasses.dataclass
class A:
    x: int = 1
dataclasses.fields(A)[0].name = "x=print(1)"
=== evaluating text: a dataclass field changed by object -> forbidden_attribute
import dataclasses
@dataclasses.dataclass
class A:
    x: int = 1
object.__setattr__(dataclasses.fields(A)[0], "name", "x=print(1)")
=== evaluating text: a dataclass field made by hand -> raises TypeError
import dataclasses
dataclasses.Field(1, 2)
=== evaluating text: dataclass annotations changed -> raises KeyError
import dataclasses
class A:
    x: int = 1
A.__annotations__["y=print(1)"] = int
dataclasses.dataclass(A)
A.__annotations__["y=print(1)"]
=== evaluating text: a dataclass of a library class -> raises TypeError
import dataclasses, json
dataclasses.dataclass(json.JSONEncoder)
=== evaluating text: a namedtuple field -> raises ValueError
import collections
collections.namedtuple("A", ["x=1"])
=== evaluating text: a namedtuple field as a str subclass -> raises TypeError
import collections
class N(str):
    def isidentifier(self): return True
    def __str__(self): return self
collections.namedtuple("A", [N("x=print(1)")])
=== evaluating text: a namedtuple's special name -> raises ValueError
import collections
collections.namedtuple("A", ["__class__"])
=== evaluating text: an enum's special member -> forbidden_attribute
from enum import Enum
Enum("E", ["__class__"])
=== evaluating text: an enum's special member in pairs -> forbidden_attribute
from enum import Enum
Enum("E", [("__init__", lambda *a: None)])
=== evaluating text: an enum's special member by a str subclass -> forbidden_attribute
from enum import Enum
class N(str):
    def startswith(self, x): return False
Enum("E", {N("__class__"): 1})
=== evaluating text: template -> raises ValueError
import string
string.Template("${x.__class__}").substitute(x=1)
=== clock: now of a subclass is the run's -> gives true
from datetime import datetime
class D(datetime):
    @classmethod
    def real(cls): return super().now()
D.real().year == 2023 and D.now().year == 2023 and D(2024, 1, 1).now().year == 2023
=== clock: now by every way -> gives [2023]
from datetime import datetime
from operator import attrgetter, methodcaller
ways = [datetime.now(), getattr(datetime, "now")(), attrgetter("now")(datetime)(), methodcaller("now")(datetime), list(map(datetime.fromtimestamp, [1.7e9]))[0], datetime.today(), datetime.utcnow(), (lambda d: d.now)(datetime)()]
sorted({w.year for w in ways})
=== clock: today of a date -> gives "2023-11-14"
from datetime import date
date.today().isoformat()
=== clock: augmented assignment hands over now -> forbidden_attribute
from datetime import datetime
class E:
    def __radd__(self, other): return other
datetime.now += E()
=== clock: the machine's by time -> forbidden_attribute
import time
time.clock_gettime(0)
=== files: a zone by a path -> raises ZoneInfoNotFoundError
import zoneinfo
zoneinfo.ZoneInfo("../../etc/passwd")
=== files: a zone by a str subclass -> raises TypeError
import zoneinfo
class S(str):
    def __eq__(self, o): return True
    def __hash__(self): return hash("UTC")
zoneinfo.ZoneInfo(S("x"))
=== files: the places of zones -> forbidden_attribute
import zoneinfo
zoneinfo.reset_tzpath(["/"])
=== files: a text wrapper -> forbidden_import
from io import TextIOWrapper
=== files: a csv of a path -> raises TypeError
import csv
csv.reader(5)
=== randomness: system -> forbidden_attribute
import random
random.SystemRandom()
=== randomness: system, imported -> forbidden_import
from random import SystemRandom
=== randomness: from secrets -> forbidden_import
from secrets import SystemRandom
=== randomness: uuid1 -> forbidden_attribute
import uuid
uuid.uuid1()
=== randomness: the machine's address -> forbidden_import
from uuid import getnode
=== randomness: the class of the generator -> gives true
import random
r = random.Random()
type(r) is random.Random
=== randomness: underlying generator -> forbidden_attribute
import random
random._inst
=== frames: from the traceback module -> forbidden_attribute
import traceback
traceback.walk_tb
=== frames: of the traceback module's caller -> forbidden_import
from traceback import extract_stack, sys
=== frames: a text that names no place of this machine -> gives [true, false]
import traceback, json
try: json.loads("{")
except ValueError: t = traceback.format_exc()
["<program>" in t, "/" in t]
=== modules: json to codecs -> forbidden_attribute
import json
json.codecs.open("/etc/passwd")
=== modules: dataclasses to sys -> forbidden_attribute
import dataclasses
dataclasses.sys.modules
=== modules: statistics to random -> forbidden_attribute
import statistics
statistics.random
=== modules: enum to sys -> forbidden_attribute
import enum
enum.sys
=== modules: typing to sys -> forbidden_attribute
import typing
typing.sys
=== modules: collections to sys -> forbidden_attribute
import collections
collections._sys
=== modules: contextlib to os -> forbidden_attribute
import contextlib
contextlib.os
=== modules: contextlib to chdir -> forbidden_attribute
import contextlib
contextlib.chdir
=== modules: contextlib to sys -> forbidden_attribute
import contextlib
contextlib.redirect_stdout._stream
=== modules: io to FileIO -> forbidden_attribute
import io
io.FileIO("/etc/passwd")
=== modules: io to open_code -> forbidden_import
from io import open_code
=== modules: hashlib to a file -> forbidden_attribute
import hashlib
hashlib.file_digest
=== modules: asyncio to threads -> forbidden_attribute
import asyncio
asyncio.to_thread(print)
=== modules: asyncio to subprocesses -> forbidden_attribute
import asyncio
asyncio.create_subprocess_exec
=== modules: asyncio to its modules -> forbidden_attribute
import asyncio
asyncio.events
=== modules: asyncio to connections -> forbidden_import
from asyncio import open_connection
=== modules: uuid to os -> forbidden_attribute
import uuid
uuid.os
=== modules: abc to internals -> forbidden_attribute
import abc
abc._abc_init
=== modules: functools to internals -> forbidden_attribute
import functools
functools._lru_cache_wrapper
=== modules: re to its compiler -> forbidden_attribute
import re
re._compiler
=== modules: re to copyreg -> forbidden_attribute
import re
re.copyreg
=== modules: textwrap to re -> forbidden_attribute
import textwrap
textwrap.re
=== modules: csv to re -> forbidden_import
from csv import re
=== modules: calendar to datetime -> forbidden_attribute
import calendar
calendar.datetime.sys
=== modules: copy's dispatch -> forbidden_attribute
import copy
copy.dispatch_table
=== modules: urllib to request -> forbidden_import
import urllib.request
=== modules: urllib to error by from -> forbidden_import
from urllib import request
=== modules: pprint to sys -> forbidden_attribute
import pprint
pprint._sys
=== errors: the object of an AttributeError -> gives ["real"]
import json
try: json.nothing
except AttributeError as e: r = [n for n in ("modules",) if hasattr(e.obj, n)] + ["real"]
r
=== errors: an exception's arguments hold no frame -> gives true
try: [].x
except AttributeError as e: r = e.obj == []
r
=== errors: swallowing a refusal gains nothing -> gives ["AttributeError"]
r = []
try: getattr(1, "__class__")
except AttributeError: r.append("AttributeError")
r
=== complexity: nesting beyond the parser -> raises SyntaxError
"""
    + "(" * 300
    + ")" * 300
    + r"""
=== complexity: a deep expression -> too_complex
x = """
    + "-" * 5000
    + "1"
    + r"""
=== complexity: a long chain of attributes -> too_complex
x = a"""
    + ".b" * 5000
    + r"""
"""
)
