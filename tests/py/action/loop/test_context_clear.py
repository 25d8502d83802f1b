"""When a conversation is begun anew: every row of the table, at its edge."""

from __future__ import annotations

import pytest

from loki.action.loop.conversation_context import LIMITS, TRIGGERS, Load, trigger


@pytest.mark.parametrize(
    ("below", "at", "name"),
    [
        (Load(), Load(requested="ann"), "requested"),
        (Load(drifts=2), Load(drifts=3), "drifts"),
        (Load(same_error=2), Load(same_error=3), "same_error"),
        (Load(iterations=24), Load(iterations=25), "iterations"),
        (Load(conversation=51_200), Load(conversation=51_201), "conversation"),
    ],
)
def test_each_trigger_at_its_edge(below: Load, at: Load, name: str) -> None:
    assert trigger(below) is None
    due = trigger(at)
    assert due is not None
    assert due.name == name
    assert due.reason


def test_every_limit_has_its_sentence() -> None:
    assert LIMITS.keys() == TRIGGERS.keys()
