"""Where the journal keeps its records, and the bytes that they speak of by hash.

In a folder; or in memory, for a project whose ``.loki`` cannot be written.

``journal.jsonl`` has a line for each record and for each stage that it reached later; contents
stand in the line of the record that needs them first, so that one write brings both to the disk;
large ones in ``objects/ab/cdef…``. ``running.json`` is the record of a command while it runs: it
lists the whole tree, and goes when the command has ended.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import ctypes
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

from loki.action.changes.safe_path import PathState
from loki.action.changes.tree import content_hash
from loki.base import atomic_file, codec, locks, path_containment
from loki.base.documents import parsed_json
from loki.base.error import StoreError
from loki.base.path_containment import path_in

# --- One thing that was done to a project: which paths, from what to what -----------------------------

Kind: TypeAlias = Literal["change", "command", "undo"]
Stage: TypeAlias = Literal["applying", "running", "applied", "rolled back"]

STAGES: tuple[Stage, ...] = get_args(Stage)
_VERSION = 1
_UNSAID = dict.fromkeys(("steps", "made", "folders", "temporaries"), "is missing")


def _inside(folders: Mapping[str, int]) -> Mapping[str, int]:
    return {path_in(path): mode for path, mode in folders.items()}


Inside: TypeAlias = Annotated[str, path_in]
"""A path that leads nowhere else."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one path was and became; None: nothing was there."""

    path: Inside
    before: PathState | None
    after: PathState | None

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
    made: tuple[Inside, ...] = ()
    folders: Annotated[Mapping[str, int], _inside] = field(default_factory=dict)
    temporaries: tuple[Inside, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        said = codec.fields_of(self)
        return {"record": said.pop("number"), "version": _VERSION, **said}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """What `to_dict` gave.

        Raises:
            ValueError: it is damaged, or of a later version.
        """
        if data.get("version") != _VERSION:
            raise ValueError("of a version that this loki does not know")
        found, flaws = codec.read(cls, {**_UNSAID, **data, "number": data.get("record")})
        if found is None or flaws:
            raise ValueError(f"not a record of loki: {flaws[0]}")
        return found


# --- In memory ----------------------------------------------------------------------------------------


@dataclass
class MemoryJournalStorage:
    """Keeps everything until the process ends."""

    contents: dict[str, bytes] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Nobody else can reach it."""
        return contextlib.nullcontext()

    def put(self, contents: Iterable[bytes]) -> list[str]:
        """Keep contents."""
        names = []
        for data in contents:
            names.append(content_hash(data))
            self.contents[names[-1]] = data
        return names

    def get(self, name: str) -> bytes | None:
        """The content of a hash."""
        return self.contents.get(name)

    def has(self, name: str, size: int) -> bool:
        """Whether it is kept."""
        return name in self.contents and len(self.contents[name]) == size

    def save(self, record: Record, contents: Mapping[str, bytes] | None = None) -> None:
        """Keep a record and contents."""
        self.contents.update(contents or {})
        self.records[record.number] = record

    def reach(self, number: int, stage: Stage) -> None:
        """Keep a stage."""
        self.records[number] = replace(self.records[number], stage=stage)

    def finish(self) -> None:
        """There is no disk."""

    def load(self) -> tuple[list[Record], list[str]]:
        """The records; none is ever damaged."""
        return [self.records[number] for number in sorted(self.records)], []

    def next_number(self) -> int:
        """The number for a new record."""
        return max(self.records, default=0) + 1

    def tidy(self) -> None:
        """Nothing is ever half-written."""

    def touch(self) -> None:
        """Nobody will ask."""

    def touched(self) -> float:
        """Never: what is in memory does not outlive a crash."""
        return 0.0


# --- In a folder --------------------------------------------------------------------------------------

logger = logging.getLogger("loki")

LOCK_TIMEOUT = 5.0
"""Seconds to wait for another loki that is just changing or undoing. Chosen, not measured."""

LARGE = 65_536
"""Bytes from which on a content is a file of its own. Chosen, not measured."""

_LOST = "what it recorded cannot be undone"


class DiskJournalStorage:
    """Keeps everything in a folder: files 0600, folders 0700, on disk before it is acknowledged.

    Its methods raise `StoreError` where that fails.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Args: folder: where; created when something is first kept."""
        self.folder = os.path.abspath(folder)
        self._log = os.path.join(self.folder, "journal.jsonl")
        self._running = os.path.join(self.folder, "running.json")
        self._forget()

    def _forget(self) -> None:
        self._is_settled = True
        self._end = 0  # bytes of the log that are known; a torn last line is not among them
        self._is_ended = True  # they end with a line feed
        self._last = 0
        self._lines: dict[str, tuple[int, int]] = {}  # hash → where its line is, its own size

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """One loki at a time; held around everything that follows."""
        atomic_file.make_folder(self.folder)
        with locks.hold(os.path.join(self.folder, "journal"), LOCK_TIMEOUT):
            yield

    # --- Records -------------------------------------------------------------------------------

    def save(self, record: Record, contents: Mapping[str, bytes] | None = None) -> None:
        """Keep a record, or what it has become, and those of the contents that are not kept yet."""
        if record.stage == "running":
            self._set_aside_running()
            atomic_file.write_atomic(self._running, json.dumps(record.to_dict()).encode() + b"\n")
            return
        self._catch_up()
        new = {n: data for n, data in (contents or {}).items() if not self.has(n, len(data))}
        if large := [data for data in new.values() if len(data) >= LARGE]:
            self.put(large)
        small = {name: data for name, data in new.items() if len(data) < LARGE}
        shown = {"contents": {n: _shown(data) for n, data in small.items()}} if small else {}
        begin = self._append({**record.to_dict(), **shown})
        self._lines.update({name: (begin, len(data)) for name, data in small.items()})
        self._last = max(self._last, record.number)
        if self._running_number() == record.number:
            path_containment.remove(self.folder, os.path.basename(self._running))

    def _set_aside_running(self) -> None:
        """Keep what somebody has made of the record of a command, where that is none any more."""
        if not self._running_number() and os.path.lexists(self._running):
            aside = f"{self._running}-{os.urandom(4).hex()}"
            os.replace(self._running, aside)
            logger.warning("%s was damaged: what it held is kept as %s", self._running, aside)

    def reach(self, number: int, stage: Stage) -> None:
        """Keep the stage that a record has reached: one short line, on disk with the next or `finish`."""
        self._catch_up()
        self._append({"record": number, "stage": stage}, durable=False)

    def finish(self) -> None:
        """Have all on disk that is kept."""
        if not self._is_settled:
            atomic_file.sync(self._log)
            self._is_settled = True

    def _append(self, data: Mapping[str, Any], *, durable: bool = True) -> int:
        """Add a line; where it begins."""
        line = json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"
        lead = b"" if self._is_ended else b"\n"
        # A name that is no UTF-8 holds lone surrogates: escaped, they are JSON as well.
        written = lead + line.encode("utf-8", "backslashreplace")
        atomic_file.append_at(self._log, self._end, written, durable=durable)
        self._is_settled, self._is_ended = durable, True
        begin, self._end = self._end + len(lead), self._end + len(written)
        return begin

    def _catch_up(self) -> None:
        """Read what other processes have added since."""
        try:
            size = os.stat(self._log).st_size
        except OSError:
            size = 0
        if size < self._end:
            self._forget()
        if size > self._end:
            for begin, line in self._scan(self._end):
                self._end, self._is_ended = begin + len(line), line.endswith(b"\n")
                with contextlib.suppress(ValueError):
                    self._learn(begin, _parsed(line))

    def _learn(self, begin: int, data: Mapping[str, Any]) -> None:
        self._last = max(self._last, int(data["record"]))
        contents = data.get("contents")
        for name, shown in contents.items() if isinstance(contents, dict) else ():
            with contextlib.suppress(ValueError):
                self._lines[name] = begin, len(_bytes(shown))

    def _scan(self, begin: int = 0) -> Iterator[tuple[int, bytes]]:
        """The whole lines of the log, each with where it begins; a torn last one is none.

        One that lacks nothing but its line feed is whole: an editor may have taken that away.
        """
        try:
            with open(self._log, "rb") as log:
                log.seek(begin)
                for line in log:
                    if line.endswith(b"\n") or _is_whole(line):
                        yield begin, line
                    begin += len(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"could not read {self._log}: {error.strerror}") from error

    def load(self) -> tuple[list[Record], list[str]]:
        """The records, and a sentence about each line that is damaged."""
        records: dict[int, Record] = {}
        damaged: list[str] = []
        for count, (_, line) in enumerate(self._scan(), 1):
            try:
                _take(records, _parsed(line))
            except ValueError as error:
                damaged.append(f"{self._log}:{count}: {error}: {_LOST}")
        try:
            with open(self._running, "rb") as running:
                record = Record.from_dict(_parsed(running.read()))
            records.setdefault(record.number, record)  # else it has ended
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            damaged.append(f"{self._running}: {error}: {_LOST}")
        return [records[number] for number in sorted(records)], damaged

    def next_number(self) -> int:
        """The number for a new record."""
        self._catch_up()
        return max(self._last, self._running_number()) + 1

    def _running_number(self) -> int:
        try:
            with open(self._running, "rb") as running:
                return int(_parsed(running.read())["record"])
        except (OSError, ValueError):
            return 0

    def touch(self) -> None:
        """Say that the work of the running record, of which there is one at a time, is going on."""
        with contextlib.suppress(OSError):
            os.utime(self._running)

    def touched(self) -> float:
        """When that was last said, as seconds since 1970."""
        try:
            return os.stat(self._running).st_mtime
        except OSError:
            return 0.0

    def tidy(self) -> None:
        """Remove what a crash left half-written."""
        path_containment.sweep(self.folder)

    # --- Contents ------------------------------------------------------------------------------

    def get(self, name: str) -> bytes | None:
        """The content of a hash, checked."""
        data = self._inline(name)
        if data is None:
            try:
                with open(self._path(name), "rb") as content:
                    data = content.read()
            except (OSError, StoreError):
                return None
        return data if content_hash(data) == name else None

    def _inline(self, name: str) -> bytes | None:
        """The content of a hash out of its record's line; None where it is not there."""
        self._catch_up()
        if name not in self._lines:
            return None
        try:
            with open(self._log, "rb") as log:
                log.seek(self._lines[name][0])
                return _bytes(_parsed(log.readline())["contents"][name])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def has(self, name: str, size: int) -> bool:
        """Whether it is kept, by name and size."""
        if name in self._lines:
            return self._lines[name][1] == size
        try:
            return os.stat(self._path(name)).st_size == size
        except (OSError, StoreError):
            return False

    def put(self, contents: Iterable[bytes]) -> list[str]:
        """Keep contents as files; those that are kept already cost one look.

        Returns:
            Their hashes, in order.
        """
        self._catch_up()
        names, is_new = [], False
        for data in contents:
            names.append(name := content_hash(data))
            if not self.has(name, len(data)):
                self._write(name, data)
                is_new = True
        if is_new:
            self._sync()
        return names

    def _write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        temporary = os.path.join(os.path.dirname(path), atomic_file.temporary_name())
        try:
            atomic_file.make_folder(os.path.dirname(path))
            atomic_file.write_new(temporary, data, 0o600, durable=False)
            os.replace(temporary, path)
        except OSError as error:
            atomic_file.remove_quietly(temporary)
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
        """Where a content is; its name is a hash, or what a damaged record says.

        Raises:
            StoreError: it can be no file's.
        """
        return path_containment.path(self.folder, "objects", name[:2], name[2:])


JournalStorage: TypeAlias = MemoryJournalStorage | DiskJournalStorage
"""Where records and contents are kept."""


def _take(records: dict[int, Record], data: Mapping[str, Any]) -> None:
    """Put a line among the records.

    Raises:
        ValueError: it is no record, and no stage of one.
    """
    if "steps" in data:
        record = Record.from_dict(data)
        records[record.number] = record
        return
    number, stage = data["record"], data.get("stage")
    if stage not in STAGES:
        raise ValueError("of a version that this loki does not know")
    if number in records:  # else the line of the record is damaged, and that is said there
        records[number] = replace(records[number], stage=cast("Stage", stage))


def _parsed(line: bytes) -> dict[str, Any]:
    """A line of the log.

    Raises:
        ValueError: it is none.
    """
    data = parsed_json(line)
    if not isinstance(data, dict) or not isinstance(data.get("record"), int):
        raise ValueError("not a record of loki")
    return data


def _is_whole(line: bytes) -> bool:
    try:
        return bool(_parsed(line))
    except ValueError:
        return False


def _shown(data: bytes) -> str | dict[str, str]:
    """A content as it stands in a line: text where it is text, for people to read."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _bytes(shown: Any) -> bytes:
    """What `_shown` was given.

    Raises:
        ValueError: it gave something else.
    """
    try:
        if isinstance(shown, str):
            return shown.encode("utf-8")
        return base64.b64decode(shown["base64"], validate=True)
    except (TypeError, KeyError, UnicodeEncodeError, binascii.Error) as error:
        raise ValueError(f"not a content: {error}") from error
