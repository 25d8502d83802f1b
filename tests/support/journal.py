"""A project to change, and ways to die while changing it."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loki.action.changes.change import Change, Edit
from loki.action.changes.journal import External, Journal
from support.forked import exit_code, fork

CHANGE = Change(
    (
        Edit("a.py", b"new a\n"),
        Edit("run.sh", b"new run\n"),
        Edit("old/deep/gone.py", None),
        Edit("new/deep/b.py", b"new b\n"),
        Edit("link", b"a.py", mode="symlink"),
        Edit("tool", b"#!/bin/sh\n", mode="executable"),
    )
)

CALLS = (
    "write", "fsync", "replace", "rename", "unlink", "mkdir", "rmdir", "symlink", "link", "fchmod",
)  # fmt: skip


@contextmanager
def around(task: Journal) -> Iterator[External]:
    """What is done to the project in the body, by a command, is recorded as if it were a change."""
    work = task.begin_external()
    try:
        yield work
    finally:
        work.applied = task.end_external(work)


def make_project(root: Path) -> Path:
    (root / "old" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "old").chmod(0o750)
    (root / "a.py").write_text("old a\n")
    (root / "run.sh").write_text("old run\n")
    (root / "run.sh").chmod(0o755)
    (root / "old" / "deep" / "gone.py").write_text("gone\n")
    (root / "old" / "deep" / "gone.py").chmod(0o640)
    return root


def picture(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a project: folders, modes, contents, strays."""
    found = {}
    for path in sorted(root.rglob("*")):
        if ".loki" in path.parts:
            continue
        if path.is_symlink():
            found[str(path.relative_to(root))] = (0, os.readlink(path).encode())
        else:
            data = b"" if path.is_dir() else path.read_bytes()
            found[str(path.relative_to(root))] = (stat.S_IMODE(path.stat().st_mode), data)
    return found


def journal(project: Path, observe: Callable[[str], None] | None = None) -> Journal:
    return Journal(project / ".loki" / "tasks" / "t" / "undo", project, observe)


def kill_at(number: int) -> Callable[[str], None]:
    left = number

    def observe(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return observe


def die_at_call(number: int) -> None:
    """In a forked child: SIGKILL before the n-th call that changes something on the disk.

    A statement of SQLite is one, too: what it does to its files is between that and the next.
    """
    left = number

    class Mortal(sqlite3.Connection):
        def execute(self, *arguments: Any) -> Any:
            nonlocal left
            if not arguments[0].lstrip().startswith(("SELECT", "PRAGMA")):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return super().execute(*arguments)

    connect = sqlite3.connect
    sqlite3.connect = lambda *some, **more: connect(*some, factory=Mortal, **more)  # type: ignore[assignment]
    for name in CALLS:
        original = getattr(os, name)

        def call(*arguments: Any, _original: Any = original, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return _original(*arguments, **options)

        setattr(os, name, call)


def killed(work: Callable[[], object]) -> bool:
    """Do it in a child; whether it was killed in the middle."""
    return exit_code(fork(work)) < 0
