"""Attacks by names that a program spells out: see `language_attacks`."""

NAMES = r"""
=== dunder walk: subclasses of object -> forbidden_attribute
().__class__.__bases__[0].__subclasses__()
=== dunder walk: mro -> forbidden_attribute
str.__mro__[1]
=== dunder walk: mro method -> forbidden_attribute
int.mro()
=== dunder walk: globals of a function -> forbidden_attribute
def f(): pass
f.__globals__["__builtins__"]
=== dunder walk: code of a function -> forbidden_attribute
def f(): return 1
f.__code__ = (lambda: 2).__code__
=== dunder walk: closure cells -> forbidden_attribute
def o():
    x = 1
    def i(): return x
    return i
o().__closure__[0].cell_contents
=== dunder walk: self of a builtin -> forbidden_attribute
len.__self__
=== dunder walk: self of a bound method -> forbidden_attribute
[].append.__self__
=== dunder walk: func of a method -> forbidden_attribute
class A:
    def m(self): pass
A().m.__func__
=== dunder walk: defaults -> forbidden_attribute
def f(a=1): pass
f.__defaults__
=== dunder walk: keyword defaults written -> forbidden_attribute
import json
json.dumps.__kwdefaults__ = {"cls": 1}
=== dunder walk: reduce -> forbidden_attribute
[].__reduce_ex__(2)
=== dunder walk: getstate -> forbidden_attribute
object().__getstate__()
=== dunder walk: dict of a class -> forbidden_attribute
str.__dict__["format"]
=== dunder walk: dict of a module -> forbidden_attribute
import json
json.__dict__
=== dunder walk: loader -> forbidden_attribute
import json
json.__loader__
=== dunder walk: spec -> forbidden_attribute
import math
math.__spec__
=== dunder walk: builtins name -> forbidden_name
__builtins__["open"]
=== dunder walk: loader name -> forbidden_name
__loader__.load_module("os")
=== dunder walk: import name in a call -> forbidden_name
__import__("os")
=== dunder walk: import name aliased -> forbidden_name
i = __import__
i("os")
=== dunder walk: build class name -> forbidden_name
__build_class__
=== dunder walk: class cell name -> forbidden_name
class A:
    def m(self): return __class__
A().m()
=== dunder walk: wide letters -> forbidden_attribute
().__ｓubclasses__
=== dunder walk: in a default -> forbidden_attribute
def f(x=().__class__.__base__): return x
=== dunder walk: in an annotation -> forbidden_attribute
def f(x: ().__class__.__base__): return x
=== dunder walk: in a variable annotation -> forbidden_attribute
x: ().__class__.__base__ = 1
=== dunder walk: in a decorator -> forbidden_attribute
@(lambda f: f.__globals__)
def f(): pass
=== dunder walk: in an f-string -> forbidden_attribute
f"{().__class__.__base__}"
=== dunder walk: in an f-string's format -> forbidden_attribute
f"{1:{().__class__.__base__}}"
=== dunder walk: in a lambda in a comprehension -> forbidden_attribute
[(lambda: c.__subclasses__())() for c in [object]]
=== dunder walk: in a base class -> forbidden_attribute
class A(().__class__.__base__): pass
=== dunder walk: in a class keyword -> forbidden_attribute
class A(metaclass=().__class__.__base__): pass
=== dunder walk: as the target of a loop -> forbidden_attribute
class A: pass
for A.__bases__ in [(int,)]: pass
=== dunder walk: as the target of with -> forbidden_attribute
import contextlib
class A: pass
with contextlib.nullcontext(1) as A.__dict__: pass
=== dunder walk: deleted -> forbidden_attribute
class A: pass
del A.__dict__
=== dunder walk: augmented -> forbidden_attribute
class A: pass
A.__bases__ += (int,)
=== dunder walk: annotated target -> forbidden_attribute
class A: pass
A.__bases__: int = 3
=== dunder walk: starred target -> forbidden_attribute
class A: pass
*A.__bases__, b = 1, 2
=== dunder walk: inside await -> forbidden_attribute
await get.__globals__
=== dunder walk: weakref list -> forbidden_attribute
object.__weakref__
=== dunder walk: objclass of a descriptor -> forbidden_attribute
str.upper.__objclass__
=== dunder walk: type params -> forbidden_attribute
def f(): pass
f.__type_params__
=== dunder walk: annotations of a library function -> forbidden_attribute
import json
json.dumps.__annotations__
=== dunder walk: wrapped by the library -> forbidden_attribute
import contextlib
@contextlib.contextmanager
def f(): yield
f.__wrapped__
=== dunder walk: wrapped, of a bound method -> forbidden_attribute
import random
random.random.__wrapped__
=== dunder walk: the bases of a class -> forbidden_attribute
class A: pass
A.__mro__
=== dunder walk: the class of a class, called -> forbidden_attribute
x = (1).__class__
=== dunder walk: getattribute -> forbidden_attribute
object.__getattribute__(1, "__class__")
=== dunder walk: thisclass of super -> forbidden_attribute
class A:
    def m(self): return super().__thisclass__
A().m()
=== dunder walk: sizeof -> forbidden_attribute
(1).__sizeof__()
=== dunder walk: dir finds no way -> gives []
[n for n in dir(object()) if n in ("__class__", "__subclasshook__", "__reduce__")]
=== frames: generator frame -> forbidden_attribute
g = (x for x in [1])
g.gi_frame
=== frames: generator code -> forbidden_attribute
(x for x in [1]).gi_code
=== frames: what a generator yields from -> forbidden_attribute
(x for x in [1]).gi_yieldfrom
=== frames: coroutine frame -> forbidden_attribute
async def c(): pass
c().cr_frame
=== frames: coroutine await -> forbidden_attribute
get(i=1).cr_await
=== frames: coroutine origin -> forbidden_attribute
get(i=1).cr_origin
=== frames: async generator frame -> forbidden_attribute
async def a(): yield 1
a().ag_frame
=== frames: traceback of an exception -> forbidden_attribute
try: 1 / 0
except Exception as e: e.__traceback__.tb_frame
=== frames: traceback in exit -> forbidden_attribute
class C:
    def __enter__(self): return self
    def __exit__(self, t, e, tb): self.f = tb.tb_frame; return True
with C(): 1 / 0
=== frames: next of a traceback in exit -> forbidden_attribute
class C:
    def __enter__(self): return self
    def __exit__(self, t, e, tb): return tb.tb_next
with C(): 1 / 0
=== frames: back from a frame -> forbidden_attribute
x = 1
x.f_back.f_globals
=== frames: builtins of a frame -> forbidden_attribute
x = 1
x.f_builtins
=== frames: generator of a frame -> forbidden_attribute
x = 1
x.f_generator
=== frames: old names of functions -> forbidden_attribute
def f(): pass
f.func_globals
=== frames: constants of code -> forbidden_attribute
x = 1
x.co_consts
=== frames: positions of code -> forbidden_attribute
x = 1
x.co_positions
=== frames: stack of a task -> forbidden_attribute
import asyncio
await get(i=0)
asyncio.current_task().get_stack()
=== frames: coroutine of a task -> forbidden_attribute
import asyncio
await get(i=0)
asyncio.current_task().get_coro()
=== frames: context of a task -> forbidden_attribute
import asyncio
await get(i=0)
asyncio.current_task().get_context()
=== frames: loop of a task -> forbidden_attribute
import asyncio
await get(i=0)
asyncio.current_task().get_loop()
=== frames: loop of a task, private -> forbidden_attribute
import asyncio
await get(i=0)
asyncio.current_task()._loop
=== frames: loop of a lock -> forbidden_attribute
import asyncio
asyncio.Lock()._get_loop()
=== frames: print the stack of a task -> forbidden_attribute
import asyncio
await get(i=0)
asyncio.current_task().print_stack()
=== patterns: keyword attribute -> forbidden_attribute
match len:
    case object(__self__=m): pass
=== patterns: frame of a generator -> forbidden_attribute
match (x for x in []):
    case object(gi_frame=f): pass
=== patterns: private attribute -> forbidden_attribute
import asyncio
match asyncio.Lock():
    case object(_loop=l): pass
=== patterns: guarded attribute -> forbidden_attribute
from datetime import datetime
match datetime(2024, 1, 1):
    case datetime(now=n): pass
=== patterns: format of a str -> forbidden_attribute
match "{0.__class__}":
    case str(format=f): f(1)
=== patterns: class read in a pattern's class -> forbidden_attribute
x = 1
match 1:
    case x.__class__(): pass
=== patterns: value pattern -> forbidden_attribute
match 1:
    case int.__doc__.__class__: pass
=== patterns: positional names by match args -> forbidden_attribute
class A:
    __match_args__ = ("__class__",)
match A():
    case A(c): pass
=== patterns: match args built at run time -> forbidden_name
class A:
    __match_args__ = tuple("__cla" + "ss__" for _ in [1])
=== patterns: match args set later -> forbidden_attribute
class A: pass
A.__match_args__ = ("__class__",)
=== patterns: match args by setattr -> forbidden_attribute
class A: pass
setattr(A, "__match_args__", ("__class__",))
=== patterns: match args by a loop -> forbidden_name
class A:
    for __match_args__ in [("__class__",)]: pass
=== patterns: match args by walrus -> forbidden_name
class A:
    x = (__match_args__ := ("__class__",))
=== patterns: match args by import -> forbidden_name
class A:
    import math as __match_args__
=== patterns: match args by def -> forbidden_name
class A:
    def __match_args__(self): pass
=== patterns: match args by with -> forbidden_name
import contextlib
class A:
    with contextlib.nullcontext(("__class__",)) as __match_args__: pass
=== patterns: match args by except -> forbidden_name
class A:
    try: raise ValueError
    except ValueError as __match_args__: pass
=== patterns: match args by unpacking -> forbidden_name
class A:
    __match_args__, x = ("__class__",), 1
=== patterns: match args twice assigned -> forbidden_name
class A:
    x = __match_args__ = ("__class__",)
=== patterns: match args by augmented assignment -> forbidden_name
class A:
    __match_args__ = ("a",)
    __match_args__ += ("__class__",)
=== patterns: match args by a nested class -> forbidden_name
class A:
    class __match_args__(tuple): pass
=== patterns: match args by a global -> forbidden_name
class A:
    global __match_args__
=== patterns: match args by an enum's members -> forbidden_attribute
from enum import Enum
E = Enum("E", {"__match_args__": ("__class__",), "A": 1})
=== patterns: match args by a dataclass -> forbidden_attribute
import dataclasses
dataclasses.make_dataclass("A", ["__class__"])
=== patterns: match args by a dataclass namespace -> forbidden_attribute
import dataclasses
dataclasses.make_dataclass("A", ["x"], namespace={"__match_args__": ("__class__",)})
=== patterns: capture under a hook's name -> forbidden_name
match 1:
    case _getattr_: pass
=== patterns: star capture under a reserved name -> forbidden_name
match [1]:
    case [*__builtins__]: pass
=== patterns: mapping rest under a reserved name -> forbidden_name
match {"a": 1}:
    case {**__import__}: pass
=== patterns: as under a reserved name -> forbidden_name
match 1:
    case int() as __build_class__: pass
=== hooks: as a parameter -> forbidden_name
def f(_getattr_=None, /): return (1).real
f()
=== hooks: as a keyword-only parameter -> forbidden_name
def f(*, _write_=None): pass
=== hooks: as a vararg -> forbidden_name
lambda *_getitem_: 1
=== hooks: as a kwarg -> forbidden_name
def f(**_getiter_): pass
=== hooks: as a function -> forbidden_name
def _print_(): pass
=== hooks: as an import -> forbidden_name
import math as _getattr_
=== hooks: as a class -> forbidden_name
class _apply_: pass
=== hooks: as a loop variable -> forbidden_name
for _unpack_sequence_ in []: pass
=== hooks: as a comprehension variable -> forbidden_name
[1 for _inplacevar_ in []]
=== hooks: as a walrus -> forbidden_name
(_iter_unpack_sequence_ := 1)
=== hooks: as an exception's name -> forbidden_name
try: 1
except Exception as _getattr_: pass
=== hooks: as a global -> forbidden_name
def f():
    global _getattr_
=== hooks: build class replaced -> forbidden_name
def __build_class__(*a): pass
=== hooks: import replaced by a parameter -> forbidden_name
def f(__import__): import os
=== hooks: builtins replaced -> forbidden_name
__builtins__ = {}
=== hooks: builtins replaced as a global -> forbidden_name
def f():
    global __builtins__
    __builtins__ = {"__import__": 1}
=== hooks: name of the module replaced -> forbidden_name
__name__ = "os"
=== hooks: debug replaced -> forbidden_name
def f(__debug__): pass
=== methods: getattribute -> forbidden_name
class A:
    def __getattribute__(self, n): return 1
=== methods: reduce -> forbidden_name
class A:
    def __reduce__(self): return (print, ())
=== methods: del -> forbidden_name
class A:
    def __del__(self):
        while True: pass
=== methods: mro entries -> forbidden_name
class A:
    def __mro_entries__(self, bases): return (object,)
=== methods: instancecheck -> forbidden_name
class A:
    def __instancecheck__(self, x): return True
=== methods: prepare -> forbidden_name
class A:
    def __prepare__(*a): return {}
=== methods: setstate -> forbidden_name
class A:
    def __setstate__(self, s): pass
=== methods: getstate -> forbidden_name
class A:
    def __getstate__(self): return (None, {"__class__": int})
=== methods: class as a property -> forbidden_name
class A:
    __class__ = property(lambda self: int)
=== methods: buffer -> forbidden_name
class A:
    def __buffer__(self, flags): return memoryview(b"")
=== methods: class dict by annotation -> forbidden_name
class A:
    __annotations__ = {"x=1": int}
=== methods: module of a class -> forbidden_name
class A:
    __module__ = "os"
=== methods: lambda under a refused name -> forbidden_name
class A:
    __reduce__ = lambda self: 1
=== methods: subclasshook -> forbidden_name
class A:
    @classmethod
    def __subclasshook__(cls, c): return True
=== methods: slots with a special name -> forbidden_attribute
class A:
    __slots__ = ("__class__",)
=== methods: slots built at run time -> forbidden_name
class A:
    __slots__ = ["__cl" + "ass__"]
=== imports: os -> forbidden_import
import os
=== imports: os under another name -> forbidden_import
import os as json
=== imports: a submodule -> forbidden_import
import os.path
=== imports: from os -> forbidden_import
from os import system
=== imports: sys -> forbidden_attribute
import sys
sys.modules
=== imports: in a function -> forbidden_import
def f():
    import subprocess
f()
=== imports: in a class body -> forbidden_import
class A:
    import socket
=== imports: a real submodule of an allowed module -> forbidden_import
from json import decoder
=== imports: a real submodule, dotted -> forbidden_import
import json.decoder
=== imports: a real submodule, dotted and renamed -> forbidden_import
import collections.abc, json.scanner as s
=== imports: a submodule of asyncio -> forbidden_import
from asyncio import events
=== imports: asyncio's base events -> forbidden_import
import asyncio.base_events
=== imports: a private member -> forbidden_import
from random import _os
=== imports: a module inside a module -> forbidden_import
from statistics import random
=== imports: sys from dataclasses -> forbidden_import
from dataclasses import sys
=== imports: relative -> forbidden_import
from . import guards
=== imports: relative from a package -> forbidden_import
from ..guest import guards
=== imports: the guest's own modules -> forbidden_import
import ptc_sandbox
=== imports: the guest's guards -> forbidden_import
from ptc_sandbox.guest import guards
=== imports: RestrictedPython -> forbidden_import
import RestrictedPython
=== imports: star of an unknown module -> forbidden_import
from os import *
=== imports: star of asyncio -> forbidden_import
from asyncio import *
=== imports: builtins -> forbidden_import
import builtins
=== imports: importlib -> forbidden_import
import importlib
=== imports: ctypes -> forbidden_import
import ctypes
=== imports: gc -> forbidden_import
import gc
=== imports: inspect -> forbidden_import
import inspect
=== imports: pickle -> forbidden_import
import pickle
=== imports: main -> forbidden_import
import __main__
=== imports: where a failure is expected -> gives "refused"
try:
    import os
    r = os.listdir("/")
except ImportError:
    r = "refused"
r
=== imports: a submodule where a failure is expected -> gives "refused"
try:
    from json import decoder
    r = str(decoder)
except ImportError:
    r = "refused"
r
=== imports: a whole chain where a failure is expected -> forbidden_import
r = []
try: from asyncio import base_events
except Exception: r.append("refused")
try: import collections.abc.sys as s
except Exception: r.append("refused")
try: from collections import _sys
except Exception: r.append("refused")
r
=== builtins: exec -> forbidden_name
exec("import os")
=== builtins: eval aliased -> forbidden_name
f = [eval][0]
f("1")
=== builtins: compile in a map -> forbidden_name
list(map(compile, ["1"], ["f"], ["eval"]))
=== builtins: open in a default -> forbidden_name
def f(o=open): return o("/etc/passwd")
=== builtins: open by a shadowed name elsewhere -> forbidden_name
def g():
    open = 1
open("/etc/passwd")
=== builtins: globals -> forbidden_name
globals()["__builtins__"]
=== builtins: locals -> forbidden_name
locals()
=== builtins: vars without an object -> forbidden_call
vars()
=== builtins: dir without an object -> forbidden_call
dir()
=== builtins: input -> forbidden_name
input()
=== builtins: breakpoint -> forbidden_name
breakpoint()
=== builtins: help -> forbidden_name
help()
=== builtins: memoryview is not there -> forbidden_name
memoryview(b"a")
=== syntax: dunder keyword argument -> forbidden_name
dict(__class__=1)
=== syntax: an attribute of a guard's name cannot be spelled -> raises SyntaxError
.own
"""
