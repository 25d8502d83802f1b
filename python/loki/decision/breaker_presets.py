"""What breakers are made with, by the names of what they stand before: calls of models and tools.

The numbers of the resilience documents (3 failures in 60 s, 300 s of pause) are for whole agents, whose
attempts take minutes. A service that is called often fails now and then without being down: there a share
of failures counts, and a pause of some seconds that grows, as whoever waits wants to know soon.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

CALLS: Mapping[str, Any] = {
    "failure_rate": 0.7,
    "minimum_calls": 3,
    "window_calls": 3,
    "window": 300,
    "cooldown": 7.5,
    "cooldown_multiplier": 1.2,
    "cooldown_cap": 8.9,
    "half_open_interval": 1,
    "recovery_threshold": 2,
}
"""Arguments of `loki.Breaker` for calls of models and tools.

Of the newest three calls within 5 minutes 70 % failed, which is all three. A service that fails 4 % of its
calls does so once in some 15,000, and nothing is lost by a pause of seconds. With more calls, a caller who
is alone would wait through the third retry's 20 s before anybody knew of an outage.
A pause of 7.5 s, then 8.9 s: fifteen calls in an outage of two minutes, the next one right after it; of
other lengths the end is seen less than 5 s later on average. `python -m benchmarks.calls` prints all of it.
Chosen by that.
"""

KINDS = ("api/*/*", "tool/*")
"""Names of breakers of models (``api/<provider>/<model>``) and tools (``tool/<host>``)."""


def call_arguments(own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Arguments of `loki.Breaker` for calls of models and tools.

    Args:
        own: what is different; with a ``threshold`` failures count, not their share.
    """
    return _with(CALLS, own or {})


def for_calls(
    own: Mapping[str, Any] | None = None, named: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Mapping[str, Any]]:
    """Arguments by name: `CALLS` for those of models and tools.

    Args:
        own: what is different for all of those; with a ``threshold`` failures count, not their share.
        named: for single names or globs of them, beside that; also for other breakers.

    Example:
        >>> for_calls({"cooldown": 2}, {"api/claude": {"threshold": 9}})["tool/*"]["cooldown"]
        2
    """
    calls = call_arguments(own)
    others = {
        name: _with(calls if _is_call(name) else {}, said) for name, said in (named or {}).items()
    }
    return {**others, **dict.fromkeys(KINDS, calls)}


def named_arguments(
    name: str, named: Mapping[str, Mapping[str, Any]], others: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What a breaker is made with: by its name, by the first glob that fits, else as all others."""
    if name in named:
        return named[name]
    return next((said for glob, said in named.items() if fnmatchcase(name, glob)), others)


def _with(arguments: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(arguments)
    if "threshold" in own and "failure_rate" not in own:
        for name in ("failure_rate", "minimum_calls", "window_calls"):
            kept.pop(name, None)
    return {**kept, **own}


def _is_call(name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in KINDS)
