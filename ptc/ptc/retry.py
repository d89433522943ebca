"""When a request may be sent again, and how long to wait (wire.md, rule 14).

A blind retry of an ambiguous failure can repeat a program's calls, so the driver decides, never the client:
what was surely not worked on (429, a refused connection) is sent again with the same body; what may have
been (a timeout, a 5xx, a cut stream) only while no program is open and none may have started, and not into
a conversation that the service keeps, which may have taken it in.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from ptc.errors import ConfigurationError, EndpointError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` requests for one step; waits grow from `base_delay` to `max_delay` seconds.

    A wait that the service asks for (`retry-after`) is kept up to `max_wait`; above that the error is
    raised, with its `retry_after`. Raises ConfigurationError.
    """

    attempts: int = 4
    base_delay: float = 0.5
    max_delay: float = 8.0
    max_wait: float = 60.0

    def __post_init__(self) -> None:
        attempts = self.attempts
        if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
            raise ConfigurationError(f"attempts is {attempts!r}; give a whole number, at least 1")
        for name in ("base_delay", "max_delay", "max_wait"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
                raise ConfigurationError(f"{name} is {value!r}; give a number of seconds, at least 0")
        if math.isinf(self.base_delay) and math.isinf(self.max_delay):
            raise ConfigurationError("base_delay is infinite: nothing would ever be sent again")

    def delay(self, error: EndpointError, attempt: int, *, only_once: bool) -> float | None:
        """Seconds until the next try after `attempt` tries (from 1), or None if there is none.

        `only_once`: a first try that may have been worked on is the last.
        """
        if attempt >= self.attempts or error.retry == "never":
            return None
        if error.retry == "ambiguous" and only_once:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.max_wait else None
        # Jitter, so that a fleet that was refused together does not come back together.
        grown = min(self.max_delay, self.base_delay * 2.0 ** (attempt - 1))
        return float(grown * (1 - 0.25 * random.random()))  # noqa: S311 - not a secret


NO_RETRY = RetryPolicy(attempts=1)
