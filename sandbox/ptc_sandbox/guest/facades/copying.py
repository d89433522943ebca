"""`copy` without the reading of attributes that it is told about.

To copy a bound method, or an enumeration's member on some Pythons, the standard library reads the attribute
that its name says, with the real `getattr`; and a program may give its functions any name.
"""

from __future__ import annotations

import builtins
import copy
import enum
import types
from typing import Any

from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.policy_errors import RefusedAttribute
from ptc_sandbox.guest.policy_names import Rule, load_rule

_ITSELF = (types.MethodType, types.MethodWrapperType, enum.Enum)


def copy_members(guards: Guards) -> dict[str, Any]:
    """`copy.copy`, which gives methods and members of enumerations back as they are."""

    def shallow(x: Any) -> Any:
        """A shallow copy of x."""
        return x if isinstance(x, _ITSELF) else copy.copy(x)

    shallow.__name__ = shallow.__qualname__ = "copy"
    shallow.__module__ = "copy"
    return {"copy": shallow}


def guard_copy() -> None:
    """Make every copy in this process read no attribute that a program may not read. Changes this process."""
    real = copy._reconstruct  # type: ignore[attr-defined]

    def reconstruct(x: Any, memo: Any, func: Any, args: Any, *rest: Any, **named: Any) -> Any:
        if func is builtins.getattr and not (len(args) == 2 and load_rule(args[1]) is Rule.PLAIN):
            raise RefusedAttribute("Copying this object would read an attribute that programs may not read.")
        return real(x, memo, func, args, *rest, **named)

    copy._reconstruct = reconstruct  # type: ignore[attr-defined]
    for name in ("__copy__", "__deepcopy__"):
        if name not in enum.Enum.__dict__:
            setattr(enum.Enum, name, lambda self, memo=None: self)
