"""Makes the stand-in of a module: the members on its list, with ours in the place of what would lead out.

Each program gets its own, so that clock and randomness are its own; the real modules stay in the
interpreter, where no program sees them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from ptc_sandbox.guest.facades import (
    chance,
    classes,
    clock,
    copying,
    functional,
    system,
    table,
    text,
    tracebacks,
    warning,
    zones,
)
from ptc_sandbox.guest.facades.module import Facade, facade
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.guards_identity import is_installed, seal_if_installed
from ptc_sandbox.guest.guards_methods import keep_to_instances
from ptc_sandbox.guest.guards_types import know

_OURS: Final[dict[str, Callable[[Guards], dict[str, Any]]]] = {
    "abc": classes.abc_members,
    "ast": system.ast_members,
    "contextlib": system.contextlib_members,
    "fnmatch": system.fnmatch_members,
    "logging": system.logging_members,
    "shlex": system.shlex_members,
    "sys": system.sys_members,
    "copy": copying.copy_members,
    "dataclasses": classes.dataclass_members,
    "datetime": clock.datetime_members,
    "enum": classes.enum_members,
    "functools": functional.functools_members,
    "operator": functional.operator_members,
    "pprint": text.pprint_members,
    "random": chance.random_members,
    "secrets": chance.secrets_members,
    "statistics": chance.statistics_members,
    "string": text.string_members,
    "time": clock.time_members,
    "traceback": tracebacks.traceback_members,
    "types": classes.types_members,
    "typing": classes.typing_members,
    "uuid": chance.uuid_members,
    "warnings": warning.warnings_members,
    "zoneinfo": zones.zoneinfo_members,
}
"""Members that are not the real module's own."""

_BASES: Final[dict[str, str]] = {
    "abc": "ABC",
    "collections": "ChainMap Counter OrderedDict UserDict UserList defaultdict deque",
    "contextlib": """AbstractAsyncContextManager AbstractContextManager AsyncContextDecorator AsyncExitStack
        ContextDecorator ExitStack""",
    "csv": "Dialect excel excel_tab unix_dialect Error",
    "datetime": "date datetime time timedelta tzinfo",
    "decimal": "Decimal DecimalException",
    "enum": "Enum Flag IntEnum IntFlag StrEnum",
    "fractions": "Fraction",
    "html.parser": "HTMLParser",
    "io": "StringIO BytesIO",
    "json": "JSONDecodeError JSONDecoder JSONEncoder",
    "numbers": "Complex Integral Number Rational Real",
    "random": "Random",
    "statistics": "NormalDist StatisticsError",
    "string": "Formatter",
    "types": "SimpleNamespace",
    "typing": "Any Generic Protocol",
}
"""Classes that programs may derive from, beside the builtin ones and all of collections.abc: none of them
keeps anything in a private attribute that a program should not have."""

_EVERY_CLASS_IS_A_BASE = "collections.abc"


def build(module: str, guards: Guards, load: Callable[[str], Facade]) -> Facade:
    """The stand-in of `module`, one of the table's. `load` gives the stand-in of a submodule."""
    ours = _OURS[module](guards) if module in _OURS else {}
    offered = table.members(module) or ()
    real = importlib.import_module(module) if module not in _WHOLLY_OURS else None
    members: dict[str, Any] = {}
    for name in sorted(offered):
        if name in ours:
            members[name] = ours[name]
        elif table.has_module(f"{module}.{name}"):
            members[name] = load(f"{module}.{name}")
        elif real is not None and hasattr(real, name):
            members[name] = getattr(real, name)
    bases = (
        members if module == _EVERY_CLASS_IS_A_BASE else set(_BASES.get(module, "").split()) & set(members)
    )
    know(*members.values())
    if is_installed():
        keep_to_instances(members.values())
    seal_if_installed(members.values())
    guards.bases.update(members[name] for name in bases if isinstance(members[name], type))
    return facade(module, members, table.REFUSED_MEMBERS.get(module))


_WHOLLY_OURS: Final = frozenset(
    (
        "ast",
        "logging",
        "shlex",
        "sys",
        "dataclasses",
        "random",
        "secrets",
        "time",
        "traceback",
        "types",
        "warnings",
    )
)
