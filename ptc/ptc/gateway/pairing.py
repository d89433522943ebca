"""What a call and its output must have in common: type, caller, name, and an object where one is due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ptc.gateway.definitions import ToolSet
from ptc.gateway.rejection import invalid
from ptc.gateway.shapes import check_caller
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson

OUTPUT_OF: Mapping[str, str] = MappingProxyType(
    {
        "function_call": "function_call_output",
        "custom_tool_call": "custom_tool_call_output",
        "shell_call": "shell_call_output",
        "apply_patch_call": "apply_patch_call_output",
        "computer_call": "computer_call_output",
        "local_shell_call": "local_shell_call_output",
    }
)
CALL_OF: Mapping[str, str] = MappingProxyType({output: call for call, output in OUTPUT_OF.items()})


@dataclass(slots=True)
class Exchange:
    """One call that the input has, and the output that answers it."""

    call: JsonObject
    output: JsonObject | None = None

    @property
    def call_id(self) -> str:
        return str(self.call["call_id"])


def check_pair(exchange: Exchange, output: JsonObject, where: str) -> None:
    """Raise `Rejected` unless the output has the caller and, where it says so, the name of its call."""
    _check_same_caller(exchange, output, where)
    for name in ("name", "namespace"):
        given = output.get(name)
        if given is not None and given != exchange.call.get(name):
            raise invalid(
                f"{where}.{name}",
                f"The {name} of the output with call_id {exchange.call_id} does not match the call's.",
            )


def check_namespace(call: JsonObject, tools: ToolSet, where: str) -> None:
    """Raise `Rejected` for a call that lost its namespace on the way (wire.md, rule 12).

    What was loaded by tool search is not in the default namespace either: a direct call of it has a
    namespace always, its own name where the tool has none.
    """
    if call.get("namespace") is not None:
        return
    name = str(call["name"])
    own = tools.get(None, name)
    searched = own is not None and own.deferred and own.loaded and is_direct(call.get("caller"))
    if searched or (own is None and tools.namespaces_of(name)):
        raise invalid(
            f"{where}.namespace",
            f"Missing namespace for {call['type']} '{name}'. It does not exist in the default namespace. "
            "Round-trip the model's function_call item with its namespace field included.",
        )


def check_loaded(call: JsonObject, tools: ToolSet, where: str) -> None:
    """Raise `Rejected` for a call that the model cannot have made: it had not been given the tool yet."""
    namespace, name = call.get("namespace"), str(call["name"])
    tool = tools.for_call(namespace if isinstance(namespace, str) else None, name)
    if tool is not None and not tool.available:
        raise invalid(
            where,
            f"Invalid {call['type']} '{name}': the tool has 'defer_loading', and no tool search before this "
            "call loaded it.",
            code="tool_not_loaded",
        )


def check_object(exchange: Exchange, output: JsonObject, tools: ToolSet, where: str) -> None:
    """A program-owned call with an output schema is answered by a JSON object, whatever the schema says."""
    call = exchange.call
    namespace = call.get("namespace")
    tool = tools.for_call(namespace if isinstance(namespace, str) else None, str(call["name"]))
    if tool is None or tool.output_schema is None:
        return
    text = output["output"]
    try:
        value = strict_json.loads(text) if isinstance(text, str) else None
    except InvalidJson:
        value = None
    if not isinstance(value, dict):
        raise invalid(
            f"{where}.output",
            f"Invalid output for function call {exchange.call_id}: '{call['name']}' has an output_schema "
            "and was called by a program, so its output must be a string holding a JSON object.",
            code="invalid_tool_output",
        )


def is_direct(caller: JsonValue) -> bool:
    """Null, absent and `direct` say the same."""
    return caller is None or (isinstance(caller, dict) and caller.get("type") == "direct")


def caller_id(caller: JsonValue) -> str:
    """The program that a caller names; an empty text, which no program has, for any other caller."""
    return str(caller.get("caller_id", "")) if isinstance(caller, dict) else ""


def _check_same_caller(exchange: Exchange, output: JsonObject, where: str) -> None:
    """`caller` goes back exactly as it came (wire.md, rule 3): null as null, and absent not at all."""
    expected, given = exchange.call.get("caller"), output.get("caller")
    if given is None and not is_direct(expected):
        raise invalid(
            f"{where}.caller",
            f"Missing caller for function call output with call_id {exchange.call_id}: the call was made "
            "by a program.",
            code="missing_caller",
        )
    if given != expected or ("caller" in output) != ("caller" in exchange.call):
        check_caller(given, f"{where}.caller", extra_fields_are_ours=True)
        raise invalid(
            f"{where}.caller",
            f"The caller of the output with call_id {exchange.call_id} does not match the call's caller.",
            code="caller_mismatch",
        )
