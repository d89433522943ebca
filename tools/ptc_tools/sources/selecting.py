"""Sources that an application chooses for each step, by what it knows of the run.

`RegistryTools` is the seam: told the run's labels, it includes sources; asked later, it says which sources the
calls of saved runs may go on using. It widens nothing by itself: the policy filters what it includes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Protocol, TypeGuard

from ptc_tools.registry import Registry, RegistryToolset
from ptc_tools.toolset import Use, use


class SourceCatalog:
    """What `RegistryTools.resolve` is given: the run's labels, and where to put sources. For one step alone."""

    __slots__ = ("_labels", "_uses")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = dict(labels)
        self._uses: list[Use] = []

    @property
    def labels(self) -> dict[str, str]:
        """A copy of the run's labels: writing to it changes nothing."""
        return dict(self._labels)

    def include(self, source: Use | Registry | RegistryToolset) -> None:
        """Adds a registry, one of its toolsets, or a use of one. Raises TypeError for anything else."""
        item = source if isinstance(source, Use) else None
        if item is None and isinstance(source, (Registry, RegistryToolset)):
            item = use(source)
        if item is None or not isinstance(item.source, (Registry, RegistryToolset)):
            raise TypeError(
                f"include() takes a registry's source, not {type(source).__name__}: list other sources with the run's"
            )
        self._uses.append(item)

    @property
    def uses(self) -> tuple[Use, ...]:
        """What was included, in order."""
        return tuple(self._uses)


class RegistryTools(Protocol):
    """Chooses registry sources for a run. Listed among a run's tools: `Runner(tools=[MyChoice()])`."""

    def resolve(self, catalog: SourceCatalog, /) -> Awaitable[None] | None:
        """Includes the sources of this step. Called once for each step; what it raises makes the step fail."""

    def allows(self, source: RegistryToolset, /) -> bool:
        """Whether saved calls may go on using a source. `source.version` is the one that the call was made for."""


def is_choice(value: object) -> TypeGuard[RegistryTools]:
    """Whether a value has both methods of `RegistryTools`."""
    return callable(getattr(value, "resolve", None)) and callable(getattr(value, "allows", None))
