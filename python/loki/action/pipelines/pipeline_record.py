"""A run of a pipeline on disk: ``pipelines/<run>/pipeline.json``, and how it goes on from there."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from loki.action.pipelines.pipeline_state import (
    OVER,
    SETTLED,
    WAITING_FOR_A_PERSON,
    Approved,
    Event,
    Phase,
    PipelineSpec,
    Rejected,
    Resumed,
    RollbackStep,
    RunState,
    StageState,
    shared,
)
from loki.base import codec, documents
from loki.base.codec import IsoTime
from loki.base.documents import kept_as
from loki.base.error import UsageError
from loki.base.time import isoformat
from loki.memory.store import Store
from loki.memory.task_record import intervention_text

logger = logging.getLogger("loki")

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptStage(StageState):
    id: str
    task: str = ""
    other: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "task": self.task, **codec.fields_of(self)}


@kept_as(r"pipelines/[^/]+/pipeline\.json")
@dataclass(kw_only=True)
class _Kept:
    run: str = ""
    pipeline: str = ""
    file: str = ""
    status: str = ""
    reason: str = ""
    trigger: str = ""
    phase: Phase
    at: str | None
    resumes_in: Phase | None = None
    begun: datetime | None = None
    seen: datetime | None = None
    updated_at: IsoTime = ""
    spent: float = 0.0
    max_attempts: int | None = None
    max_seconds: float | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[_KeptStage, ...] = ()
    rollback: tuple[RollbackStep, ...] = ()
    flaws: tuple[str, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)


def folder(run: str) -> str:
    """Name of a run's folder in a store."""
    return f"pipelines/{run}"


def document(run: str) -> str:
    """Name of a run's record."""
    return f"{folder(run)}/pipeline.json"


def output_document(run: str, name: str) -> str:
    """Name of what a stage handed on."""
    return f"{folder(run)}/outputs/{name}.md"


def to_dict(state: RunState, file: str, now: datetime) -> dict[str, Any]:
    """A run as JSON values.

    Args:
        state: the run.
        file: the pipeline's file, relative to the project where it is inside.
        now: the time of day.
    """
    # Stages that are gone from the file keep what they did.
    ids = [*(stage.id for stage in state.spec.stages), *state.stages]
    stages = tuple(
        _KeptStage(id=id_, task=state.task_id(id_), **shared(state.of(id_), StageState))
        for id_ in dict.fromkeys(ids)
    )
    said = shared(state, _Kept) | {"status": state.status or "running", "stages": stages}
    kept = _Kept(pipeline=state.spec.name, file=file, updated_at=isoformat(now), **said)
    return {"version": VERSION, **codec.fields_of(kept)}


def event_to_dict(event: Event, state: RunState, now: datetime) -> dict[str, Any]:
    """A line of ``events.jsonl``: what happened, and where the run stands since."""
    data = codec.fields_of(event)
    data.pop("outputs", None)  # texts: they are kept as files
    said = {name: value for name, value in data.items() if value not in (None, "", [])}
    name = type(event).__name__
    where = {"phase": state.phase.value, "stage": state.at}
    return {"timestamp": isoformat(now), "event": name, **where, **said}


def from_dict(data: Mapping[str, Any], spec: PipelineSpec) -> RunState:
    """The run that `to_dict` described, of a pipeline as its file is now.

    Raises:
        ValueError: the values are no such description.
    """
    found, flaws = codec.read(_Kept, data)
    if found is None or flaws:
        raise ValueError(f"found no run of a pipeline ({flaws[0]})")
    said = shared(found, RunState)
    said["stages"] = {one.id: StageState(**shared(one, StageState)) for one in found.stages}
    said["status"] = "" if found.status == "running" else found.status
    return RunState(spec=spec, **said)


def given_up(
    data: Mapping[str, Any], by: str, why: str, undone: Iterable[str], now: datetime
) -> dict[str, Any]:
    """A run's record after a person gave it up, for which its pipeline's file need not be there.

    Args:
        data: the record.
        by: who gave it up; why: what they said, or "".
        undone: ids of the stages whose changes were undone: they are done no longer.
        now: the time of day.
    """
    said = {"reason": f"{by} gave it up{f': {why}' if why else ''}", "trigger": "aborted"}
    over = {"status": Phase.FAILED.value, **said}
    again = {*undone, data.get("at")}
    stages = [{**one, **over} if one.get("id") in again else one for one in data["stages"]]
    ended = {"phase": Phase.FAILED.value, "resumes_in": None, "updated_at": isoformat(now)}
    return {**data, **over, **ended, "stages": stages}


# --- Edited files -------------------------------------------------------------------------------------


def edits(state: RunState) -> list[str]:
    """How the pipeline differs from what the run has done of it, in sentences."""
    found = []
    for id_, stage in state.stages.items():
        spec = state.spec.stage(id_)
        if spec is None:
            if stage.status != "waiting":
                found.append(f"stage {id_} is gone from the file; what it did stays")
        elif stage.digest and stage.digest != spec.digest:
            if stage.status == "success":
                found.append(
                    f"stage {id_} was edited after it was done: --from {id_} does it again"
                )
            elif stage.status != "waiting":
                found.append(f"stage {id_} was edited: it goes on as it is now")
    return found


def revised(state: RunState) -> RunState:
    """The run on its edited file: a stage that is new, or gone, may move where it stands."""
    if state.phase in {*OVER, Phase.NEW} or Phase.ROLLBACK in {state.phase, state.resumes_in}:
        return state
    waiting = [s.id for s in state.spec.stages if state.of(s.id).status not in SETTLED]
    if waiting and waiting[0] == state.at:
        return state
    return replace(state, phase=Phase.NEW, at=None, resumes_in=None)


# --- In a store ---------------------------------------------------------------------------------------


def save(store: Store, data: Mapping[str, Any]) -> None:
    """Keep a run's record, which says whose it is by its ``run``."""
    store.write(document(data["run"]), json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def load(store: Store, run: str) -> dict[str, Any]:
    """A run's record.

    Raises:
        UsageError: there is none, or it cannot be read.
    """
    found = documents.load_as(_Kept, store, document(run))
    if found is None and store.read(document(run)) is None:
        raise UsageError(f"no run {run!r} of a pipeline here: `loki pipeline show` lists them")
    if found is None or found.flaws:
        raise UsageError(f"{document(run)} is damaged: begin a new run with `loki pipeline run`")
    return {**codec.write(found), "run": run}  # its folder's name is its id, whatever it says


def ids(store: Store) -> list[str]:
    """Ids of all runs."""
    names = (name.split("/") for name in store.keys("pipelines/"))
    return [parts[1] for parts in names if parts[2:] == ["pipeline.json"]]


def runs(store: Store) -> list[dict[str, Any]]:
    """The records of all runs, oldest first; damaged ones are left out with a warning."""
    found = []
    for run in ids(store):
        try:
            found.append(load(store, run))
        except UsageError as error:
            logger.warning("%s", error)
    return sorted(found, key=lambda data: (str(data.get("begun")), number_of(str(data["run"]))))


def number_of(run: str) -> int:
    """The number at the end of a run's id, 0 where there is none.

    Example:
        >>> number_of("add-feature-12")
        12
    """
    tail = run.rpartition("-")[2]
    return int(tail) if tail.isascii() and tail.isdigit() else 0


def next_id(name: str, known: Iterable[str]) -> str:
    """Id of the next run of a pipeline.

    Example:
        >>> next_id("add-feature", ["add-feature-1", "add-feature-9", "other-20"])
        'add-feature-10'
    """
    own = [number_of(run) for run in known if run.rpartition("-")[0] == name]
    return f"{name}-{max(own, default=0) + 1}"


# --- How a run goes on: by itself, or by what a person says -------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says to a run.

    Attributes:
        approve: let the stage begin that waits for approval; reject: end the run.
        by: who says so; note: why.
        context: what to tell the agent.
    """

    approve: bool
    reject: bool
    by: str
    note: str
    context: str

    def event(self, state: RunState) -> Event:
        """The event that it is for the machine.

        Raises:
            UsageError: the run waits for something else.
        """
        from loki.base.machine import Begin

        run, phase = state.run, state.phase
        if self.approve and self.reject:
            raise UsageError("found both approve and reject, expected one of them")
        if phase in OVER:
            raise UsageError(
                f"run {run} has ended: {state.status}; begin it again at a stage with `loki "
                "pipeline run FILE --from STAGE`, or begin another run"
            )
        if self.reject:
            if phase not in WAITING_FOR_A_PERSON:
                raise UsageError(f"run {run} waits for nobody: there is nothing to reject")
            return Rejected(self.by, self.note)
        if self.approve:
            if phase is not Phase.APPROVAL:
                raise UsageError(f"run {run} waits for no approval: expected no --approve")
            return Approved(self.by, self.note)
        if phase is Phase.APPROVAL and state.here.requires_approval:
            raise UsageError(
                f"stage {state.at} of run {run} waits for approval: expected --approve or --reject"
            )
        return Begin() if phase is Phase.NEW else Resumed(intervention_text(self.context))


def going_on(state: RunState) -> Event | None:
    """How a run goes on without anybody saying anything; None where a person must."""
    from loki.base.machine import Begin

    if state.phase is Phase.ESCALATED:
        return None
    return Begin() if state.phase is Phase.NEW else Resumed()
