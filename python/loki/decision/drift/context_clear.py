"""When a conversation is begun anew: one table; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loki.decision.drift.drift_policy import CLEARED

ITERATIONS = 25
CONVERSATION = 50 * 1024
SAME_ERROR = 3
"""Attempts, bytes of briefings and answers, and times of one error: as the specification has them."""


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
class Limits:
    """From where on it is cleared; 0 switches one off."""

    drifts: int = CLEARED
    iterations: int = ITERATIONS
    conversation: int = CONVERSATION
    same_error: int = SAME_ERROR


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a context is cleared: a short name, and a sentence."""

    name: str
    reason: str


TRIGGERS: tuple[tuple[str, Callable[[Load, Limits], bool], str], ...] = (
    ("requested", lambda load, _: bool(load.requested), "{load.requested} asks for it"),
    (
        "drifts",
        lambda load, limits: 0 < limits.drifts <= load.drifts,
        "{load.drifts} drifts since the last clear",
    ),
    (
        "same_error",
        lambda load, limits: 0 < limits.same_error <= load.same_error,
        "the same error {load.same_error} times",
    ),
    (
        "iterations",
        lambda load, limits: 0 < limits.iterations <= load.iterations,
        "{load.iterations} iterations",
    ),
    (
        "conversation",
        lambda load, limits: 0 < limits.conversation < load.conversation,
        "{load.conversation} bytes of conversation",
    ),
)
"""(Name, when, sentence), the most telling first."""


def trigger(load: Load, limits: Limits = Limits()) -> Trigger | None:
    """Why a context is to be cleared now; None: it is not.

    Args:
        load: what has come together.
        limits: from where on.

    Example:
        >>> trigger(Load(iterations=24)) is None, trigger(Load(iterations=25)).name
        (True, 'iterations')
    """
    for name, is_due, sentence in TRIGGERS:
        if is_due(load, limits):
            return Trigger(name, sentence.format(load=load))
    return None
