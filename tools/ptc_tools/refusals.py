"""Why a call is refused, in words that help a model to do better. Of the call it quotes the name alone."""

from __future__ import annotations

import difflib

from ptc_tools.call import Call, Caller
from ptc_tools.catalog import Catalog
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied
from ptc_tools.safe_text import safe_text

_LISTED = 20


def unknown_tool(catalog: Catalog, call: Call) -> Denied:
    """No tool of that name: name what there is for this caller, the nearest first."""
    names = [
        tool.contract.qualified_name for tool in catalog if call.caller.kind in tool.contract.allowed_callers
    ]
    asked = str(call.qualified_name)
    split = _named_with_its_namespace(catalog, call)
    if split is not None:
        return split
    near = difflib.get_close_matches(asked[:200], names, n=3, cutoff=0.6)
    shown = f"no tool is called {safe_text(asked)[:130]!r}"
    if call.namespace == "":  # not the same as none, and not to be seen in the qualified name
        shown += " in the namespace '' (leave the namespace out where there is none)"
    if near:
        return Denied("unknown_tool", f"{shown}; did you mean {' or '.join(near)}?")
    if 0 < len(names) <= _LISTED:
        return Denied("unknown_tool", f"{shown}; there are: {', '.join(names)}")
    return Denied("unknown_tool", f"{shown}; {len(names)} other tools may be called")


def _named_with_its_namespace(catalog: Catalog, call: Call) -> Denied | None:
    """A call of `crm.search` by its qualified name, which is for people: say how it is called."""
    asked: object = call.name
    if not isinstance(asked, str):
        return None
    namespace, dot, name = asked.partition(".")
    found = catalog.resolve(namespace, name) if dot and call.namespace is None else None
    if found is None or call.caller.kind not in found.contract.allowed_callers:
        return None
    return Denied(
        "unknown_tool",
        f"no tool is called {call.name!r} by its name alone: its name is {name!r} and its namespace {namespace!r}",
    )


def caller_not_allowed(contract: Contract, caller: Caller) -> Denied:
    """The tool exists, but not for this kind of caller."""
    advice = (
        "call it from a program"
        if caller.kind == "direct"
        else "programs may not call it; end the program and call it directly"
    )
    return Denied("caller_not_allowed", f"{contract.qualified_name} may not be called like this: {advice}")


def program_not_open() -> Denied:
    """The call names a program that is not running here: forged, of another conversation, or too late."""
    return Denied(
        "program_not_open", "the call belongs to no program that is open in this run; it did not run"
    )
