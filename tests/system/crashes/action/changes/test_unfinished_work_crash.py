"""What a task has left unfinished, while it moves over to a newer copy: killed at any step, it is there."""

from __future__ import annotations

import tempfile
from pathlib import Path

from loki.action.changes.executor import move_over, unfinished_change, work_folder
from loki.action.changes.journal import Journal
from support.disk import MEMORY
from support.journal import CHANGE, die_at_call, killed, make_project


def test_killed_while_work_moves_over() -> None:
    for number in range(1, 200):
        with tempfile.TemporaryDirectory(dir=MEMORY) as name:
            if not survives(Path(name), number):
                break
    assert number > 30


def survives(place: Path, number: int) -> bool:
    """Killed before the n-th call that changes the disk, if there are as many; whether it was."""
    folder = place / ".loki"
    folder.mkdir(parents=True)
    older, newer = make_project(place / "older"), make_project(place / "newer")
    Journal(work_folder(folder, "t"), older).apply(CHANGE)

    def move(number: int = number, folder: Path = folder, newer: Path = newer) -> None:
        die_at_call(number)
        move_over(folder, "t", unfinished_change(folder, "t"), newer)

    was_killed = killed(move)
    assert set(unfinished_change(folder, "t").paths) == set(CHANGE.paths), number
    again = make_project(place / "again")
    move_over(folder, "t", unfinished_change(folder, "t"), again)
    assert (again / "a.py").read_text() == "new a\n", number
    return was_killed
