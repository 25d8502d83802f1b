"""The ledger of a task."""

from __future__ import annotations

from typing import Any

from loki.base import yaml_text
from loki.memory import session_context
from loki.memory.attempt import Attempt
from loki.memory.reflection import Reflection
from loki.memory.session_context import Ledger, TaskProgress


def attempt(number: int) -> Attempt:
    decision = {"action": "fix", "rule": 6, "reason": "no pattern matched"}
    return Attempt(
        number,
        "2026-04-04T12:00:00Z",
        f"try {number}",
        "failed",
        "E1",
        strategy_used="context_expand",
        decision=decision,
    )


def made(**fields: Any) -> Ledger:
    attempts = [attempt(1), attempt(2)]
    notes = [Reflection(why="the mock hides it", instead="run it for real", attempt=2)]
    return session_context.ledger_of(
        "t1", "fix it", TaskProgress.of(attempts), reflections=notes, **fields
    )


def test_a_ledger_tells_goal_state_decisions_tries_questions_and_the_next_step() -> None:
    text = session_context.render_ledger(
        made(state="escalated", reason="stuck", said=["use b"], files=["a.py"])
    )
    fields, body = yaml_text.parse(text)
    assert (fields["task_id"], fields["state"], fields["category"]) == ("t1", "escalated", "ledger")
    for told in (
        "fix it",
        "stuck",
        "use b",
        "try 1",
        "no pattern matched",
        "a.py",
        "the mock hides it",
    ):
        assert told in body
    assert "run it for real" in body.split("## Next step")[1]
