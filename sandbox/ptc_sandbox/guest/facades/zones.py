"""`zoneinfo` without files: the zones that people name, loaded before any program runs.

Behind the kernel wall nothing can be opened; a zone that is not on this list, or not on this machine, is not
found. Whoever replays a run elsewhere needs the same zone data there.
"""

from __future__ import annotations

import contextlib
import zoneinfo
from typing import Any, Final

from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.guards_types import StandInMeta, make_stand_in
from ptc_sandbox.guest.policy_names import words

_KEYS: Final = words("""
UTC GMT Etc/UTC Etc/GMT CET EET WET EST MST HST EST5EDT CST6CDT MST7MDT PST8PDT US/Eastern US/Central US/Mountain
US/Pacific Africa/Cairo Africa/Casablanca Africa/Johannesburg Africa/Lagos Africa/Nairobi America/Anchorage
America/Argentina/Buenos_Aires America/Bogota America/Caracas America/Chicago America/Denver America/Halifax
America/Lima America/Los_Angeles America/Mexico_City America/New_York America/Phoenix America/Santiago
America/Sao_Paulo America/St_Johns America/Toronto America/Vancouver Asia/Bangkok Asia/Calcutta Asia/Dhaka Asia/Dubai
Asia/Ho_Chi_Minh Asia/Hong_Kong Asia/Jakarta Asia/Jerusalem Asia/Karachi Asia/Kathmandu Asia/Kolkata Asia/Kuala_Lumpur
Asia/Manila Asia/Riyadh Asia/Seoul Asia/Shanghai Asia/Singapore Asia/Taipei Asia/Tehran Asia/Tokyo Atlantic/Azores
Atlantic/Reykjavik Australia/Adelaide Australia/Brisbane Australia/Darwin Australia/Melbourne Australia/Perth
Australia/Sydney Europe/Amsterdam Europe/Athens Europe/Berlin Europe/Brussels Europe/Bucharest Europe/Budapest
Europe/Copenhagen Europe/Dublin Europe/Helsinki Europe/Istanbul Europe/Kiev Europe/Kyiv Europe/Lisbon Europe/London
Europe/Madrid Europe/Moscow Europe/Oslo Europe/Paris Europe/Prague Europe/Rome Europe/Sofia Europe/Stockholm
Europe/Vienna Europe/Warsaw Europe/Zurich Pacific/Auckland Pacific/Fiji Pacific/Honolulu
""")

_loaded: dict[str, zoneinfo.ZoneInfo] = {}


def load() -> None:
    """Read the zones of the list that this machine has."""
    for key in _KEYS:
        with contextlib.suppress(zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):
            _loaded.setdefault(key, zoneinfo.ZoneInfo(key))


class _ZoneMeta(StandInMeta):
    """`ZoneInfo(key)` is one of the loaded zones, the same object each time, as with the real one's cache."""

    def __call__(cls, *args: object, **kwargs: object) -> Any:  # noqa: N805
        key = kwargs["key"] if not args and kwargs.keys() == {"key"} else args[0] if len(args) == 1 else None
        if type(key) is not str:
            raise TypeError("ZoneInfo takes the key of a zone, a str")
        if key not in _loaded:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return _loaded[key]


_ZoneInfo = make_stand_in(zoneinfo.ZoneInfo, _ZoneMeta)


def zoneinfo_members(guards: Guards) -> dict[str, Any]:
    """The whole of `zoneinfo`."""

    def available_timezones() -> set[str]:
        return set(_loaded)

    return {
        "ZoneInfo": _ZoneInfo,
        "ZoneInfoNotFoundError": zoneinfo.ZoneInfoNotFoundError,
        "available_timezones": available_timezones,
    }
