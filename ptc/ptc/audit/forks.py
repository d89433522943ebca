"""Who leaves what to the parent when a process forks: a log has one writer, and a child is another process.

It is told the writers of this process and keeps none of them alive.
"""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol


class Leaves(Protocol):
    """Something that a forked child must not go on with."""

    def leave(self) -> None:
        """In the child: from now on it is the parent's."""


_known: Final[weakref.WeakSet[Leaves]] = weakref.WeakSet()


def leaves_to_its_parent(writer: Leaves) -> None:
    """From now on `writer` is told when it finds itself in a forked child."""
    _known.add(writer)


def _leave() -> None:
    for writer in list(_known):
        writer.leave()


os.register_at_fork(after_in_child=_leave)
