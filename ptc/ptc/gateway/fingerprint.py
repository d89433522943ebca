"""A program's fingerprint: what the peer seals into it, and how it is opened again.

It holds digests of the program and what a run of it depends on, so that the peer need not remember a program
that waits, and a client can neither change nor make up one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ptc.gateway.rejection import Rejected, invalid
from ptc.gateway.seal import BrokenSeal, ForeignSeal, MalformedSeal, Seal
from ptc_tools.call import JsonObject, JsonValue

FINGERPRINT = "program fingerprint"
_COVERED = ("id", "call_id", "code")


def program_state(
    item: Mapping[str, JsonValue], header: JsonObject, tools: list[JsonValue], *, model: str
) -> JsonObject:
    """What a program's fingerprint seals: what it is, and what a run of it depends on.

    `item` has the program's `id`, `call_id` and `code`; `tools` are the (namespace, name) it may call;
    `model` is the deployment that wrote it, which it stays on.
    """
    digests = {name: _digest(item[name]) for name in _COVERED}
    return {**digests, "header": header, "tools": tools, "model": model}


def open_fingerprint(seal: Seal, item: JsonObject, where: str, *, model: str) -> JsonObject:
    """The sealed state of a program item; raises `Rejected`: 401 for another deployment's, 400 for others."""
    param = f"{where}.fingerprint"
    try:
        state = seal.open(FINGERPRINT, str(item["fingerprint"]))
    except ForeignSeal as error:
        raise _of_another_deployment(param) from error
    except (MalformedSeal, BrokenSeal) as error:
        raise invalid(param, f"The program's fingerprint is not valid: {error}.") from error
    for name in _COVERED:
        if state.get(name) != _digest(item[name]):
            raise invalid(f"{where}.{name}", f"The program's '{name}' does not match its fingerprint.")
    if state.get("model") != model:
        raise _of_another_deployment(param)
    return state


def _of_another_deployment(param: str) -> Rejected:
    return Rejected(
        "The program's fingerprint was issued for another deployment. Replay a program only to the deployment "
        "that wrote it.",
        param=param,
        code="invalid_program_fingerprint",
        status=401,
        type="authentication_error",
    )


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]
