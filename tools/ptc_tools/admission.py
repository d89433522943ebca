"""What an accepted call keeps: the definition it was made for, its paging partner, and the registration's token.

From then on the catalog is not asked again for that call: it is confirmed, decoded, run and recovered by what
is kept here. Nothing here decides whether a call may run; the one path does.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptc_tools.tool import AnyTool


@dataclass(frozen=True, slots=True)
class Admission:
    """One accepted call's tool, as the step had it when the model chose it.

    `token` is that of the tool's registration, None for a tool of this process. `paging_partner` reads the
    next page of its result, where one is declared.
    """

    tool: AnyTool
    token: str | None = None
    paging_partner: AnyTool | None = None
