"""What the journal keeps: records of what was done to which paths, and the bytes by their hash.

On disk: ``NNNN.json``, one per record, and ``objects/ab/cdef…``, one per content. In memory: the
same for a project whose ``.loki`` cannot be written.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from loki.action.place import State
from loki.base import file
from loki.base.error import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LOCK_TIMEOUT = 5.0
"""Seconds to wait for another loki that is just changing or undoing. Chosen, not measured."""

Kind: TypeAlias = Literal["change", "command", "undo"]
Stage: TypeAlias = Literal["applying", "running", "applied", "rolled back"]

_STAGES = ("applying", "running", "applied", "rolled back")
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Step:
    """What one path was and became; None: nothing was there."""

    path: str
    before: State | None
    after: State | None

    def reversed(self) -> Step:
        """The step back."""
        return Step(self.path, self.after, self.before)


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that was done to the project.

    Attributes:
        number: counts from 1 within the task.
        kind: an agent's change, a command, or an undo.
        stage: how far it got.
        steps: paths, what they were, what they become. Of a command that is running: every file,
            with what it was.
        made: folders that it creates.
        folders: permission bits of folders that it may remove.
        temporaries: files that exist only while it is being applied.
    """

    number: int
    kind: Kind
    stage: Stage
    steps: tuple[Step, ...] = ()
    made: tuple[str, ...] = ()
    folders: Mapping[str, int] = field(default_factory=dict)
    temporaries: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """The record as it stands in its file."""
        data = {
            "version": _VERSION,
            "kind": self.kind,
            "stage": self.stage,
            "steps": [
                {"path": s.path, "before": _from_state(s.before), "after": _from_state(s.after)}
                for s in self.steps
            ],
            "made": list(self.made),
            "folders": dict(self.folders),
            "temporaries": list(self.temporaries),
        }
        return json.dumps(data, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, number: int, text: bytes) -> Record:
        """The record in a file.

        Raises:
            ValueError: it is damaged, or of a later version.
        """
        try:
            data = json.loads(text)
            if data["version"] != _VERSION or data["stage"] not in _STAGES:
                raise ValueError("of a version that this loki does not know")
            steps = (
                Step(str(s["path"]), _to_state(s["before"]), _to_state(s["after"]))
                for s in data["steps"]
            )
            return cls(
                number,
                cast("Kind", data["kind"]),
                cast("Stage", data["stage"]),
                tuple(steps),
                tuple(map(str, data["made"])),
                {str(path): int(mode) for path, mode in data["folders"].items()},
                tuple(map(str, data["temporaries"])),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a record of loki: {error!r}") from error


def _from_state(state: State | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {"hash": state.hash, "mode": f"{state.mode:o}", "symlink": state.is_symlink}


def _to_state(data: Any) -> State | None:
    if data is None:
        return None
    return State(str(data["hash"]), int(data["mode"], 8), bool(data["symlink"]))


class Shelf(Protocol):
    """Where records and contents are kept. Methods raise `StoreError` where that fails."""

    def lock(self) -> AbstractContextManager[None]:
        """Keeps other lokis out."""

    def put(self, contents: Iterable[bytes]) -> list[str]:
        """Keep contents; their hashes, in order. On disk when this returns."""

    def get(self, name: str) -> bytes | None:
        """The content of a hash; None where it is missing or damaged."""

    def has(self, name: str, size: int) -> bool:
        """Whether a content of this hash and size is kept."""

    def save(self, record: Record) -> None:
        """Keep a record, or what became of it."""

    def load(self) -> tuple[list[Record], list[str]]:
        """The records, by number, and a sentence about each that is damaged."""

    def next_number(self) -> int:
        """The number for a new record; those of damaged records are not used again."""

    def tidy(self) -> None:
        """Remove what a crash left half-written. The lock is held."""

    def touch(self, number: int) -> None:
        """Say that the work of a record is going on."""

    def touched(self, number: int) -> float:
        """When that was last said, as seconds since 1970."""


@dataclass
class MemoryShelf:
    """Keeps everything until the process ends."""

    contents: dict[str, bytes] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)

    def lock(self) -> AbstractContextManager[None]:
        """Nobody else can reach it."""
        return nullcontext()

    def put(self, contents: Iterable[bytes]) -> list[str]:
        """Keep contents."""
        names = []
        for data in contents:
            names.append(hashlib.sha256(data).hexdigest())
            self.contents[names[-1]] = data
        return names

    def get(self, name: str) -> bytes | None:
        """The content of a hash."""
        return self.contents.get(name)

    def has(self, name: str, size: int) -> bool:
        """Whether it is kept."""
        return name in self.contents and len(self.contents[name]) == size

    def save(self, record: Record) -> None:
        """Keep a record."""
        self.records[record.number] = record

    def load(self) -> tuple[list[Record], list[str]]:
        """The records; none is ever damaged."""
        return [self.records[number] for number in sorted(self.records)], []

    def next_number(self) -> int:
        """The number for a new record."""
        return max(self.records, default=0) + 1

    def tidy(self) -> None:
        """Nothing is ever half-written."""

    def touch(self, number: int) -> None:
        """Nobody will ask."""

    def touched(self, number: int) -> float:  # noqa: ARG002 - a Shelf
        """Never: what is in memory does not outlive a crash."""
        return 0.0


class DiskShelf:
    """Keeps everything in a folder: files 0600, folders 0700, on disk before it is acknowledged."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Args: folder: where; created when something is first kept."""
        self.folder = os.path.abspath(folder)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """One loki at a time."""
        file.make_folder(self.folder)
        with file.lock(os.path.join(self.folder, "journal"), LOCK_TIMEOUT):
            yield

    def put(self, contents: Iterable[bytes]) -> list[str]:
        """Keep contents; those that are kept already cost one look."""
        names, is_new = [], False
        for data in contents:
            name = hashlib.sha256(data).hexdigest()
            names.append(name)
            if not self.has(name, len(data)):
                self._write(name, data)
                is_new = True
        if is_new:
            self._sync()
        return names

    def _write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        temporary = os.path.join(os.path.dirname(path), file.temporary_name())
        try:
            file.make_folder(os.path.dirname(path))
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                file.write_all(handle, data)
            finally:
                os.close(handle)
            os.replace(temporary, path)
        except OSError as error:
            file.remove_quietly(temporary)
            raise StoreError(f"could not keep {path}: {error.strerror or error}") from error

    def _sync(self) -> None:
        # One syncfs(2) instead of one fsync per file: a whole tree may have been put. Readers
        # check every hash, so that a content that did not reach the disk is noticed.
        handle = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
            if syncfs is None or syncfs(handle) != 0:
                os.sync()
        finally:
            os.close(handle)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, "objects", name[:2], name[2:])

    def get(self, name: str) -> bytes | None:
        """The content of a hash, checked."""
        try:
            with open(self._path(name), "rb") as content:
                data = content.read()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == name else None

    def has(self, name: str, size: int) -> bool:
        """Whether it is kept, by name and size."""
        try:
            return os.stat(self._path(name)).st_size == size
        except OSError:
            return False

    def _record_path(self, number: int) -> str:
        return os.path.join(self.folder, f"{number:04}.json")

    def save(self, record: Record) -> None:
        """Keep a record; after a crash its file holds the old or the new."""
        file.write_atomic(self._record_path(record.number), record.to_json())

    def load(self) -> tuple[list[Record], list[str]]:
        """The records, and a sentence about each that is damaged."""
        records, damaged = [], []
        for number in self._numbers():
            path = self._record_path(number)
            try:
                with open(path, "rb") as content:
                    records.append(Record.from_json(number, content.read()))
            except (OSError, ValueError) as error:
                damaged.append(f"{path}: {error}: what it recorded cannot be undone")
        return records, damaged

    def tidy(self) -> None:
        """Remove what a crash left half-written."""
        for folder, _, names in os.walk(self.folder):
            for name in filter(file.is_temporary, names):
                file.remove_quietly(os.path.join(folder, name))

    def _numbers(self) -> list[int]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"could not read {self.folder}: {error.strerror}") from error
        return sorted(int(n[:-5]) for n in names if re.fullmatch(r"\d{4,}\.json", n))

    def next_number(self) -> int:
        """The number for a new record."""
        return max(self._numbers(), default=0) + 1

    def touch(self, number: int) -> None:
        """Say that the work of a record is going on."""
        with contextlib.suppress(OSError):
            os.utime(self._record_path(number))

    def touched(self, number: int) -> float:
        """When that was last said, as seconds since 1970."""
        try:
            return os.stat(self._record_path(number)).st_mtime
        except OSError:
            return 0.0
