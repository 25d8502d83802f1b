"""A person's word to whoever is at work, in whichever process: in a file, for which each looks.

``tasks/<id>/cancel`` ends one task for good: whoever works on it stops, and nothing of it lands;
``pipelines/<run>/cancel`` a run of a pipeline.
``state/stop.json`` ends all that is at work on the project: at once, or after what it has in hand.
What stood in that file before a process began is not meant for it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

from loki.base import atomic_file, locks, path_containment
from loki.base.error import StoreError, UsageError
from loki.base.threads import in_background

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
    return path_containment.is_part(task) and os.path.exists(_mark(folder, home(task)))


def begins(folder: Path, task: str = "", *, run: str = "") -> None:
    """Work on a task, or a run, begins: a word left there by who was killed is not meant for it."""
    with suppress(StoreError):
        _unmark(folder, home(task, run))


def home(task: str, run: str = "") -> str:
    """Where a task, or a run, is kept, below the workspace's folder."""
    return (
        f"pipelines/{path_containment.part(run)}" if run else f"tasks/{path_containment.part(task)}"
    )


def _mark(folder: Path, home: str) -> Path:
    return Path(path_containment.path(folder, home, "cancel"))


def _unmark(folder: Path, home: str) -> None:
    path_containment.remove(folder, f"{home}/cancel", keep=home)


def listening(
    folder: Path, heard: Callable[[Word], object], task: str = "", *, run: str = ""
) -> AbstractContextManager[None]:
    """Inside, a person's word is heard as soon as it is said, in a thread of its own.

    Args:
        folder: the workspace's folder.
        heard: told each word, once.
        task: the task that is worked on, or run: the run; "": only words to all are heard.
    """
    mark = _mark(folder, home(task, run)) if path_containment.is_part(run or task) else None
    before = _said_to_all(folder)

    def listen(over: threading.Event) -> None:
        last = before
        while not over.wait(LOOK):
            if mark is not None and os.path.exists(mark):
                heard("cancel")
                return
            if (said := _said_to_all(folder)) != last:
                last = said
                heard("drain" if said.startswith("drain") else "stop")

    return in_background(listen, f"loki-listens-{task or run}")


def _said_to_all(folder: Path) -> str:
    """The last word to all, and what tells it from the one before; "" where there is none."""
    try:
        said = json.loads((folder / ALL).read_bytes())
        return f"{said['word']} {said['id']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


@contextmanager
def released(folder: Path, place: str, holder_of: Callable[[], str]) -> Iterator[None]:
    """End whoever works on what stands at a place; inside, nobody does.

    Args:
        folder: the workspace's folder.
        place: as `home` gives it.
        holder_of: tells who works on it just now; "": nobody.

    Raises:
        UsageError: it had not ended in time.
    """
    mark, end = _mark(folder, place), time.monotonic() + PATIENCE
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
        _unmark(folder, place)


def is_at_work(folder: Path) -> bool:
    """Whether a run has the project just now.

    Args:
        folder: the workspace's folder.
    """
    return locks.is_held(folder / "run")
