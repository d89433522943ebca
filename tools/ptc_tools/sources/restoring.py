"""The admission of a saved call, made again from what was saved: no catalog is read for it.

The saved definition explains the call and its token binds it; whether its source may still be used is asked
of the consumer as it is today.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ptc_tools.admission import Admission, Origin
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import CallNotAdmitted, InvalidPublication
from ptc_tools.export import read_declaration
from ptc_tools.registry import Registries
from ptc_tools.sources.remote import bound_tool
from ptc_tools.tool import AnyTool


def restored(
    saved: JsonObject, allows: Callable[[str, str, str | None], bool], registries: Registries
) -> Admission:
    """See `Sources.restore`."""
    registry, toolset, token = (_text(saved, name) for name in ("registry", "toolset", "token"))
    version = saved.get("version")
    if not isinstance(version, str | None):
        raise InvalidPublication("the saved admission of a call was damaged: version")
    if not allows(registry, toolset, version):
        raise CallNotAdmitted(
            f"the call was made for {registry}/{toolset}, which this consumer does not use any more; it did not run"
        )
    tool, origin = _tool(saved.get("tool"), registry, toolset, version, token, registries)
    partner = partner_origin = None
    if "partner" in saved:
        partner, partner_origin = _tool(saved["partner"], registry, toolset, version, token, registries)
    return Admission(tool, token, partner, origin, partner_origin)


def _tool(
    declaration: JsonValue,
    registry: str,
    toolset: str,
    version: str | None,
    token: str,
    registries: Registries,
) -> tuple[AnyTool, Origin]:
    client = registries.client(registry)
    contract = read_declaration(toolset, declaration, from_mcp=getattr(client, "lists_mcp", False) is True)
    origin = Origin(registry, toolset, version, cast("JsonObject", declaration))
    return bound_tool(contract, origin, token, client, registries), origin


def _text(saved: JsonObject, name: str) -> str:
    value = saved.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidPublication(f"the saved admission of a call was damaged: {name}")
    return value
