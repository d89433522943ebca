"""Every attack by which a machine's kernel wall is tried: plain CPython in a confined child, no language wall."""

from __future__ import annotations

from typing import Final

from ptc_sandbox.confine import attacks_inside, attacks_outside
from ptc_sandbox.confine.attack import Attack

ATTACKS: Final[dict[str, Attack]] = {
    each.name: each
    for module in (attacks_outside, attacks_inside)
    for each in vars(module).values()
    if isinstance(each, Attack)
}
"""By name, in the order of the modules."""
