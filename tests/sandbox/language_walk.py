"""Walks everything that a program can reach by attributes and items, and prints what it should not find.

Runs as the guest does, under `python -s -S -P`. From the namespace of a program, with every module imported,
it follows each attribute that the guards give, each item of each container, and each type that `type(x)`
gives; what it finds is compared with what no program may hold.
"""

# ruff: noqa: E402, BLE001

from __future__ import annotations

import sys

sys.path[:0] = sys.argv[1:3]

from ptc_sandbox.guest.guards_identity import install

install()

import asyncio
import builtins
import ctypes
import json
import random
import types
from collections import deque

from ptc_sandbox.guest.builtins import make_globals, prepare
from ptc_sandbox.guest.facades import table
from ptc_sandbox.guest.facades.module import facade
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.policy_names import Rule, load_rule

SAMPLES = """
import collections, datetime, decimal, enum, dataclasses, fractions, re, uuid, io, csv, string, functools, contextlib
import typing, types, statistics, random, json, textwrap, hashlib, itertools, zlib, struct, graphlib, difflib
class Plain:
    def __init__(self): self.x = 1
    def method(self): return self
    @property
    def prop(self): return 1
    @classmethod
    def cm(cls): return cls
class Derived(collections.OrderedDict): pass
class Coder(json.JSONEncoder): pass
class Tuple(typing.NamedTuple):
    a: int
class Colour(enum.Enum):
    RED = 1
@dataclasses.dataclass
class Data:
    x: int = 1
    y: list = dataclasses.field(default_factory=list)
@contextlib.contextmanager
def manager(): yield 1
@functools.lru_cache
def cached(x): return x
@functools.singledispatch
def dispatched(x): return x
class Lazy:
    @functools.cached_property
    def value(self): return 1
def generator(): yield 1
async def asynchronous(): yield 1
async def coroutine(): return 1
T = typing.TypeVar("T")
waiting = coroutine()
try: [].nothing
except AttributeError as e: error1 = e
try: 1 / 0
except ZeroDivisionError as e: error2 = e
try: json.nothing
except AttributeError as e: error3 = e
try: json.loads("{")
except ValueError as e: error4 = e
try: getattr(1, "__class__")
except AttributeError as e: error5 = e
samples = [
    Plain(), Plain, Plain().method, Derived(a=1), Coder(), Coder, Tuple(1), Tuple, Colour.RED, Colour, Data(), Data,
    dataclasses.fields(Data), manager, manager(), cached, dispatched, Lazy(), Lazy.value, generator(), generator,
    asynchronous(), waiting, error1, error2, error3, error4, error5, T, typing.Optional[int], typing.List["x"],
    list[int], int | str, datetime.datetime.now(), datetime.datetime.now, datetime.date.today(), datetime.timedelta(1),
    datetime.timezone.utc, decimal.Decimal(1), decimal.getcontext(), fractions.Fraction(1, 2), re.compile("(?P<a>x)"),
    re.match("(?P<a>x)", "x"), uuid.uuid4(), io.StringIO(), io.BytesIO(b"x"), csv.reader([]), csv.writer(io.StringIO()),
    csv.DictReader(io.StringIO("a\\n1")), string.Template("$x"), string.Formatter(), functools.partial(print),
    functools.reduce, contextlib.ExitStack(), contextlib.suppress(ValueError), types.SimpleNamespace(a=1),
    statistics.NormalDist(), random.Random(1), random.random, json.JSONDecoder(), json.JSONEncoder(), hashlib.sha256(),
    textwrap.TextWrapper(), itertools.chain([]), itertools.count(), map(str, []), zip(), enumerate([]), reversed([]),
    iter([]), iter({}), {}.items(), zlib.compress, struct.Struct("i"), graphlib.TopologicalSorter(),
    difflib.SequenceMatcher(), collections.Counter(), collections.ChainMap({}), collections.deque(), slice(1), range(3),
    super, property(lambda s: 1), staticmethod(print), classmethod(print), object(), type, type(print), type(int), ...,
    NotImplemented, "text".format, str.format, "x".join, [].append, (1).__add__, Plain.prop, Plain.cm, lambda: 0,
    functools.partialmethod(print), functools.cmp_to_key(print), dataclasses.MISSING, dataclasses.InitVar[int],
    ExceptionGroup("g", [ValueError(1)]), typing.NamedTuple, typing.NewType("N", int), typing.Protocol, typing.Generic[T],
    "x".format_map, vars(Plain()), vars(Plain), Plain().__dict__, Plain.__annotations__, collections.namedtuple("P", "a"),
    asyncio.Lock(), asyncio.Queue(), asyncio.Event(), asyncio.Semaphore(), asyncio.current_task(), await get(i=1),
]
"""


class World:
    random = random.Random(1)

    def now_us(self):
        return 1_700_000_000_000_000

    monotonic_us = now_us

    def sleep(self, seconds):
        pass

    def random_bytes(self, n):
        return bytes(n)

    def write_output(self, text):
        pass


async def get(i):
    return i


FORBIDDEN_TYPES = (
    types.ModuleType,
    types.FrameType,
    types.CodeType,
    types.TracebackType,
    types.CellType,
    asyncio.AbstractEventLoop,
    Guards,
    World,
    ctypes._SimpleCData,
    type(ctypes.pythonapi),
)
FORBIDDEN = {
    id(getattr(builtins, name)): name
    for name in [
        "eval",
        "exec",
        "compile",
        "open",
        "input",
        "globals",
        "locals",
        "vars",
        "getattr",
        "setattr",
        "delattr",
        "__import__",
        "type",
        "id",
        "dir",
    ]
    if getattr(builtins, name) is not None
} | {id(builtins.__build_class__): "__build_class__", id(object.__getattribute__): "object.__getattribute__"}


def main() -> None:
    prepare()
    from ptc_sandbox.guest.policy import compile_program

    names = [
        "Lock",
        "Queue",
        "Event",
        "Semaphore",
        "current_task",
        "sleep",
        "gather",
        "wait",
        "TaskGroup",
        "timeout",
        "create_task",
    ]
    asynchronous = facade("asyncio", {name: getattr(asyncio, name) for name in names})
    namespace = make_globals(World(), {"get": get}, asynchronous)
    imports = "".join(f"import {name}\n" for name in table.modules())
    program = compile_program(imports + SAMPLES)

    found: list[str] = []

    async def run() -> None:
        await eval(program.code, namespace)
        found.extend(walk(namespace))

    asyncio.run(run())
    print(json.dumps(found))


def walk(namespace) -> list[str]:
    own = namespace["__builtins__"]
    spaces = {
        id(vars(module)): name for name, module in sys.modules.items() if isinstance(module, types.ModuleType)
    }
    guard, class_of = own["getattr"], own["type"]
    seen: dict[int, object] = {}
    found: list[str] = []
    of_kind: dict[type, int] = {}
    waiting = deque(
        (name, value) for space in (namespace, own) for name, value in space.items() if name.isidentifier()
    )
    waiting = deque(item for item in waiting if not item[0].startswith("__"))
    while waiting:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, FORBIDDEN_TYPES) or id(value) in FORBIDDEN or id(value) in spaces:
            found.append(
                f"{path} is {type(value).__name__} {FORBIDDEN.get(id(value), spaces.get(id(value)))}"
            )
            continue
        of_kind[type(value)] = of_kind.get(type(value), 0) + 1
        if of_kind[type(value)] > _OF_EACH_KIND.get(type(value), 60):
            continue
        waiting.extend(_neighbours(path, value, guard, class_of))
    if len(seen) < 2000:
        found.append(f"only {len(seen)} objects were reached")
    return found


def _neighbours(path, value, guard, class_of):
    yield f"type({path})", class_of(value)
    if isinstance(value, (str, bytes, int, float)) and type(value).__module__ == "builtins":
        return
    if isinstance(value, (dict, types.MappingProxyType)):
        for key, item in list(value.items()):
            yield f"{path}[{str(key)[:30]}]", item
            yield f"{path}.key", key
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        for index, item in enumerate(value):
            yield f"{path}[{index}]", item
    for name in dir(value):
        if load_rule(name) is Rule.REFUSED or name == "__class__":
            continue
        try:
            item = guard(value, name)
        except Exception:
            continue
        yield f"{path}.{name}", item
        if isinstance(value, type) and _takes_any_self(value, name):
            yield f"{path}.{name} on a foreign object", types.ModuleType("found")
        if name in ("__annotations__", "__dict__") or not callable(item):
            continue
        if isinstance(value, type) or name in _SAFE_TO_CALL:
            try:
                yield f"{path}.{name}()", item()
            except BaseException:
                continue


class _Foreign:
    """An object of no class of the library's."""


def _takes_any_self(kind, name) -> bool:
    """Whether a method of a library's class runs on whatever it is given."""
    owner = next((base for base in type.mro(kind) if name in vars(base)), object)
    if owner.__module__ in ("__main__", "builtins", "typing") or name in _OF_THE_CLASS:
        return False
    function = vars(owner)[name]
    function = function.fget if type(function) is property else function
    if type(function) is not types.FunctionType or function.__module__ == "ptc_sandbox.guest.guards_identity":
        return False
    try:
        function(_Foreign())
    except TypeError as error:
        return " needs a " not in str(error)
    except Exception:
        return True
    return True


_OF_THE_CLASS = ("__new__", "__init_subclass__", "__class_getitem__", "_generate_next_value_")
_OF_EACH_KIND = {type: 5000, types.FunctionType: 5000, types.BuiltinFunctionType: 2000, types.MethodType: 500}

_SAFE_TO_CALL = {
    *[
        "items",
        "keys",
        "values",
        "copy",
        "groups",
        "groupdict",
        "now",
        "today",
        "utcnow",
        "date",
        "time",
        "timetz",
        "timetuple",
        "tzname",
        "utcoffset",
        "cache_info",
    ],
    *[
        "cache_parameters",
        "as_tuple",
        "getstate",
        "isocalendar",
        "__iter__",
        "__copy__",
        "__enter__",
        "most_common",
        "elements",
        "total",
    ],
    *[
        "__reversed__",
        "__dir__",
        "__repr__",
        "__str__",
        "__await__",
        "__aiter__",
        "static_order",
        "get_matching_blocks",
        "flags",
    ],
}

if __name__ == "__main__":
    main()
