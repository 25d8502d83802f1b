"""The file of the queue's index: opened, made anew where it cannot be read, copied for a look.

What is committed is on the disk, and whoever is killed in the middle is rolled back by the next. A disk
of this machine gets a write-ahead log, which waits for the disk once a transaction; machines that share a
folder cannot share that, so that elsewhere it is a rollback journal. All access is under the queue's lock.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from loki.base import atomic_file
from loki.base.error import StoreError
from loki.jobs.queue.queue_index import VERSION, Index, make

NAME = "state/queue.db"

PATIENCE = 30.0
"""Seconds to wait for a program that reads the file without the queue's lock. Chosen."""

logger = logging.getLogger("loki")


class Database:
    """The index's file, through one connection a process.

    Args:
        folder: the workspace's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._connection: sqlite3.Connection | None = None
        self._pid, self._inode = 0, 0

    def begin(self) -> Index:
        """The index, in a transaction of its own; `commit` or `roll_back` ends it.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            if not _is_broken(error):
                raise self._error(error) from error
            connection = self._anew(error)
        return Index(connection)

    def _open(self) -> sqlite3.Connection:
        with suppress(FileNotFoundError):
            is_same = os.stat(self.path).st_ino == self._inode and self._pid == os.getpid()
            if self._connection is not None and is_same:
                return self._connection
        if self._connection is not None:
            _forget(self._connection, is_own=self._pid == os.getpid())
        atomic_file.make_folder(self.path.parent)
        connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute(f"PRAGMA journal_mode = {_journal(self.path)}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA cache_size = -16000")
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found != VERSION:
                if found or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                    raise sqlite3.DatabaseError(f"of version {found}, not {VERSION}")
                make(connection)
                connection.execute("COMMIT")
                os.chmod(self.path, 0o600)
            self._inode = os.stat(self.path).st_ino
        except BaseException:
            connection.close()
            self._connection = None
            raise
        self._connection, self._pid = connection, os.getpid()
        return connection

    def _anew(self, error: sqlite3.DatabaseError) -> sqlite3.Connection:
        """An index that cannot be read is set aside: the lists say what it said, up to a moment ago."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.corrupt-{number}")).exists():
            number += 1
        try:
            os.replace(self.path, aside)
            for rest in ("-journal", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(f"{self.path}{rest}")
            logger.warning(
                "%s: %s; set aside as %s, read anew from the lists", self.path, error, aside.name
            )
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
        except (OSError, sqlite3.Error) as problem:
            raise self._error(problem) from problem
        return connection

    def commit(self, index: Index) -> None:
        """What was changed is on the disk when this returns.

        Raises:
            StoreError: it is not, and nothing has changed.
        """
        try:
            index.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.roll_back(index)
            raise self._error(error) from error

    def roll_back(self, index: Index) -> None:
        """Nothing has changed."""
        with suppress(sqlite3.Error):
            index.connection.execute("ROLLBACK")

    def error(self, error: sqlite3.Error) -> StoreError:
        """What to say of it."""
        return self._error(error)

    def _error(self, error: Exception) -> StoreError:
        return StoreError(f"could not write {self.path}: {error}")


def copied(index: Index) -> Index:
    """A copy of an index that nobody changes any more."""
    copy = in_memory(is_empty=True)
    index.connection.backup(copy.connection)
    return copy


def in_memory(*, is_empty: bool = False) -> Index:
    """An index without a file, in a transaction."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if not is_empty:
        make(connection)
    return Index(connection)


def _journal(path: Path) -> str:
    """A disk has a number of its own; what comes over a network, or is none, has none."""
    return "WAL" if os.major(os.stat(path.parent).st_dev) else "PERSIST"


def _is_broken(error: sqlite3.DatabaseError) -> bool:
    """Whether the file itself cannot be read, be the disk as it may."""
    return not isinstance(error, sqlite3.OperationalError)


def _forget(connection: sqlite3.Connection, *, is_own: bool) -> None:
    """A connection of the parent is not closed: that would end locks that are the parent's."""
    if is_own:
        connection.close()
    else:
        _parents.append(connection)


_parents: list[sqlite3.Connection] = []
