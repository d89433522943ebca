"""For whom a run acts: what the application says of it, as the runner's own words and as one run's.

None of it comes from a model, and none of it is kept: not in a state, not in a store. Who goes on with a run
says it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypedDict

from typing_extensions import Unpack

from ptc.errors import ConfigurationError
from ptc_tools.secret import Secret


class ActingOptions(TypedDict, total=False):
    """What the application may say anew of one run.

    `principal` and `tenant` replace the runner's, `labels` and `credentials` add to them.
    """

    principal: str | None
    labels: Mapping[str, str] | None
    tenant: str | None
    credentials: Mapping[str, Secret] | None


@dataclass(frozen=True, slots=True)
class Acting:
    """Principal, labels, tenant and credentials; see `ptc_tools.RunContext`."""

    principal: str | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    tenant: str | None = None
    credentials: Mapping[str, Secret] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    def given(self, **options: Unpack[ActingOptions]) -> Acting:
        """With what one run says for itself. Raises `ConfigurationError` for a credential in the open."""
        if unknown := set(options) - set(ActingOptions.__annotations__):
            raise TypeError(f"a run has no option {sorted(unknown)[0]!r}")
        principal, tenant = options.get("principal"), options.get("tenant")
        credentials = options.get("credentials") or {}
        _check_words(principal, tenant, options.get("labels"))
        for name, credential in credentials.items():
            if not isinstance(credential, Secret):
                raise ConfigurationError(
                    f"credentials[{name!r}] must be a ptc.Secret, which does not show itself"
                )
        return Acting(
            principal if principal is not None else self.principal,
            MappingProxyType({**self.labels, **(options.get("labels") or {})}),
            tenant if tenant is not None else self.tenant,
            MappingProxyType({**self.credentials, **credentials}),
        )


def _check_words(principal: object, tenant: object, labels: object) -> None:
    """They go into records and to policies, which compare texts."""
    for name, value in (("principal", principal), ("tenant", tenant)):
        if value is not None and not isinstance(value, str):
            raise ConfigurationError(f"{name}= is a {type(value).__name__}; give a text")
    if labels is None:
        return
    if not isinstance(labels, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str) for key, value in labels.items()
    ):
        raise ConfigurationError("labels= is a mapping of texts to texts")
