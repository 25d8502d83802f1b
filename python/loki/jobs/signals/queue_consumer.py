"""Signals that become tasks of the queue: tests to be mended, something to document or to write."""

from __future__ import annotations

import hashlib
import shlex
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.jobs.queue.project_queue import queue_of
from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.signals.feature_consumer import own_tests
from loki.jobs.signals.signal_consumer import Consumer, Dispatch, Done, Waits
from loki.memory.quote import one_line
from loki.people.signal import BLOG_POST_QUEUED, DOCS_NEEDED, TESTS_FAILED

if TYPE_CHECKING:
    from loki.people.signal import Signal

OPEN = ("pending", "in-progress")

TITLE = 100
"""Characters of what was said that a task's title shows; chosen, not measured."""


def mend(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Queue a task that mends the tests of a feature, where none is open for it."""
    name, check = signal.name, own_tests(dispatch)
    said = [
        f"The tests of {name} fail.",
        signal.string_field("failure") or signal.string_field("description"),
        signal.string_field("excerpt"),
    ]
    task = QueuedTask(
        f"fix-tests-{signal.id}",
        f"Fix the tests of {one_line(name, TITLE)}",
        "\n\n".join(dict.fromkeys(filter(None, said))),
        checks=() if isinstance(check, str) else (shlex.join(check.command),),
        after=signal.string_field("task_id"),
        tags=("signal", _tag(name)),
    )
    queue = queue_of(dispatch.workspace)
    for known in queue.tasks():
        if _tag(name) in known.tags and queue.where(known.id) in OPEN:
            return Done(f"task {known.id} is queued for it already")
    return _submit(queue, task)


def note(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Queue a task to document something, or to write about it, once the work is there."""
    if reason := dispatch.unfinished(signal):
        return Waits(f"{reason}: it is queued once the task has succeeded")
    verb = "Document" if signal.kind == DOCS_NEEDED else "Write about"
    said = signal.string_field("description")
    about = said or f"what task {signal.string_field('task_id')} has done"
    prefix = "docs" if signal.kind == DOCS_NEEDED else "post"
    task = QueuedTask(
        f"{prefix}-{signal.id}",
        f"{verb}: {one_line(about, TITLE)}",
        said,
        kind="refactor",  # it wants a change, and nothing that a test could show
        priority="low",
        after=signal.string_field("task_id"),
        tags=("signal",),
    )
    return _submit(queue_of(dispatch.workspace), task)


def _submit(queue: Queue, task: QueuedTask) -> Done:
    """Queue a task once: whoever did so before may have been killed before the signal was gone."""
    if queue.find(task.id) is None:
        try:
            queue.submit(task)
        except UsageError:
            if queue.find(task.id) is None:  # else somebody was quicker
                raise
    return Done(f"task {task.id} is queued: {task.title}")


def _tag(name: str) -> str:
    return f"tests-of-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


CONSUMERS: dict[str, Consumer] = {TESTS_FAILED: mend, DOCS_NEEDED: note, BLOG_POST_QUEUED: note}
