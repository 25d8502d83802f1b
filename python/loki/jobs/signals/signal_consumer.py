"""What a consumer of signals is given, and what it answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from loki.memory import task_record

if TYPE_CHECKING:
    from loki.people.signal import Signal
    from loki.people.signals import Signals
    from loki.workspace import Workspace

FINISHED = frozenset({"success", "unverified"})
"""Statuses of tasks whose work is there."""


@dataclass(frozen=True, slots=True)
class Done:
    """A signal was acted on, and goes; ``told``: what came of it, in a sentence."""

    told: str


@dataclass(frozen=True, slots=True)
class Waits:
    """A signal stays; ``told``: for what it waits, and what to do about it."""

    told: str


@dataclass(frozen=True)
class Dispatch:
    """What consumers work with.

    Attributes:
        workspace: the project.
        signals: its signals.
        cancelled: ends whatever runs when set.
        has_project: whoever dispatches holds the project already.
    """

    workspace: Workspace
    signals: Signals
    cancelled: threading.Event = field(default_factory=threading.Event)
    has_project: bool = False

    @contextmanager
    def project(self) -> Iterator[None]:
        """Alone in the project.

        Raises:
            UsageError: somebody else is at work in it.
        """
        with nullcontext() if self.has_project else self.workspace.exclusive():
            yield

    def unfinished(self, signal: Signal) -> str:
        """Why the work that a signal is about is not there yet, or ""."""
        task = signal.string_field("task_id")
        record = task_record.load(self.workspace.store, task) if task else None
        if not record:
            return ""
        if not record.outcome:
            return f"task {task} has not ended yet"
        return "" if record.status in FINISHED else f"task {task} ended as {record.status}"


Consumer: TypeAlias = Callable[[Dispatch, "Signal"], "Done | Waits"]
"""Acts on a signal. It may be called again with the same one, after a crash: what it does is
idempotent. A `loki.LokiError` that it raises keeps the signal waiting."""
