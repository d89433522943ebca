"""Tool definitions as a service is told them: from the start, or as a tool search gives them.

Pure functions from tools to wire dicts. What means something only in programs that the service does not run is
left out; a deferred tool's definition is the same whenever and wherever it is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.catalog import Catalog
from ptc_tools.tool import AnyTool

Key: TypeAlias = tuple[str | None, str]
"""(namespace, name)."""

_SAID = ("type", "description", "parameters", "output_schema", "allowed_callers", "format")


def key_of(tool: AnyTool) -> Key:
    return tool.contract.namespace, tool.contract.name


@dataclass(frozen=True, slots=True)
class Definitions:
    """How a run tells its service of tools. `programs`: where they run; `namespaces`: their descriptions."""

    programs: str | None
    namespaces: Mapping[str, str] | None = None
    errors_in_schema: bool = True

    def wire(self, tools: Iterable[AnyTool], *, deferred: Collection[Key] | None = None) -> list[JsonObject]:
        """The definitions, in the order given. Exactly those of `deferred` say that they wait for a search;
        None leaves that to each tool. Raises DuplicateTool.
        """
        tools = list(tools)
        wire = Catalog(tools, namespaces=self.namespaces).wire(self.errors_in_schema)
        if self.programs == "local":
            wire = [_without(definition, ("allowed_callers", "output_schema")) for definition in wire]
        elif self.programs is None:
            # Nobody but the model calls, who needs no object around a result that is none (wire.md, rule 5).
            wrapped = {key_of(tool) for tool in tools if tool.contract.wraps_result}
            wire = [_without(definition, ("output_schema",), only=wrapped) for definition in wire]
        return wire if deferred is None else [_deferring(definition, deferred) for definition in wire]

    def loaded(self, tools: Iterable[AnyTool]) -> list[JsonObject]:
        """The definitions as a tool search gives them, those of a namespace in it."""
        tools = list(tools)
        return self.wire(tools, deferred={key_of(tool) for tool in tools})


def members(definitions: JsonValue) -> Iterable[tuple[Key, JsonObject]]:
    """The functions and custom tools among definitions, by key, also those in a namespace."""
    for definition in definitions if isinstance(definitions, list) else []:
        if not isinstance(definition, dict):
            continue
        name = definition.get("name")
        if definition.get("type") == "namespace" and isinstance(name, str):
            for (_, inner), member in members(definition.get("tools")):
                yield (name, inner), member
        elif isinstance(name, str):
            yield (None, name), definition


def same_definition(one: JsonObject, other: JsonObject, *, by_service: bool = False) -> bool:
    """Whether two definitions tell a model the same, as far as both say.

    `by_service`: `one` was written by a service, which puts schemas in a form of its own: then the description
    and the names of the parameters are compared.
    """
    if by_service:
        one, other = _outline(one), _outline(other)
    return all(
        one[field] == other[field]
        for field in _SAID
        if one.get(field) is not None and other.get(field) is not None
    )


def _outline(definition: JsonObject) -> JsonObject:
    parameters = definition.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    names: JsonValue = [*sorted(properties)] if isinstance(properties, dict) else None
    return {"description": definition.get("description"), "parameters": names}


def _deferring(definition: JsonObject, deferred: Collection[Key], namespace: str | None = None) -> JsonObject:
    name = str(definition.get("name"))
    if definition.get("type") == "namespace":
        inner = cast("list[JsonObject]", definition["tools"])
        return {**definition, "tools": [_deferring(each, deferred, name) for each in inner]}
    if (namespace, name) in deferred:
        return {**definition, "defer_loading": True}
    return {field: value for field, value in definition.items() if field != "defer_loading"}


def _without(
    definition: JsonObject,
    fields: Sequence[str],
    *,
    only: Collection[Key] | None = None,
    namespace: str | None = None,
) -> JsonObject:
    """A service is told nothing that means something only in programs that it does not run."""
    name = str(definition.get("name"))
    if definition.get("type") == "namespace":
        inner = cast("list[JsonObject]", definition["tools"])
        return {**definition, "tools": [_without(each, fields, only=only, namespace=name) for each in inner]}
    if only is not None and (namespace, name) not in only:
        return definition
    return {key: value for key, value in definition.items() if key not in fields}
