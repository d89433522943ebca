"""The catalog of one step: an immutable snapshot of what a run may see, and what of it waits for a search.

It is read once before a request and holds through the inference and the calls that answer it. It never
changes, whatever happens to its sources meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from ptc_tools.admission import Admission, Origin
from ptc_tools.call import Call
from ptc_tools.catalog import Catalog
from ptc_tools.errors import DuplicateIdentity, DuplicateTool, RegistrationError, SourceUnreadable
from ptc_tools.tool import AnyTool


class Offered:
    """A tool as one consumer is offered it.

    `token`: of its registration, and `origin` where that is; `pages`: the local name of what reads on.
    """

    __slots__ = ("_fingerprint", "deferred", "origin", "pages", "token", "tool")

    def __init__(
        self,
        tool: AnyTool,
        *,
        deferred: bool = False,
        token: str | None = None,
        pages: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.origin = origin
        self.tool = tool
        self.deferred = deferred
        self.token = token
        self.pages = pages
        self._fingerprint: str | None = None

    @property
    def key(self) -> tuple[str | None, str]:
        return self.tool.contract.namespace, self.tool.contract.name

    @property
    def fingerprint(self) -> str:
        """Of all that matters to a step about the tool. Computed once: reads share what did not change."""
        if self._fingerprint is None:
            contract = self.tool.contract
            parts = (contract.qualified_name, contract.fingerprint(), self.token or "", str(self.deferred))
            self._fingerprint = "\n".join(parts)
        return self._fingerprint


class StepCatalog:
    """What `Sources.read` gives. `catalog` holds all permitted tools, deferred ones included.

    `deferred` names those that wait for a search, by qualified name. Two snapshots with one `fingerprint`
    offer the same tools of the same registrations in the same way.
    """

    __slots__ = ("_fingerprint", "_offered", "catalog", "deferred")

    def __init__(self, offered: Iterable[Offered], namespaces: Mapping[str, str] | None = None) -> None:
        entries = tuple(offered)
        try:
            self.catalog = Catalog((entry.tool for entry in entries), namespaces=namespaces)
        except DuplicateTool as error:
            raise DuplicateIdentity(f"the catalog of a step: {error.message}") from error
        except RegistrationError as error:
            raise SourceUnreadable(f"the catalog of a step cannot be used: {error.message}") from error
        self._offered = {entry.key: entry for entry in entries}
        self.deferred = frozenset(entry.tool.contract.qualified_name for entry in entries if entry.deferred)
        self._fingerprint: str | None = None

    @property
    def fingerprint(self) -> str:
        """`sha256:…` of what is offered, in any order."""
        if self._fingerprint is None:
            lines = sorted(entry.fingerprint for entry in self._offered.values())
            digest = hashlib.sha256("\0".join(["ptc-step/1", *lines]).encode())
            self._fingerprint = "sha256:" + digest.hexdigest()
        return self._fingerprint

    def admit(self, call: Call) -> Admission | None:
        """What an accepted call keeps; None for a call of a tool that is not in this catalog."""
        try:
            entry = self._offered.get((call.namespace, call.name))
        except TypeError:
            return None  # a name that is not even a string comes from a call that nobody parsed
        if entry is None:
            return None
        partner = None if entry.pages is None else self._offered.get((entry.key[0], entry.pages))
        if partner is None:
            return Admission(entry.tool, entry.token, None, entry.origin)
        return Admission(entry.tool, entry.token, partner.tool, entry.origin, partner.origin)

    def __len__(self) -> int:
        return len(self._offered)

    def __repr__(self) -> str:
        return f"<StepCatalog of {len(self)} tools, {len(self.deferred)} deferred>"
