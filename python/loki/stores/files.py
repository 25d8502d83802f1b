"""Memory in plain files under a workspace's ``.loki/``; many processes may share them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from loki.base import file
from loki.base.error import StoreError
from loki.memory.store import Record

IGNORED = """\
# What loki remembers stays here; what a person wrote can be committed.
*
!config.toml
!failure-patterns.yml
!verification-gates.yml
"""

logger = logging.getLogger("loki")


class FileStore:
    """A `loki.memory.store.Store` in a folder: logs as JSON lines, documents as files.

    Args:
        folder: the workspace's folder, usually ``.loki``; made when something is first written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, log: str, record: Record) -> None:
        """Add a record; on disk when this returns."""
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        self._prepare()
        # A lone surrogate (a file name that is not UTF-8) is escaped, not an error.
        file.append_line(self.folder / log, line.encode("utf-8", "backslashreplace"))

    def records(self, log: str) -> list[dict[str, Any]]:
        """A log's records; a torn or damaged line is skipped with a warning."""
        path = self.folder / log
        read = file.read_lines(path)
        if read.torn:
            logger.warning("%s: its last line was torn by a crash; left out", path)
        found = []
        for number, line in enumerate(read.lines, 1):
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError("expected an object")
                found.append(record)
            except ValueError as error:
                logger.warning("%s:%d: skipped a damaged line: %s", path, number, error)
        return found

    def put(self, document: str, text: str) -> None:
        """Replace a document; on disk when this returns."""
        self._prepare()
        path = self.folder / document
        file.make_folder(path.parent)
        file.write_atomic(path, text.encode("utf-8", "backslashreplace"))

    def get(self, document: str) -> str | None:
        """A document's text, or None."""
        try:
            return (self.folder / document).read_text("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(_sentence("read", self.folder / document, error)) from error

    def names(self, prefix: str) -> list[str]:
        """Names that begin with ``prefix``."""
        start = self.folder / prefix.rpartition("/")[0]
        try:
            found = [p for p in start.rglob("*") if _is_kept(p)]
        except OSError as error:
            raise StoreError(_sentence("list", start, error)) from error
        names = (path.relative_to(self.folder).as_posix() for path in found)
        return sorted(name for name in names if name.startswith(prefix))

    def _prepare(self) -> None:
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            file.write_atomic(ignore, IGNORED.encode())


def _is_kept(path: Path) -> bool:
    """Not a lock, and not a file that is being written."""
    return path.is_file() and path.suffix != ".lock" and not file.is_temporary(path.name)


def _sentence(verb: str, path: Path, error: OSError) -> str:
    return f"cannot {verb} {path}: {error.strerror or error}"
