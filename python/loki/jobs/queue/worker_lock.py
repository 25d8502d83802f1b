"""A worker's sign of life: a lock that the kernel frees when it, and all it started, have ended.

Whoever has a descriptor of the lock holds it. A worker passes one on to what it starts, so that
nobody takes its work over while a command of it still runs.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType

from loki.base import atomic_file, locks, path_containment
from loki.base.error import StoreError, UsageError
from loki.base.locks import boot_id
from loki.base.path_containment import is_part, parent
from loki.base.time import isoformat
from loki.jobs.queue.queued_task import Lease, QueuedTask

FOLDER = "queue/workers"

PATIENCE, POLL = 1.0, 0.002
"""Seconds that a worker waits for those who look whether its lock is free, and between two tries.

Chosen: they hold it for microseconds; another worker of that name holds it for long.
"""


class Worker:
    """Somebody who works on tasks of the queue, while inside ``with``.

    Args:
        folder: the workspace's folder, ``.loki``.
        id: names it among all workers of all machines; made up where nothing is said.

    Attributes:
        id: its name; host: of its machine; boot: id of its boot, or ""; pid: its process.
        held: task and generation of each claim that it was given.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with Worker(folder) as worker:
        ...     is_alive(folder, worker.id)
        True
        >>> is_alive(folder, worker.id)
        False
    """

    def __init__(self, folder: Path, id: str | None = None) -> None:  # noqa: A002 - as everywhere
        self.host, self.boot, self.pid = socket.gethostname(), boot_id(), os.getpid()
        host = "".join(c if c.isalnum() or c == "-" else "-" for c in self.host)[:40]
        self.id = id or f"{host}-{self.pid}-{secrets.token_hex(4)}"
        self._folder, self._path = folder, lock_path(folder, self.id)
        self._handle: int | None = None
        self.held: set[tuple[str, int]] = set()

    def __enter__(self) -> Worker:
        atomic_file.make_folder(self._path.parent)
        try:
            self._handle = self._locked()
            os.ftruncate(self._handle, 0)
            os.write(self._handle, self.boot.encode())
        except OSError as error:
            raise StoreError(f"could not lock {self._path}: {error.strerror or error}") from error
        sweep(self._folder)
        for name in ("queue", "state"):
            path_containment.sweep(self._folder / name, time.time() - path_containment.STALE)
        return self

    def _locked(self) -> int:
        while True:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if not locks.take(handle, PATIENCE, POLL):
                    raise UsageError(f"a worker named {self.id!r} is at work already")
                # Who looks after the dead may have removed it before it was locked.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), os.stat(self._path)):
                        return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)  # not unlocked: what was started may hold it still
            if os.getpid() == self.pid:
                _remove_free(self._folder, self._path.name)

    def lease(self, task: QueuedTask, now: datetime, until: str) -> Lease:
        """What a claim of a task by this worker says.

        Args:
            task: as it stands in pending.
            now: the time of day; until: when others may take it, ISO 8601 UTC.
        """
        return Lease(
            self.id,
            task.generation + 1,
            self.host,
            self.boot,
            self.pid,
            isoformat(now),
            until,
            task.lifetime_attempts,
        )

    def knows(self, task: str, lease: Lease) -> bool:
        """Whether a claim is another's, or was given to this worker: a full disk may come between."""
        return lease.worker != self.id or (task, lease.generation) in self.held

    def fileno(self) -> int:
        """Descriptor of the lock; pass it on to what must be over before the work is another's.

        Raises:
            UsageError: the worker is not at work.
        """
        if self._handle is None:
            raise UsageError("the worker is not at work: expected a use inside `with`")
        return self._handle


def is_alive(folder: Path, worker: str) -> bool:
    """Whether a worker of this machine, or anything that it started, still runs.

    Args:
        folder: the workspace's folder.
        worker: its id.
    """
    return not _is_free(lock_path(folder, worker))


def is_over(lease: Lease, folder: Path, now: datetime) -> bool:
    """Whether a claim is lost: on this machine the worker's lock tells, of another's only time.

    Args:
        lease: the claim.
        folder: the workspace's folder.
        now: the time of day.
    """
    if lease.boot and lease.boot == boot_id():
        with suppress(UsageError):
            return not is_alive(folder, lease.worker)
    return lease.is_over(now)


def sweep(folder: Path) -> None:
    """Remove what workers of this machine left that have ended.

    Those of other machines stay: where a file system is shared, their locks may not be seen here.
    """
    with suppress(OSError):
        for path in (folder / FOLDER).glob("*.lock"):
            if path.read_text("ascii", "replace") == boot_id():
                _remove_free(folder, path.name)


def lock_path(folder: Path, worker: str) -> Path:
    """Where a worker's lock is.

    Raises:
        UsageError: its id cannot name a file.
    """
    if not is_part(f"{worker}.lock") or worker.startswith(".") or not worker:
        raise UsageError(f"worker id is {worker!r}: expected letters, digits, '-', '_' and '.'")
    return folder / FOLDER / f"{worker}.lock"


def _is_free(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False  # nobody can tell: the lease must tell
    try:
        return locks.take(handle, shared=True)  # others may look at the same time
    except OSError:
        return False
    finally:
        os.close(handle)


def _remove_free(folder: Path, name: str) -> None:
    """Remove a lock that nobody holds; held meanwhile, so that nobody takes it before it is gone."""
    with suppress(OSError), parent(folder, f"{FOLDER}/{name}") as (above, last):
        handle = os.open(last, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            if locks.take(handle):
                os.unlink(last, dir_fd=above)
        finally:
            os.close(handle)
