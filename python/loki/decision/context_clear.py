"""When the conversation with an agent is begun anew: what has come together, and how much is too much.

Why it is so: ``docs/design/drift.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loki.config import ContextConfig


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


TRIGGERS: Mapping[str, str] = {
    "drifts": "{} drifts since the last clear",
    "same_error": "the same error {} times",
    "iterations": "{} iterations",
    "conversation": "{} bytes of conversation",
}
"""By limit, the sentence that says how much has come together; the most telling first."""


def trigger(load: Load, limits: ContextConfig | None = None) -> Trigger | None:
    """Why a context is to be cleared now; None: it is not.

    Args:
        load: what has come together.
        limits: from where on; those of a project that says nothing by default.

    Example:
        >>> trigger(Load(iterations=24)) is None, trigger(Load(iterations=25)).name
        (True, 'iterations')
    """
    limits = limits or ContextConfig()
    if load.requested:
        return Trigger("requested", f"{load.requested} asks for it")
    for name, sentence in TRIGGERS.items():
        found, limit = getattr(load, name), getattr(limits, name)
        # So many bytes may be; of all else the last one is one too many.
        is_over = found > limit if name == "conversation" else found >= limit
        if limit > 0 and is_over:
            return Trigger(name, sentence.format(found))
    return None
