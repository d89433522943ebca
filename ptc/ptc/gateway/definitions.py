"""The tools of a request, checked as the service checks them, and what the rest of the peer asks about them.

Definitions come from an untrusted client: every field is checked before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from ptc.gateway.rejection import invalid, invalid_type, invalid_value
from ptc.gateway.shapes import TOOL_CHOICES, TOOLS, as_object, check_fields, check_name, typed
from ptc.gateway.strict_schema import check_strict
from ptc_tools.call import CallerKind, JsonObject, JsonValue
from ptc_tools.names import RESERVED, RESERVED_IN_NAMESPACE, program_name

PROGRAMS = "programmatic_tool_calling"
_CALLERS = ("direct", "programmatic")
# Reserved by our own library alone, for what a program may not do; the service has no opinion on them.
_RESERVED = RESERVED - {"add_tools", "remove_tools"}
Key = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class Definition:
    """One function or custom tool of a request. `wire` is the definition as it was sent.

    `deferred`: it asks to be loaded by tool search, `loaded`: an item of the input did so.
    """

    kind: str
    namespace: str | None
    name: str
    allowed_callers: tuple[CallerKind, ...]
    deferred: bool
    output_schema: JsonObject | None
    wire: JsonObject
    loaded: bool = False

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    @property
    def available(self) -> bool:
        """Whether the model has the definition: a deferred tool's only once it was loaded (rule 18)."""
        return self.loaded or not self.deferred


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools that a request offers; `hosted` are the types of the tools that have no name.

    `search`: who executes tool search, `server` or `client`; None where the request has no such tool.
    """

    definitions: dict[Key, Definition] = field(default_factory=dict)
    hosted: frozenset[str] = frozenset()
    search: str | None = None

    @property
    def programs(self) -> bool:
        """Whether the model may write programs."""
        return PROGRAMS in self.hosted

    def get(self, namespace: str | None, name: str) -> Definition | None:
        return self.definitions.get((namespace, name))

    def namespaces_of(self, name: str) -> list[str]:
        """The namespaces that have a tool of this name."""
        return [space for space, tool in self.definitions if tool == name and space is not None]

    def for_programs(self) -> Iterator[Definition]:
        """The functions that a program may call: a deferred one only once it was loaded (rule 18)."""
        for definition in self.definitions.values():
            if (
                definition.kind == "function"
                and "programmatic" in definition.allowed_callers
                and definition.available
            ):
                yield definition

    def for_call(self, namespace: str | None, name: str) -> Definition | None:
        """The tool that a call means. A call of a deferred tool without a namespace says its name twice."""
        found = self.get(namespace, name)
        if found is None and namespace == name:
            found = self.get(None, name)
            return found if found is not None and found.deferred else None
        return found

    def with_more(self, more: Iterable[JsonValue], path: str) -> ToolSet:
        """This set and the tools that an item of the input adds; one that is there already is replaced."""
        added = read_tools(list(more), path, loaded=True)
        loaded = {key: replace(tool, loaded=True) for key, tool in added.definitions.items()}
        for key, tool in loaded.items():
            known = self.definitions.get(key)
            if known is not None and not known.deferred:  # it was in the default namespace all along
                loaded[key] = replace(tool, deferred=False)
        return ToolSet({**self.definitions, **loaded}, self.hosted | added.hosted, self.search)


def read_tools(tools: JsonValue, path: str = "tools", *, loaded: bool = False) -> ToolSet:
    """Check the `tools` of a request, or (`loaded`) those that an item of its input brings.

    Raises `Rejected` for the first thing that is wrong.
    """
    if tools is None:
        return ToolSet()
    if not isinstance(tools, list):
        raise invalid_type(path, "an array", tools)
    definitions: dict[Key, Definition] = {}
    hosted: list[str] = []
    search: str | None = None
    namespaces: set[str] = set()
    for index, value in enumerate(tools):
        where = f"{path}[{index}]"
        tool = as_object(value, where)
        kind = _check_one(tool, where)
        if kind == "namespace":
            name = str(tool["name"])
            if name in namespaces:
                raise invalid(f"{where}.name", f"Duplicate namespace '{name}' in '{path}'.")
            namespaces.add(name)
            for definition in _members(tool, where):
                _add(definitions, definition, where)
        elif kind in ("function", "custom"):
            _add(definitions, _definition(tool, None), where)
        else:
            if kind in hosted and kind in (PROGRAMS, "tool_search"):
                raise invalid(where, f"Duplicate tool '{kind}' in '{path}'. At most one is allowed.")
            hosted.append(kind)
            if kind == "tool_search":
                search = str(tool.get("execution") or "server")
    result = ToolSet(definitions, frozenset(hosted), search)
    if not loaded:
        _check_together(result, path)
    return result


def read_tool_choice(choice: JsonValue, tools: ToolSet) -> None:
    """Raise `Rejected` for a `tool_choice` that is none, or that names a tool the request does not have."""
    if choice is None:
        return
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise invalid_value("tool_choice", choice, ("none", "auto", "required"))
        if choice == "required" and not tools.definitions and not tools.hosted:
            raise invalid("tool_choice", "Tool choice 'required' must be specified with 'tools' parameter.")
        return
    body = as_object(choice, "tool_choice")
    kind = typed(body, "tool_choice")
    if kind not in TOOL_CHOICES:
        raise invalid_value("tool_choice.type", kind, tuple(TOOL_CHOICES))
    check_fields(body, TOOL_CHOICES[kind], "tool_choice")
    if kind == "allowed_tools":
        if body["mode"] not in ("auto", "required"):
            raise invalid_value("tool_choice.mode", body["mode"], ("auto", "required"))
        allowed = body["tools"]
        assert isinstance(allowed, list)
        for index, entry in enumerate(allowed):
            _check_named(as_object(entry, f"tool_choice.tools[{index}]"), tools)
    else:
        _check_named(body, tools)


def _check_named(entry: JsonObject, tools: ToolSet) -> None:
    kind, name = entry.get("type"), entry.get("name")
    if kind in ("function", "custom"):
        known = [tool for tool in tools.definitions.values() if tool.kind == kind and tool.name == name]
        if not known:
            raise invalid("tool_choice", f"Tool choice '{kind}' '{name}' not found in 'tools' parameter.")
        if not any(tool.available for tool in known):
            raise invalid("tool_choice", f"Tool choice '{kind}' '{name}' has 'defer_loading'.")
    elif isinstance(kind, str) and kind not in tools.hosted:
        raise invalid("tool_choice", f"Tool choice '{kind}' not found in 'tools' parameter.")


def _check_one(tool: JsonObject, where: str, namespace: str | None = None) -> str:
    kind = typed(tool, where)
    shape = TOOLS.get(kind)
    if shape is None:
        raise invalid_value(f"{where}.type", kind, tuple(TOOLS))
    check_fields(tool, shape, where)
    _check_callers(tool.get("allowed_callers"), f"{where}.allowed_callers")
    if kind in ("function", "custom", "namespace"):
        name = tool["name"]
        check_name(name, f"{where}.name")
        if name in (_RESERVED if namespace is None else RESERVED_IN_NAMESPACE):
            raise invalid(f"{where}.name", f"Invalid '{where}.name': '{name}' is a reserved name.")
    if kind == "function":
        _check_function(tool, where)
    return kind


def _check_callers(callers: JsonValue, where: str) -> None:
    if callers is None:
        return
    assert isinstance(callers, list)
    if not callers:
        raise invalid(where, f"Invalid '{where}': empty array. Expected an array with minimum length 1.")
    for index, caller in enumerate(callers):
        if caller not in _CALLERS:
            raise invalid_value(f"{where}[{index}]", caller, _CALLERS)


def _check_function(tool: JsonObject, where: str) -> None:
    for name in ("parameters", "output_schema"):
        schema = tool.get(name)
        if schema is None:
            continue
        assert isinstance(schema, dict)
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise invalid(
                f"{where}.{name}",
                f"Invalid schema for function '{tool['name']}': {error.message}",
                "invalid_function_parameters",
            ) from error
    parameters = tool.get("parameters")
    if isinstance(parameters, dict):
        if parameters and parameters.get("type") != "object":
            raise invalid(
                f"{where}.parameters",
                f"Invalid schema for function '{tool['name']}': schema must be a JSON Schema of "
                f"'type: \"object\"', got 'type: \"{parameters.get('type')}\"'.",
                "invalid_function_parameters",
            )
        if tool.get("strict"):
            check_strict(parameters, str(tool["name"]), f"{where}.parameters")


def _members(namespace: JsonObject, where: str) -> Iterator[Definition]:
    members = namespace["tools"]
    assert isinstance(members, list)
    if not members:
        raise invalid(f"{where}.tools", f"Invalid '{where}.tools': empty array.")
    for index, value in enumerate(members):
        inner = f"{where}.tools[{index}]"
        tool = as_object(value, inner)
        kind = typed(tool, inner)
        if kind not in ("function", "custom"):
            raise invalid_value(f"{inner}.type", kind, ("function", "custom"))
        _check_one(
            {"parameters": None, **tool} if kind == "function" else tool, inner, str(namespace["name"])
        )
        yield _definition(tool, str(namespace["name"]))


def _definition(tool: JsonObject, namespace: str | None) -> Definition:
    callers = tool.get("allowed_callers")
    allowed: tuple[CallerKind, ...] = ("direct",)
    if isinstance(callers, list):
        kinds: tuple[CallerKind, ...] = ("direct", "programmatic")
        allowed = tuple(kind for kind in kinds if kind in callers)
    schema = tool.get("output_schema")
    return Definition(
        kind=str(tool["type"]),
        namespace=namespace,
        name=str(tool["name"]),
        allowed_callers=allowed,
        deferred=tool.get("defer_loading") is True,
        output_schema=schema if isinstance(schema, dict) else None,
        wire=tool,
    )


def _add(definitions: dict[Key, Definition], definition: Definition, where: str) -> None:
    if definition.key in definitions:
        name = ".".join(filter(None, definition.key))
        raise invalid(where, f"Duplicate tool name '{name}'. Tool names must be unique.")
    definitions[definition.key] = definition


def _check_together(tools: ToolSet, path: str) -> None:
    for definition in tools.definitions.values():
        name = definition.wire["name"]
        if definition.deferred and "tool_search" not in tools.hosted:
            raise invalid(path, f"Tool '{name}' has 'defer_loading', which needs the 'tool_search' tool.")
        if definition.allowed_callers == ("programmatic",) and not tools.programs:
            raise invalid(
                path,
                f"Tool '{name}' can be called by programs only, which needs the '{PROGRAMS}' tool.",
            )
    # A program calls `records.search` as `records_search`: two tools of one such name cannot be told apart.
    names: set[str] = set()
    for definition in tools.for_programs():
        name = program_name(definition.namespace, definition.name)
        if name in names:
            raise invalid(path, f"Two tools have the name '{name}' in a program. Rename one of them.")
        names.add(name)
