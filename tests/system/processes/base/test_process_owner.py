"""Whose file it is, told from its name: a process that lives, one that has ended, a stranger's: with processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from loki.base import locks, path_containment
from loki.base.atomic_file import is_temporary, temporary_name
from support.journal import killed


def left_by_the_killed(folder: Path) -> str:
    """A file that a process which was killed left half written."""

    def die() -> None:
        (folder / temporary_name()).write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)

    assert killed(die)
    (name,) = filter(is_temporary, os.listdir(folder))
    return name


def test_the_killed_have_ended_and_the_living_have_not(tmp_path: Path) -> None:
    assert locks.has_ended(left_by_the_killed(tmp_path)) is True
    assert locks.has_ended(temporary_name()) is False
    assert locks.has_ended(temporary_name("breakers.json")) is False


def test_what_the_killed_left_goes_at_once_and_what_others_may_write_stays(tmp_path: Path) -> None:
    folder = tmp_path / ".loki"
    (folder / "queue").mkdir(parents=True)
    gone = left_by_the_killed(folder / "queue")
    mine = folder / "queue" / temporary_name()
    old, fresh = (folder / f".loki-{n}.tmp" for n in (1, 2))
    for path in (mine, old, fresh):
        path.write_text("half")
    os.utime(old, (0, 0))
    os.utime(mine, (0, 0))
    path_containment.sweep(folder, fresh.stat().st_mtime - 1)
    assert not (folder / "queue" / gone).exists()
    assert not old.exists()
    assert mine.exists(), "its writer lives"
    assert fresh.exists(), "another machine may be writing it"
