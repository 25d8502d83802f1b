"""Finds the signals that wait, and calls the one consumer of each kind."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loki.base import atomic_file, locks
from loki.base.error import LokiError
from loki.jobs.signals import signals_of
from loki.jobs.signals.signal_consumer import Dispatch, Done, Waits

if TYPE_CHECKING:
    from loki.jobs.signals.signal_consumer import Consumer
    from loki.people.signal import Signal
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


def consumers() -> Mapping[str, Consumer]:
    """Who acts on which kind; the others are acted on by the loop, and by people."""
    from loki.jobs.signals import (
        approval_consumer,
        branch_merge,
        feature_consumer,
        plan_consumer,
        queue_consumer,
    )

    return {
        **feature_consumer.CONSUMERS,
        **queue_consumer.CONSUMERS,
        **branch_merge.CONSUMERS,
        **plan_consumer.CONSUMERS,
        **approval_consumer.CONSUMERS,
    }


def handle(
    workspace: Workspace,
    *,
    cancelled: threading.Event | None = None,
    has_project: bool = False,
    known: Mapping[str, Consumer] | None = None,
    only: Callable[[Signal], bool] = lambda _signal: True,
) -> list[Handled]:
    """Act on the signals that wait, also on those that doing so gives.

    Several processes may do this at once: a kind is acted on by one of them at a time. A signal goes
    after its effect; after a crash in between it is acted on again.

    Args:
        workspace: the project.
        cancelled: ends whatever runs when set.
        has_project: whoever calls holds the project already.
        known: who acts on which kind; None: `consumers`.
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
    table = consumers() if known is None else known
    signals.sweep()
    done: list[Handled] = []
    for _ in range(ROUNDS):
        round_ = [one for kind in table for one in _kind(dispatch, kind, table[kind], only)]
        done += [one for one in round_ if one.done]
        if not any(one.done for one in round_) or dispatch.cancelled.is_set():
            break
    return done + [one for one in round_ if not one.done]


def _kind(
    dispatch: Dispatch, kind: str, consumer: Consumer, only: Callable[[Signal], bool]
) -> Iterator[Handled]:
    if not dispatch.signals.pending(kind):
        return
    with _alone(dispatch.workspace, kind) as is_alone:
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


def _alone(workspace: Workspace, kind: str) -> AbstractContextManager[bool]:
    """Whether nobody else acts on a kind of signal."""
    folder = workspace.folder / "state"
    atomic_file.make_folder(folder)
    return locks.hold_if_free(folder / f"signal-{kind.lower()}")
