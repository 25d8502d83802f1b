"""Pipelines: stages round the closed loop, in a project; the library's face of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from loki.action.checks.check import missing_programs
from loki.action.loop.agent_call import AnyAgent
from loki.action.pipelines import pipeline_record
from loki.action.pipelines.pipeline_file import inspect, read
from loki.action.pipelines.pipeline_record import Answer, going_on
from loki.action.pipelines.pipeline_state import (
    OVER,
    SETTLED,
    Event,
    Phase,
    PipelineOutcome,
    PipelineSpec,
    Redo,
    Rejected,
    RunState,
)
from loki.base.error import ConfigError, UsageError
from loki.base.machine import Begin
from loki.base.text_format import did_you_mean
from loki.base.time import Duration, argument_seconds
from loki.base.yaml_document import content
from loki.execution.pipeline_session import (
    Agents,
    PipelineSession,
    adrive,
    agent_of,
    checks_of,
    drive,
)
from loki.execution.stop_request import begins, listening
from loki.people.person import user
from loki.workspace import Workspace

logger = logging.getLogger("loki")

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class Limits:
    """What a caller says about a run beside its file.

    Attributes:
        max_attempts: attempts of all stages together.
        max_time: wall time for all of them: seconds or text like ``"2h"``.
        wait: whether to wait while an agent's circuit breaker is open; None: as a stage's time-out
            allows.
    """

    max_attempts: int | None = None
    max_time: Duration | None = None
    wait: bool | None = None


class Pipeline:
    """Stages round the closed loop, read from a file.

    Attributes:
        spec: what its stages are.
        file: where it stands, or None.

    Example:
        >>> import tempfile
        >>> pipeline = Pipeline.loads('''
        ... version: 1
        ... name: note
        ... stages:
        ...   - {id: write, agent: writer, description: Write note.txt, checks: [test -s note.txt]}
        ... ''')
        >>> outcome = pipeline.run(lambda briefing: {"note.txt": "hi"}, path=tempfile.mkdtemp())
        >>> outcome.status, outcome.run, outcome.stages[0].files
        ('success', 'note-1', ('note.txt',))
    """

    workspace_type: ClassVar[type[Workspace]] = Workspace
    """What a path is opened as."""

    def __init__(self, spec: PipelineSpec, file: Path | None = None) -> None:
        self.spec = spec
        self.file = file

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The pipeline in a file.

        Raises:
            ConfigError: it cannot be read or used; says where and why.
        """
        return cls(read(content(path), str(path)), Path(path).resolve())

    @classmethod
    def loads(cls, text: str) -> Self:
        """The pipeline in a text.

        Raises:
            ConfigError: it cannot be used; says where and why.
        """
        return cls(read(text, "pipeline"))

    def run(
        self,
        agents: Agents | None = None,
        *,
        path: str | Path | Workspace = ".",
        parameters: Mapping[str, str] | None = None,
        from_stage: str | None = None,
        new: bool = False,
        max_attempts: int | None = None,
        max_time: Duration | None = None,
        wait: bool | None = None,
    ) -> PipelineOutcome:
        """Work on it: go on with its last run where that has not ended, else begin another.

        Args:
            agents: by the names that stages use, ``"*"`` for every other; or one for all. Where
                nothing is said, the configuration's ``[agents.<name>]``.
            path: the project.
            parameters: values of the pipeline's parameters.
            from_stage: begin the last run again at this stage; those before it stay done.
            new: begin another run, whatever became of the last.
            max_attempts: attempts of all stages together; the file says where nothing is said.
            max_time: wall time for all of them, likewise.
            wait: whether to wait while an agent's circuit breaker is open.

        Returns:
            The outcome; a run that waits for a person is ``escalated``, and `resume` goes on.

        Raises:
            UsageError: it cannot be run as asked: an unknown agent, a parameter that is missing, a
                check's program that does not exist, another run at work here.
        """
        limits = Limits(max_attempts, max_time, wait)
        begin = partial(self._started, parameters, from_stage, new, limits)
        with self._open(path, agents, limits, begin) as (session, event):
            return drive(session, event)

    async def arun(
        self,
        agents: Agents | None = None,
        *,
        path: str | Path | Workspace = ".",
        parameters: Mapping[str, str] | None = None,
        from_stage: str | None = None,
        new: bool = False,
        max_attempts: int | None = None,
        max_time: Duration | None = None,
        wait: bool | None = None,
    ) -> PipelineOutcome:
        """The same without blocking the event loop; cancelling it interrupts the run."""
        limits = Limits(max_attempts, max_time, wait)
        begin = partial(self._started, parameters, from_stage, new, limits)
        with self._open(path, agents, limits, begin) as (session, event):
            return await adrive(session, event)

    def resume(
        self,
        agents: Agents | None = None,
        *,
        run: str | None = None,
        path: str | Path | Workspace = ".",
        approve: bool = False,
        reject: bool = False,
        by: str = "",
        note: str = "",
        context: str = "",
        max_attempts: int | None = None,
        max_time: Duration | None = None,
        wait: bool | None = None,
    ) -> PipelineOutcome:
        """Go on with a run, a person having seen to it.

        Args:
            agents, path, max_attempts, max_time, wait: as for `run`.
            run: its id; the last one of this pipeline where nothing is said.
            approve: let the stage begin that waits for approval; reject: end the run.
            by: who says so; the user who runs this where nothing is said.
            note: why, for the record.
            context: what to tell the agent of a stage that could not go on alone.

        Raises:
            UsageError: there is no such run, or it waits for something else.
        """
        limits = Limits(max_attempts, max_time, wait)
        answer = Answer(approve, reject, by or user(), note, context)
        begin = partial(self._resumed, run, answer, limits)
        with self._open(path, agents, limits, begin) as (session, event):
            return drive(session, event)

    async def aresume(
        self,
        agents: Agents | None = None,
        *,
        run: str | None = None,
        path: str | Path | Workspace = ".",
        approve: bool = False,
        reject: bool = False,
        by: str = "",
        note: str = "",
        context: str = "",
        max_attempts: int | None = None,
        max_time: Duration | None = None,
        wait: bool | None = None,
    ) -> PipelineOutcome:
        """The same without blocking the event loop; cancelling it interrupts the run."""
        limits = Limits(max_attempts, max_time, wait)
        answer = Answer(approve, reject, by or user(), note, context)
        begin = partial(self._resumed, run, answer, limits)
        with self._open(path, agents, limits, begin) as (session, event):
            return await adrive(session, event)

    # --- Opening ----------------------------------------------------------------------------------

    @contextmanager
    def _open(
        self,
        path: str | Path | Workspace,
        agents: Agents | None,
        limits: Limits,
        begin: Callable[[Workspace], tuple[RunState, Event | None]],
    ) -> Iterator[tuple[PipelineSession, Event | None]]:
        """A session that hears a person's word, whichever process says it, and its first event."""
        workspace = path if isinstance(path, Workspace) else self.workspace_type(path)
        with workspace.exclusive():
            state, event = begin(workspace)
            # A person's no ends the run: nobody is asked any more.
            is_over = event is None or isinstance(event, Rejected)
            found = {} if is_over else self._ready(workspace, state, agents)
            session = PipelineSession(workspace, state, found, self._key(workspace), limits.wait)
            begins(workspace.folder, run=state.run)
            with listening(workspace.folder, session.received, run=state.run):
                yield session, event

    def _started(
        self,
        parameters: Mapping[str, str] | None,
        from_stage: str | None,
        new: bool,
        limits: Limits,
        workspace: Workspace,
    ) -> tuple[RunState, Event | None]:
        """Where a run stands, and its first event; None where it waits for a person."""
        last = None if new else self._last(workspace)
        given = self._given(parameters or {})
        if from_stage is not None:
            return self._at(from_stage, last, given, limits), Redo(from_stage)
        if last is None or Phase(last["phase"]) in OVER:
            return self._begun(workspace, given, limits), Begin()
        state = self._restored(last, given, limits)
        return state, going_on(state)

    def _resumed(
        self, run: str | None, answer: Answer, limits: Limits, workspace: Workspace
    ) -> tuple[RunState, Event]:
        """Where a run stands, and the event that a person's answer is."""
        data = pipeline_record.load(workspace.store, run) if run else self._last(workspace)
        if data is None:
            raise UsageError(f"pipeline {self.spec.name} has not been run here yet")
        state = self._restored(data, {}, limits)
        return state, answer.event(state)

    def _key(self, workspace: Workspace) -> str:
        """How records name the file: relative where it is inside the project."""
        if self.file is None:
            return ""
        if self.file.is_relative_to(workspace.root):
            return self.file.relative_to(workspace.root).as_posix()
        return str(self.file)

    def _last(self, workspace: Workspace) -> dict[str, Any] | None:
        """The record of this file's last run."""
        key = self._key(workspace)
        own = [
            data
            for data in pipeline_record.runs(workspace.store)
            if data.get("file") == key and (key or data.get("pipeline") == self.spec.name)
        ]
        return own[-1] if own else None

    def _given(self, parameters: Mapping[str, str]) -> dict[str, str]:
        known = self.spec.parameters
        for name in parameters:
            if name not in known:
                there = ", ".join(known) or "it has none"
                raise UsageError(
                    f"unknown parameter {name!r} of pipeline {self.spec.name}: expected one of its "
                    f"parameters ({there}){did_you_mean(name, known)}"
                )
        return dict(parameters)

    def _parameters(self, given: Mapping[str, str]) -> dict[str, str]:
        values = {n: given.get(n, default) for n, default in self.spec.parameters.items()}
        if missing := [name for name, value in values.items() if value is None]:
            raise UsageError(
                f"pipeline {self.spec.name} needs the parameter {missing[0]}: expected a value for "
                f"it, as in --param {missing[0]}=…"
            )
        return {name: value for name, value in values.items() if value is not None}

    def _begun(self, workspace: Workspace, given: Mapping[str, str], limits: Limits) -> RunState:
        run = pipeline_record.next_id(self.spec.name, pipeline_record.ids(workspace.store))
        return self._limited(RunState(run, self.spec, self._parameters(given)), limits)

    def _restored(
        self, data: Mapping[str, Any], given: Mapping[str, str], limits: Limits
    ) -> RunState:
        """A run on the file as it is now; what was edited since is pointed out."""
        try:
            state = pipeline_record.from_dict(data, self.spec)
        except ValueError as error:
            raise UsageError(
                f"what is kept of run {data.get('run')} cannot be read ({error}): begin a new run"
            ) from error
        for sentence in pipeline_record.edits(state):
            logger.warning("[pipeline] run=%s %s", state.run, sentence)
        state = replace(state, parameters=self._parameters({**state.parameters, **given}))
        return self._limited(pipeline_record.revised(state), limits)

    def _limited(self, state: RunState, limits: Limits) -> RunState:
        """With the caller's limits, else those that it has, else those of the file."""
        if limits.max_attempts is not None and limits.max_attempts < 1:
            raise UsageError(f"max_attempts is {limits.max_attempts}: expected 1 or more")
        seconds = state.max_seconds
        if limits.max_time is not None:
            seconds = argument_seconds("max_time", limits.max_time)
        return replace(
            state,
            max_attempts=limits.max_attempts or state.max_attempts or self.spec.max_attempts,
            max_seconds=self.spec.max_seconds if seconds is None else seconds,
        )

    def _at(
        self,
        stage: str,
        last: Mapping[str, Any] | None,
        given: Mapping[str, str],
        limits: Limits,
    ) -> RunState:
        ids = [found.id for found in self.spec.stages]
        if stage not in ids:
            raise UsageError(
                f"no stage {stage!r} in pipeline {self.spec.name}: expected one of "
                f"{', '.join(ids)}{did_you_mean(stage, ids)}"
            )
        if last is None:
            raise UsageError(
                f"pipeline {self.spec.name} has not been run here yet, so that nothing can be "
                f"begun again at stage {stage}: run it without --from"
            )
        state = self._restored(last, given, limits)
        if Phase.ROLLBACK in {state.phase, state.resumes_in}:
            raise UsageError(f"run {state.run} is being rolled back: run it without --from first")
        undone = [id_ for id_ in ids[: ids.index(stage)] if state.of(id_).status not in SETTLED]
        if undone:
            raise UsageError(
                f"stage {undone[0]} of run {state.run} is not done: expected --from it, or from a "
                "stage before it"
            )
        # What a revision made of it does not matter: it begins at the stage.
        return replace(state, phase=Phase.INTERRUPTED) if state.phase is Phase.NEW else state

    # --- What a run needs -------------------------------------------------------------------------

    def _ready(
        self, workspace: Workspace, state: RunState, agents: Agents | None
    ) -> dict[str, AnyAgent]:
        """The agents of all stages; refuses now what would stop a stage later."""
        problems = self.problems(workspace)
        if problems:
            raise UsageError(problems[0])
        left = [stage for stage in self.spec.stages if state.of(stage.id).status != "skipped"]
        return {stage.agent: agent_of(stage, agents, workspace) for stage in left}

    def problems(self, path: str | Path | Workspace = ".") -> list[str]:
        """What stands against running it in a project, in sentences: programs, commands.

        Args:
            path: the project.
        """
        workspace = path if isinstance(path, Workspace) else self.workspace_type(path)
        allowed, found = workspace.config.execute.allow_commands, []
        for stage in self.spec.stages:
            missing = missing_programs(checks_of(stage, workspace), workspace.root)
            found += [f"stage {stage.id}: {sentence}" for sentence in missing]
            commands = () if isinstance(stage.rollback, str) else stage.rollback
            found += [
                f"stage {stage.id}: its rollback runs `{command}`, which is not allowed here: add it "
                "to allow_commands under [execute] in .loki/config.toml"
                for command in commands
                if not any(fnmatchcase(command, glob) for glob in allowed)
            ]
        return found


def flaws(path: str | Path) -> Sequence[ConfigError]:
    """All that is wrong with a pipeline file, in the order of the text; nothing where it is fine."""
    try:
        return inspect(content(path), str(path))[1]
    except ConfigError as error:
        return [error]
