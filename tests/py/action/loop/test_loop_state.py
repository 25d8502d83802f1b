"""The loop's log lines, exactly as the documents have them, and as data."""

from __future__ import annotations

from typing import Any

from loki.action.gates.gate import BLOCKING, Validation, Violation
from loki.action.loop.loop_events import Say
from loki.action.loop.loop_state import State
from support.loop import PASS, MakeFailure, MakePattern, World, change, fail, setting


def lines(world: World) -> list[tuple[str, dict[str, Any]]]:
    return [(effect.message, dict(effect.fields)) for effect in world.of(Say)]


def test_a_success_after_a_failure(make_failure: MakeFailure, make_pattern: MakePattern) -> None:
    failure = make_failure(pattern=make_pattern("type-error"))
    world = World([fail(failure), fail(failure), PASS], [change("x = 1\n"), change("x = 2\n")])
    world.run(State(setting()))
    validated = ("task=t validation=passed gates=1 violations=0", {
        "task": "t", "validation": "passed", "gates": 1, "violations": 0,
    })  # fmt: skip
    first, failed, second, regression, won, end = lines(world)
    assert first == second == validated
    assert failed == (
        "task=t attempt=1 pattern=type-error strategy=context_expand result=failed",
        {
            "task": "t",
            "attempt": 1,
            "pattern": "type-error",
            "strategy": "context_expand",
            "result": "failed",
        },
    )
    assert regression[0] == "task=t regression_check=passed complexity=medium"
    assert won[0] == "task=t attempt=2 pattern=none strategy=none result=success"
    duration = world.outcome.duration_ms
    assert end == (
        f"task=t status=success total_attempts=2 duration_ms={duration}",
        {"task": "t", "status": "success", "total_attempts": 2, "duration_ms": duration},
    )


def test_a_validation_that_fails_and_a_dead_letter(make_failure: MakeFailure) -> None:
    violations = (
        Violation("syntax_check", BLOCKING, "a.py", "invalid syntax: x=1 y=2"),
        Violation("syntax_check", BLOCKING, "b.py", "invalid syntax"),
    )
    blocked = Validation(("change_check", "syntax_check"), violations)
    world = World([fail(make_failure())], [change()], [blocked])
    world.run(State(setting(max_retries=0)))
    (validated, failed, dead, end) = lines(world)
    assert failed[0].endswith('result=failed error="a.py: syntax_check invalid syntax: x=1 y=2"')
    assert failed[1]["error"] == "a.py: syntax_check invalid syntax: x=1 y=2"
    assert validated == (
        "task=t validation=failed gates=2 violations=2",
        {"task": "t", "validation": "failed", "gates": 2, "violations": 2},
    )
    assert dead == (
        "task=t dead_letter reason=retry_budget_exhausted",
        {"task": "t", "reason": "retry_budget_exhausted"},
    )
    assert end[1]["status"] == "failed"
