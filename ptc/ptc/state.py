"""A paused run as a value: versioned JSON that holds all that is needed to go on, and nothing that is secret.

It holds the history, the calls that wait and the outputs that are known, journals of suspended programs,
what was spent and what is offered. It holds no client, principal, label or function: the application gives
those again. Outside the process it travels sealed; a state that was changed or is newer is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from ptc.approval import ApprovalRequest
from ptc.conversation import HistoryMode
from ptc.errors import StateForged, StateUnreadable
from ptc.toolbox import Entry
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson

VERSION: Final = 1
_FORMAT: Final = "ptc-run-state"
_DEPTH: Final = 128

Key: TypeAlias = bytes


@dataclass(frozen=True, slots=True)
class RunState:
    """See `Runner.resume`.

    `pending`: the call items of the last response, `answers`: outputs that are known, by call id.
    `journals`: of local programs that wait, by call id. `contracts`: of the tools whose calls wait, as JSON.
    `calls` and `programs_so_far`: reports of what the run had done, for its result. `offered`: names of the
    tools that the run offers, `retired`: of those that it does not, and an open program could call,
    `removed`: of those that a waiting call needs, and `later`: of those that came after it. `choice`: what
    `tool_choice` was at the pause, and `eager` the tools that it had named, which are sent whether a search
    has loaded them or not. `admitted`: what was kept of tools of registries, by name, so that a waiting call
    needs no catalog. `added` and
    `kept` keep the tools themselves for a resumption in this process; they do not travel.
    """

    run_id: str
    model: str
    mode: HistoryMode
    programs: str | None
    history: tuple[JsonObject, ...]
    pending: tuple[JsonObject, ...]
    answers: Mapping[str, JsonObject]
    approvals: tuple[ApprovalRequest, ...]
    journals: Mapping[str, JsonObject]
    contracts: Mapping[str, JsonObject]
    offered: tuple[str, ...]
    hosted_tool: bool
    forced_choice: bool
    spent: Mapping[str, JsonValue]
    previous_response_id: str | None = None
    conversation_id: str | None = None
    calls: tuple[JsonObject, ...] = ()
    programs_so_far: tuple[JsonObject, ...] = ()
    choice: JsonObject | None = None
    retired: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    eager: tuple[str, ...] = ()
    admitted: Mapping[str, JsonObject] = field(default_factory=dict)
    added: tuple[Entry, ...] = field(default=(), compare=False)
    kept: tuple[Entry, ...] = field(default=(), compare=False)

    def seal(self, key: Key) -> str:
        """Text for outside this process, authenticated with a key of at least 16 bytes."""
        body: JsonObject = {"format": _FORMAT, "version": VERSION, "state": self._to_json()}
        return _text({**body, "mac": _mac(body, key)})

    @classmethod
    def unseal(cls, text: str | bytes, key: Key) -> RunState:
        """The state of a sealed text. Raises StateForged, or StateUnreadable for another version or format."""
        text, body = _read(text)
        if not isinstance(body, dict) or body.get("format") != _FORMAT:
            raise StateUnreadable("this is not a run state")
        mac = body.pop("mac", None)
        if not isinstance(mac, str) or not _same(mac, _mac(body, key)):
            raise StateForged("the run state is not what was sealed: it was changed, or the key is another")
        if body.get("version") != VERSION:
            raise StateUnreadable(
                f"the run state has version {body.get('version')!r}; this library reads version {VERSION}"
            )
        if _text({**body, "mac": mac}) != text:
            # The same JSON in other bytes (a space, the case of an escape): nobody who only keeps it does that.
            raise StateForged("the run state is not what was sealed: its text was changed")
        return cls._from_json(cast("dict[str, Any]", body["state"]))

    def _to_json(self) -> JsonObject:
        return {
            "run_id": self.run_id,
            "model": self.model,
            "mode": self.mode,
            "programs": self.programs,
            "history": list(self.history),
            "pending": list(self.pending),
            "answers": dict(self.answers),
            "approvals": [request.to_json() for request in self.approvals],
            "journals": dict(self.journals),
            "contracts": dict(self.contracts),
            "offered": list(self.offered),
            "hosted_tool": self.hosted_tool,
            "forced_choice": self.forced_choice,
            "spent": dict(self.spent),
            "previous_response_id": self.previous_response_id,
            "conversation_id": self.conversation_id,
            "calls": list(self.calls),
            "programs_so_far": list(self.programs_so_far),
            "choice": self.choice,
            "retired": list(self.retired),
            "removed": list(self.removed),
            "later": list(self.later),
            "eager": list(self.eager),
            "admitted": dict(self.admitted),
        }

    @classmethod
    def _from_json(cls, state: dict[str, Any]) -> RunState:
        # The seal fits, so this was written by `_to_json` of this version.
        lists = (
            "history",
            "pending",
            "offered",
            "calls",
            "programs_so_far",
            "retired",
            "removed",
            "later",
            "eager",
        )
        fields: dict[str, Any] = {
            name: tuple(value) if name in lists else value for name, value in state.items()
        }
        fields["approvals"] = tuple(ApprovalRequest.from_json(request) for request in state["approvals"])
        return cls(**fields)


def _text(body: JsonValue) -> str:
    """The one text of a state. What a model said may hold half of a surrogate pair, which is kept as it came."""
    try:
        return strict_json.dumps(body, max_depth=_DEPTH)
    except InvalidJson:
        return json.dumps(body, separators=(",", ":"), allow_nan=False)


def _read(text: str | bytes) -> tuple[str, JsonValue]:
    if not isinstance(text, str | bytes | bytearray):
        raise StateUnreadable(f"a run state is a text that was sealed, not {type(text).__name__}")
    try:
        text = text if isinstance(text, str) else text.decode()
        body = _parsed(text)
        _text(body)  # what cannot be written was never sealed
    except (ValueError, RecursionError):
        raise StateForged("the run state is not what was sealed: it is not even JSON") from None
    return text, body


def _parsed(text: str) -> JsonValue:
    try:
        return strict_json.loads(text, max_depth=_DEPTH)
    except InvalidJson:  # it may be what strict JSON cannot say; if not, its text is not one that was sealed
        return cast("JsonValue", json.loads(text, parse_constant=_no_number))


def _no_number(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON")


def _mac(body: JsonObject, key: Key) -> str:
    if not isinstance(key, bytes | bytearray):
        raise StateUnreadable(f"the key of a run state is bytes, not {type(key).__name__}")
    if len(key) < 16:
        raise StateUnreadable(
            "the key of a run state has at least 16 bytes; secrets.token_bytes(32) makes one"
        )
    text = _text(_sorted(body))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _same(given: str, mac: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), mac.encode())


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
