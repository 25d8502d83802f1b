"""Pipelines for tests: files, and a world that answers the machine's effects from prepared lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from loki.action.pipelines.pipeline_file import read
from loki.action.pipelines.pipeline_machine import step
from loki.action.pipelines.pipeline_state import (
    Approved,
    Effect,
    Event,
    Interrupted,
    OutputsRead,
    Phase,
    PipelineSpec,
    ReadOutputs,
    Redo,
    Rejected,
    Resumed,
    RollBack,
    RolledBack,
    RunStage,
    RunState,
    StageEnded,
)
from loki.base.machine import Begin, Wait, Waited
from support.loop import NOON

FAILED = StageEnded("failed", 4, "m", "retry_budget_exhausted", "out of attempts")
RETRY = "retry: {max_attempts: 3, backoff: fixed, initial_delay_seconds: 7}"


def pipeline(*stages: str, head: str = "") -> PipelineSpec:
    """A pipeline of stages, each said by the YAML of its keys; what a stage must have is there."""
    entries = []
    for number, stage in enumerate(stages, 1):
        keys = {"id": f"s{number}", "agent": "a", "description": "Do it."}
        given = "\n".join(f"    {line}" for line in stage.strip().splitlines())
        plain = "\n".join(f"    {k}: {v}" for k, v in keys.items() if f"{k}:" not in stage)
        entries.append(f"  -\n{plain}\n{given}")
    checks = "" if "checks:" in head else "checks: ['true']\n"
    text = f"version: 1\nname: p\n{head}\n{checks}stages:\n" + "\n".join(entries)
    return read(text, "p.yml")


def begun(*stages: str, head: str = "", **changes: Any) -> RunState:
    """A run that has not begun, with its file's limits."""
    spec = pipeline(*stages, head=head)
    limits = {"max_attempts": spec.max_attempts, "max_seconds": spec.max_seconds}
    return RunState("p-1", spec, **{**limits, **changes})


def ended(status: str = "success", attempts: int = 1, **fields: Any) -> StageEnded:
    """How a stage ended."""
    return StageEnded(status, attempts, fields.pop("marker", f"{status}/{attempts}"), **fields)


def at(state: RunState, *events: Event) -> RunState:
    """The run after events, all of them at noon."""
    for event in events:
        state, _ = step(state, event, NOON)
    return state


def states() -> dict[Phase, RunState]:
    """A state in every phase, by way of real stories."""
    conditional = begun("", "condition: {stage: s1, status: success}")
    approval = at(begun("requires_approval: true"), Begin())
    running = at(begun(RETRY), Begin())
    found = [
        begun(""),
        at(conditional, Begin(), ended()),
        approval,
        running,
        at(running, FAILED),
        at(begun("rollback: undo"), Begin(), FAILED),
        at(begun(""), Begin(), ended()),
        at(begun(""), Begin(), FAILED),
        at(running, ended("escalated")),
        at(running, ended("paused")),
        at(running, Interrupted()),
    ]
    assert [state.phase for state in found] == list(Phase)
    return {state.phase: state for state in found}


EVENTS: dict[type[Any], Callable[[], Event]] = {
    Begin: Begin,
    OutputsRead: OutputsRead,
    Approved: lambda: Approved("anna"),
    Rejected: lambda: Rejected("anna"),
    StageEnded: ended,
    Waited: Waited,
    RolledBack: lambda: RolledBack("done"),
    Interrupted: Interrupted,
    Resumed: Resumed,
    Redo: lambda: Redo("s1"),
}


@dataclass
class PipelineWorld:
    """Answers effects from lists, a second for each; what it saw is kept.

    Attributes:
        works: how stages end, in order; seconds: how long each takes, 1 where nothing is said.
        outputs: what conditions see.
        results: of the steps of a rollback.
    """

    works: Sequence[StageEnded] = ()
    seconds: Sequence[float] = ()
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    results: Sequence[RolledBack] = ()
    now: datetime = NOON
    seen: list[Effect] = field(default_factory=list)

    def run(self, state: RunState, event: Event | None = None) -> RunState:
        """Until it ends."""
        works, results, times = list(self.works), list(self.results), list(self.seconds)
        pending: Event | None = event or Begin()
        while pending is not None:
            state, effects = step(state, pending, self.now)
            self.seen += effects
            pending = None
            for effect in effects:
                if isinstance(effect, RunStage):
                    self.now += timedelta(seconds=times.pop(0) if times else 1)
                    pending = works.pop(0)
                elif isinstance(effect, Wait):
                    self.now += timedelta(seconds=effect.seconds)
                    pending = Waited()
                elif isinstance(effect, ReadOutputs):
                    pending = OutputsRead(self.outputs)
                elif isinstance(effect, RollBack):
                    pending = results.pop(0) if results else RolledBack("done")
        return state

    def of(self, kind: type[Any]) -> list[Any]:
        """The effects of a kind, in order."""
        return [effect for effect in self.seen if isinstance(effect, kind)]
