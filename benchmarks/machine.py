"""A machine that goes down, simulated: of what was not brought to the disk, any part may be missing.

A process works in a forked child that notes what it syncs: a file's content, a folder's names. At a
given call that changes the disk it is killed. What is there then and what was synced by then differ in
cells, a name in a folder or a file's content; after a crash each cell may hold the one or the other,
and content that was never synced may be cut off or zeros (ext4, XFS and btrfs do all of that). That is
more than any one file system does: there, changes of names keep their order.

What is not seen: what a cell held between the last sync and the crash, and SQLite's own writes. Those
are taken as its documentation has them with `synchronous = FULL`: a transaction is on the disk when
`COMMIT` returns (https://sqlite.org/pragma.html#pragma_synchronous).
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import sqlite3
import stat
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loki.action.changes.journal_storage import DiskJournalStorage
from loki.base import atomic_file

CALLS = (
    "write", "fsync", "replace", "rename", "unlink", "mkdir", "rmdir", "symlink", "link",
    "ftruncate", "fchmod",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """What a name in a folder names: a file, a folder or a link."""

    inode: int
    mode: int
    target: str = ""


@dataclass
class Disk:
    """What is on the disk for certain: contents by inode, names by a folder's inode."""

    files: dict[int, bytes] = field(default_factory=dict)
    folders: dict[int, dict[str, Node]] = field(default_factory=dict)
    handles: list[int] = field(default_factory=list)  # keep an inode from being given anew
    calls: int = 0

    def sync(self, path: str) -> None:
        """A file's content, or a folder's names, are on the disk from now on."""
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            self.folders[found.st_ino] = names(path)
        elif stat.S_ISREG(found.st_mode):
            with open(path, "rb") as content:
                self.files[found.st_ino] = content.read()
        self.handles.append(handle)

    def sync_all(self, root: Path) -> None:
        """Everything below a folder is, as after syncfs(2)."""
        for folder, _, files in os.walk(root):
            self.sync(folder)
            for name in files:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    self.sync(path)


def names(folder: str) -> dict[str, Node]:
    """The names in a folder, as they are."""
    with os.scandir(folder) as found:
        return {
            one.name: Node(
                one.inode(),
                one.stat(follow_symlinks=False).st_mode,
                os.readlink(one.path) if one.is_symlink() else "",
            )
            for one in found
        }


@dataclass(frozen=True)
class Crash:
    """What a crash left: what is there, what was synced, and what was acknowledged before."""

    root: Path
    disk: Disk
    acknowledged: list[str]
    was_killed: bool

    def states(self, seeds: int, chance: random.Random) -> Iterator[tuple[str, Callable[[], bool]]]:
        """Ways in which what was not synced may be missing: a name, and whether a cell is kept."""
        yield "nothing that was not synced", lambda: False
        yield "all of it", lambda: True
        for number in range(seeds):
            share = chance.choice((0.2, 0.5, 0.8))
            yield f"some of it, {number}", lambda share=share: chance.random() < share  # type: ignore[misc]

    def write(self, to: Path, keeps: Callable[[], bool], chance: random.Random) -> None:
        """Write a state: for each cell that differs `keeps` says whether it is as it was at last."""
        places = {found.st_ino: path for path in self._all() if (found := path.lstat())}
        self._write(to, self.root.stat().st_ino, keeps, chance, places)

    def _all(self) -> Iterator[Path]:
        yield self.root
        yield from self.root.rglob("*")

    def _write(
        self,
        to: Path,
        inode: int,
        keeps: Callable[[], bool],
        chance: random.Random,
        places: dict[int, Path],
    ) -> None:
        to.mkdir(exist_ok=True)
        synced = self.disk.folders.get(inode, {})
        here = places.get(inode)
        now = names(str(here)) if here is not None and here.is_dir() else {}
        for name in sorted({*synced, *now}):
            old, new = synced.get(name), now.get(name)
            node = new if old == new or keeps() else old
            if node is None:
                continue
            if stat.S_ISLNK(node.mode):
                (to / name).symlink_to(node.target)
            elif stat.S_ISDIR(node.mode):
                self._write(to / name, node.inode, keeps, chance, places)
                (to / name).chmod(stat.S_IMODE(node.mode))
            else:
                (to / name).write_bytes(self._content(node.inode, keeps, chance, places))
                (to / name).chmod(stat.S_IMODE(node.mode))

    def _content(
        self,
        inode: int,
        keeps: Callable[[], bool],
        chance: random.Random,
        places: dict[int, Path],
    ) -> bytes:
        old = self.disk.files.get(inode)
        place = places.get(inode)
        now = place.read_bytes() if place is not None else old or b""
        if now == old or keeps():
            return now
        if old is not None and now.startswith(old):  # appended: the rest may be cut off, or zeros
            cut = chance.randint(len(old), len(now))
            return chance.choice([old, now[:cut], old + bytes(cut - len(old))])
        half = now[: chance.randint(0, len(now))]
        return chance.choice([old or b"", half, bytes(len(now))])


def crashed(root: Path, work: Callable[[Callable[[str], None]], object], at: int = 0) -> Crash:
    """Work in a child that is killed before the n-th call that changes something on the disk.

    Args:
        root: below this folder everything is on the disk when it begins.
        work: the work; what it tells its argument is acknowledged.
        at: n; 0: only after all of it.
    """
    told, image = root.with_name("told"), root.with_name("image")
    told.write_text("")
    child = os.fork()
    if child == 0:
        try:
            disk = _record(root, image, at)
            work(lambda what: _tell(told, what))
            _keep(disk, image)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("the work itself failed")
    disk = pickle.loads(image.read_bytes())
    return Crash(root, disk, told.read_text().splitlines(), os.WIFSIGNALED(status))


_write = os.write


def _tell(told: Path, what: str) -> None:
    handle = os.open(told, os.O_WRONLY | os.O_APPEND)
    _write(handle, f"{what}\n".encode())
    os.close(handle)


def _keep(disk: Disk, image: Path) -> None:
    image.write_bytes(pickle.dumps(Disk(disk.files, disk.folders, calls=disk.calls)))


def _record(root: Path, image: Path, at: int) -> Disk:
    """In the child: note what is synced, and go down at a call."""
    disk, me = Disk(), os.getpid()
    disk.sync_all(root)

    def step() -> None:
        if os.getpid() != me:  # what it starts goes on until it is over
            return
        disk.calls += 1
        if disk.calls == at:
            _keep(disk, image)
            os.kill(me, signal.SIGKILL)

    def is_ours(path: str) -> bool:
        return path == str(root) or path.startswith(f"{root}/")

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*some: Any, **more: Any) -> Any:
            step()
            done = original(*some, **more)
            if original is fsync and is_ours(path := os.readlink(f"/proc/self/fd/{some[0]}")):
                disk.sync(path)
            return done

        return call

    fsync = os.fsync
    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))
    atomic_file._swap = wrapped(atomic_file._swap)

    def sync_all(self: DiskJournalStorage) -> None:  # noqa: ARG001
        disk.sync_all(root)

    DiskJournalStorage._sync = sync_all  # type: ignore[method-assign]
    _record_sqlite(disk, step, is_ours)
    return disk


def _record_sqlite(disk: Disk, step: Callable[[], None], is_ours: Callable[[str], bool]) -> None:
    class Recorded(sqlite3.Connection):
        def execute(self, *some: Any) -> Any:
            is_read = some[0].lstrip().startswith(("SELECT", "PRAGMA"))
            if not is_read:
                step()
            done = super().execute(*some)
            if some[0] == "COMMIT":
                self.sync()
            return done

        def sync(self) -> None:
            path = super().execute("PRAGMA database_list").fetchone()[2]
            if not path or not is_ours(path):
                return
            assert super().execute("PRAGMA synchronous").fetchone()[0] >= 2
            folder = os.path.dirname(path)
            now = names(folder)
            known = disk.folders.setdefault(os.stat(folder).st_ino, {})
            for rest in ("", "-wal", "-journal"):
                if (name := f"{os.path.basename(path)}{rest}") in now:
                    disk.sync(os.path.join(folder, name))
                    known[name] = now[name]

    connect = sqlite3.connect
    sqlite3.connect = lambda *some, **more: connect(*some, factory=Recorded, **more)  # type: ignore[assignment]
