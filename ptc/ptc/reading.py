"""Reads one response: what its items mean, without deciding what comes next.

Pure functions over raw dicts; `ptc.conversation` decides. Nothing here changes an item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ptc import wire_json
from ptc.errors import RemoteProtocolError
from ptc.events import ApprovalRequested, CallRequested, PendingCall, SearchRequested
from ptc.items import call_key, call_of, is_client_call, is_cut_off, is_output, item_type
from ptc_tools.call import JsonObject
from ptc_tools.errors import InvalidJson


def output_of(response: Mapping[str, object]) -> list[JsonObject]:
    """The response's output items. Raises RemoteProtocolError when they are not a list of objects."""
    output = response.get("output")
    if output is None and response.get("status") in (None, "completed"):
        told = failure_of(response)[1] if response.get("error") is not None else None
        raise RemoteProtocolError(
            "the service's answer is no response: it has no `output`" + (f"; it says: {told}" if told else "")
        )
    if output is None:
        return []
    if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
        raise RemoteProtocolError("the response's `output` is not a list of items")
    return output


def without_copies(output: list[JsonObject]) -> list[JsonObject]:
    """The items, each once: what a service tells twice, the same under the same id, was said once.

    Calls and programs are not looked at: two of one id are refused, not merged.
    """
    seen: dict[str, JsonObject] = {}
    kept: list[JsonObject] = []
    for item in output:
        own = item.get("id")
        known = seen.get(own) if isinstance(own, str) else None
        if known is not None and known == item and not is_client_call(item) and item_type(item) != "program":
            continue
        if isinstance(own, str) and own:
            seen.setdefault(own, item)
        kept.append(item)
    return kept


def check_sendable(output: Sequence[JsonObject]) -> None:
    """Raises RemoteProtocolError for items that could not be sent back as they are: they are not JSON."""
    try:
        wire_json.check(output)
    except InvalidJson as error:
        raise RemoteProtocolError(f"the response's `output` cannot be replayed: {error}") from None


def items_in(response: object) -> list[JsonObject]:
    """Whatever a response holds of items, in order, also where it breaks the protocol otherwise."""
    output = response.get("output") if isinstance(response, Mapping) else None
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


def speaks_of_programs(response: Mapping[str, object]) -> bool:
    """Whether a program must have run for this response to be: one is in it, or a call of one."""
    for item in items_in(response):
        caller = item.get("caller")
        if item_type(item) in ("program", "program_output"):
            return True
        if caller is not None and not (isinstance(caller, dict) and caller.get("type") == "direct"):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Messages:
    """The assistant messages of one response, told apart by phase (wire.md, rule 8)."""

    final: tuple[JsonObject, ...]
    unphased: tuple[JsonObject, ...]
    commentary: tuple[JsonObject, ...]

    @property
    def answer(self) -> tuple[JsonObject, ...]:
        return self.final or self.unphased

    @property
    def text(self) -> str:
        return "".join(map(text_of, self.answer))

    @property
    def refusal(self) -> str | None:
        refusals = [part for item in self.answer for part in _parts(item, "refusal", "refusal")]
        return "".join(refusals) if refusals else None

    @property
    def has_completed_final(self) -> bool:
        return any(item.get("status") == "completed" for item in self.final)


def messages_of(output: Sequence[JsonObject]) -> Messages:
    """Messages by phase. A phase that is not known is on the way, not an answer."""
    said = [item for item in output if _is_said(item)]
    final = tuple(item for item in said if item.get("phase") == "final_answer")
    unphased = tuple(item for item in said if item.get("phase") is None)
    rest = tuple(item for item in said if item.get("phase") not in (None, "final_answer"))
    return Messages(final, unphased, rest)


def _is_said(item: JsonObject) -> bool:
    """Whether the assistant says this. An item without a type is one only if it names its role."""
    if item_type(item) != "message":
        return False
    return item.get("role", "assistant" if item.get("type") == "message" else None) == "assistant"


def text_of(message: JsonObject) -> str:
    """The text that a message says, its parts joined as the service sent them."""
    content = message.get("content")
    return content if isinstance(content, str) else "".join(_parts(message, "output_text", "text"))


def _parts(message: JsonObject, kind: str, field: str) -> list[str]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    found = [part.get(field) for part in parts if isinstance(part, dict) and part.get("type") == kind]
    return [text for text in found if isinstance(text, str)]


def pending_of(output: Sequence[JsonObject], *, whole: bool) -> list[PendingCall]:
    """The calls that the client owes an output, in order; those answered in the same response are not.

    One call that is cut short makes the batch unfit to run (wire.md, rule 7). Two calls with one call id
    cannot be answered apart: RemoteProtocolError.
    """
    answered = {call_key(item) for item in output if is_output(item)}
    calls = [item for item in output if is_client_call(item) and call_key(item) not in answered - {None}]
    whole = whole and not any(map(is_cut_off, calls))
    pending: list[PendingCall] = []
    seen: set[str] = set()
    for item in calls:
        kind, call = item_type(item), call_of(item)
        if call.call_id in seen:
            raise RemoteProtocolError(f"two calls of one response have the call id {call.call_id!r}")
        seen.add(call.call_id)
        if kind == "mcp_approval_request":
            pending.append(ApprovalRequested(kind, call, item, whole))
        elif kind == "tool_search_call":
            pending.append(SearchRequested(kind, call, item, whole))
        else:
            pending.append(CallRequested(kind, call, item, whole))
    return pending


def unreplayable_reasoning(items: Sequence[JsonObject]) -> JsonObject | None:
    """The first reasoning item that means nothing to a service that stored nothing (wire.md, rule 9).

    Open models send their reasoning as plain `content` instead of encrypted: that carries itself.
    """
    for item in items:
        if item_type(item) == "reasoning" and not item.get("encrypted_content") and not item.get("content"):
            return item
    return None


def incomplete_reason(response: Mapping[str, object]) -> str | None:
    """Why the service cut the response, in its own word."""
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return reason if isinstance(reason, str) else None


def failure_of(response: Mapping[str, object]) -> tuple[str | None, str]:
    """(code, message) of a failed response."""
    error = response.get("error")
    if not isinstance(error, Mapping):
        return None, "the service gave no reason"
    code, message = error.get("code"), error.get("message")
    return (code if isinstance(code, str) else None), (message if isinstance(message, str) else "no message")
