"""One process's work on a run of a pipeline: performs what the pure machine asks for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from loki.action.checks.check import EVIDENCE, Check
from loki.action.loop.agent_call import AnyAgent, run_coroutine
from loki.action.loop.loop_driver import Awaiter, in_thread, resumption_status, wait_here
from loki.action.loop.recorder import forget_refused
from loki.action.loop.resumption import ENDED
from loki.action.pipelines import pipeline_record
from loki.action.pipelines.pipeline_machine import step
from loki.action.pipelines.pipeline_record import output_document
from loki.action.pipelines.pipeline_stage import Input, StageAgent, planner, section, summary
from loki.action.pipelines.pipeline_state import (
    SETTLED,
    AskApproval,
    Event,
    Interrupted,
    OutputsRead,
    PipelineOutcome,
    ReadOutputs,
    RollBack,
    RolledBack,
    RunStage,
    RunState,
    Say,
    StageEnded,
    StageSpec,
    outcome_of,
)
from loki.action.processes.command_line import split_command_line
from loki.action.task import TaskSpec
from loki.base.error import LokiError, UsageError
from loki.base.machine import Wait, Waited
from loki.base.markup import code, inline
from loki.base.text_format import did_you_mean
from loki.base.time import isoformat
from loki.decision.budget import Budget
from loki.execution.assembly import TaskRequest, task_spec
from loki.execution.resolve import named_agent
from loki.execution.task_session import Task
from loki.execution.task_session import performer as performer_of
from loki.memory import task_record
from loki.memory.task_record import Intervention, Outcome, TaskRecord, words_of
from loki.people.request import stage_page

if TYPE_CHECKING:
    from loki.action.loop.performer import Performer
    from loki.execution.stop_request import Word
    from loki.memory.attempt import Attempt
    from loki.workspace import Workspace


# --- Who works on a stage -----------------------------------------------------------------------------

EVERY_OTHER = "*"
"""Stands, among the names of agents, for all that are not named."""

Agents: TypeAlias = "Mapping[str, AnyAgent] | AnyAgent"
"""Agents by name (``"*"`` for every other), or one for all stages."""


def agent_of(stage: StageSpec, agents: Agents | None, workspace: Workspace) -> AnyAgent:
    """Who works on a stage.

    Raises:
        UsageError: nobody is known by that name.
    """
    if agents is not None and not isinstance(agents, Mapping):
        return agents
    named: Mapping[str, AnyAgent] = agents or {}
    found = named.get(stage.agent) or named.get(EVERY_OTHER)
    if found is not None:
        return found
    try:
        return named_agent(workspace, stage.agent)
    except UsageError as error:
        known = [name for name in named if name != EVERY_OTHER]
        also = f"; given are: {', '.join(known)}{did_you_mean(stage.agent, known)}" if known else ""
        raise UsageError(f"stage {stage.id}: {error}{also}") from None


# --- What flows from stage to stage -------------------------------------------------------------------

logger = logging.getLogger("loki")

MAX_FILE = 1_000_000
"""Bytes of a file that is handed on. Chosen, not measured."""


def hand_on(workspace: Workspace, state: RunState, files: Sequence[str]) -> tuple[str, ...]:
    """Keep what the stage that it stands at hands on; a plan's documents are kept already.

    Args:
        workspace: the project.
        state: the run.
        files: paths that the stage has changed.

    Returns:
        The names.
    """
    stage, id_ = state.here, state.task_id(state.here.id)
    for output in stage.outputs if stage.mode == "agent" else ():
        if output.file:
            text = _read(workspace, output.file)
        else:
            passed = [a for a in workspace.history(id_).attempts() if a.result == "success"]
            diff = workspace.journal(id_).diff()
            text = summary(output.name, stage, files, [a.action for a in passed], diff)
        workspace.store.write(output_document(state.run, output.name), text)
    return tuple(output.name for output in stage.outputs)


def _read(workspace: Workspace, path: str) -> str:
    try:
        found = (workspace.root / path).resolve(strict=True)
        if not found.is_relative_to(workspace.root):
            logger.warning("%s is not handed on: it leads out of the project", path)
            return ""
        with found.open("rb") as file:
            return file.read(MAX_FILE).decode("utf-8", "replace")
    except OSError as error:
        logger.warning("%s cannot be handed on: %s", path, error.strerror or error)
        return ""


def stage_outputs(workspace: Workspace, state: RunState) -> dict[str, dict[str, str]]:
    """The texts that stages which are done have handed on: stage to name to text."""
    return {
        id_: {name: _output(workspace, state, name) for name in stage.outputs}
        for id_, stage in state.stages.items()
        if stage.status in SETTLED
    }


def _output(workspace: Workspace, state: RunState, name: str) -> str:
    return workspace.store.read(output_document(state.run, name)) or ""


def stage_inputs(workspace: Workspace, state: RunState) -> list[Input]:
    """What the stage is given that the run stands at."""
    return [_input(workspace, state, name) for name in state.here.inputs]


def _input(workspace: Workspace, state: RunState, name: str) -> Input:
    makers = [s.id for s in state.spec.stages if name in {output.name for output in s.outputs}]
    if not makers:
        return Input(name, "a parameter", state.parameters.get(name, ""))
    maker = makers[0]
    if state.of(maker).status == "skipped":
        return Input(name, f"of stage {maker}", "(nothing: this stage was skipped)")
    file = workspace.folder / output_document(state.run, name)
    return Input(name, f"of stage {maker}", _output(workspace, state, name), str(file))


# --- A run, from stage to stage -----------------------------------------------------------------------

LEAST_SECONDS = 0.001
"""A time that is over as soon as it is looked at."""


class PipelineSession:
    """A run, from stage to stage.

    Args:
        workspace: the project; the caller holds it exclusively.
        state: where to begin.
        agents: by name.
        file: the pipeline's, as its record calls it.
        wait: whether stages wait while a breaker is open; None: as their time-out allows.

    Attributes:
        awaiter: awaits what async agents answer, in threads of their own where nothing else is said.
    """

    def __init__(
        self,
        workspace: Workspace,
        state: RunState,
        agents: Mapping[str, AnyAgent],
        file: str,
        wait: bool | None = None,
    ) -> None:
        self.workspace = workspace
        self.state = state
        self._agents = agents
        self._file = file
        self._wait = wait
        self.awaiter: Awaiter = run_coroutine
        self._cancelled = threading.Event()
        self._task_now: Task | None = None
        self._performs: Mapping[type[Any], Callable[[Any], Event | None]] = {
            ReadOutputs: lambda _: OutputsRead(stage_outputs(self.workspace, self.state)),
            Wait: self._pause,
            RollBack: self._roll_back,
            AskApproval: self._ask_approval,
            Say: self._say,
        }

    def answer(self, event: Event | None) -> StageWork | PipelineOutcome:
        """Go on with an event up to the next stage's work, or the end."""
        pending = event
        while pending is not None:
            try:
                work, pending = self._advance(pending)
            except KeyboardInterrupt:
                if self.state.status:  # it has just ended
                    self._save()
                    break
                work, pending = None, Interrupted()
            if work is not None:
                return work
        return outcome_of(self.state)

    def cancel(self) -> None:
        """End what it does just now, from another thread: a wait, or a stage's work."""
        self._cancelled.set()
        if self._task_now is not None:
            self._task_now.stop()

    def received(self, word: Word) -> None:
        """A person's word; what is in hand is done where they only want nothing more begun."""
        if word != "drain":
            self.cancel()

    @contextmanager
    def at_work(self, task: Task) -> Iterator[Task]:
        """Inside, a stage's task is worked on; `cancel` ends it, also one that came before."""
        with task as entered:
            self._task_now = entered
            if self._cancelled.is_set():
                entered.stop()
            try:
                yield entered
            finally:
                self._task_now = None

    def _advance(self, event: Event) -> tuple[StageWork | None, Event | None]:
        now = self.workspace.clock.now()
        self.state, effects = step(self.state, event, now)
        folder = pipeline_record.folder(self.state.run)
        line = pipeline_record.event_to_dict(event, self.state, now)
        self.workspace.store.append(f"{folder}/events.jsonl", line)
        self._save()
        answer: Event | None = None
        for effect in effects:
            if isinstance(effect, RunStage):
                if self._cancelled.is_set():
                    return None, self.interrupted()
                return self._work(effect)
            answer = self._performs[type(effect)](effect) or answer
        return None, answer

    def _save(self) -> None:
        data = pipeline_record.to_dict(self.state, self._file, self.workspace.clock.now())
        pipeline_record.save(self.workspace.store, data)

    # --- A stage's task ---------------------------------------------------------------------------

    def _work(self, effect: RunStage) -> tuple[StageWork | None, Event | None]:
        """The stage's task, to be worked on; or how it ended, where nobody has taken note yet."""
        record = task_record.load(self.workspace.store, self.state.task_id(effect.stage))
        marker = self._marker(record)
        if record.outcome and marker and marker != self.state.current.marker:
            return None, self._ended(record.outcome, marker)
        stage, context = self.state.here, self.state.current.context
        intervention = self._intervention(record)
        stands = resumption_status(record, self._history(stage), intervention)
        # What the task's own briefing says is not said twice.
        is_told = context in words_of(stands.interventions, stands.execution)
        inputs = stage_inputs(self.workspace, self.state)
        told = section(self.state.spec, stage, inputs, "" if is_told else context)
        plan = stage if stage.mode == "plan" else None
        agent = StageAgent(self._agents[stage.agent], told, plan)
        # The budget counts since a person stepped in; the run's limit counts everything.
        earlier = len(self._history(stage)) - stands.made
        return StageWork(self, self._task(stage, effect, earlier, intervention), agent), None

    def _intervention(self, record: TaskRecord) -> Intervention | None:
        """A person steps in: answers an escalation, or says something to a try that goes on.

        A process that was killed meanwhile finds it in the task's record, where it steps in once.
        """
        context, status = self.state.current.context, record.status
        known = words_of(record.interventions, record.execution)
        says = bool(context) and bool(record) and status not in ENDED and context not in known
        if status != "escalated" and not says:
            return None
        return Intervention(isoformat(self.workspace.clock.now()), context=context)

    def _history(self, stage: StageSpec) -> list[Attempt]:
        return self.workspace.history(self.state.task_id(stage.id)).attempts()

    def _task(
        self,
        stage: StageSpec,
        effect: RunStage,
        earlier: int,
        intervention: Intervention | None,
    ) -> Task:
        workspace, run, id_ = self.workspace, self.state.run, self.state.task_id(stage.id)
        request = TaskRequest(
            stage.description,
            checks_of(stage, workspace),
            stage.kind,
            # A plan leaves the project as it is: there is nothing that could regress.
            "low" if stage.mode == "plan" else stage.complexity,
            wait=self._wait,
            id=id_,
        )
        spec = task_spec(workspace, request)
        # A person looks at what a stage has done where it says so (`requires_approval`).
        spec = replace(spec, checks=tuple(c for c in spec.checks if c.name != EVIDENCE))
        left = None if effect.max_attempts is None else max(1, effect.max_attempts - earlier)
        budget = narrowed(spec.budget, left, max(LEAST_SECONDS, effect.max_seconds))
        task = Task(workspace, replace(spec, budget=budget, run=run), intervention)
        task.has_project = True
        if stage.mode == "plan":
            documents = tuple(output.name for output in stage.outputs)

            def make(spec: TaskSpec, execution: int, cancelled: threading.Event) -> Performer:
                return planner(performer_of(workspace, spec, execution, cancelled), run, documents)

            task.make_performer, task.needs_check = make, False
        return task

    def _marker(self, record: TaskRecord) -> str:
        """Names the ending of a task that ended; "" where it can be gone on with."""
        if record.status not in ENDED:
            return ""
        made = len(self.workspace.history(record.id).attempts())
        return f"{record.execution}/{made}/{record.updated_at}"

    def ended(self, outcome: Outcome) -> StageEnded:
        """How the stage's task ended, and what the stage hands on."""
        record = task_record.load(self.workspace.store, outcome.task_id)
        return self._ended(outcome, self._marker(record))

    def interrupted(self) -> StageEnded:
        """The stage's task was interrupted before it could say so itself."""
        return StageEnded("interrupted", self._made(), reason="interrupted; run it again to go on")

    def _made(self) -> int:
        return len(self._history(self.state.here))

    def _ended(self, outcome: Outcome, marker: str) -> StageEnded:
        stage = self.state.here
        files = () if stage.mode == "plan" else outcome.files
        status, reason = outcome.status, outcome.reason
        handed_on = hand_on(self.workspace, self.state, files) if status == "success" else ()
        if status == "success" and stage.mode == "plan":
            reason = f"wrote {', '.join(handed_on)}"
        return StageEnded(
            status,
            self._made(),
            marker,
            outcome.trigger,
            reason,
            files,
            outcome.pattern,
            outcome.page,
            outcome.retry_at,
            handed_on,
        )

    # --- The other effects ------------------------------------------------------------------------

    def _pause(self, effect: Wait) -> Event:
        logger.info("[pipeline] run=%s waiting %.1f s %s", self.state.run, effect.seconds,
                    effect.reason)  # fmt: skip
        self.workspace.clock.wait(effect.seconds, self._cancelled)
        return Interrupted() if self._cancelled.is_set() else Waited()

    def _say(self, effect: Say) -> None:
        level = logging.WARNING if effect.warning else logging.INFO
        logger.log(level, "[pipeline] %s", effect.message)

    def _ask_approval(self, effect: AskApproval) -> None:
        state = self.state
        stage = state.here
        given = stage_inputs(self.workspace, state)
        done = [
            f"{id_}: {view.status}" + (f", changed {', '.join(view.files)}" if view.files else "")
            for id_, view in state.stages.items()
            if view.status in SETTLED
        ]
        text = stage_page(
            state.run,
            state.spec.name,
            stage.id,
            state.task_id(stage.id),
            stage.agent,
            stage.mode,
            stage.description,
            powers_of(stage, self.workspace),
            done,
            [one.file or one.name for one in given],
        )
        page = state.of(effect.stage).page
        assert page is not None
        self.workspace.store.write(page, text)

    def _roll_back(self, effect: RollBack) -> Event:
        try:
            if effect.step.kind == "undo":
                return self._undo(effect.step.subject)
            return self._run_command(effect.step.subject)
        except (LokiError, OSError) as error:
            return RolledBack("failed", str(error))

    def _undo(self, stage: str) -> Event:
        journal = self.workspace.journal(self.state.task_id(stage))
        undone = journal.undo()
        if undone.conflicts:
            found = "; ".join(f"{c.path}: {c.reason}" for c in undone.conflicts)
            return RolledBack("conflict", f"nothing was restored: {found}")
        forget_refused(self.workspace.store, self.state.task_id(stage))
        return RolledBack("done", f"restored {', '.join(undone.restored) or 'nothing'}")

    def _run_command(self, command: str) -> Event:
        stage = self.state.here
        spec = TaskSpec(self.state.task_id(stage.id), stage.description)
        executor = performer_of(self.workspace, spec, 1, self._cancelled).executor
        finished, _ = executor.run(split_command_line(command))
        if finished.is_success:
            return RolledBack("done")
        return RolledBack("failed", f"exit code {finished.exit_code}")


@dataclass(frozen=True)
class StageWork:
    """A stage's task, for a driver to work on; what it gives is the session's next event.

    Attributes:
        session: whose it is.
        task: the task.
        agent: who works on it.
    """

    session: PipelineSession
    task: Task
    agent: StageAgent

    def run(self) -> Event:
        """Work on it."""
        try:
            with self.session.at_work(self.task) as task:
                outcome = task.driven(self.agent, self.session.awaiter)
        except KeyboardInterrupt:
            return self.session.interrupted()
        return self.session.ended(outcome)


def checks_of(stage: StageSpec, workspace: Workspace) -> tuple[Check, ...]:
    """The checks of a stage: its own, and that the files are there which it is to hand on."""
    timeout = workspace.config.loop.check_timeout
    files = [output.file for output in stage.outputs if output.file]
    return (
        *(Check.of(command, timeout) for command in stage.checks),
        *(Check(("test", "-s", f), "command", f"{f} is there", timeout) for f in files),
    )


def powers_of(stage: StageSpec, workspace: Workspace) -> list[str]:
    """What a stage may do, in sentences, for the person who lets it."""
    if stage.mode == "plan":
        names = ", ".join(inline(output.name) for output in stage.outputs)
        return [f"Write {names}; nothing in the project changes."]
    allowed = ", ".join(map(code, workspace.config.execute.allow_commands))
    tries = stage.retry.max_attempts
    return [
        "Change files of the project, as far as the gates let it.",
        f"Run commands: {allowed or 'none'}.",
        f"Decided by: {', '.join(code(str(check)) for check in stage.checks)}.",
        f"Up to {tries} tr{'y' if tries == 1 else 'ies'} in {stage.timeout_seconds / 60:g} minutes.",
    ]


def narrowed(budget: Budget, attempts: int | None, seconds: float) -> Budget:
    """A budget with further limits.

    Example:
        >>> narrowed(Budget(attempts=5, seconds=60), 3, 90.0)
        Budget(attempts=3, seconds=60, tokens=None, cost=None)
    """
    limits = [limit for limit in (budget.attempts, attempts) if limit is not None]
    least = seconds if budget.seconds is None else min(budget.seconds, seconds)
    return replace(budget, attempts=min(limits, default=None), seconds=least)


# --- Drivers ------------------------------------------------------------------------------------------


def drive(session: PipelineSession, event: Event | None) -> PipelineOutcome:
    """The whole run, until it ends; without an event it waits for a person."""
    pending = session.answer(event)
    while isinstance(pending, StageWork):
        pending = session.answer(pending.run())
    return pending


async def adrive(session: PipelineSession, event: Event | None) -> PipelineOutcome:
    """The same without blocking the event loop; cancelling it interrupts the run."""
    session.awaiter = wait_here()
    return await in_thread(session.cancel, drive, session, event)
