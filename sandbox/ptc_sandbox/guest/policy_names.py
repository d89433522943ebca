"""Which names a program may spell: identifiers, attributes and methods, by allow-lists.

The rules are the same before the program runs (`policy`) and while it runs, where a name is computed
(`guards`). Nothing here looks at values.
"""

from __future__ import annotations

import abc
import enum
import itertools
import types
import typing
import unicodedata
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from RestrictedPython.transformer import INSPECT_ATTRIBUTES

from ptc_sandbox.guest.policy_errors import RefusedAttribute


class Rule(Enum):
    """What becomes of an attribute name."""

    PLAIN = "plain"  # ordinary bytecode
    PRIVATE = "private"  # only on what the program itself defined
    GUARDED = "guarded"  # `guards` decides by the value: the name is harmless on most objects only
    REFUSED = "refused"


def words(text: str) -> list[str]:
    """The words of a list written as text."""
    return text.split()


_OPERATORS = words(
    "add sub mul truediv floordiv mod divmod pow lshift rshift and xor or matmul"
)  # each also with r and i in front

METHODS: Final = frozenset(
    f"__{name}__"
    for name in (
        *words(
            "init new post_init repr str format bytes bool hash len length_hint iter next reversed contains"
        ),
        *words("getitem setitem delitem missing call enter exit aenter aexit aiter anext await"),
        *words("eq ne lt le gt ge neg pos abs invert round trunc floor ceil int float complex index"),
        *words("getattr setattr delattr get set delete set_name init_subclass class_getitem"),
        *words("copy deepcopy replace dir fspath"),
        *(prefix + name for prefix in ("", "r", "i") for name in _OPERATORS),
    )
)
"""Special methods that a program's classes may define. Not among them: what hands out internals or runs
behind the program's back (`__getattribute__`, `__reduce__`, `__del__`, `__mro_entries__`, …)."""

OF_CLASSES: Final = METHODS | {
    f"__{name}__"
    for name in words(
        "module qualname name doc dict weakref annotations slots match_args orig_bases parameters abstractmethods"
        " firstlineno static_attributes type_params classcell annotate annotate_func annotations_cache"
        " conditional_annotations"
        # by decorators and metaclasses of the standard library
        " dataclass_fields dataclass_params final total required_keys optional_keys readonly_keys mutable_keys"
        " closed extra_items protocol_attrs callable_proto_members_only non_callable_proto_members subclasshook"
        " getnewargs new_member"
    )
}
"""Special attributes that stand in the namespace of a program's class."""

READABLE: Final = METHODS - {f"__{name}__" for name in words("init getattr setattr delattr set delete")} | {
    f"__{name}__" for name in words("name qualname module doc cause context suppress_context notes")
}
"""Special attributes that may be read of anything: they give data or a method that an operator gives too."""

GUARDED: Final = frozenset(
    (
        *("format", "format_map"),  # of a str they read attributes named in the text
        *("now", "today", "utcnow"),  # of a date type they read the machine's clock
        *("get_stack", "print_stack", "get_coro", "get_context", "get_loop"),  # of a task they lead to frames
        *("no_cache", "from_file", "clear_cache"),  # of a time zone they look for files
        "evaluate",  # of typing's references to a name
        *("_member_map_", "_member_names_", "_value2member_map_"),  # of an enumeration: copies
        "obj",  # of an AttributeError it is whatever lacked the attribute
        *(
            f"__{name}__"
            for name in words(
                "init class dict annotations setattr delattr getattr members get set_name wrapped"
            )
        ),
    )
)
"""Attributes that are ordinary on most objects and a way out on some."""

WRITABLE_ON_OWN: Final = METHODS | {"__name__", "__qualname__", "__doc__"}
"""Special attributes that may be set, on what the program itself defined."""

_INTERNAL_TYPES = (
    types.FrameType,
    types.CodeType,
    types.TracebackType,
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
)
_INTERNAL_PREFIXES = ("f_", "co_", "tb_", "gi_", "cr_", "ag_")

REFUSED: Final = (
    frozenset(INSPECT_ATTRIBUTES)
    | {name for kind in _INTERNAL_TYPES for name in dir(kind) if name.startswith(_INTERNAL_PREFIXES)}
    | {
        "mro",
        "f_generator",
        "cr_state",
        "gi_state",
        "ag_state",
        "cr_suspended",
        "ag_suspended",
        "gi_suspended",
    }
    | {"func_globals", "func_code", "func_closure", "func_defaults", "func_dict"}
    | {"getbuffer", "buffer_info"}  # memory itself, and its address
    | {"evaluate_bound", "evaluate_constraints", "evaluate_default", "evaluate_value"}
)
"""Attributes without an underscore that lead to frames, code, namespaces or the evaluation of strings."""

READ_BY_ASYNCIO: Final = "_asyncio_future_blocking"
"""What makes any object a future to asyncio, with a loop of its own that is handed callbacks and contexts."""
OF_THE_LIBRARY: Final = frozenset(
    name
    for kind in (abc.ABCMeta, enum.EnumMeta, type(typing.Protocol))
    for name in dir(kind)
    if name.startswith("_") and not name.startswith("__")
) | {"_abc_impl", READ_BY_ASYNCIO}
"""Private names that are the library's on a program's own classes: their metaclass's, or what asyncio asks for."""

ASKED_OF_FUTURES: Final = frozenset(
    ("get_loop", "add_done_callback", "get_context", "get_coro", "get_stack", "print_stack")
)
"""Methods that asyncio calls on futures, with contexts and steps of tasks or for a loop to hand them to: what a
program puts in their place on the library's objects would be given these."""

SUNDER_OF_ENUM: Final = frozenset(
    (*("_value_", "_name_", "_missing_", "_ignore_", "_order_", "_generate_next_value_", "_sort_order_"),)
)
NAMEDTUPLE: Final = frozenset(("_asdict", "_replace", "_fields", "_make", "_field_defaults"))

MODULE_DUNDERS: Final = frozenset(("__all__", "__version__", "__author__", "__doc__"))
"""Special names that may be assigned anywhere: text about the program."""

LITERAL_DUNDERS: Final = frozenset(("__slots__", "__match_args__"))
"""Special names that a class body may assign, names written out as text in the program only."""

REFUSED_BUILTINS: Final = {
    "eval": "Write the expression itself; parse data with json.loads or int/float.",
    "exec": "Write the statements themselves.",
    "compile": "Write the code itself; for patterns use re.compile.",
    "open": "There are no files: get data by calling a tool, use io.StringIO for text in memory.",
    "input": "Nobody is there to answer: put the value into the program.",
    "breakpoint": "Use print().",
    "globals": "Keep values in a dict of your own.",
    "locals": "Keep values in a dict of your own.",
    "memoryview": "Use bytes and slices of them.",
    "help": "Tools and modules are described in the instructions.",
    "__import__": "Use an import statement.",
}
"""Builtins that programs may not use, and what to do instead."""


def is_dunder(name: str) -> bool:
    """`__x__`: special to Python."""
    return name.startswith("__") and name.endswith("__") and len(name) > 4


def is_sunder(name: str) -> bool:
    """`_x_`: special to enum, and the form of hooks in RestrictedPython and elsewhere."""
    return name.startswith("_") and name.endswith("_") and len(name) > 2 and not is_dunder(name)


def load_rule(name: str) -> Rule:
    """What reading an attribute of this name takes."""
    if name in GUARDED:
        return Rule.GUARDED
    if not name.startswith("_"):
        return Rule.REFUSED if name in REFUSED else Rule.PLAIN
    if is_dunder(name):
        return Rule.PLAIN if name in READABLE else Rule.REFUSED
    if name in OF_THE_LIBRARY or (is_sunder(name) and name not in SUNDER_OF_ENUM):
        return Rule.REFUSED
    return Rule.PRIVATE


def store_rule(name: str) -> Rule:
    """What setting or deleting an attribute of this name takes."""
    if not name.startswith("_"):
        if name in ASKED_OF_FUTURES:
            return Rule.PRIVATE
        return Rule.REFUSED if name in REFUSED else Rule.PLAIN
    if is_dunder(name):
        return Rule.PRIVATE if name in WRITABLE_ON_OWN else Rule.REFUSED
    if name in OF_THE_LIBRARY or (is_sunder(name) and name not in SUNDER_OF_ENUM):
        return Rule.REFUSED
    return Rule.PRIVATE


def checked_name(name: Any, what: str = "field") -> str:
    """A name given as text that becomes an attribute or goes into generated source: an exact str, in the form in
    which the compiler reads it, that names nothing of the interpreter's. Raises RefusedAttribute."""
    if type(name) is not str:
        raise RefusedAttribute(f"The name of a {what} must be a plain str.")
    if unicodedata.normalize("NFKC", name) != name:
        raise RefusedAttribute(f"Spell the {what} {name!r} as Python reads it.")
    if (
        is_dunder(name)
        or is_sunder(name)
        or store_rule(name) is Rule.REFUSED
        or load_rule(name) is Rule.REFUSED
    ):
        raise RefusedAttribute(f"A {what} may not be called {name}.")
    return name


def match_args(field_names: Iterable[str]) -> tuple[str, ...]:
    """`__match_args__` for these fields. A positional pattern reads attributes of what only claims to be an
    instance, so it ends before the first name that is not harmless on everything."""
    return tuple(itertools.takewhile(lambda name: load_rule(name) is Rule.PLAIN, field_names))


def may_bind(name: str) -> bool:
    """Whether a program may give this name to a variable, parameter, function or import."""
    if not name.startswith("_"):
        return True
    if is_dunder(name):
        return name in METHODS or name in MODULE_DUNDERS
    return name not in OF_THE_LIBRARY and (not is_sunder(name) or name in SUNDER_OF_ENUM)


def may_read(name: str) -> bool:
    """Whether a program may use this name as a variable."""
    return may_bind(name) or name in ("__name__", "__debug__", "__slots__", "__match_args__")
