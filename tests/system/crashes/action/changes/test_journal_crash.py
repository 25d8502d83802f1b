"""Killed at any step, files are wholly before or wholly after."""

import errno
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from loki.action.changes.journal import AFTERMATH, ApplyError, Journal
from loki.action.changes.tree import Tree
from support.journal import (
    CHANGE,
    around,
    die_at_call,
    journal,
    kill_at,
    killed,
    make_project,
    picture,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def steps_of(work: Callable[[Journal], object], tmp_path: Path) -> list[str]:
    seen: list[str] = []
    work(journal(make_project(tmp_path / "dry"), seen.append))
    return seen


def apply(task: Journal) -> None:
    task.apply(CHANGE)


def apply_and_undo(task: Journal) -> None:
    task.apply(CHANGE)
    task.undo()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_an_error_at_any_step_rolls_back(tmp_path: Path, code: int) -> None:
    """A full disk, a file that cannot be written: as if nothing had been tried."""
    for number, step in enumerate(steps_of(apply, tmp_path / str(code))):
        project = make_project(tmp_path / str(number))
        before = picture(project)

        def fail(name: str, step: str = step) -> None:
            if name == step:
                raise OSError(code, os.strerror(code), name)

        task = journal(project, fail)
        with pytest.raises((ApplyError, OSError), match=os.strerror(code)):
            task.apply(CHANGE)
        assert picture(project) == before, step
        assert task.changes() == {}
        assert journal(project).recover().restored == ()
        assert journal(project).apply(CHANGE)


@pytest.mark.parametrize("work", [apply, apply_and_undo])
def test_killed_at_any_step(tmp_path: Path, work: Callable[[Journal], None]) -> None:
    """SIGKILL at each step of the protocol: after the next start all is before, or all is after."""
    outcomes = set()
    count = len(steps_of(work, tmp_path))
    for number in range(1, count + 1):
        project = make_project(tmp_path / str(number))
        before = Tree.scan(project).entries
        after = {**before}
        assert killed(lambda n=number, p=project: work(journal(p, kill_at(n))))  # type: ignore[misc]
        recovered = journal(project).recover()
        assert recovered.conflicts == ()
        assert not list(project.rglob(".loki-*.tmp")), "no strays"
        now = Tree.scan(project).entries
        after = {p: e for p, e in now.items() if p in CHANGE.paths}
        is_before, is_after = now == before, set(after) == set(CHANGE.paths) - {"old/deep/gone.py"}
        assert is_before or (is_after and (project / "a.py").read_text() == "new a\n"), number
        outcomes.add(is_before)
        assert journal(project).recover().restored == (), "recovery is over"
        journal(project).undo()
        assert Tree.scan(project).entries == before
    assert outcomes == {True, False}


def test_killed_at_any_system_call(tmp_path: Path) -> None:
    """The same at every call that touches a file, and again while recovering."""
    number, restored = 0, 0
    while True:
        number += 1
        project = make_project(tmp_path / str(number))
        before = Tree.scan(project).entries

        def work(project: Path = project, number: int = number) -> None:
            die_at_call(number)
            journal(project).apply(CHANGE)

        if not killed(work):
            break

        def again(project: Path = project) -> None:
            die_at_call(25)
            journal(project).recover()

        killed(again)
        restored += bool(journal(project).recover().restored)
        now = Tree.scan(project).entries
        assert not list(project.rglob(".loki-*.tmp"))
        assert now == before or (project / "a.py").read_text() == "new a\n"
        journal(project).undo()
        assert Tree.scan(project).entries == before
    assert number > 40
    assert restored > 5


def test_a_machine_that_goes_down(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what the journal did not bring to the disk nothing is there: what was made is made.

    What waits for the disk and what does not is told apart by the call to fsync(2) itself.
    """
    log = project / ".loki" / "tasks" / "t" / "undo" / "journal.jsonl"
    on_disk: list[bytes] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        fsync(handle)
        if os.path.realpath(f"/proc/self/fd/{handle}") == str(log.resolve()):
            on_disk.append(log.read_bytes())

    monkeypatch.setattr(os, "fsync", noted)
    before = Tree.scan(project).entries
    task = journal(project)
    task.apply(CHANGE)
    after = Tree.scan(project).entries
    assert log.read_bytes() != on_disk[-1], "that it is made has not been waited for"
    task.finish()
    assert log.read_bytes() == on_disk[-1]
    assert journal(project).recover().restored == ()
    assert Tree.scan(project).entries == after
    log.write_bytes(on_disk[0])
    assert journal(project).recover().restored == ()
    assert Tree.scan(project).entries == after
    assert set(journal(project).undo().restored) == set(CHANGE.paths)
    assert Tree.scan(project).entries == before


def test_killed_while_a_command_runs(project: Path) -> None:
    """What the command wrote goes back; what a person wrote much later stays and is reported."""
    before = picture(project)

    def work() -> None:
        with around(journal(project)):
            (project / "a.py").write_text("half")
            (project / "old" / "deep" / "gone.py").unlink()
            (project / "made").mkdir()
            (project / "made" / "x").write_text("x")
            os.kill(os.getpid(), signal.SIGKILL)

    assert killed(work)
    later = (project / "a.py").stat().st_mtime + AFTERMATH + 10
    (project / "run.sh").write_text("by hand")
    os.utime(project / "run.sh", (later, later))
    (project / "mine").write_text("by hand")
    os.utime(project / "mine", (later, later))
    recovered = journal(project).recover()
    assert recovered.restored == ("a.py", "made/x", "old/deep/gone.py")
    assert [c.path for c in recovered.conflicts] == ["run.sh"]
    assert (project / "run.sh").read_text() == "by hand"
    (project / "run.sh").write_text("old run\n")
    (project / "mine").unlink()
    assert picture(project) == before


def test_killed_while_a_command_is_taken_back(tmp_path: Path) -> None:
    """At every call that changes the disk: what was interrupted is not taken for done."""
    for number in range(1, 100):
        project = make_project(tmp_path / str(number))
        before = picture(project)

        def work(project: Path = project) -> None:
            with around(journal(project)):
                (project / "a.py").write_text("half")
                (project / "made").write_text("x")
                os.kill(os.getpid(), signal.SIGKILL)

        def recover(project: Path = project, number: int = number) -> None:
            die_at_call(number)
            journal(project).recover()

        assert killed(work)
        was_killed = killed(recover)
        journal(project).recover()
        assert picture(project) == before, number
        if not was_killed:
            break
    assert number > 5


def test_recovery_leaves_what_people_did_since(project: Path) -> None:
    """Killed in the middle, then edited by hand: the edit stays, is reported, the rest goes back."""
    steps = steps_of(apply, project.parent)
    last = steps.index("done") + 1
    assert killed(lambda: journal(project, kill_at(last)).apply(CHANGE))
    (project / "a.py").write_text("by hand")
    recovered = journal(project).recover()
    assert [c.path for c in recovered.conflicts] == ["a.py"]
    assert (project / "a.py").read_text() == "by hand"
    assert (project / "run.sh").read_text() == "old run\n"
    assert stat.S_IMODE((project / "old").stat().st_mode) == 0o750
    assert not (project / "new").exists()
