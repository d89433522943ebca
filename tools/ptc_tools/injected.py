"""What a raw tool's function takes that no call may give: the run's context and the designer's values.

It reads signatures and annotations, and calls nothing. What it cannot tell apart from a model's parameter is
refused when the tool is registered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ptc_tools.contract import Contract
from ptc_tools.errors import InvalidSignature
from ptc_tools.markers import is_designer
from ptc_tools.parameters import DesignerField, bound_values, type_hints
from ptc_tools.trust import check_untrusted, is_context


class Locals:
    """The names around a decorated function, looked at only if an annotation needs them."""

    def __init__(self, frame: object) -> None:
        self._frame = frame

    def hints(self, function: Callable[..., object]) -> dict[str, object]:
        """The function's annotations. Raises `InvalidSignature` for one that names nothing."""
        try:
            return type_hints(function, None)
        except InvalidSignature:
            names = getattr(self._frame, "f_locals", None)
            return type_hints(function, names)


def injected(
    contract: Contract, function: Callable[..., object], what: str, names: Locals | None
) -> tuple[str | None, dict[str, DesignerField]]:
    """What a raw tool's function takes that no call may give: the context and the designer's values."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None, {}  # a builtin: it has no annotations, and so nothing to inject
    # An annotation that means nothing here may be the context's: then the function would lack it in each call.
    hints = type_hints(function, None) if names is None else names.hints(function)
    context: str | None = None
    designer: dict[str, DesignerField] = {}
    bound = bound_values(function)
    for name, parameter in signature.parameters.items():
        hint = hints.get(name)
        if name in bound:
            continue
        if is_context(hint):
            if context is not None:
                raise InvalidSignature(f"{what}: only one parameter may be a ToolContext")
            context = name
        elif is_designer(hint):
            designer[name] = DesignerField.of(hint, parameter)
        else:
            check_untrusted(hint, name, what)
    declared = contract.parameters.get("properties")
    for name in (*designer, *bound, *([context] if context else [])):
        if isinstance(declared, dict) and name in declared:
            raise InvalidSignature(
                f"{what}: {name!r} is set by the host and cannot be declared as a parameter"
            )
    return context, designer
