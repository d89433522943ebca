"""`random`, `uuid`, `secrets` and what else draws numbers, all from the journal's seed.

`random.seed()` in a program moves its `random` only: identifiers and secrets come from a stream that it
cannot reach.
"""

from __future__ import annotations

import hmac
import operator
import random
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, Self

from ptc_sandbox.guest.facades import table
from ptc_sandbox.guest.guards import Guards

_SECRET_BYTES = 32


def random_class(guards: Guards) -> type[random.Random]:
    """`random.Random` whose unseeded instances are seeded by the journal."""
    environment = guards.environment

    class Seeded(random.Random):  # apart from what programs hold: `super(random.Random, r)` ends up here
        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            return super().__new__(cls, 0)  # type: ignore[call-arg]  # the C type would draw from the system before __init__

        def seed(self, a: Any = None, version: int = 2) -> None:
            super().seed(environment.random.getrandbits(256) if a is None else a, version)

    class Random(Seeded):
        """Random number generator; without a seed it takes one from the run."""

        __module__ = "random"

    Random.__qualname__ = "Random"
    return Random


def random_members(guards: Guards) -> dict[str, Any]:
    """The whole of `random`: a class, and functions of one hidden instance."""
    kind = random_class(guards)
    shared = kind()
    functions = {name for name in table.members("random") or () if name != "Random" and hasattr(shared, name)}
    return {"Random": kind, **{name: getattr(shared, name) for name in functions}}


def statistics_members(guards: Guards) -> dict[str, Any]:
    """Nothing of its own: `NormalDist.samples` draws from the shared generator, which is seeded here."""
    random.seed(guards.environment.random.getrandbits(256))
    return {}


def uuid_members(guards: Guards) -> dict[str, Any]:
    """`uuid4` from the journal; the rest computes."""

    def uuid4() -> uuid.UUID:
        """A random UUID."""
        return uuid.UUID(bytes=guards.environment.random_bytes(16), version=4)

    return {"uuid4": uuid4}


def secrets_members(guards: Guards) -> dict[str, Any]:
    """The whole of `secrets`, from the journal's bytes."""

    def draw(n: int) -> bytes:
        if n < 0:
            raise ValueError("negative argument not allowed")
        return guards.environment.random_bytes(n)

    def token_bytes(nbytes: int | None = None) -> bytes:
        return draw(_SECRET_BYTES if nbytes is None else int(operator.index(nbytes)))

    def token_hex(nbytes: int | None = None) -> str:
        return token_bytes(nbytes).hex()

    def token_urlsafe(nbytes: int | None = None) -> str:
        return urlsafe_b64encode(token_bytes(nbytes)).rstrip(b"=").decode()

    def randbits(k: int) -> int:
        k = int(operator.index(k))
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        return int.from_bytes(draw((k + 7) // 8), "big") >> (-k % 8)

    def randbelow(exclusive_upper_bound: int) -> int:
        exclusive_upper_bound = int(operator.index(exclusive_upper_bound))
        if exclusive_upper_bound <= 0:
            raise ValueError("Upper bound must be positive.")
        bits = exclusive_upper_bound.bit_length()
        while (drawn := randbits(bits)) >= exclusive_upper_bound:
            pass
        return drawn

    def choice(seq: Sequence[Any]) -> Any:
        return seq[randbelow(len(seq))]

    functions = (token_bytes, token_hex, token_urlsafe, randbits, randbelow, choice)
    return {**{function.__name__: function for function in functions}, "compare_digest": hmac.compare_digest}
