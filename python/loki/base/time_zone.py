"""The time zone that this machine is set to."""

from __future__ import annotations

import os
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LINK = "/etc/localtime"
_FOLDER = "zoneinfo/"


def local_zone(environment: dict[str, str] | None = None, link: str = _LINK) -> str:
    """Its IANA name; UTC where none can be told.

    Args:
        environment: variables, where ``TZ`` says it first; the process's by default.
        link: the file that leads to the zone's rules, as on Linux and macOS.

    Example:
        >>> local_zone({"TZ": "Europe/Berlin"})
        'Europe/Berlin'
    """
    known = os.environ if environment is None else environment
    said = known.get("TZ", "").removeprefix(":")
    target = os.path.realpath(link)
    for name in (said.rpartition(_FOLDER)[2], target.rpartition(_FOLDER)[2]):
        if _is_zone(name):
            return name
    return "UTC"


def _is_zone(name: str) -> bool:
    try:
        return bool(name) and not name.startswith("/") and bool(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
