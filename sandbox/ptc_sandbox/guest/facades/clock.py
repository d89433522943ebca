"""`time` and `datetime` on the journal's clock. The machine's own clock and zone are read nowhere.

The types of `datetime` are the real ones: they only compute. Their methods that read a clock (`now`,
`today`, `utcnow`) are given by `guards` under these names.
"""

from __future__ import annotations

import datetime
import time
from typing import Any

from ptc_sandbox.guest.guards import Guards


def datetime_members(guards: Guards) -> dict[str, Any]:
    """Nothing: see the module's docstring."""
    return {"UTC": datetime.UTC}


def time_members(guards: Guards) -> dict[str, Any]:
    """The whole of `time` for programs."""
    environment = guards.environment

    def now() -> float:
        return environment.now_us() / 1e6

    def monotonic() -> float:
        return environment.monotonic_us() / 1e6

    def now_ns() -> int:
        return environment.now_us() * 1000

    def monotonic_ns() -> int:
        return environment.monotonic_us() * 1000

    def sleep(seconds: Any, /) -> None:
        if isinstance(seconds, (str, bytes, bytearray)):
            raise TypeError(f"'{type(seconds).__name__}' object cannot be interpreted as an integer")
        duration = float(seconds)
        if not duration >= 0:
            raise ValueError("sleep length must be non-negative")
        environment.sleep(duration)

    def gmtime(seconds: float | None = None, /) -> time.struct_time:
        return time.gmtime(now() if seconds is None else seconds)

    def strftime(format: str, t: Any = None, /) -> str:
        return time.strftime(format, gmtime() if t is None else t)

    def asctime(t: Any = None, /) -> str:
        return time.asctime(gmtime() if t is None else t)

    def ctime(seconds: float | None = None, /) -> str:
        return time.asctime(gmtime(seconds))

    def mktime(t: Any, /) -> float:
        moment = datetime.datetime(*(1970, 1, 1), tzinfo=datetime.UTC)
        year, month, day, hour, minute, second = tuple(t)[:6]
        first = datetime.datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=datetime.UTC)
        return float(
            (first - moment).total_seconds() + (day - 1) * 86400 + hour * 3600 + minute * 60 + second
        )

    named: dict[str, Any] = {
        "time": now,
        "time_ns": now_ns,
        "monotonic": monotonic,
        "monotonic_ns": monotonic_ns,
        "perf_counter": monotonic,
        "perf_counter_ns": monotonic_ns,
        "process_time": monotonic,
        "process_time_ns": monotonic_ns,
        "gmtime": gmtime,
        "localtime": gmtime,
        "sleep": sleep,
        "strftime": strftime,
        "asctime": asctime,
        "ctime": ctime,
        "mktime": mktime,
    }
    for name, function in named.items():
        function.__name__ = function.__qualname__ = name
        function.__module__ = "time"
    return {**named, "strptime": time.strptime, "struct_time": time.struct_time}
