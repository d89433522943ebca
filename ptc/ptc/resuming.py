"""A sandbox whose first programs go on from a journal: what the code tool of a resumed run is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ptc.control import ToolFailed
from ptc_tools.call import JsonObject

if TYPE_CHECKING:
    from ptc.durable import Durable
    from ptc_sandbox import Sandbox
    from ptc_sandbox.limits import Limits
    from ptc_sandbox.result import ProgramResult


class ResumingSandbox:
    """Runs programs in `sandbox`; one whose call id has a journal is resumed from it, once.

    With `durable` the journal of each program goes into the run's store as it grows.
    """

    def __init__(
        self, sandbox: Sandbox, journals: Mapping[str, JsonObject], durable: Durable | None = None
    ) -> None:
        self._sandbox = sandbox
        self._journals = dict(journals)
        self._durable = durable

    @classmethod
    def around(
        cls, sandbox: Sandbox | None, journals: Mapping[str, JsonObject], durable: Durable | None = None
    ) -> Sandbox | None:
        """The sandbox itself where there is nothing to resume and nothing to keep."""
        if sandbox is None or not (journals or durable is not None):
            return sandbox
        return cast("Sandbox", cls(sandbox, journals, durable))

    @property
    def limits(self) -> Limits:
        return self._sandbox.limits

    async def run(self, code: str, **options: Any) -> ProgramResult:
        from ptc_sandbox.errors import ReplayDiverged, ReplayIncompatible
        from ptc_sandbox.journal import Journal

        program, recorded = str(options.get("caller_id")), None
        stored = self._journals.pop(program, None)
        if stored is not None:
            options["journal"] = journal = Journal.from_json(stored)
            recorded = len(journal.entries)
        if self._durable is not None:
            options["keep"] = self._durable.keep_journal(program, recorded)
        try:
            return await self._sandbox.run(code, **options)
        except (ReplayDiverged, ReplayIncompatible) as error:
            # Its calls have run: that it cannot go on here is for the host to know, not a failure for the model.
            raise ToolFailed(error) from error
