"""A worker's claim of a task, and how much may be claimed at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from loki.jobs.queue.queued_task import Lease, QueuedTask


class Capacity(Protocol):
    """How much work may be out, and which."""

    @property
    def slots(self) -> int:
        """Claims that may be out at a time, over all workers."""

    def admits(self, task: QueuedTask) -> bool:
        """Whether a task may be claimed now."""


@dataclass(frozen=True, slots=True)
class Slots:
    """A capacity that is known beforehand.

    Attributes:
        slots: claims that may be out at a time, over all workers.
        allowed: whether a task may be claimed now.
    """

    slots: int
    allowed: Callable[[QueuedTask], bool] = lambda _: True

    def admits(self, task: QueuedTask) -> bool:
        """Whether a task may be claimed now."""
        return self.allowed(task)


@dataclass(frozen=True, slots=True)
class LeasedTask:
    """A task that a worker has.

    Attributes:
        task: as it stood when it was claimed.
        lease: who has it, since when, until when.
    """

    task: QueuedTask
    lease: Lease

    @property
    def id(self) -> str:
        """Id of the task."""
        return self.task.id
