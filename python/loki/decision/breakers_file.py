"""The file that processes share breakers through: locked, read, set aside, replaced.

A file of many breakers takes longer to write than what one outcome changes of it. So a longer one is
written at changes of state, and about every second besides; in between an outcome is a line of a log beside
it. Each line has a whole entry, and a mark of the entry in the file that it stands for: where the file says
something else by now, because it was written since or because somebody else has changed it, the line means
nothing. So neither is a line ever counted twice, nor does it undo what another program wrote.

Bytes in, bytes out: what they mean is in the C++ core.

``logs/breaker-transitions.jsonl`` has one JSON object a line: ``at`` (ISO 8601 UTC), ``breaker``,
``before``, ``after`` and, where a failure tripped it, ``error``. Each process writes those that it
makes, so that none stands there twice. One that cannot be kept is lost: how a breaker stands is in the
breakers' own file.
"""

from __future__ import annotations

import errno
import itertools
import json
import logging
import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from loki._core import BreakerMoment, BreakersFile
from loki.base import atomic_file, locks
from loki.base.error import StoreError
from loki.base.log import logger, quoted, write
from loki.base.time import isoformat
from loki.decision.breaker import CircuitState, Transition
from loki.decision.recovery import recovery_line

# --- The file with its log, as bytes ------------------------------------------------------------------

SMALL = 16 * 1024
"""Bytes of a file that is written with each outcome: some 25 breakers. Chosen by what
`make bench-decision` prints of a shared file: up to there it costs about what a bare write does."""

LONGEST = 256 * 1024
"""Bytes of a log, after which the file is written at once. Chosen, not measured."""

SHARE = 4
"""A line that is longer than this share of the file saves nothing. Chosen, not measured."""

_MARK = 16
"""Characters of a mark."""


@dataclass(frozen=True)
class Content:
    """What a file of breakers says, with its log.

    Attributes:
        data: the file's bytes, a JSON object; in the form of `BreakersFile.bytes`, unless it `is_small`.
        log: the log's bytes.
        is_ours: it is loki that wrote the file last.
    """

    data: bytes
    log: bytes = b""
    is_ours: bool = False

    @property
    def is_small(self) -> bool:
        """Whether it is read and written as a whole."""
        return len(self.data) <= SMALL and not self.has_lines

    @property
    def has_lines(self) -> bool:
        """Whether something happened since the file was written."""
        return b" {" in self.log

    def whole(self) -> BreakersFile:
        """All breakers."""
        return BreakersFile(self.merged() if self.has_lines else self.data)

    def entry(self, name: str) -> BreakersFile:
        """At least that breaker, if it is known."""
        if self.is_small:
            return BreakersFile(self.data)
        key = _key(name)
        if (found := self._last(key)) is not None:
            return found
        return BreakersFile(_document(key, value_of(self.data, key)))

    def _last(self, key: bytes) -> BreakersFile | None:
        """What the newest line that counts says of a breaker; None: there is none."""
        own, at = _mark(value_of(self.data, key)), self.end
        while (at := self.log.rfind(b" {" + key + b": ", 0, at)) >= 0:
            if self.log[max(0, at - _MARK) : at] == own:
                # What a disk that lost its power wrote half is no line.
                with suppress(ValueError):
                    return BreakersFile(self.log[at + 1 : self.log.index(b"\n", at)])
        return None

    def line(self, name: str, content: BreakersFile) -> bytes:
        """What to add to the log for a breaker.

        Args:
            name: the breaker's.
            content: what `entry` gave, changed.
        """
        key = _key(name)
        value = value_of(content.bytes(), key) or b"{}"
        # In JSON no text goes over lines.
        document = _document(key, value).replace(b"\n", b"")
        return _mark(value_of(self.data, key)) + b" " + document + b"\n"

    @property
    def end(self) -> int:
        """Bytes of the log that count: a last line whose writer died does not."""
        return self.log.rfind(b"\n") + 1

    def merged(self, line: bytes = b"") -> bytes:
        """The file as it is to be written: with what the log says, and a line more."""
        changed: dict[bytes, bytes] = {}
        for one in (self.log[: self.end] + line).split(b"\n"):
            mark, _, document = one.partition(b" ")
            try:
                found = BreakersFile(document)
            except ValueError:
                continue  # the head, or what a disk that lost its power wrote half
            for key in map(_key, found.names()):
                if mark == _mark(value_of(self.data, key)):
                    changed[key] = value_of(found.bytes(), key) or b"{}"
        return _replaced(self.data, changed)


def value_of(data: bytes, key: bytes) -> bytes | None:
    """What a file in the form of `BreakersFile.bytes` says of a breaker; None: nothing.

    A key of the object stands on a line of its own after two blanks, and nothing else does: what is deeper
    has more, and no text goes over lines.
    """
    span = _span(data, key)
    return None if span is None else data[slice(*span)]


def head(identity: tuple[int, ...]) -> bytes:
    """The first line of a log: which file it began with, as the system knows it."""
    return b"of " + b" ".join(b"%d" % one for one in identity) + b"\n"


def _span(data: bytes, key: bytes) -> tuple[int, int] | None:
    at = data.find(b"\n  " + key + b": ")
    if at < 0:
        return None
    begin = at + len(key) + 5
    end = data.find(b'\n  "', begin)
    if end < 0:
        return begin, data.rindex(b"\n}")
    return begin, end - 1  # without the comma


def _replaced(data: bytes, changed: dict[bytes, bytes]) -> bytes:
    spans = {key: _span(data, key) for key in changed}
    known = sorted((span, changed[key]) for key, span in spans.items() if span is not None)
    parts, at = [], 0
    for (begin, end), value in known:
        parts += [data[at:begin], value]
        at = end
    new = [b"\n  " + key + b": " + changed[key] for key, span in spans.items() if span is None]
    rest = data[at:].rstrip()
    if not new:
        return b"".join([*parts, rest, b"\n"])
    is_empty = not parts and rest == b"{}"
    joined = b"".join([*parts, rest[:-1].rstrip()])
    return joined + (b"" if is_empty else b",") + b",".join(new) + b"\n}\n"


def _document(key: bytes, value: bytes | None) -> bytes:
    return b"{}" if value is None else b"{" + key + b": " + value + b"}"


def _mark(value: bytes | None) -> bytes:
    """What tells an entry from any other, and from none."""
    return blake2b(value or b"", digest_size=_MARK // 2).hexdigest().encode()


@lru_cache(maxsize=256)
def _key(name: str) -> bytes:
    """A breaker's name as the file has it, in quotes."""
    return BreakersFile(json.dumps({name: {}}).encode()).bytes()[4 : -len(b": {}\n}\n")]


# --- The file on disk ---------------------------------------------------------------------------------

MAX_BYTES = 4 * 2**20
"""What is larger is no file of breakers: some 5,000 of them. Chosen, not measured."""

LOCK_TIMEOUT = 30.0
"""Seconds to wait for a process that holds the lock; longer, and it goes on without. Chosen: on a machine
that is busy, with many who wait, each has his turn long before; who holds it that long hangs."""

POLL = 0.002
"""Seconds between two looks at a lock that somebody holds: about what he needs. Chosen."""


SETTLED = 2.0
"""Seconds after which a file that changes again shows another time: the coarsest file system's."""


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_Identity: TypeAlias = tuple[int, int, int]
"""Which file it is."""

_NEVER: _Identity = (0, 0, 0)
"""No file is this one."""


class SharedFile:
    """A file of breakers on disk.

    Args:
        path: the file; it and its folder need not exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self._log = f"{self.path}-log"
        self._seen: tuple[_Identity, _Identity] = _NEVER, _NEVER
        self._has_swept = False

    def has_changed(self) -> bool:
        """Whether it is another file than when this was last asked; two looks at the disk."""
        before = self._seen
        found = [_look(path) for path in (self.path, self._log)]
        self._seen = _known(found[0]), _known(found[1])
        return (_identity(found[0]), _identity(found[1])) != before

    def lock(self) -> AbstractContextManager[None]:
        """Hold its lock: one thread of one process at a time, each in turn.

        Raises:
            StoreError: somebody else held it for 30 s, or there can be none here.
        """
        atomic_file.make_folder(os.path.dirname(self.path))
        return locks.hold_in_turn(self.path, LOCK_TIMEOUT, POLL)

    def has_folder(self) -> bool:
        """Whether there is a place for it."""
        return os.path.isdir(os.path.dirname(self.path))

    def read(self) -> Content:
        """What it says, with what happened since it was written; nothing where there is no file.

        Raises:
            ValueError: it is not what it should be.
            StoreError: it cannot be read.
        """
        log = self._log_bytes()  # first: what the file says by now makes lines void, never new
        data, identity = self._bytes()
        is_ours = log.startswith(head(identity))
        content = Content(data, log, is_ours=is_ours)
        if not is_ours:  # somebody else may have written whatever he likes
            checked = BreakersFile(data)
            content = content if content.is_small else Content(checked.bytes(), log)
        return content

    def write(self, before: Content, name: str, content: BreakersFile, *, at_once: bool) -> bool:
        """Keep what has become of a breaker; on disk when this returns. Needs the lock.

        Args:
            before: what was read under the same lock.
            name: the breaker's.
            content: what ``before.entry(name)`` gave, changed.
            at_once: others have to see it in the file itself.

        Returns:
            Whether the file itself says it; if not, `fold` is due.

        Raises:
            StoreError: it could not be written; the old file is still there.
        """
        if before.is_small:
            self._replace(content.bytes())
            return True
        line, size = before.line(name, content), len(before.data)
        is_long = len(before.log) > LONGEST or len(line) * SHARE > max(size, SMALL)
        if at_once or is_long or not before.is_ours:
            self._write_whole(before.merged(line))
            return True
        atomic_file.append_at(self._log, before.end, line)
        self._seen = _NEVER, _NEVER
        return False

    def fold(self, *, unless_younger: float = 0.0) -> bool:
        """Bring the file up to what the log says. Needs the lock.

        Args:
            unless_younger: seconds since somebody did that.

        Returns:
            Whether it says all.

        Raises:
            ValueError: it is not what it should be.
            StoreError: it could not be read or written.
        """
        content = self.read()
        if not content.has_lines:
            return True
        status = _look(self.path)
        if status is not None and 0 <= time.time() - status.st_mtime < unless_younger:
            return False
        self._write_whole(content.merged())
        return True

    def _write_whole(self, data: bytes) -> None:
        self._replace(data)
        status = _look(self.path)
        if len(data) > SMALL and status is not None:
            # The lines before it mean nothing by now, whether they are cut off or not.
            atomic_file.append_at(self._log, 0, head(_identity(status)), durable=False)

    def _replace(self, data: bytes) -> None:
        atomic_file.write_atomic(self.path, data, of=os.path.basename(self.path))
        self._sweep()
        self._seen = _NEVER, _NEVER  # what comes next may even be what was there before

    def set_aside(self) -> str:
        """Move it out of the way, under a name that is free; the new name. Needs the lock.

        Raises:
            StoreError: it cannot be moved.
        """
        aside = self._free_name()
        with atomic_file.telling("could not move", self.path):
            os.rename(self.path, aside)
            atomic_file.sync_folder(os.path.dirname(aside))
        return aside

    def copy_aside(self) -> str:
        """Keep a copy of it, under a name that is free; the copy's name. Needs the lock.

        Raises:
            StoreError: it cannot be written.
        """
        aside = self._free_name()
        atomic_file.write_atomic(aside, self._bytes()[0])
        return aside

    def _sweep(self) -> None:
        """Once: remove what writers left that were killed. Who has the lock is the only writer."""
        if self._has_swept:
            return
        self._has_swept = True
        folder, name = os.path.split(self.path)
        with suppress(OSError):
            for found in os.listdir(folder):
                if found.startswith(f".loki-{name}-") and atomic_file.is_temporary(found):
                    atomic_file.remove_quietly(os.path.join(folder, found))

    def _free_name(self) -> str:
        names = (f"{self.path}.corrupt-{number}" for number in itertools.count(1))
        return next(name for name in names if not os.path.lexists(name))

    def _bytes(self) -> tuple[bytes, _Identity]:
        """The file, and which one it is."""
        try:
            with open(self.path, "rb", opener=_at_once) as opened:
                status = os.fstat(opened.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "is no file")
                if status.st_size > MAX_BYTES:
                    raise ValueError(f"found {status.st_size} bytes, expected at most {MAX_BYTES}")
                return opened.read(status.st_size), _identity(status)
        except FileNotFoundError:
            return b"{}", _NEVER
        except OSError as error:
            self._seen = _NEVER, _NEVER  # to be tried again
            raise StoreError(f"could not read {self.path}: {error.strerror or error}") from error

    def _log_bytes(self) -> bytes:
        try:
            with open(self._log, "rb", opener=_at_once) as opened:
                is_file = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
                return opened.read(MAX_BYTES) if is_file else b""
        except OSError:
            return b""


def _at_once(path: str, flags: int) -> int:
    """Without waiting for whoever may write into it, if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _look(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _identity(status: os.stat_result | None) -> _Identity:
    # Each replacement is a new file; one that is written in place has another time or size. Within
    # a tick of the file system's clock all of it may be as it was: see SETTLED.
    return (0, 0, 1) if status is None else (status.st_ino, status.st_mtime_ns, status.st_size)


def _known(status: os.stat_result | None) -> _Identity:
    """Which file it is, once another one would be told from it; until then none."""
    is_settled = status is None or abs(time.time() - status.st_mtime) > SETTLED
    return _identity(status) if is_settled else _NEVER


def moment(now_ns: int, now: datetime, boot_id: str) -> BreakerMoment:
    """One moment in both clocks."""
    since_1970 = now - _EPOCH
    whole_seconds = since_1970.days * 86_400 + since_1970.seconds
    nanoseconds = whole_seconds * 1_000_000_000 + since_1970.microseconds * 1_000
    return BreakerMoment(now_ns, nanoseconds, boot_id)


def owner() -> str:
    """Who has a probe, for people."""
    return f"{os.uname().nodename}:{os.getpid()}"


# --- Brings a long file up to what its log says, a moment later ---------------------------------------

SECONDS = 1.0
"""How long after an outcome a long file says it, at the latest. Chosen: about as soon as people look."""

REST = 50
"""Times as long as it takes to write a long file it is left alone, so that this takes 2 % of the time."""


class BreakersCompaction:
    """At most one such moment ahead; all but `forget` needs the lock that is given.

    Args:
        file: the file.
        lock: what threads of this process queue at.
        complain: is told that the disk fails.
    """

    def __init__(
        self, file: SharedFile, lock: threading.Lock, complain: Callable[[StoreError], None]
    ) -> None:
        self._file, self._lock, self._complain = file, lock, complain
        self._timer: threading.Timer | None = None
        self._took = 0.0  # seconds

    def later(self) -> None:
        """Soon, whatever comes."""
        if self._timer is None:
            self._timer = threading.Timer(max(SECONDS, self._took * REST), self._due)
            self._timer.daemon = True
            self._timer.start()

    def at_end(self) -> None:
        """Now, if it is due: the process ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._fold(0.0)

    def _due(self) -> None:
        with self._lock:
            self._timer = None
            if not self._fold(SECONDS):  # another process did, and there is more since
                self.later()

    def _fold(self, age: float) -> bool:
        if not self._file.has_folder():
            return True
        try:
            with suppress(ValueError), self._file.lock():  # who uses it next sets it aside
                began = time.monotonic()
                is_done = self._file.fold(unless_younger=age)
                self._took = time.monotonic() - began
                return is_done
        except StoreError as problem:
            self._complain(problem)
        return True


# --- The log line of a change of state ----------------------------------------------------------------


def listens() -> bool:
    """Whether anybody reads log lines: else nobody needs to look for what other processes did."""
    return logger.isEnabledFor(logging.INFO)


def tell(transition: Transition) -> None:
    """Write ``[closed-loop] breaker=… state=… was=…``, and the same as data.

    Args:
        transition: what happened.
    """
    name, state, was = transition.name, str(transition.after), str(transition.before)
    write(
        f"breaker={quoted(name)} state={state} was={was}",
        {"breaker": name, "state": state, "was": was},
    )


# --- The logs of transitions and recoveries -----------------------------------------------------------

TRANSITIONS = "breaker-transitions.jsonl"
RECOVERIES = "circuit-recovery.log"


class TransitionLog:
    """The two logs of a file of breakers.

    Args:
        path: the file of breakers; in a folder ``state`` both logs are in ``logs`` beside that.
        recoveries: where recoveries go instead; None: beside it.
    """

    def __init__(
        self, path: str | os.PathLike[str], recoveries: str | os.PathLike[str] | None = None
    ) -> None:
        folder = Path(path).parent
        logs = folder.parent / "logs" if folder.name == "state" else None
        self._transitions = logs and logs / TRANSITIONS
        self._recoveries = recoveries or (logs and logs / RECOVERIES)

    def keep(
        self, name: str, before: CircuitState, after: CircuitState, at: datetime, error: str = ""
    ) -> None:
        """Keep a transition; called after a file was written, never on the way of a call let through.

        Args:
            name: the breaker's.
            before, after: the state that it left, and entered.
            at: when, in UTC.
            error: of the failure that tripped it, without secrets; "" where none did.
        """
        record = {"at": isoformat(at), "breaker": name, "before": before, "after": after}
        line = json.dumps({**record, "error": error} if error else record, ensure_ascii=False)
        with suppress(StoreError):  # the breakers' own file is on the same disk: that was told
            _append(self._transitions, line)
        if after == "CLOSED":
            try:
                _append(self._recoveries, recovery_line(name, at))
            except StoreError as problem:
                logger.warning("Could not persist: %s. Going on; %s recovered.", problem, name)


def _append(path: str | os.PathLike[str] | None, line: str) -> None:
    if path is not None:
        atomic_file.append_line(path, line.encode("utf-8", "replace"))
