"""When the conversation with an agent is begun anew: what has come together, and how much is too much.

Why it is so: ``docs/design/drift.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What has come together since the context was cleared last.

    Attributes:
        drifts: lines of drift.
        iterations: attempts of this session.
        conversation: bytes of what was told and answered.
        same_error: how often the most frequent error came.
        requested: who asks for it, or "".
    """

    drifts: int = 0
    iterations: int = 0
    conversation: int = 0
    same_error: int = 0
    requested: str = ""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a context is cleared: a short name, and a sentence."""

    name: str
    reason: str


LIMITS = {"drifts": 3, "same_error": 3, "iterations": 25, "conversation": 50 * 1024}
"""Drifts, times of one error, attempts, and bytes of briefings and answers from which on it is cleared: as
the specification has them; the most telling first."""

TRIGGERS: Mapping[str, str] = {
    "drifts": "{} drifts since the last clear",
    "same_error": "the same error {} times",
    "iterations": "{} iterations",
    "conversation": "{} bytes of conversation",
}
"""By limit, the sentence that says how much has come together."""


def trigger(load: Load) -> Trigger | None:
    """Why a context is to be cleared now; None: it is not.

    Args:
        load: what has come together.

    Example:
        >>> trigger(Load(iterations=24)) is None, trigger(Load(iterations=25)).name
        (True, 'iterations')
    """
    if load.requested:
        return Trigger("requested", f"{load.requested} asks for it")
    for name, limit in LIMITS.items():
        found = getattr(load, name)
        # So many bytes may be; of all else the last one is one too many.
        is_over = found > limit if name == "conversation" else found >= limit
        if is_over:
            return Trigger(name, TRIGGERS[name].format(found))
    return None
