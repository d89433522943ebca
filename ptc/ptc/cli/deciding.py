"""Asks in the terminal what to do about a call that waits: shows it whole, and gives the decision.

It is told a request and reads lines; it decides nothing by itself. Whatever a model wrote is shown as text,
and an end of the input is no answer: the call goes on waiting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from ptc_tools.call import JsonObject, JsonValue, Program

if TYPE_CHECKING:
    from ptc.approval import ApprovalRequest, Decision

Read: TypeAlias = Callable[[str], str | None]
"""Shows a prompt and gives the line that was typed, without its end; None at the end of the input."""
Show: TypeAlias = Callable[[str], None]

_APPROVAL = {"y": "yes", "n": "no", "c": "change the arguments", "l": "later"}
_UNCERTAIN = {"r": "run it again", "h": "it happened", "n": "nobody knows", "l": "later"}


def decide(request: ApprovalRequest, *, read: Read, show: Show, by: str | None) -> Decision | None:
    """The decision about one call, or None: it goes on waiting."""
    for line in described(request):
        show(line)
    choices = _UNCERTAIN if request.uncertain else _APPROVAL
    while True:
        letter = _choice(read(_prompt(choices)), choices)
        if letter is None:
            show(f"type one of {', '.join(choices)}")
            continue
        if letter == "l":
            return None
        try:
            return _decision(letter, request, read, by)
        except ValueError as error:
            show(str(error))
        except EOFError:
            return None


def described(request: ApprovalRequest) -> Iterable[str]:
    """What is shown of a request, line by line; its texts are untrusted."""
    name = request.name if request.namespace is None else f"{request.namespace}.{request.name}"
    caller = request.caller
    who = f"the program {caller.caller_id}" if isinstance(caller, Program) else "the model"
    yield f"{name}, called by {who} ({request.call_id})"
    yield f"  {request.reason}"
    for line in (request.question or "").splitlines():
        yield f"  {line}"
    shown = json.dumps(request.arguments, indent=2, ensure_ascii=False)
    for line in shown.splitlines():
        yield f"  {line}"
    if request.expires_us is not None:
        until = datetime.fromtimestamp(request.expires_us / 1e6, UTC)
        yield f"  expires {until:%Y-%m-%d %H:%M:%S} UTC"


def _prompt(choices: dict[str, str]) -> str:
    return ", ".join(f"[{letter}] {word}" for letter, word in choices.items()) + "? "


def _choice(line: str | None, choices: dict[str, str]) -> str | None:
    if line is None:
        return "l"
    typed = line.strip().lower()
    return next((letter for letter, word in choices.items() if typed in (letter, word)), None)


def _decision(letter: str, request: ApprovalRequest, read: Read, by: str | None) -> Decision:
    from ptc.approval import Approve, Deny, Happened

    if letter in ("y", "r"):
        return Approve(by=by)
    if letter == "n":
        reason = _line(read("why (for the model; empty for no reason)? ")).strip()
        if reason:
            return Deny(reason, by=by)
        return Deny("nobody could say", by=by) if request.uncertain else Deny(by=by)
    if letter == "h":
        typed = _line(read("its result as JSON (empty for null)? ")).strip()
        return Happened(None if not typed else _json(typed), by=by)
    return Approve(_arguments(_line(read("the arguments to use instead, as a JSON object? "))), by=by)


def _line(line: str | None) -> str:
    if line is None:
        raise EOFError
    return line


def _json(typed: str) -> JsonValue:
    from ptc_tools import strict_json
    from ptc_tools.errors import InvalidJson

    try:
        return strict_json.loads(typed)
    except InvalidJson as error:
        raise ValueError(f"that is no JSON: {error.message}") from None


def _arguments(typed: str) -> JsonObject:
    value = _json(typed)
    if not isinstance(value, dict):
        raise ValueError('arguments are a JSON object, such as {"amount": 5}')
    return value
