"""Ends what is under way, whichever process has it: a person's word in a file, for which each looks.

``tasks/<id>/cancel`` ends one task for good: whoever works on it stops, and nothing of it lands;
``pipelines/<run>/cancel`` a run of a pipeline.
``state/stop.json`` ends all that is at work on the project: at once, or after what it has in hand.
What stood in that file before a process began is not meant for it.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from loki.action.pipelines import pipeline_record
from loki.base import atomic_file, locks, path_containment
from loki.base.error import StoreError, UsageError
from loki.jobs.queue import worker_lock
from loki.jobs.queue.project_queue import queue_of
from loki.memory import task_record

if TYPE_CHECKING:
    from loki.jobs.queue.queue import Queue
    from loki.workspace import Workspace

Word: TypeAlias = Literal["cancel", "drain", "stop"]
"""What a person says: give this task up; take nothing more; end everything, to be gone on with later."""

ALL = "state/stop.json"

LOOK = 0.2
"""Seconds between two looks for a person's word. Chosen, not measured."""

PATIENCE = 30.0
"""Seconds that whoever works on a task has to end: its programs get some of them. Chosen."""


def is_cancelled(folder: Path, task: str) -> bool:
    """Whether a person gives a task up just now.

    Args:
        folder: the workspace's folder, ``.loki``.
        task: its id.
    """
    return path_containment.is_part(task) and os.path.exists(_mark(folder, _home(task)))


def begins(folder: Path, task: str = "", *, run: str = "") -> None:
    """Work on a task, or a run, begins: a word left there by who was killed is not meant for it."""
    with suppress(StoreError):
        _unmark(folder, _home(task, run))


def _home(task: str, run: str = "") -> str:
    return (
        f"pipelines/{path_containment.part(run)}" if run else f"tasks/{path_containment.part(task)}"
    )


def _mark(folder: Path, home: str) -> Path:
    return Path(path_containment.path(folder, home, "cancel"))


def _unmark(folder: Path, home: str) -> None:
    path_containment.remove(folder, f"{home}/cancel", keep=home)


@contextmanager
def listening(
    folder: Path, heard: Callable[[Word], object], task: str = "", *, run: str = ""
) -> Iterator[None]:
    """Inside, a person's word is heard as soon as it is said, in a thread of its own.

    Args:
        folder: the workspace's folder.
        heard: told each word, once.
        task: the task that is worked on, or run: the run; "": only words to all are heard.
    """
    mark = _mark(folder, _home(task, run)) if path_containment.is_part(run or task) else None
    over, before = threading.Event(), _said_to_all(folder)

    def listen() -> None:
        last = before
        while not over.wait(LOOK):
            if mark is not None and os.path.exists(mark):
                heard("cancel")
                return
            if (said := _said_to_all(folder)) != last:
                last = said
                heard("drain" if said.startswith("drain") else "stop")

    thread = threading.Thread(target=listen, name=f"loki-listens-{task or run}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _said_to_all(folder: Path) -> str:
    """The last word to all, and what tells it from the one before; "" where there is none."""
    try:
        said = json.loads((folder / ALL).read_bytes())
        return f"{said['word']} {said['id']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


# --- saying it --------------------------------------------------------------------------------------


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
    with _let_go(workspace.folder, _home(task), lambda: _holder(workspace, queue, task)):
        yield


@contextmanager
def run_given_up(workspace: Workspace, run: str) -> Iterator[None]:
    """End whoever works on a run of a pipeline; inside, nobody does. As `given_up`."""

    def holder() -> str:
        is_running = pipeline_record.load(workspace.store, run).get("status") == "running"
        return "a run" if is_running and is_at_work(workspace.folder) else ""

    with _let_go(workspace.folder, _home("", run), holder):
        yield


@contextmanager
def _let_go(folder: Path, home: str, holder_of: Callable[[], str]) -> Iterator[None]:
    mark, end = _mark(folder, home), time.monotonic() + PATIENCE
    try:
        while holder := holder_of():
            if time.monotonic() > end:
                raise UsageError(
                    f"{holder} has not let go of {mark.parent.name} within {PATIENCE:g} s: nothing of "
                    f"it lands once it has seen that you give it up; say it again, or end that process"
                )
            atomic_file.make_folder(mark.parent)
            mark.touch()  # again and again: whoever begins just now takes the first for an old one
            time.sleep(LOOK / 2)
        yield
    finally:
        _unmark(folder, home)


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
    if not record or record.get("outcome"):
        return ""
    return "a run" if is_at_work(workspace.folder) else ""


def is_at_work(folder: Path) -> bool:
    """Whether a run has the project just now.

    Args:
        folder: the workspace's folder.
    """
    return locks.is_held(folder / "run")


def say_to_all(folder: Path, word: Word, patience: float) -> list[str]:
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
