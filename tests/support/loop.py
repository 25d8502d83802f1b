"""A world for the loop's machine: answers its effects from prepared lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, TypeAlias, TypeVar

from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Change
from loki.action.checks.check import Check, CheckResult, Report
from loki.action.checks.results.suite_results import Comparison
from loki.action.gates.gate import Validation
from loki.action.loop.loop import step
from loki.action.loop.loop_events import (
    Answered,
    Ask,
    Checked,
    CheckRegressions,
    Compared,
    Event,
    Execute,
    Executed,
    Finish,
    Reflect,
    Reflected,
    RunChecks,
    RunStrategy,
    StrategyResult,
    Validate,
    Validated,
)
from loki.action.loop.loop_state import LoopSettings, Phase, State
from loki.action.task import TaskSpec
from loki.base.machine import Begin, Wait, Waited
from loki.decision.backoff import Backoff
from loki.memory.task_record import Outcome
from loki.recognition.failure import Failure
from loki.recognition.pattern import Pattern, PatternSet

MakeFailure: TypeAlias = Callable[..., Failure]
MakePattern: TypeAlias = Callable[..., Pattern]

CHECK = Check(("pytest", "-q"), "test", "pytest -q")
PASS = Report((CheckResult(CHECK, True, 0, 0.1),))
NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
NO_JITTER = Backoff("5s", cap="5m", jitter=0)


def fail(failure: Failure, **tests: str) -> Report:
    return Report((CheckResult(CHECK, False, 1, 0.1, "…", failure, tests or None),))


def passing(**tests: str) -> Report:
    return Report((replace(PASS.results[0], tests=tests),))


def change(text: str = "x = 1\n", path: str = "a.py") -> Proposal:
    return Proposal(Change.write({path: text}), f"wrote {text.strip()}")


NOTHING = Proposal(Change.nothing(), "nothing more to change")


def setting(**task: Any) -> LoopSettings:
    spec = TaskSpec(**{"id": "t", "title": "a task", "checks": (CHECK,), **task})
    return LoopSettings(spec, PatternSet.default(), backoff=NO_JITTER)


_T = TypeVar("_T")


def _next(prepared: Sequence[_T]) -> _T:
    assert isinstance(prepared, list)
    return prepared.pop(0)  # type: ignore[no-any-return]


@dataclass
class World:
    """Answers the machine's effects from prepared lists, and keeps what it saw."""

    reports: Sequence[Report] = ()
    answers: Sequence[Event | Proposal] = ()
    validations: Sequence[Validation] = ()
    executions: Sequence[Executed] = ()
    helps: Sequence[StrategyResult] = ()
    comparisons: Sequence[Comparison] = ()
    now: datetime = NOON
    seen: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reports, self.answers = list(self.reports), list(self.answers)
        self.validations, self.executions = list(self.validations), list(self.executions)
        self.helps, self.comparisons = list(self.helps), list(self.comparisons)

    def run(self, state: State) -> State:
        event: Event | None = Begin()
        while event is not None:
            state, effects = step(state, event, self.now)
            self.now += timedelta(seconds=1)
            event = None
            for effect in effects:
                self.seen.append(effect)
                event = self.answer(effect) or event
        assert state.phase is Phase.DONE
        return state

    def answer(self, effect: Any) -> Event | None:
        if isinstance(effect, RunChecks):
            return Checked(_next(self.reports))
        if isinstance(effect, Ask):
            answer = _next(self.answers)
            return Answered(answer) if isinstance(answer, Proposal) else answer
        if isinstance(effect, Validate):
            return Validated(
                _next(self.validations) if self.validations else Validation(("syntax_check",))
            )
        if isinstance(effect, Execute):
            if self.executions:
                return _next(self.executions)
            return Executed(effect.proposal.change.paths)
        if isinstance(effect, CheckRegressions):
            return Compared(_next(self.comparisons) if self.comparisons else Comparison(compared=1))
        if isinstance(effect, RunStrategy):
            return (
                _next(self.helps)
                if self.helps
                else StrategyResult(effect.strategy, context="some lines")
            )
        if isinstance(effect, Reflect):
            return Reflected()
        if isinstance(effect, Wait):
            self.now += timedelta(seconds=effect.seconds)
            return Waited()
        return None

    def of(self, kind: type[Any]) -> list[Any]:
        return [effect for effect in self.seen if isinstance(effect, kind)]

    @property
    def outcome(self) -> Outcome:
        (finish,) = self.of(Finish)
        return finish.outcome  # type: ignore[no-any-return]
