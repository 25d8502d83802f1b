"""How a run of a pipeline ended, for good or for now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from loki.action.pipelines.pipeline_state import Phase, RollbackStep, RunState
from loki.base import codec
from loki.base.codec import kept
from loki.memory.task_outcome import EXIT_CODES

OUT_OF_BUDGET = frozenset({"budget", "timeout"})
"""Triggers of a failure that a limit caused."""


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """How a stage stands.

    Attributes:
        id: the stage's; task_id: of the task in which it works, for `loki show`.
        status: waiting, running, success, skipped, failed, escalated, paused or interrupted.
        tries: how often it was tried; attempts: of its loop in all of them.
        seconds: of work on it.
        files, pattern, reason, trigger, page: as of a task's `loki.Outcome`.
        outputs: names of what it handed on.
    """

    id: str
    task_id: str
    status: str
    tries: int = 0
    attempts: int = 0
    seconds: float = 0.0
    files: tuple[str, ...] = kept(name="files_modified", default=())
    pattern: str | None = kept(name="failure_pattern", default=None)
    reason: str = ""
    trigger: str = ""
    page: str | None = None
    outputs: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {**codec.fields_of(self), "seconds": round(self.seconds, 3)}


@dataclass(frozen=True, slots=True)
class PipelineOutcome:
    """How a run of a pipeline ended.

    Attributes:
        run: its id, for `loki pipeline show` and `resume`.
        pipeline: the pipeline's name.
        status: success, failed, escalated, paused or interrupted; running, where it was killed.
        stage: id of the stage that it stands at, or None.
        attempts: of all stages together.
        stages: how each stands, in their order.
        reason: one sentence; trigger: short name of what ended it, or "": approval, rejected,
            budget, timeout, or that of the stage's task.
        page: what a person is to read, relative to ``.loki/``, or None.
        seconds: of work on it.
        retry_at: when a breaker that paused it may let a call through; None: nobody knows.
        rollback: what was done after a stage had failed.
    """

    run: str
    pipeline: str
    status: str
    stage: str | None = None
    attempts: int = 0
    stages: tuple[StageOutcome, ...] = ()
    reason: str = ""
    trigger: str = ""
    page: str | None = None
    seconds: float = 0.0
    retry_at: datetime | None = None
    rollback: tuple[RollbackStep, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of ``loki pipeline run``."""
        if self.status == "failed" and self.trigger in OUT_OF_BUDGET:
            return 5
        return EXIT_CODES.get(self.status, 1)

    @property
    def files(self) -> tuple[str, ...]:
        """Paths that stages have changed, each once."""
        return tuple(dict.fromkeys(path for stage in self.stages for path in stage.files))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        said = codec.fields_of(self)
        behind = {name: said.pop(name) for name in ("stages", "rollback")}
        rounded = {"seconds": round(self.seconds, 3), "files_modified": list(self.files)}
        return {**said, **rounded, **behind}


def outcome_of(state: RunState) -> PipelineOutcome:
    """How a run stands, as its outcome."""
    at = state.current if state.at else None
    stages = tuple(_stage(state, stage.id) for stage in state.spec.stages)
    return PipelineOutcome(
        state.run,
        state.spec.name,
        state.status or "running",
        state.at,
        state.attempts,
        stages,
        state.reason,
        state.trigger,
        at.page if at else None,
        state.spent,
        at.retry_at if at and state.phase is Phase.PAUSED else None,
        state.rollback,
    )


def _stage(state: RunState, id_: str) -> StageOutcome:
    stage = state.of(id_)
    return StageOutcome(
        id_,
        state.task_id(id_),
        stage.status,
        stage.tries,
        stage.attempts,
        stage.spent,
        stage.files,
        stage.pattern,
        stage.reason,
        stage.trigger,
        stage.page,
        stage.outputs,
    )
