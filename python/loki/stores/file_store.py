"""Memory in plain files that many processes may share, and going on in memory where that fails."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from loki.base import atomic_file as file
from loki.base import documents, locks, path_containment
from loki.base.documents import Masked
from loki.base.error import StoreError, UsageError
from loki.base.secret import mask_secrets, masked
from loki.memory import store
from loki.memory.store import Record, Rewrite, Store

SIGNALS = "signals"
"""Folder that is always there: programs and people append to files in it as they are."""

IGNORED = """\
# What loki remembers stays here; what a person wrote can be committed.
*
!config.toml
!failure-patterns.yml
!learned-patterns.yml
!verification-gates.yml
"""

LOCK_TIMEOUT, LOCK_POLL = 60.0, 0.005
"""Seconds to wait for a lock over documents, held for milliseconds, and between two looks; chosen."""

ROUNDS = 100
"""How often a document is updated that another program writes at the same time. Chosen."""

PATIENCE = 1.0
"""Seconds that a run waits for the project: a worker holds it while it takes a copy. Chosen."""

logger = logging.getLogger("loki")


class FileStore:
    """A `loki.memory.store.Store` in a folder: logs as JSON lines, documents as files.

    Args:
        folder: the workspace's folder, usually ``.loki``; made when something is first written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._told: set[tuple[Path, int]] = set()

    def append(self, log: str, record: Record, *, durable: bool = True) -> None:
        """Add a record; on disk when this returns, if ``durable``."""
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        path = self._place(log)
        # A lone surrogate (a file name that is not UTF-8) is escaped, not an error.
        file.append_line(path, line.encode("utf-8", "backslashreplace"), durable=durable)

    def records(self, log: str) -> list[dict[str, Any]]:
        """A log's records; a torn or damaged line is skipped with a warning."""
        return list(self.scan(log))

    def scan(self, log: str) -> Iterator[dict[str, Any]]:
        """The same, one by one."""
        if not path_containment.is_path(log):
            return  # nothing can be kept under such a name
        path = self.folder / log
        for number, line in enumerate(file.scan_lines(path), 1):
            try:
                yield _parse(line)
            except ValueError as error:
                torn = not line.endswith(b"\n")
                self._warn_once(path, number, "its end is torn by a crash" if torn else str(error))

    def _warn_once(self, path: Path, number: int, what: str) -> None:
        """The loop reads its history often; who reads the log wants to know once."""
        if (path, number) not in self._told:
            self._told.add((path, number))
            logger.warning("%s:%d: left out a damaged line: %s", path, number, what)

    def write(self, document: str, text: str) -> None:
        """Replace a document; on disk when this returns."""
        path = self._place(document)
        self._keep_damaged(document)
        file.make_folder(path.parent)
        file.write_atomic(path, text.encode("utf-8", "backslashreplace"))

    def read(self, document: str) -> str | None:
        """A document's text, or None."""
        if not path_containment.is_path(document):
            return None  # nothing can be kept under such a name
        path = os.path.join(self.folder, document)
        telling = file.telling("cannot read", path)
        with telling, suppress(FileNotFoundError), open(path, "rb") as opened:
            return opened.read().decode("utf-8", "replace")
        return None

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        """Rewrite a document, or remove it; on disk when this returns, if ``durable``.

        All updates of a workspace pass one lock: beside each document it would stay behind when
        the document goes.
        """
        path = self._place(document)
        with locks.hold(self.folder / "documents"):
            if os.path.isdir(path):
                self._keep(document, None)
            if document.startswith(f"{SIGNALS}/"):
                for _ in range(ROUNDS):
                    if self._update_shared(document, change, durable=durable):
                        return
            old = self.read(document)
            text = change(old)
            if text is None:
                self._keep_damaged(document)
                path_containment.remove(self.folder, document, keep=SIGNALS)
            elif text != old:
                self._keep_damaged(document)
                file.make_folder(path.parent)
                file.write_atomic(path, text.encode("utf-8", "backslashreplace"), durable=durable)

    def _update_shared(self, document: str, change: Rewrite, *, durable: bool) -> bool:
        """Update a document that other programs write without asking; False: one has just now."""
        path = self.folder / document
        before = _stamp(path)
        old = self.read(document)
        text = change(old)
        if text == old:
            return True

        def is_expected(found: os.stat_result | None) -> bool:
            return _stamped(found) == before

        if text is None:
            return path_containment.remove_if(self.folder, document, is_expected, keep=SIGNALS)
        file.make_folder(path.parent)
        data = text.encode("utf-8", "backslashreplace")
        return file.replace_if(path, data, is_expected, durable=durable)

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Hold a lock over several documents: one holder at a time among all processes.

        Args:
            name: of the lock; who changes these documents otherwise does not ask for it.

        Raises:
            StoreError: somebody else held it for a minute, or there can be none here.
        """
        return locks.hold_in_turn(self._place(name), LOCK_TIMEOUT, LOCK_POLL)

    def beside(self, name: str) -> Path:
        """Where a file that is neither log nor document can be written; its folder is there.

        Raises:
            StoreError: the folder cannot be made.
        """
        path = self._place(name)
        file.make_folder(path.parent)
        return path

    def keys(self, prefix: str) -> list[str]:
        """Names that begin with ``prefix``."""
        start = prefix.rpartition("/")[0]
        if start and not path_containment.is_path(start):
            return []
        found = path_containment.files(self.folder, start, _refuse)
        return sorted(
            name for name in found if name.startswith(prefix) and _is_kept(name.rpartition("/")[2])
        )

    def written_at(self, name: str) -> float | None:
        """When a file was last written, in seconds since the epoch; None where there is none."""
        if not path_containment.is_path(name):
            return None
        path = self.folder / name
        with file.telling("cannot look at", path), suppress(FileNotFoundError, NotADirectoryError):
            return path.stat().st_mtime
        return None

    def _place(self, name: str) -> Path:
        """Where something that is written stands; the folder of memory is prepared.

        Raises:
            StoreError: the name would lead out of that folder.
        """
        path = Path(path_containment.path(self.folder, name))
        self._prepare()
        return path

    def set_aside(self, document: str) -> None:
        """Keep a copy of a damaged document, byte by byte; once, whoever finds it damaged."""
        # There may be none; a folder in its place moves when something is written there.
        with suppress(OSError):
            self._keep(document, self._place(document).read_bytes())

    def _keep_damaged(self, document: str) -> None:
        """Keep what is damaged, as it is, before something is written in its place."""
        path = self.folder / document
        if os.path.isdir(path):
            self._keep(document, None)
        elif (form := documents.form_of(document)) is not None:
            try:
                data = path.read_bytes()
            except OSError:  # there is none, as often
                return
            if documents.read_document(form, data.decode("utf-8", "replace"))[1]:
                self._keep(document, data)

    def _keep(self, document: str, data: bytes | None) -> None:
        """Keep it under `loki.memory.store.ASIDE`: these bytes, or the folder that it is."""
        path = self.folder / document
        mark = os.urandom(4).hex() if data is None else hashlib.sha256(data).hexdigest()[:8]
        kept = Path(store.ASIDE, f"{document}-{mark}")
        place = self.folder / kept
        if place.exists():
            return
        file.make_folder(place.parent)
        if data is None:
            self._move(document, place)
        else:
            file.write_atomic(place, data)
        logger.warning("%s was damaged: what it held is kept as .loki/%s", path, kept)

    def _move(self, document: str, place: Path) -> None:
        telling = file.telling("cannot set aside", self.folder / document)
        with telling, path_containment.parent(self.folder, document) as (above, name):
            os.rename(name, place, src_dir_fd=above)

    def _prepare(self) -> None:
        ignore = os.path.join(self.folder, ".gitignore")
        if not os.path.exists(ignore):
            file.write_atomic(ignore, IGNORED.encode())
        if not os.path.isdir(signals := os.path.join(self.folder, SIGNALS)):
            file.make_folder(Path(signals))


_Stamp = tuple[int, int, int] | None


def _stamp(path: Path) -> _Stamp:
    with suppress(OSError):
        return _stamped(os.stat(path))
    return None


def _stamped(found: os.stat_result | None) -> _Stamp:
    """What tells whether a file is another than before."""
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def _parse(line: bytes) -> dict[str, Any]:
    """A record, by the quicker parser where that can read it.

    Raises:
        ValueError: there is none.
    """
    record = documents.parsed_json(line)
    if not isinstance(record, dict):
        raise ValueError(f"found {type(record).__name__}, expected an object")
    return record


def _is_kept(name: str) -> bool:
    """Not a lock, and not a file that is being written."""
    return not name.endswith(".lock") and not file.is_temporary(name)


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # nobody wrote anything there yet
        raise StoreError(f"cannot list {error.filename}: {error.strerror or error}") from error


@contextmanager
def exclusive(folder: Path, now: float) -> Iterator[None]:
    """One run at a time in a workspace; what runs that were killed left half written is removed.

    Args:
        folder: the workspace's folder.
        now: seconds since the epoch.

    Raises:
        UsageError: another run is at work here.
    """
    with ExitStack() as stack:
        try:
            file.make_folder(folder)
            stack.enter_context(locks.hold(folder / "run", timeout=PATIENCE))
        except StoreError as error:
            if (folder / "run.lock").exists() and _is_writable(folder):
                raise UsageError(f"another loki run is at work in {folder.parent}") from error
            logger.warning("Could not persist: %s. Going on without a lock.", error)
        path_containment.sweep(folder, now - path_containment.STALE)
        yield


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


def open_store(folder: Path) -> FileStore:
    """The store of a project: the one place that says what keeps its memory.

    `loki.Workspace` has it as ``strict_store``; its ``store`` goes on in memory where the disk does not.

    Args:
        folder: the project's ``.loki``; nothing need be there, and a look alone makes nothing.
    """
    return FileStore(folder)


# --- Going on where the disk does not ------------------------------------------------------------------


class ForgivingStore:
    """What the loop writes to: masks secrets, and goes on in memory where the store behind it fails.

    Args:
        behind: the store to use while it works.
        warn: called once with a sentence for the user; the default logs it.

    What could not be written is kept for this process only and tried again with each later write.
    """

    def __init__(self, behind: Store, warn: Callable[[str], None] | None = None) -> None:
        self._behind = behind
        self._warn = warn or logger.warning
        self._warned = False
        self._records: dict[str, list[dict[str, Any]]] = {}
        self._documents: dict[str, str] = {}
        self._lock = threading.RLock()  # what waits is written by one thread at a time

    def append(self, log: str, record: Record, *, durable: bool = True) -> None:
        """Add a record; never raises `loki.StoreError`."""
        with self._lock:
            self._records.setdefault(log, []).append(masked(record))
            if self._append_waiting(log, durable=durable):
                self._catch_up()

    def records(self, log: str) -> list[dict[str, Any]]:
        """Records, those that could not be written included."""
        return list(self.scan(log))

    def scan(self, log: str) -> Iterator[dict[str, Any]]:
        """The same, one by one."""
        try:
            yield from self._behind.scan(log)
        except StoreError as error:
            self._complain(error)
        yield from self._records.get(log, [])

    def write(self, document: str, text: str) -> None:
        """Replace a document; never raises `loki.StoreError`."""
        text = _masked_document(document, text)
        try:
            self._behind.write(document, text)
        except StoreError as error:
            self._complain(error)
            self._documents[document] = text
        else:
            self._documents.pop(document, None)
            self._catch_up()

    def read(self, document: str) -> str | None:
        """A document's text, or None."""
        if document in self._documents:
            return self._documents[document]
        try:
            return self._behind.read(document)
        except StoreError as error:
            self._complain(error)
            return None

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        """Rewrite a document; never raises `loki.StoreError`."""

        def rewrite(text: str | None) -> str | None:
            # What could not be written before is newer than what is there.
            changed = change(self._documents.get(document, text))
            return None if changed is None else _masked_document(document, changed)

        try:
            self._behind.update(document, rewrite, durable=durable)
        except StoreError as error:
            self._complain(error)
            changed = rewrite(self.read(document))
            self._documents.pop(document, None)
            if changed is not None:
                self._documents[document] = changed
        else:
            self._documents.pop(document, None)
            self._catch_up()

    def lock(self, name: str) -> AbstractContextManager[None]:
        """The store behind's lock: there is none in memory, for no other process would see it."""
        return self._behind.lock(name)

    def set_aside(self, document: str) -> None:
        """Keep what a damaged document holds; never raises `loki.StoreError`."""
        try:
            self._behind.set_aside(document)
        except StoreError as error:
            self._complain(error)

    def keys(self, prefix: str) -> list[str]:
        """Names that begin with ``prefix``, in memory or behind."""
        found = {name for name in (*self._records, *self._documents) if name.startswith(prefix)}
        try:
            found.update(self._behind.keys(prefix))
        except StoreError as error:
            self._complain(error)
        return sorted(found)

    def written_at(self, name: str) -> float | None:
        """When it was last written; None also for what is in memory only."""
        if name in self._documents or name in self._records:
            return None
        try:
            return self._behind.written_at(name)
        except StoreError as error:
            self._complain(error)
            return None

    def _append_waiting(self, log: str, *, durable: bool = True) -> bool:
        """Write a log's waiting records, oldest first; whether none is left."""
        waiting = self._records[log]
        while waiting:
            try:
                self._behind.append(log, waiting[0], durable=durable)
            except StoreError as error:
                self._complain(error)
                return False
            waiting.pop(0)
        del self._records[log]
        return True

    def _catch_up(self) -> None:
        """The store behind works again: write what it missed."""
        with self._lock:
            if not all(self._append_waiting(log) for log in list(self._records)):
                return
            for document, text in list(self._documents.items()):
                try:
                    self._behind.write(document, text)
                except StoreError:
                    return
                del self._documents[document]

    def _complain(self, error: StoreError) -> None:
        if not self._warned:
            self._warned = True
            self._warn(f"Could not persist: {error}. Going on; this run is kept in memory only.")


def _masked_document(document: str, text: str) -> str:
    if isinstance(text, Masked):
        return text
    if not document.endswith(".json"):
        return mask_secrets(text)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # damaged, and handed back as it was
        return mask_secrets(text)
    clean = masked(data)
    return text if clean == data else json.dumps(clean, indent=1, ensure_ascii=False) + "\n"
