"""What the closed loop knows, and how it is written down: immutable, no I/O, no clock.

Whether an attempt was progress is told by what each test did: what is deleted or skipped is not mended,
so that leaving tests out is none. A check that fails and names no failing test counts as one more thing
that is not mended.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

from loki.action.agent_protocol import Proposal
from loki.action.checks.check import EVIDENCE, Report
from loki.action.checks.results.suite_results import FAILED, PASSED, inside
from loki.action.gates.gate import Validation
from loki.action.loop.agent_call import findings
from loki.action.loop.loop_events import (
    AgentFailed,
    Ask,
    Effect,
    Executed,
    Reflected,
    Say,
    StrategyResult,
)
from loki.action.task import TaskSpec
from loki.base.log import fields, quoted
from loki.base.time import isoformat
from loki.decision.backoff import Backoff
from loki.decision.budget import Usage
from loki.decision.drift import ScopeDrift
from loki.decision.loop_policy import Decision, FailureHistory, Limits
from loki.memory.attempt import Attempt
from loki.memory.quote import one_line
from loki.memory.reflection import Reflection
from loki.memory.task_record import Outcome
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet

# --- Whether an attempt came nearer to the end than any before it -------------------------------------

Open = tuple[str, str]
"""(check, test) of what is not mended; no test where the check names none."""


@dataclass(frozen=True, slots=True)
class ProgressMeasure:
    """How much was not mended when least was.

    Attributes:
        count: how many tests.
        items: which; empty where only their number is known, as after a restart.
    """

    count: int
    items: frozenset[Open] = frozenset()


def still_failing(seen_failing: Set[Open], report: Report) -> frozenset[Open]:
    """What fails, and what was seen failing and does not pass now.

    Args:
        seen_failing: (check, test) of every test that was seen failing.
        report: what the checks say.

    Example:
        >>> still_failing({("pytest", "a")}, Report())
        frozenset({('pytest', 'a')})
    """
    found = set(seen_failing)
    for result in report.results:
        name, tests = result.check.name, result.tests or {}
        failing = {(name, test) for test, outcome in tests.items() if outcome == FAILED}
        mended = {
            (check, test)
            for check, test in found
            if check == name and (tests.get(test) == PASSED or _is_resolved(test, tests))
        }
        found = (found - mended) | failing
        if not (result.passed or result.is_pending or failing):
            found.add((name, ""))
    return frozenset(found)


def _is_resolved(test: str, tests: Mapping[str, str]) -> bool:
    """A file that could not be loaded, whose tests are told of now."""
    return test not in tests and bool(inside(test, tests))


def fewest_failing(
    fewest: ProgressMeasure | None, now: frozenset[Open], report: Report
) -> ProgressMeasure:
    """The least so far, with what is not mended now."""
    if fewest is None or len(now) < fewest.count or not is_comparable(fewest, report):
        return ProgressMeasure(len(now), now)
    return fewest


def is_comparable(fewest: ProgressMeasure | None, report: Report) -> bool:
    """Whether what was measured was a count of tests, not a file or a whole check that did not start.

    Args:
        fewest: what was measured.
        report: what the checks say now: of what did not start, the tests are told of.
    """
    told = {result.check.name: result.tests for result in report.results if result.tests}
    hid = (
        not test or _is_resolved(test, told[check])
        for check, test in (fewest.items if fewest else ())
        if check in told
    )
    return not any(hid)


def progress_record(fewest: ProgressMeasure | None, now: Set[Open]) -> dict[str, Any] | None:
    """What an attempt's record says of it; None where there is nothing to compare with."""
    return None if fewest is None else {"unmended": len(now), "fewest_before": fewest.count}


def of_record(record: Mapping[str, Any] | None) -> tuple[bool, int | None]:
    """(whether it was progress, the fewest with it) by what `kept` gave.

    Example:
        >>> of_record({"unmended": 3, "fewest_before": 4}), of_record(None)
        ((True, 3), (False, None))
    """
    now, before = ((record or {}).get(name) for name in ("unmended", "fewest_before"))
    if not isinstance(now, int) or not isinstance(before, int):
        return False, None
    return now < before, min(now, before)


# --- What the loop knows ------------------------------------------------------------------------------

ERROR_LENGTH = 200
"""Most characters of an error in a log line. Chosen, not measured."""

APPLIED = "applied"
"""Stands for the project where a proposed change is part of it."""


class Phase(str, Enum):
    """Where the loop stands: what it waits for."""

    NEW = "new"
    BASELINE = "baseline"
    GENERATE = "generate"
    VALIDATE = "validate"
    EXECUTE = "execute"
    EVALUATE = "evaluate"
    REGRESSION = "regression"
    LAND = "land"
    REFLECT = "reflect"
    FIX = "fix"
    WAIT = "wait"
    BREAKER = "breaker"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """What stays the same for a whole execution of a task."""

    task: TaskSpec
    patterns: PatternSet = field(default_factory=PatternSet.default)
    execution: int = 1
    infrastructure_retries: int = 5
    backoff: Backoff = field(default_factory=lambda: Backoff("5s", cap="5m"))
    regression_for: tuple[str, ...] = ("medium", "high")
    """Complexities of tasks whose changes are checked for regressions."""
    needs_check: bool = True
    """Without a check nothing verifies a change; a plan is verified as it is taken."""
    lands: bool = False
    """It is worked on in a copy: what succeeds there has to be brought into the project."""

    @property
    def limits(self) -> Limits:
        """How often to try again."""
        return Limits(self.task.max_retries, self.infrastructure_retries)

    @property
    def checks_regressions(self) -> bool:
        """Whether this task's changes are."""
        return self.task.complexity in self.regression_for


@dataclass(frozen=True, slots=True)
class Current:
    """The attempt in flight."""

    number: int
    begun: datetime
    proposal: Proposal | None = None
    validation: Validation | None = None
    executed: Executed | None = None
    report: Report = field(default_factory=Report)
    regression: Mapping[str, Any] | None = None
    progress: Mapping[str, Any] | None = None
    delay_seconds: float = 0.0

    @property
    def approach(self) -> str:
        """What was tried, in a line or a few; "" where nothing was."""
        if self.proposal is None:
            return ""
        if self.proposal.description:
            return self.proposal.description
        paths = ", ".join(self.proposal.change.paths)
        ran = "; ".join(shlex.join(command) for command in self.proposal.change.commands)
        return f"changed {paths}" if paths else f"ran {ran}" if ran else ""

    @property
    def failed_command(self) -> str:
        """The command that failed, a check's or one of the change's own; "" where none did."""
        first = self.report.first_failure
        if first is not None:
            return shlex.join(first.check.command)
        ran = self.commands
        return next((str(c.get("command", "")) for c in ran if c.get("exit_code") != 0), "")

    @property
    def commands(self) -> tuple[Mapping[str, Any], ...]:
        """What each command of the change did."""
        return self.executed.commands if self.executed else ()

    def findings(self, *, failed: bool) -> tuple[Mapping[str, Any], ...]:
        """What the agent's message shows, where the attempt failed or did not."""
        return findings(self.proposal, self.report, self.commands, failed=failed)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What is done about a failure.

    Attributes:
        decision: what was decided.
        failed_in: the phase that failed.
        facts: what is known of the failed attempt, where the agent is asked about it.
        help: what the strategy did.
        helpless: strategies that could not be carried out.
    """

    decision: Decision
    failed_in: Phase
    facts: Reflection | None = None
    help: StrategyResult | None = None
    helpless: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class State:
    """Everything the loop knows; never changed in place.

    Attributes:
        setting: what stays the same.
        phase: where it stands.
        started: when this execution began.
        last_number: number of the last attempt in the task's life.
        made: attempts made in this execution, since a person last stepped in.
        made_before: those before that; no limit counts them.
        past: what failed before in this execution.
        current: the attempt in flight.
        failure: what failed last.
        of_answer: that failure is one of the agent's answer: it says nothing of the project.
        unmended: what failed before such answers, or before the agent could not be asked.
        asked: the last question to the agent.
        last_remedy: what is done about the last failure of this execution.
        proposed: digest of each change proposed since the last one took effect, to the digest of
            the project as it was shown then, or `APPLIED`.
        altered: a fix changed the project since the last proposal.
        worked: a change, fix or command has taken effect in this task.
        helped: a person stepped in after the task had stopped.
        files: paths changed since the task began.
        seen_failing: (check, test) of tests that were seen failing.
        waiting: criteria that only a person can still approve.
        fewest: how little was not mended when least was, in this execution; None: not known.
        regressed: tests that the last regression check found broken.
        wait_seconds: the wait that it is in, or was in last.
        tokens, cost: what agents spent in this execution, as far as they tell.
        warned: limits of the budget that a warning was given for.
        drift: how proposals have left the task.
        withheld: a change that a person has approved since it was kept from being made; the next
            attempt is that.
        outcome: how it ended, once it has.
    """

    setting: LoopSettings
    phase: Phase = Phase.NEW
    started: datetime | None = None
    last_number: int = 0
    made: int = 0
    made_before: int = 0
    past: FailureHistory = field(default_factory=FailureHistory)
    current: Current | None = None
    failure: Failure | None = None
    of_answer: bool = False
    unmended: Failure | None = None
    asked: Ask | None = None
    last_remedy: Remedy | None = None
    proposed: Mapping[str, str] = field(default_factory=dict)
    altered: bool = False
    worked: bool = False
    helped: bool = False
    files: tuple[str, ...] = ()
    seen_failing: frozenset[tuple[str, str]] = frozenset()
    waiting: tuple[str, ...] = ()
    fewest: ProgressMeasure | None = None
    regressed: frozenset[str] = frozenset()
    wait_seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    warned: frozenset[str] = frozenset()
    drift: ScopeDrift = field(default_factory=ScopeDrift)
    pending_proposal: Proposal | None = None
    outcome: Outcome | None = None

    @property
    def attempt(self) -> Current:
        """The attempt in flight, where there must be one."""
        assert self.current is not None
        return self.current

    @property
    def remedy(self) -> Remedy:
        """What is done about the last failure, where there must be one."""
        assert self.last_remedy is not None
        return self.last_remedy

    @property
    def asked_about(self) -> Reflection:
        """What is known of the failed attempt that the agent is asked about."""
        assert self.remedy.facts is not None
        return self.remedy.facts


Step: TypeAlias = tuple[State, tuple[Effect, ...]]
"""The state after an event, and what is to be done."""


def to_mend(state: State) -> Failure | None:
    """What failed last of the work: an empty answer mends nothing, and says nothing of it."""
    return (state.unmended if state.of_answer else None) or state.failure


def with_current(state: State, **changes: Any) -> State:
    """The state with something of the attempt in flight replaced."""
    return replace(state, current=replace(state.attempt, **changes))


def proposal_of(state: State) -> Proposal:
    """What the agent proposed in the attempt in flight."""
    proposal = state.attempt.proposal
    assert proposal is not None
    return proposal


def measured(state: State, report: Report) -> State:
    """How much is left to mend, and whether that is less than ever before."""
    now = still_failing(state.seen_failing, report)
    if state.current is not None:
        fewest = state.fewest if is_comparable(state.fewest, report) else None
        state = with_current(state, progress=progress_record(fewest, now))
    return replace(state, fewest=fewest_failing(state.fewest, now, report))


def awaited(state: State, report: Report) -> tuple[str, ...]:
    """Criteria that only a person can still approve; what they did all by themselves they have seen."""
    seen = {EVIDENCE} if state.helped and state.current is None and not state.files else set()
    return tuple(check.name for check in report.pending if check.name not in seen)


def usage(state: State, now: datetime) -> Usage:
    """What this execution has spent; time since it was begun, or gone on with."""
    elapsed = (now - (state.started or now)).total_seconds()
    return Usage(state.made, max(0.0, elapsed), state.tokens, state.cost)


def charged(state: State, took: Proposal | AgentFailed | Reflected) -> State:
    """The state with what an answer, a failure or a reflection took added to what was spent."""
    tokens, cost = took.tokens or 0, took.cost or 0.0
    cost = cost if math.isfinite(cost) else 0.0
    return replace(state, tokens=state.tokens + max(0, tokens), cost=state.cost + max(0.0, cost))


def paid(proposal: Proposal | None) -> Proposal | None:
    """A proposal that is worked on once more: what it took is on record already."""
    return replace(proposal, tokens=None, cost=None) if proposal else None


def without_request(state: State) -> State:
    """The attempt in flight was not put to an agent: it does not count."""
    return replace(state, made=state.made - 1, last_number=state.last_number - 1)


def took_effect(state: State, files: tuple[str, ...]) -> State:
    """The project is another one now: earlier proposals may be made again."""
    if not files:
        return state
    proposal = state.current.proposal if state.current else None
    has_change = proposal is not None and not proposal.change.is_empty
    own = {proposal.change.digest(): APPLIED} if proposal and has_change else {}
    merged = tuple(dict.fromkeys((*state.files, *files)))
    return replace(state, worked=True, proposed=own, files=merged)


def record(
    state: State,
    now: datetime,
    result: str,
    failure: Failure | None = None,
    decision: Decision | None = None,
    *,
    infrastructure: bool = False,
) -> Attempt:
    """The record of the attempt in flight."""
    current = state.attempt
    executed, proposal = current.executed, current.proposal
    return Attempt(
        attempt=current.number,
        timestamp=isoformat(current.begun),
        action=current.approach,
        result=result,
        error=failure.said if failure else None,
        pattern_matched=failure.match.pattern if failure and failure.match else None,
        strategy_used=decision.strategy if decision else None,
        duration_ms=round((now - current.begun).total_seconds() * 1000),
        files_modified=executed.files if executed else (),
        execution=state.setting.execution,
        phase=state.phase.value if failure else "",
        infrastructure=infrastructure,
        failure=failure.to_dict() if failure else None,
        fingerprint=failure.fingerprint if failure else None,
        signature=failure.signature if failure else None,
        recognizer_version=failure.recognizer_version if failure else None,
        confidence=failure.confidence if failure else None,
        agent_confidence=proposal.confidence if proposal else None,
        decision=_decision_record(decision),
        checks=tuple(check.record() for check in current.report.results),
        validation=current.validation.record() if current.validation else None,
        regression=current.regression,
        progress=current.progress,
        commands=current.commands,
        findings=() if infrastructure else current.findings(failed=failure is not None),
        agent=proposal.agent if proposal else "",
        model=proposal.model if proposal else None,
        tokens=proposal.tokens if proposal else None,
        cost=proposal.cost if proposal else None,
        delay_ms=round(current.delay_seconds * 1000),
    )


def _decision_record(decision: Decision | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    return {"action": decision.action.value, "rule": decision.rule, "reason": decision.reason}


def attempt_line(
    state: State, result: str, failure: Failure | None = None, decision: Decision | None = None
) -> Say:
    """The log line of an attempt that is over."""
    pattern = failure.match.pattern if failure and failure.match else "none"
    strategy = (decision.strategy or decision.action.value) if decision else "none"
    current = state.attempt
    head = f"attempt={current.number} pattern={pattern} strategy={strategy} result={result}"
    # What a check said stands in the line of the check.
    if failure is not None and current.report.first_failure is None:
        head += error_field(failure)
    return say(state, head)


def error_field(failure: Failure) -> str:
    """The field of a log line that says what failed, in a line that is not too long."""
    return f" error={quoted(one_line(str(failure), ERROR_LENGTH))}"


def say(state: State, message: str, *, warning: bool = False) -> Say:
    """A log line of this task; its ``name=value`` words are its fields."""
    task = state.setting.task.id
    return Say(f"task={task} {message}", {"task": task, **fields(message)}, warning)
