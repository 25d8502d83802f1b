"""What a person can do about a failure: ``guidance.yml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Guidance:
    """What helps with a kind of failure.

    Attributes:
        do: the first thing to do by hand, a sentence.
        decide: the question that only a person can answer, a clause.
        causes: likely root causes, most frequent first.
    """

    do: str
    decide: str
    causes: tuple[str, ...] = ()


@cache
def known() -> dict[str, Guidance]:
    """All guidance, by kind of failure or by what made loki ask."""
    import yaml

    text = Path(__file__).with_name("guidance.yml").read_text("utf-8")
    return {
        str(name): Guidance(entry["do"], entry["decide"], tuple(entry["causes"]))
        for name, entry in yaml.safe_load(text).items()
    }


def guidance(*names: str) -> Guidance:
    """The guidance for the first of some names that there is one for.

    Args:
        names: of patterns, kinds and triggers, most telling first; "" is nothing.

    Example:
        >>> guidance("lint-error-eslint", "lint-error").decide
        'whether the code changes, or the rule is switched off here'
    """
    return next((known()[name] for name in names if name in known()), known()[UNKNOWN])
