"""From how a call ended to the output item that says so: one per kind of call, errors kept apart.

Nothing here invents a result: what did not succeed is an error object, or the item type's own way to fail.
"""

from __future__ import annotations

from ptc.errors import RemoteProtocolError, ToolCallFailed
from ptc.events import PendingCall
from ptc.items import call_of, output_item, with_caller
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.contract import Contract
from ptc_tools.errors import InvalidJson
from ptc_tools.outcome import Outcome, Success, error_object


def output_for(pending: PendingCall, outcome: Outcome, promised: Contract | None) -> JsonObject:
    """The output item for a call. `promised` is the contract of a tool whose output schema the service was
    sent (`Step.promised`), None where it was sent none."""
    builder = _BUILDERS.get(pending.kind)
    if builder is not None:
        return builder(pending.item, outcome)
    return output_item(pending.item, _text(outcome, promised))


def _text(outcome: Outcome, promised: Contract | None) -> str:
    """A function's or custom tool's output text.

    An error is a JSON object always: a program-owned call with an output schema must get one (wire.md, rule
    5), and a model reads it as well. A text stays plain unless the wire promised JSON for this tool; then
    what is not an object stands in one, whoever called: the schema is the tool's.
    """
    if not isinstance(outcome, Success):
        return strict_json.dumps(error_object(outcome))
    if promised is None:
        return _plain(outcome.value)
    return strict_json.dumps(promised.on_wire(outcome.value))


def value_of(text: str, promised: Contract | None) -> JsonValue:
    """The value that an output's text stands for: the inverse of what `output_for` makes of a success."""
    try:
        value = strict_json.loads(text)
    except InvalidJson:
        return text
    if (
        promised is not None
        and promised.wraps_result
        and isinstance(value, dict)
        and set(value) == {"result"}
    ):
        return value["result"]
    return value


def _shell(item: JsonObject, outcome: Outcome) -> JsonObject:
    """A shell call's handler gives the list of outputs (stdout, stderr, outcome), or one text for stdout."""
    output: JsonValue
    if isinstance(outcome, Success):
        value = outcome.value
        output = value if isinstance(value, list) else [_shell_part(_plain(value), "", 0)]
    else:
        output = [_shell_part("", outcome.message, 1)]
    answer: JsonObject = {"type": "shell_call_output", "call_id": item.get("call_id"), "output": output}
    action = item.get("action")
    if isinstance(action, dict) and action.get("max_output_length") is not None:
        answer["max_output_length"] = action["max_output_length"]
    return with_caller(answer, item)


def _shell_part(stdout: str, stderr: str, exit_code: int) -> JsonObject:
    return {"stdout": stdout, "stderr": stderr, "outcome": {"type": "exit", "exit_code": exit_code}}


def _local_shell(item: JsonObject, outcome: Outcome) -> JsonObject:
    text = _plain(outcome.value) if isinstance(outcome, Success) else strict_json.dumps(error_object(outcome))
    answer: JsonObject = {"type": "local_shell_call_output", "id": item.get("call_id"), "output": text}
    if not isinstance(outcome, Success):
        answer["status"] = "incomplete"
    return with_caller(answer, item)


def _apply_patch(item: JsonObject, outcome: Outcome) -> JsonObject:
    succeeded = isinstance(outcome, Success)
    answer: JsonObject = {
        "type": "apply_patch_call_output",
        "call_id": item.get("call_id"),
        "status": "completed" if succeeded else "failed",
        "output": _plain(outcome.value) if isinstance(outcome, Success) else outcome.message,
    }
    return with_caller(answer, item)


def _computer(item: JsonObject, outcome: Outcome) -> JsonObject:
    # The item can carry a screenshot and nothing else: an error cannot be said on the wire.
    if not isinstance(outcome, Success) and outcome.code != "unknown_tool":
        raise ToolCallFailed(
            f"the computer_call got no screenshot ({outcome.code}): {outcome.message}; its output can carry "
            "nothing else, so the run ends",
            call=call_of(item),
            outcome=outcome,
        )
    if not isinstance(outcome, Success) or not isinstance(outcome.value, dict):
        raise RemoteProtocolError(
            "a computer_call cannot be answered without a screenshot; register a handler for it, or do not "
            "offer the computer tool"
        )
    value = outcome.value if "output" in outcome.value else {"output": outcome.value}
    answer: JsonObject = {"type": "computer_call_output", "call_id": item.get("call_id"), **value}
    return with_caller(answer, item)


def _mcp_approval(item: JsonObject, outcome: Outcome) -> JsonObject:
    """Only a handler's plain True approves; anything else, no handler included, is a no with its reason."""
    answer: JsonObject = {
        "type": "mcp_approval_response",
        "approval_request_id": item.get("id"),
        "approve": isinstance(outcome, Success) and outcome.value is True,
    }
    if not isinstance(outcome, Success):
        answer["reason"] = outcome.message
    elif isinstance(outcome.value, str):
        answer["reason"] = outcome.value
    return answer


def _search(item: JsonObject, outcome: Outcome) -> JsonObject:
    """What was found, as tool definitions; nothing found, or a search that failed, is an empty list."""
    found = outcome.value if isinstance(outcome, Success) and isinstance(outcome.value, list) else []
    return {
        "type": "tool_search_output",
        "call_id": item.get("call_id"),
        "execution": "client",
        "status": "completed",
        "tools": found,
    }


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else strict_json.dumps(value)


_BUILDERS = {
    "shell_call": _shell,
    "local_shell_call": _local_shell,
    "apply_patch_call": _apply_patch,
    "computer_call": _computer,
    "mcp_approval_request": _mcp_approval,
    "tool_search_call": _search,
}
