"""Finds the signals that wait, as they come, and calls the one consumer of each kind."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki.base import locks, path_containment
from loki.base.atomic_file import make_folder
from loki.base.error import LokiError
from loki.base.threads import in_background
from loki.execution.assembly import signals_of
from loki.jobs.inbox import human_review_answers
from loki.jobs.signals.signal_consumers import CONSUMERS, Consumer, Dispatch, Done, Waits
from loki.people.signal import FOLDER, Signal

if TYPE_CHECKING:
    from loki.workspace import Workspace


ROUNDS = 5
"""How often is looked again where a consumer has given something to another. Chosen, not measured."""

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of a signal.

    Attributes:
        signal: which.
        done: whether it was acted on, and is gone.
        told: what came of it, or for what it waits.
    """

    signal: Signal
    done: bool
    told: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {**self.signal.to_dict(), "done": self.done, "told": self.told}


def handle(
    workspace: Workspace,
    *,
    cancelled: threading.Event | None = None,
    has_project: bool = False,
    known: Mapping[str, Consumer] = CONSUMERS,
    only: Callable[[Signal], bool] = lambda _signal: True,
) -> list[Handled]:
    """Act on the signals that wait, also on those that doing so gives.

    Several processes may do this at once: a kind is acted on by one of them at a time. A signal goes
    after its effect; after a crash in between it is acted on again.

    Args:
        workspace: the project.
        cancelled: ends whatever runs when set.
        has_project: whoever calls holds the project already.
        known: who acts on which kind.
        only: which signals are acted on.

    Returns:
        What became of each, in the order in which that happened; those that wait last.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> workspace = Workspace(tempfile.mkdtemp())
        >>> given = signals_of(workspace).emit("DOCS_NEEDED", data={"description": "the API"})
        >>> [one.told.split(": ", 1)[1] for one in handle(workspace)]
        ['Document: the API']
    """
    signals = signals_of(workspace)
    dispatch = Dispatch(workspace, signals, cancelled or threading.Event(), has_project)
    signals.sweep()
    done: list[Handled] = []
    for _ in range(ROUNDS):
        round_ = [one for kind in known for one in _kind(dispatch, kind, known[kind], only)]
        done += [one for one in round_ if one.done]
        if not any(one.done for one in round_) or dispatch.cancelled.is_set():
            break
    return done + [one for one in round_ if not one.done]


def _kind(
    dispatch: Dispatch, kind: str, consumer: Consumer, only: Callable[[Signal], bool]
) -> Iterator[Handled]:
    if not dispatch.signals.pending(kind):
        return
    folder = dispatch.workspace.folder / "state"
    make_folder(folder)
    with locks.hold_if_free(folder / f"signal-{kind.lower()}") as is_alone:
        if not is_alone:
            return
        for signal in dispatch.signals.pending(kind):
            if dispatch.cancelled.is_set():
                return
            if only(signal):
                yield _one(dispatch, signal, consumer)


def _one(dispatch: Dispatch, signal: Signal, consumer: Consumer) -> Handled:
    try:
        result = consumer(dispatch, signal)
    except (LokiError, OSError) as error:
        result = Waits(str(error))
    if isinstance(result, Done):
        dispatch.signals.consume(signal)
        logger.info("signal %s: %s", signal.label, result.told)
    return Handled(signal, isinstance(result, Done), result.told)


# --- When something among the signals has changed -----------------------------------------------------

LOOK = 0.2
"""Seconds between two looks, each of which takes 20 µs of processor time with five signals. Chosen."""

EVERY = 10.0
"""Seconds after which signals that wait for something else are looked at again. Chosen."""


def changes(
    folder: Path, cancelled: threading.Event, *, every: float = EVERY, look: float = LOOK
) -> Iterator[None]:
    """Yield at once, then whenever something in a folder has changed, until it is cancelled.

    Args:
        folder: what is watched; made where it is missing.
        cancelled: ends it at once when set.
        every: seconds after which it yields although nothing has changed.
        look: seconds between two looks.

    Raises:
        StoreError: the folder cannot be made.

    What happens while whoever asks is at work is told with the next step: nothing is missed.
    """
    make_folder(folder)
    seen: frozenset[tuple[str, int, int]] | None = None
    told = 0.0
    while not cancelled.is_set():
        there = _look(folder)
        if there != seen or time.monotonic() - told >= every:
            seen, told = there, time.monotonic()
            yield
        else:
            cancelled.wait(look)


def _look(folder: Path) -> frozenset[tuple[str, int, int]]:
    """The files below a folder, each with when it was written and how large it is."""
    found = set()
    for path in path_containment.files(folder):
        try:
            status = os.lstat(os.path.join(folder, path))
        except OSError:
            continue  # gone since
        found.add((path, status.st_mtime_ns, status.st_size))
    return frozenset(found)


# --- Signals and decisions, acted on beside other work ------------------------------------------------


def attend(workspace: Workspace, cancelled: threading.Event | None = None) -> None:
    """Act on the signals that wait, do what people decided, and give up what nobody answered in time.

    Args:
        workspace: the project.
        cancelled: ends whatever runs for a signal when set.
    """
    human_review_answers.finish_reviews(workspace)
    handle(workspace, cancelled=cancelled)


def followed(
    workspace: Workspace, also: Callable[[], object] = lambda: None
) -> AbstractContextManager[None]:
    """Inside, signals are acted on as soon as they come, in a thread of its own.

    What runs for one at the end is ended; the signal waits for the next dispatcher.

    Args:
        workspace: the project.
        also: called after each look, every few seconds: what is done now and then beside work.
    """
    follow = partial(_follow, workspace, also)
    return in_background(follow, "loki-signals", daemon=False)


def _follow(workspace: Workspace, also: Callable[[], object], over: threading.Event) -> None:
    try:
        for _ in changes(workspace.folder / FOLDER, over):
            attend(workspace, over)
            also()
    except (LokiError, OSError) as error:
        logger.warning("signals are not acted on any more: %s", error)
