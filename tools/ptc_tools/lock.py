"""`tools.lock`: which contracts somebody looked at, so that a tool cannot grow unseen.

A pin holds a whole contract. Checking compares the tools at hand with their pins; writing never moves a pin
to something wider unless the tool is accepted by name.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast

from ptc_tools.call import JsonObject
from ptc_tools.command_line import ptc_command
from ptc_tools.compare import Reason, Verdict, compare
from ptc_tools.contract import Contract
from ptc_tools.errors import PtcError
from ptc_tools.fingerprint import toolset_fingerprint
from ptc_tools.schema import shorten
from ptc_tools.strict_json import loads

VERSION = 1
State: TypeAlias = Verdict | Literal["added", "removed"]


class LockError(PtcError):
    """A lock file that cannot be read or was tampered with, or a pin that would be widened unasked."""

    code = "lock_error"


@dataclass(frozen=True, slots=True)
class Change:
    """One tool against its pin. `breaks` says whether a check fails because of it."""

    tool: str
    state: State
    reasons: tuple[Reason, ...] = ()

    @property
    def breaks(self) -> bool:
        return self.state in ("wider", "incompatible", "removed")


@dataclass(frozen=True, slots=True)
class Lock:
    """Pinned contracts by qualified name, and the descriptions of namespaces (`Catalog.namespaces`)."""

    pins: Mapping[str, Contract]
    namespaces: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, contracts: Iterable[Contract], namespaces: Mapping[str, str] | None = None) -> Lock:
        return cls({contract.qualified_name: contract for contract in contracts}, dict(namespaces or {}))

    def dumps(self) -> str:
        """The file's text: sorted, indented, one tool after the other, for readable diffs."""
        tools = {
            name: {
                "fingerprint": contract.fingerprint(),
                "schema_fingerprint": contract.schema_fingerprint(),
                "contract": contract.to_json(),
            }
            for name, contract in sorted(self.pins.items())
        }
        toolset = toolset_fingerprint(self.pins.values(), self.namespaces)
        body: dict[str, object] = {"version": VERSION, "toolset": toolset, "tools": tools}
        if self.namespaces:
            body["namespaces"] = dict(self.namespaces)
        return json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def loads(cls, text: str | bytes) -> Lock:
        """Read a file's text. Raises `LockError` if it is no lock file, or a fingerprint does not match."""
        try:
            data = loads(text)
            if not isinstance(data, dict) or data.get("version") != VERSION:
                raise LockError(f"not a tools.lock of version {VERSION}")
            pins = {}
            for name, entry in cast("dict[str, JsonObject]", data["tools"]).items():
                contract = Contract.from_json(cast("JsonObject", entry["contract"]))
                found = (contract.qualified_name, contract.fingerprint(), contract.schema_fingerprint())
                if found != (name, entry["fingerprint"], entry["schema_fingerprint"]):
                    raise LockError(
                        f"the pin of {name!r} was changed by hand: its fingerprint does not match"
                    )
                pins[name] = contract
            namespaces = dict(cast("dict[str, str]", data.get("namespaces", {})))
            if toolset_fingerprint(pins.values(), namespaces) != data["toolset"]:
                raise LockError(
                    "pins were added or taken out by hand: the toolset's fingerprint does not match"
                )
        except LockError:
            raise
        except ValueError as error:
            raise LockError(f"not a tools.lock: {error}") from None
        except (KeyError, TypeError, AttributeError):
            raise LockError(
                f"not a tools.lock: a part is missing, or of another shape than `{ptc_command()} tools lock` writes"
            ) from None
        return cls(pins, namespaces)

    @classmethod
    def read(cls, path: Path) -> Lock:
        """Read a lock file. Raises `LockError`, also when there is none."""
        try:
            return cls.loads(path.read_bytes())
        except OSError as error:
            raise LockError(
                f"cannot read {path}: {error.strerror}; write it with `{ptc_command()} tools lock`"
            ) from None

    def check(
        self, contracts: Iterable[Contract], namespaces: Mapping[str, str] | None = None
    ) -> list[Change]:
        """Every difference between the pins and the tools at hand, by name; other words of namespaces last."""
        current = {contract.qualified_name: contract for contract in contracts}
        changes = []
        for name in sorted({*self.pins, *current}):
            if name not in current:
                changes.append(Change(name, "removed"))
            elif name not in self.pins:
                changes.append(Change(name, "added"))
            else:
                comparison = compare(self.pins[name], current[name])
                if comparison.verdict != "identical":
                    changes.append(Change(name, comparison.verdict, comparison.reasons))
        for name, words in sorted((namespaces or {}).items()):
            before = self.namespaces.get(name)
            if before != words:
                reason = Reason("$.description", "documentation", shorten(f"{before!r} → {words!r}", 160))
                changes.append(Change(f"namespace {name}", "documentation", (reason,)))
        return changes

    def renewed(
        self,
        contracts: Iterable[Contract],
        namespaces: Mapping[str, str] | None = None,
        *,
        accept: Collection[str] = (),
    ) -> Lock:
        """A lock of the tools at hand. Raises `LockError` for one that grew or is gone and is not in `accept`.

        A tool that is gone loses its pin only when that is accepted: locking some of the tools, and then all
        of them, would move every other pin unseen. Also raises for a name in `accept` that no tool has.
        """
        listed = list(contracts)
        known = {*self.pins, *(contract.qualified_name for contract in listed)}
        if strangers := sorted(set(accept) - known):
            raise LockError(f"nothing to accept: no tool and no pin is called {', '.join(strangers)}")
        refused = [change for change in self.check(listed) if change.breaks and change.tool not in accept]
        if refused:
            names = ", ".join(f"{change.tool} ({change.state})" for change in refused)
            raise LockError(f"not moved from what was pinned: {names}; accept each by name")
        return Lock.of(listed, namespaces)
