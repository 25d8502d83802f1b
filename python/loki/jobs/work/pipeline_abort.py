"""A person gives a run of a pipeline up: whoever works on it ends, and what it changed is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loki.action.changes.undo import UndoResult
from loki.action.loop.refused_proposal_store import forget
from loki.action.pipelines import pipeline_record
from loki.action.pipelines.pipeline_state import OVER
from loki.base.error import UsageError
from loki.base.time import isoformat
from loki.jobs.inbox import human_review_answers
from loki.jobs.work.task_stop import run_given_up

if TYPE_CHECKING:
    from loki.workspace import Workspace


def give_up(
    workspace: Workspace, run: str, by: str, why: str = "", *, force: bool = False
) -> UndoResult:
    """Give a run up, wherever it stands, in whichever process; its stages are undone, the last first.

    Args:
        workspace: the project.
        run: its id.
        by: who gives it up; why: for whoever wonders later.
        force: restore also files that somebody changed since.

    Returns:
        What was restored; where there are conflicts and no ``force``, the run stays as it is.

    Raises:
        UsageError: there is no such run, it has ended, or whoever works on it does not end.
    """
    _must_be_open(workspace, run)
    with run_given_up(workspace, run), workspace.exclusive():
        data = _must_be_open(workspace, run)
        begun = [one for one in data["stages"] if one.get("tries")]
        restored: list[str] = []
        for stage in reversed(begun):
            undone = workspace.journal(str(stage["task"])).undo(force=force)
            restored += [path for path in undone.restored if path not in restored]
            if undone.conflicts and not force:
                return UndoResult(tuple(restored), undone.conflicts, undone.damaged)
            forget(workspace.store, str(stage["task"]))
        now, ids = workspace.clock.now(), [str(one["id"]) for one in begun]
        after = pipeline_record.given_up(data, by, why, ids, now)
        line = {"timestamp": isoformat(now), "event": "GivenUp", "by": by, "note": why}
        where = {"phase": after["phase"], "stage": after["at"]}
        workspace.store.append(f"{pipeline_record.folder(run)}/events.jsonl", {**line, **where})
        pipeline_record.save(workspace.store, after)
    for stage in begun:
        human_review_answers.given_up(workspace, str(stage["task"]), by)
    return UndoResult(tuple(restored))


def _must_be_open(workspace: Workspace, run: str) -> dict[str, Any]:
    data = pipeline_record.load(workspace.store, run)
    if data.get("phase") in {phase.value for phase in OVER}:
        raise UsageError(f"run {run} has ended: {data.get('status')}: {data.get('reason')}")
    return data
