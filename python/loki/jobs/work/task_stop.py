"""Ends what is under way, whichever process has it: a task of the queue, a run, all of a project's work."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.pipelines import pipeline_record
from loki.base import atomic_file
from loki.base.error import UsageError
from loki.execution.stop_request import ALL, LOOK, Word, home, is_at_work, released
from loki.jobs.queue import worker_lock
from loki.jobs.queue.project_queue import queue_of
from loki.memory import task_record

if TYPE_CHECKING:
    from loki.jobs.queue.queue import Queue
    from loki.workspace import Workspace


@contextmanager
def given_up(workspace: Workspace, task: str, by: str) -> Iterator[None]:
    """End whoever works on a task; inside, nobody does, and no worker takes it up.

    Args:
        workspace: the project.
        task: its id.
        by: who gives it up.

    Raises:
        UsageError: it had not ended in time; it is blocked, and ends as soon as it can.
    """
    queue = queue_of(workspace)
    _block(queue, task, f"{by} gives it up")
    with released(workspace.folder, home(task), lambda: _holder(workspace, queue, task)):
        yield


@contextmanager
def run_given_up(workspace: Workspace, run: str) -> Iterator[None]:
    """End whoever works on a run of a pipeline; inside, nobody does. As `given_up`."""

    def holder() -> str:
        is_running = pipeline_record.load(workspace.store, run).get("status") == "running"
        return "a run" if is_running and is_at_work(workspace.folder) else ""

    with released(workspace.folder, home("", run), holder):
        yield


def _block(queue: Queue, task: str, reason: str) -> None:
    """From here on no worker takes it; it stays so where giving it up fails, for a person to see."""
    known = queue.find(task)
    if known is not None and known.blocked is None:
        with suppress(UsageError):
            queue.block(task, reason)


def _holder(workspace: Workspace, queue: Queue, task: str) -> str:
    """Who works on a task just now; "": nobody."""
    known = queue.find(task)
    if known is not None and known.claim is not None and queue.where(task) == "in-progress":
        if not queue.is_lost(known):
            return f"the worker {known.claim.worker}"
        queue.reap()
    record = task_record.load(workspace.store, task)
    if not record or record.outcome:
        return ""
    return "a run" if is_at_work(workspace.folder) else ""


def broadcast(folder: Path, word: Word, patience: float) -> list[str]:
    """End all that is at work on a project.

    Args:
        folder: the workspace's folder.
        word: ``drain``: what is in hand is done; ``stop``: it is ended, to be gone on with later.
        patience: seconds to wait for that.

    Returns:
        Who is still at work.

    Raises:
        StoreError: it could not be said.
    """
    said = {"word": word, "id": secrets.token_hex(8), "at": time.time()}
    atomic_file.make_folder((folder / ALL).parent)
    atomic_file.write_atomic(folder / ALL, json.dumps(said).encode() + b"\n")
    end = time.monotonic() + patience
    while (there := at_work(folder)) and time.monotonic() < end:
        time.sleep(LOOK)
    return there


def at_work(folder: Path) -> list[str]:
    """Who works on a project just now: ids of workers, and ``a run`` where one has the project."""
    locks = sorted((folder / worker_lock.FOLDER).glob("*.lock"))
    found = [lock.stem for lock in locks if worker_lock.is_alive(folder, lock.stem)]
    return [*found, *(["a run"] if is_at_work(folder) else [])]
