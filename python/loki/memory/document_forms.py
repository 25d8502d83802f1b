"""The forms of documents that their owners read as objects of JSON, field by field (`loki.base.codec`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loki.base.codec import IsoTime, kept
from loki.memory.task_record import TaskRecord

_Texts = tuple[str, ...]


@dataclass(kw_only=True)
class _Form:
    other: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Stage(_Form):
    id: str
    status: str = "waiting"
    round: int = 1
    tries: int = 0
    attempts: int = 0
    spent: float = 0.0
    approval: Mapping[str, Any] | None = None
    outputs: _Texts = ()
    files: _Texts = ()
    task: str = ""
    marker: str = ""
    digest: str = ""
    context: str = ""
    reason: str = ""
    trigger: str = ""
    retry_at: IsoTime | None = None
    begun: IsoTime | None = None
    ended: IsoTime | None = None
    pattern: str | None = None
    page: str | None = None


@dataclass(kw_only=True)
class _RollbackStep(_Form):
    kind: str = ""
    subject: str = ""
    result: str = ""
    detail: str = ""


@dataclass(kw_only=True)
class _Pipeline(_Form):
    """A run of a pipeline (`loki.action.pipelines.pipeline_record`)."""

    pipeline: str = ""
    file: str = ""
    status: str = ""
    reason: str = ""
    trigger: str = ""
    phase: str = ""
    at: str | None = None
    resumes_in: str | None = None
    begun: IsoTime | None = None
    seen: IsoTime | None = None
    updated_at: IsoTime = ""
    spent: float = 0.0
    max_attempts: int | None = None
    max_seconds: float | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[_Stage, ...] = ()
    rollback: tuple[_RollbackStep, ...] = ()


@dataclass(kw_only=True)
class _Results(_Form):
    outcomes: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Baseline(_Form):
    """How tests did before a task (`loki.action.checks.baseline`)."""

    targets: _Texts = ()
    asked: _Texts = ()
    captured_at: IsoTime = ""
    results: Mapping[str, _Results] = field(default_factory=dict)
    dependents: Mapping[str, _Texts] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Judged(_Form):
    """What failed in a task's life (`loki.action.checks.judging.judging_watch`)."""

    failed: tuple[tuple[str, str], ...] = ()
    files: _Texts = ()


@dataclass(kw_only=True)
class _Before(_Form):
    """How checks did before a task (`loki.action.checks.feature_evidence`)."""

    execution: int = -1
    failed: _Texts = ()
    tests: Mapping[str, _Texts] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Refused(_Form):
    """A change that was refused (`loki.action.loop.refused_proposal_store`)."""

    execution: int = -1
    told: str = ""
    change: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Withheld(_Form):
    """A change that waits for a person (`loki.action.loop.human_review_check`)."""

    review: str = ""
    description: str = ""
    confidence: float | None = None
    change: Mapping[str, Any] = field(default_factory=dict)
    agent: str | None = None
    model: str | None = None


@dataclass(kw_only=True)
class _Handled(_Form):
    """How many lines of a signal's log are done (`loki.people.signals`)."""

    handled: Mapping[str, int] = field(default_factory=dict)


@dataclass(kw_only=True)
class _SeenFile(_Form):
    seen: tuple[tuple[str, str, str, bool], ...] = ()
    done: _Texts = ()


@dataclass(kw_only=True)
class _Seen(_Form):
    """What stood in files of signals (`loki.people.signal_overwrites`)."""

    files: Mapping[str, _SeenFile] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Merging(_Form):
    """A merge that is under way (`loki.jobs.signals.branch_merge`)."""

    head: str = ""
    merged: str = ""
    branch: str = ""


@dataclass(kw_only=True)
class _Numbers(_Form):
    """Numbers of what waits, as older versions kept them (`loki.people.request_log`)."""

    number: int = kept(name="next", default=0)
    given: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    left: _Texts = ()


FORMS: Mapping[str, type] = {
    r"tasks/[^/]+/task\.json": TaskRecord,
    r"tasks/[^/]+/baseline\.json": _Baseline,
    r"tasks/[^/]+/judged\.json": _Judged,
    r"tasks/[^/]+/before\.json": _Before,
    r"tasks/[^/]+/refused\.json": _Refused,
    r"tasks/[^/]+/withheld\.json": _Withheld,
    r"pipelines/[^/]+/pipeline\.json": _Pipeline,
    r"state/signals\.json": _Handled,
    r"state/signals-seen\.json": _Seen,
    r"state/merging\.json": _Merging,
    r"state/waiting\.json": _Numbers,
}
"""By the name of a document, its form; those of other names are an object, or what their reader says."""
