"""A sandbox whose first programs go on from a journal: what the code tool of a resumed run is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ptc_tools.call import JsonObject

if TYPE_CHECKING:
    from ptc_sandbox import Sandbox
    from ptc_sandbox.limits import Limits
    from ptc_sandbox.result import ProgramResult


class ResumingSandbox:
    """Runs programs in `sandbox`; one whose call id has a journal is resumed from it, once."""

    def __init__(self, sandbox: Sandbox, journals: Mapping[str, JsonObject]) -> None:
        self._sandbox = sandbox
        self._journals = dict(journals)

    @classmethod
    def around(cls, sandbox: Sandbox | None, journals: Mapping[str, JsonObject]) -> Sandbox | None:
        """The sandbox itself where there is nothing to resume."""
        return sandbox if sandbox is None or not journals else cast("Sandbox", cls(sandbox, journals))

    @property
    def limits(self) -> Limits:
        return self._sandbox.limits

    async def run(self, code: str, **options: Any) -> ProgramResult:
        from ptc_sandbox.journal import Journal

        stored = self._journals.pop(str(options.get("caller_id")), None)
        if stored is not None:
            options["journal"] = Journal.from_json(stored)
        return await self._sandbox.run(code, **options)
