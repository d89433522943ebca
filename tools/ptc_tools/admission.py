"""Which calls a registry takes, and what an accepted one keeps: a table, and values.

An accepted call keeps the definition it was made for, its paging partner and the token of the registration;
from then on the catalog is not asked again for it. A registry's rules are the same wherever it keeps its
records, so they stand here: values in, values out.

    what is known of the call    its registration is current    it was replaced or removed
    nothing                      publish                        reject: call_not_admitted, nothing is published
    rejected                     call_not_admitted, as before: an exact retry never runs
    published                    attach: it keeps its assignment and its result
    finished                     attach: it keeps its result
    overloaded (not started)     publish again, same token      admission_conflict
    another call of that id      call_identity_conflict: another token, tool or arguments

A further attempt is the same call. It has what the row says; only where the call ended without a result, or
its provider is gone, does it run again, for the registration that is current. It alone may come with another
token: a consumer whose process ended may have looked anew.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import AdmissionConflict, CallIdentityConflict, CallNotAdmitted
from ptc_tools.registry_protocol import CallResult, ResolvedCall
from ptc_tools.strict_json import canonical
from ptc_tools.tool import AnyTool

CallState: TypeAlias = Literal["rejected", "published", "finished", "overloaded"]
Action: TypeAlias = Literal["publish", "attach", "reject", "refuse", "conflict"]

TABLE: Final[Mapping[tuple[CallState | None, bool], Action]] = {
    (None, True): "publish",
    (None, False): "reject",
    ("rejected", True): "refuse",
    ("rejected", False): "refuse",
    ("published", True): "attach",
    ("published", False): "attach",
    ("finished", True): "attach",
    ("finished", False): "attach",
    ("overloaded", True): "publish",
    ("overloaded", False): "conflict",
}


@dataclass(frozen=True, slots=True)
class KnownCall:
    """What a registry has of a call: as it came last, and whether a further attempt would find it without a result.

    `open`: see `left_open`; or it has no result, and its time is over.
    """

    state: CallState
    digest: str
    token: str
    attempt: int = 1
    open: bool = False


def left_open(result: CallResult | None) -> bool:
    """Whether a call that ended so has no result that a further attempt could have instead of running again."""
    return result is None or result.status in ("denied", "failure", "uncertain")


def decide(known: KnownCall | None, call: ResolvedCall, current: str | None) -> Action:
    """What a registry does with a call: `publish` it, `attach` to what is known, or `reject` it (and keep that).

    `known` is what the registry has under the call's key; `current` is the token of the toolset as it is
    registered now. To be asked and carried out as one step. Raises CallNotAdmitted, AdmissionConflict,
    CallIdentityConflict.
    """
    further = known is not None and call.attempt > known.attempt
    if known is not None and (known.digest != call.digest or (known.token != call.token and not further)):
        raise CallIdentityConflict(
            f"the call id {call.call_id!r} stands for another call of this run: another registration, tool or"
            " arguments; a new call takes a new id",
            call_id=call.call_id,
        )
    action = TABLE[None if known is None else known.state, current == call.token]
    if action == "attach" and further and known is not None and known.open and current == call.token:
        return "publish"
    if action == "refuse":
        raise not_admitted(call)
    if action == "conflict":
        raise AdmissionConflict(
            f"{call.toolset}.{call.tool} was replaced while the call waited for room; it did not run",
            call_id=call.call_id,
        )
    return action


def not_admitted(call: ResolvedCall) -> CallNotAdmitted:
    """The refusal of a call whose registration is not the current one."""
    return CallNotAdmitted(
        f"{call.toolset}.{call.tool} was replaced or removed since this call was made for it; the call did not"
        " run: look at the tool as it is now, and call again",
        call_id=call.call_id,
    )


def registration_token(
    name: str, declarations: Sequence[JsonObject], revision: str | None, version: str = ""
) -> str:
    """The token of a registration: new each time, or with a `revision` the same for the same tools and version.

    Replicas of one deployment share a revision, and so a token; equal schemas alone never do.
    """
    if revision is None:
        return f"reg_{secrets.token_hex(24)}"
    value = cast("JsonValue", ["ptc-registration/1", name, version, list(declarations), revision])
    return f"reg_{hashlib.sha256(canonical(value)).hexdigest()[:48]}"


def check_replacement(name: str, current: str | None, expected: str | None, new: str, retired: bool) -> None:
    """Whether a registration may take the place of the current one. Raises AdmissionConflict.

    `expected` is what the publisher believes to be current, None if it does not mind. A token that was
    replaced once does not come back: calls that were refused for it stay refused. What is registered already
    may be registered again, whatever was expected: who lost the answer asks anew.
    """
    if current is not None and new == current:
        return
    if expected is not None and expected != current:
        raise AdmissionConflict(
            f"toolset {name!r} is not registered as expected: it was replaced meanwhile; look at it, then publish"
        )
    if retired:
        raise AdmissionConflict(
            f"toolset {name!r}: this registration was replaced before and cannot come back; use a new revision"
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an admitted tool came from: enough to run the call without the catalog."""

    registry: str
    toolset: str
    version: str | None
    declaration: JsonObject


@dataclass(frozen=True, slots=True)
class Admission:
    """One accepted call's tool, as the step had it when the model chose it.

    `token` is that of the tool's registration, None for a tool of this process. `paging_partner` reads the
    next page of its result, where one is declared. `to_json` keeps it; `Sources.restore` is the inverse.
    """

    tool: AnyTool
    token: str | None = None
    paging_partner: AnyTool | None = None
    origin: Origin | None = None
    partner_origin: Origin | None = None

    def to_json(self) -> JsonObject | None:
        """For the run's own storage. None for a tool of this process, which is there when the run goes on."""
        origin = self.origin
        if origin is None or self.token is None:
            return None
        data: JsonObject = {
            "registry": origin.registry,
            "toolset": origin.toolset,
            "token": self.token,
            "tool": origin.declaration,
        }
        if origin.version is not None:
            data["version"] = origin.version
        if self.partner_origin is not None:
            data["partner"] = self.partner_origin.declaration
        return data
