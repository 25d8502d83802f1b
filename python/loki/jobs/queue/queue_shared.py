"""One queue that processes share: the lock, the index in a transaction, and the lists that follow it."""

from __future__ import annotations

import atexit
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from loki.base.error import StoreError
from loki.base.time import Clock
from loki.jobs.queue.queue_database import Database, copied, in_memory
from loki.jobs.queue.queue_file_sync import DELAY, QueueFileSync, Writing
from loki.jobs.queue.queue_index import Index
from loki.jobs.queue.queue_list_file import Unreadable
from loki.jobs.queue.queue_lists import Lists
from loki.memory.store import Store

LOCK = "queue"

PATIENCE, POLL = 5.0, 0.05
"""Seconds to wait for a list that somebody is writing, and between two looks. Chosen."""

ROUNDS = 5
"""How often lists are written that other programs write at the same time; chosen."""

logger = logging.getLogger("loki")


class QueueStore(Store, Protocol):
    """A store in a folder, where a database can stand beside its documents."""

    @property
    def folder(self) -> Path:
        """The workspace's folder."""


class Shared:
    """The queue's lists, for whoever changes or looks at them.

    Args:
        store: where they are kept.
        clock: where time comes from.
    """

    def __init__(self, store: QueueStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._database, self._outside = Database(store.folder), QueueFileSync(store.folder)
        self._follower: threading.Thread | None = None
        self._pid = 0

    # --- looking ---------------------------------------------------------------------------------------

    def copy(self) -> Lists:
        """All lists at one moment."""
        copies: list[Index] = []
        with self.looking(lambda index: copies.append(copied(index))) as lists:
            pass
        return Lists(copies[0]) if copies else lists

    @contextmanager
    def looking(self, then: Callable[[Index], object] = id) -> Iterator[Lists]:
        """The lists, to look at inside ``with``.

        Args:
            then: is shown the index afterwards, if there is one.

        Raises:
            StoreError: one of them cannot be read; says where.
        """
        with ExitStack() as stack:
            if not self._is_there():  # a look alone makes no folder
                lists = self._read_only()
            else:
                try:
                    lists = stack.enter_context(self.changing(then))
                except Unreadable:
                    raise
                except StoreError:
                    # Where nothing can be written there is no index either, and nobody moves anything.
                    lists = self._read_only()
            yield lists

    def _is_there(self) -> bool:
        return self._database.path.exists() or bool(self._store.names("queue/"))

    def _read_only(self) -> Lists:
        lists = Lists(in_memory(), self._now())
        self._outside.take_in(lists, self._now())
        self._complain(lists)
        return lists

    # --- changing --------------------------------------------------------------------------------------

    @contextmanager
    def changing(self, then: Callable[[Index], object] = id) -> Iterator[Lists]:
        """The lists, to be changed; kept at the end, unless something went wrong.

        Args:
            then: is shown the index after it was kept, still under the lock.

        Raises:
            StoreError: they cannot be read or written; nothing has changed then.
        """
        waited = 0.0
        while True:
            with self._store.lock(LOCK):
                try:
                    lists = self._begin()
                except Unreadable:
                    if waited >= PATIENCE:
                        raise
                else:
                    yield from self._change(lists)
                    then(lists.index)
                    return
            waited += POLL
            self._clock.wait(POLL, threading.Event())  # somebody may be writing it just now

    def _begin(self) -> Lists:
        index = self._database.begin()
        try:
            lists = Lists(index, self._now())
            self._outside.take_in(lists, self._now())
            self._complain(lists)
        except sqlite3.Error as error:
            self._database.roll_back(index)
            raise self._database.error(error) from error
        except BaseException:
            self._database.roll_back(index)
            raise
        return lists

    def _change(self, lists: Lists) -> Iterator[Lists]:
        try:
            yield lists
            writings = self._outside.due(lists.index, self._now())
        except sqlite3.Error as error:
            self._database.roll_back(lists.index)
            raise self._database.error(error) from error
        except BaseException:
            self._database.roll_back(lists.index)
            raise
        self._database.commit(lists.index)
        self._write(lists, writings)

    # --- the lists follow ------------------------------------------------------------------------------

    def follow(self) -> None:
        """Write out now what the lists lack, if they can be written."""
        if not self._database.path.exists():  # somebody has removed it all meanwhile
            return
        try:
            with self._store.lock(LOCK):
                self._round(ROUNDS)
        except StoreError as error:
            self._tell(f"{error}. The queue goes on; its lists follow once they can be written")

    def _round(self, left: int) -> None:
        lists = self._begin()
        writings = self._outside.due(lists.index, self._now(), at_once=True)
        self._database.commit(lists.index)
        self._write(lists, writings, left)

    def _write(self, lists: Lists, writings: Sequence[Writing], left: int = ROUNDS) -> None:
        """Write lists after their change was kept; that one fails loses nothing."""
        try:
            is_done = self._outside.write(writings)
            if any(one.name == "in-progress" for one in writings):
                self._outside.show_current(lists)
            else:
                self._outside.mend_current(lists)
            if not is_done and left:
                self._round(left - 1)
        except StoreError as error:
            self._tell(f"{error}. The queue goes on; its lists follow once they can be written")
        if not writings and lists.has_changed:
            self._follow_later()

    def _follow_later(self) -> None:
        if self._follower is None or not self._follower.is_alive() or self._pid != os.getpid():
            self._pid = os.getpid()
            self._follower = threading.Thread(target=self._follow_soon, daemon=True)
            self._follower.start()
            _behind.add(self)

    def _follow_soon(self) -> None:
        time.sleep(DELAY)
        self._follower = None
        self.follow()
        _behind.discard(self)

    # --- the edge --------------------------------------------------------------------------------------

    def _complain(self, lists: Lists) -> None:
        for complaint in lists.complaints():
            self._tell(complaint)

    def _tell(self, what: str) -> None:
        if (said := f"{self._store.folder}: {what}") not in _told:
            _told.add(said)
            logger.warning("%s", what)

    def _now(self) -> float:
        return self._clock.now().timestamp()


_behind: weakref.WeakSet[Shared] = weakref.WeakSet()
_told: set[str] = set()  # by this process, however many look at the queue in it


def _at_exit() -> None:
    for shared in list(_behind):
        if shared._pid == os.getpid():
            shared.follow()


atexit.register(_at_exit)
