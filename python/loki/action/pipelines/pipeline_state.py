"""What a pipeline's machine knows, is told (events) and asks for (effects): immutable, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from loki.base import codec
from loki.base.codec import kept
from loki.base.machine import Begin, Wait, Waited
from loki.memory.task_record import EXIT_CODES

if TYPE_CHECKING:
    from loki.action.pipelines.pipeline_file import Condition


# --- A pipeline as its file has it --------------------------------------------------------------------

CLOSED_LOOP = "closed-loop-execution"
"""The skill that names the loop itself."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How a stage that failed is tried again.

    Attributes:
        max_attempts: tries in all, 1 to 10.
        backoff: exponential, linear or fixed.
        initial_delay_seconds: wait before the second try, 1 to 300.
    """

    max_attempts: int = 1
    backoff: str = "exponential"
    initial_delay_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Output:
    """What a stage hands on.

    Attributes:
        name: what inputs call it.
        file: the project's file that it is; None: a document, or a summary of the changes.
    """

    name: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One stage, as its file has it.

    Attributes:
        id: names it; agent: name of the agent that works on it.
        description: what it is to achieve.
        mode: ``plan`` writes documents, ``agent`` is the closed loop.
        inputs: names of parameters and of outputs of earlier stages; outputs: what it hands on.
        condition: what must be so for it to run at all.
        requires_approval: a person must agree before it begins.
        timeout_seconds: wall time for all its tries.
        retry: how it is tried again.
        rollback: when it finally failed: none, undo, all, or commands.
        skill: what its agent is told to use; None: nothing but the closed loop.
        checks: commands that decide; kind, complexity: as of a task.
        digest: differs where anything of it was edited.
    """

    id: str
    agent: str
    description: str
    mode: str = "agent"
    inputs: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = ()
    condition: tuple[Condition, ...] = ()
    requires_approval: bool = False
    timeout_seconds: float = 1800.0
    retry: Retry = Retry()
    rollback: str | tuple[str, ...] = "none"
    skill: str | None = None
    checks: tuple[str, ...] = ()
    kind: str = "feature"
    complexity: str = "medium"
    digest: str = ""


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A whole pipeline.

    Attributes:
        name, description: what it is.
        stages: in their order.
        parameters: name to default; None: it must be given.
        max_attempts: attempts of all stages together, or None; max_seconds: wall time, or None.
    """

    name: str
    stages: tuple[StageSpec, ...]
    description: str = ""
    parameters: Mapping[str, str | None] = field(default_factory=dict)
    max_attempts: int | None = None
    max_seconds: float | None = None

    def stage(self, id_: str) -> StageSpec | None:
        """The stage of an id."""
        return next((stage for stage in self.stages if stage.id == id_), None)


# --- What the machine knows ---------------------------------------------------------------------------


class Phase(str, Enum):
    """Where a run of a pipeline stands: what it waits for."""

    NEW = "new"
    CONDITION = "condition"
    APPROVAL = "approval"
    RUNNING = "running"
    RETRY_WAIT = "retry_wait"
    ROLLBACK = "rollback"
    DONE = "done"
    FAILED = "failed"
    ESCALATED = "escalated"
    PAUSED = "paused"
    INTERRUPTED = "interrupted"


OVER = frozenset({Phase.DONE, Phase.FAILED})
"""A run in one of these has ended for good, unless somebody begins again at a stage."""

WAITING_FOR_A_PERSON = frozenset({Phase.APPROVAL, Phase.ESCALATED})

SETTLED = frozenset({"success", "skipped"})
"""Statuses of stages that are done."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's leave for one stage of one run.

    Attributes:
        by: who gave it; at: when, in UTC.
        note: what was said.
        digest: of the stage as it was then.
    """

    by: str
    at: datetime
    note: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class RollbackStep:
    """One thing to do when a stage has finally failed.

    Attributes:
        kind: ``undo`` or ``command``.
        subject: id of the stage to undo, or the command.
        result: "" while it is to be done; done, conflict, failed, or unknown where loki was killed
            while the command ran.
        detail: what came of it, one line.
    """

    kind: str
    subject: str
    result: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StageState:
    """How a stage stands.

    Attributes:
        status: waiting, running, success, skipped, failed, escalated, paused or interrupted.
        round: 1, and one more each time it was begun again on demand.
        tries: how often it was tried in this round; attempts: of its loop in all of them.
        spent: seconds of work on it.
        marker: which ending of its task was taken note of last.
        digest: of the stage as it was when it ran last.
        approval: a person's leave, or None.
        context: what a person said when resuming.
        retry_at: when its next try begins, or its breaker lets a call through; None: no matter.
        begun, ended: when, in UTC.
        outputs: names of what it handed on.
        files, pattern, reason, trigger, page: as of a task's outcome.
    """

    status: str = "waiting"
    round: int = 1
    tries: int = 0
    attempts: int = 0
    spent: float = 0.0
    marker: str = ""
    digest: str = ""
    approval: Approval | None = None
    context: str = ""
    retry_at: datetime | None = None
    begun: datetime | None = None
    ended: datetime | None = None
    outputs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    pattern: str | None = None
    reason: str = ""
    trigger: str = ""
    page: str | None = None


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that is known of a run; never changed in place.

    Attributes:
        run: its id.
        spec: the pipeline.
        parameters: their values.
        max_attempts: attempts of all stages together, or None; max_seconds: wall time, or None.
        phase: where it stands.
        at: id of the stage that it stands at, or None.
        resumes_in: the phase in which it goes on, where it is paused or interrupted.
        stages: how each stage stands that is not just waiting.
        spent: seconds of work on the run.
        seen: when something happened last; None: nothing has yet.
        begun: when it began.
        rollback: what is done since a stage failed.
        status, reason, trigger: how it ended this time; "" while it is under way.
    """

    run: str
    spec: PipelineSpec
    parameters: Mapping[str, str] = field(default_factory=dict)
    max_attempts: int | None = None
    max_seconds: float | None = None
    phase: Phase = Phase.NEW
    at: str | None = None
    resumes_in: Phase | None = None
    stages: Mapping[str, StageState] = field(default_factory=dict)
    spent: float = 0.0
    seen: datetime | None = None
    begun: datetime | None = None
    rollback: tuple[RollbackStep, ...] = ()
    status: str = ""
    reason: str = ""
    trigger: str = ""

    def of(self, id_: str) -> StageState:
        """How a stage stands."""
        return self.stages.get(id_) or StageState()

    @property
    def here(self) -> StageSpec:
        """The stage that it stands at."""
        found = self.spec.stage(self.at or "")
        assert found is not None
        return found

    @property
    def current(self) -> StageState:
        """How the stage stands that it stands at."""
        return self.of(self.at or "")

    @property
    def attempts(self) -> int:
        """Of all stages together."""
        return sum(stage.attempts for stage in self.stages.values())

    def task_id(self, id_: str) -> str:
        """Id of the task in which a stage does its work; each round has its own.

        Names of runs and stages have no dots, so no two of them share one.
        """
        round_ = self.of(id_).round
        return f"{self.run}.{id_}" + (f".{round_}" if round_ > 1 else "")


def shared(value: Any, kind: Any) -> dict[str, Any]:
    """The values of those fields of a dataclass that another one has, too."""
    names = {one.name for one in fields(value)}
    return {one.name: getattr(value, one.name) for one in fields(kind) if one.name in names}


def with_stage(state: RunState, id_: str, **changes: Any) -> RunState:
    """The state with something of a stage replaced."""
    return replace(state, stages={**state.stages, id_: replace(state.of(id_), **changes)})


# --- Events -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutputsRead:
    """The texts that a condition may look at: stage → name → text."""

    outputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Approved:
    """A person lets the stage begin."""

    by: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A person ends the run."""

    by: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class StageEnded:
    """The stage's loop ended, or its agent has written what it was asked for.

    Attributes:
        status: as of a task's outcome.
        attempts: of the stage in all its tries.
        marker: names this ending of the task.
        trigger, reason, files, pattern, page, retry_at: as of a task's outcome.
        outputs: names of what it handed on.
    """

    status: str
    attempts: int = 0
    marker: str = ""
    trigger: str = ""
    reason: str = ""
    files: tuple[str, ...] = ()
    pattern: str | None = None
    page: str | None = None
    retry_at: datetime | None = None
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A step of the rollback is done, as far as it could be."""

    result: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The user wants the run to stop."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run goes on where it stood: after a pause, an interrupt, a person's work, or a crash.

    Attributes:
        context: what the person says to the agent, or "".
    """

    context: str = ""


@dataclass(frozen=True, slots=True)
class Redo:
    """Begin again at a stage; those before it keep what they have done."""

    stage: str


Event: TypeAlias = (
    Begin
    | OutputsRead
    | Approved
    | Rejected
    | StageEnded
    | Waited
    | RolledBack
    | Interrupted
    | Resumed
    | Redo
)

# --- Effects ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadOutputs:
    """Read what earlier stages handed on; answered by `OutputsRead`."""


@dataclass(frozen=True, slots=True)
class RunStage:
    """Work on the stage; answered by `StageEnded`.

    Attributes:
        stage: its id.
        max_attempts: most attempts that its task may ever take within the run's limit, or None.
        max_seconds: time that is left for it.
    """

    stage: str
    max_attempts: int | None
    max_seconds: float


@dataclass(frozen=True, slots=True)
class RollBack:
    """Do a step of the rollback; answered by `RolledBack`."""

    step: RollbackStep


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Write the page that asks a person for leave."""

    stage: str


@dataclass(frozen=True, slots=True)
class Say:
    """A log line."""

    message: str
    warning: bool = False


Effect: TypeAlias = ReadOutputs | RunStage | Wait | RollBack | AskApproval | Say


# --- How a run ended, for good or for now -------------------------------------------------------------

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
    stages = tuple(_stage_outcome(state, stage.id) for stage in state.spec.stages)
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


def _stage_outcome(state: RunState, id_: str) -> StageOutcome:
    stage = state.of(id_)
    same = shared(stage, StageOutcome)
    return StageOutcome(id=id_, task_id=state.task_id(id_), seconds=stage.spent, **same)
