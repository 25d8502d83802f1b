"""A plan that a person approved: the pipeline stage that waits for it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loki.action.pipelines import pipeline_record
from loki.action.pipelines.pipeline_state import Phase
from loki.base.time import moment
from loki.jobs.signals.signal_consumer import Consumer, Dispatch, Done, Waits
from loki.people.signal import PLAN_APPROVED

if TYPE_CHECKING:
    from loki.people.signal import Signal

APPROVER = "whoever gave PLAN_APPROVED"
"""Who approved, where the file does not say."""


def approve(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Go on with the run that waits for approval, as ``loki pipeline resume RUN --approve`` does.

    An approval is of what waited when it was given. One that names no run is for the only one that
    waits.
    """
    from loki.execution.pipeline import Pipeline

    workspace = dispatch.workspace
    runs = pipeline_record.runs(workspace.store)
    if taken := next((run for run in runs if _was_taken(dispatch, run, signal)), None):
        return Done(f"{taken['run']} had gone on already")
    named = signal.string_field("pipeline")
    waiting = [run for run in runs if run.get("phase") == Phase.APPROVAL.value]
    waiting = [run for run in waiting if named in {"", run["run"], run["pipeline"]}]
    meant = [run for run in waiting if not _is_older(signal, run)]
    if waiting and not meant:
        ids = ", ".join(str(run["run"]) for run in waiting)
        return Done(f"refused: it was given before {ids} asked for approval")
    if len(meant) != 1:
        found = ", ".join(str(run["run"]) for run in meant)
        which = (
            f"several runs wait for approval ({found})" if meant else "no run waits for approval"
        )
        wanted = ': say which, as {"pipeline": "RUN"}' if meant else ""
        return Waits(f"{which}{wanted}")
    (run,) = meant
    if not run.get("file"):
        return Waits(f"run {run['run']} has no file: go on with it where it was begun")
    by, id_ = signal.string_field("by") or APPROVER, str(run["run"])
    pipeline = Pipeline.load(workspace.root / str(run["file"]))
    outcome = pipeline.resume(run=id_, path=workspace, approve=True, by=by, note=_note(signal))
    return Done(f"{id_} went on, approved by {by}: {outcome.status}")


def _is_older(signal: Signal, run: dict[str, Any]) -> bool:
    """Whether a signal was given before a run asked for approval."""
    asked = moment(str(run.get("updated_at")))
    return asked is not None and signal.given_at is not None and signal.given_at < asked


def _was_taken(dispatch: Dispatch, run: dict[str, Any], signal: Signal) -> bool:
    """Whether whoever acted on this signal was killed before it was gone."""
    events = dispatch.workspace.store.scan(
        f"{pipeline_record.folder(str(run['run']))}/events.jsonl"
    )
    return any(e.get("event") == "Approved" and e.get("note") == _note(signal) for e in events)


def _note(signal: Signal) -> str:
    said = signal.string_field("note") or signal.string_field("description")
    return " ".join(filter(None, (said, f"(signal {signal.id})")))


CONSUMERS: dict[str, Consumer] = {PLAN_APPROVED: approve}
