"""Where memory is kept: plain files, and later databases."""

from __future__ import annotations

from pathlib import Path

from loki.stores.file_store import FileStore


def open_store(folder: Path) -> FileStore:
    """The store of a project: the one place that says what keeps its memory.

    `loki.Workspace` has it as ``strict_store``; its ``store`` goes on in memory where the disk does not.

    Args:
        folder: the project's ``.loki``; nothing need be there, and a look alone makes nothing.
    """
    return FileStore(folder)
