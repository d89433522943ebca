"""What of a call's content the log may hold: levels, chosen by ordered rules; the first match decides.

The operator gives the rules when the log is made and nobody changes them afterwards: no tool, program or
model is asked. A policy without rules is refused, since nothing would be what its author meant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias, get_args

from ptc.audit.errors import InvalidAuditConfig
from ptc.audit.values import canonical
from ptc_tools.call import CallerKind, JsonObject
from ptc_tools.contract import Effects

Level: TypeAlias = Literal["none", "metadata", "request", "full"]
"""`none`: the call is only counted. `metadata`: who, what, when, how it ended, sizes and keyed digests.
`request`: arguments and program text as well. `full`: results and messages as well. Redaction applies at
every level."""

_MOST_KNOWN: Final = 4096
RANK: Final[dict[Level, int]] = {"none": 0, "metadata": 1, "request": 2, "full": 3}


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the policy. Each condition given must hold; a rule without conditions matches every call.

    `tool` is a glob over the qualified name (`billing.*`), `tenant` over the run's tenant (or its `tenant` label),
    `effects` one of the words of the tool's contract (`write`).
    """

    level: Level
    tool: str = "*"
    caller: CallerKind | None = None
    tenant: str | None = None
    effects: str | None = None

    def __post_init__(self) -> None:
        if self.level not in RANK:
            raise InvalidAuditConfig(f"a level is one of {', '.join(RANK)}; {self.level!r} is none")
        if self.caller is not None and self.caller not in get_args(CallerKind):
            raise InvalidAuditConfig(f"a rule's caller is direct or programmatic, not {self.caller!r}")
        if self.effects is not None and self.effects not in get_args(Effects):
            words = ", ".join(get_args(Effects))
            raise InvalidAuditConfig(
                f"a rule's effects are one of {words}; {self.effects!r} would never match"
            )
        if not self.tool:
            raise InvalidAuditConfig(
                "a rule's tool is a pattern such as 'billing.*'; an empty one never matches"
            )

    def matches(self, tool: str, caller: CallerKind, tenant: str | None, effects: Iterable[str]) -> bool:
        if self.caller is not None and self.caller != caller:
            return False
        if self.tool != "*" and not fnmatchcase(tool, self.tool):
            return False
        if self.tenant is not None and not (tenant is not None and fnmatchcase(tenant, self.tenant)):
            return False
        return self.effects is None or self.effects in effects

    def to_json(self) -> JsonObject:
        conditions = {
            "tool": None if self.tool == "*" else self.tool,
            "caller": self.caller,
            "tenant": self.tenant,
            "effects": self.effects,
        }
        given: JsonObject = {name: value for name, value in conditions.items() if value is not None}
        return {"level": self.level, **given}


class Levels:
    """The ordered rules. A call that no rule matches is recorded at `metadata`, never at less.

        Levels(Rule("none", tool="clock"), Rule("full", tool="billing.*"), Rule("request"))

    `events` is the level of what belongs to no single tool: the run's input, program text, output.
    """

    __slots__ = ("_hash", "_known", "events", "rules")

    def __init__(self, *rules: Rule, events: Level = "metadata") -> None:
        if not rules:
            raise InvalidAuditConfig(
                'an audit policy needs at least one rule: Levels(Rule("metadata")) keeps who, what and when;'
                ' to record nothing about a tool, say so: Rule("none", tool="its_name")'
            )
        if events not in RANK or events == "none":
            raise InvalidAuditConfig(f"the level of events is metadata, request or full, not {events!r}")
        self.rules = tuple(rules)
        self.events: Level = events
        self._known: dict[tuple[object, ...], Level] = {}
        self._hash = hashlib.sha256(canonical(self.to_json())).hexdigest()

    @classmethod
    def of(cls, level: Level) -> Levels:
        """The same level for everything."""
        return cls(Rule(level), events="metadata" if level == "none" else level)

    def level(
        self, tool: str, caller: CallerKind, tenant: str | None, effects: tuple[str, ...] = ()
    ) -> Level:
        asked = (tool, caller, tenant, effects)
        known = self._known.get(asked)
        if known is None:
            known = self._decide(tool, caller, tenant, effects)
            if len(self._known) < _MOST_KNOWN:  # names may be a model's inventions, without end
                self._known[asked] = known
        return known

    def _decide(self, tool: str, caller: CallerKind, tenant: str | None, effects: tuple[str, ...]) -> Level:
        for rule in self.rules:
            if rule.matches(tool, caller, tenant, effects):
                return rule.level
        return "metadata"

    def to_json(self) -> JsonObject:
        return {"rules": [rule.to_json() for rule in self.rules], "events": self.events}

    @property
    def hash(self) -> str:
        """SHA-256 of the rules in canonical JSON: `audit.opened` says it."""
        return self._hash
