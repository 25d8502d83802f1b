"""Whatever happens in the middle, files are wholly before or wholly after, and a task can be undone."""

import os
import stat
from pathlib import Path

import pytest

from loki.action.changes.change import Change, Edit
from loki.action.changes.journal import ApplyError, EditConflict, Journal
from loki.action.changes.journal_storage import LARGE, DiskJournalStorage
from loki.action.changes.tree import Tree
from loki.base.error import StoreError
from support.journal import CHANGE, around, journal, make_project, picture


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture(params=["disk", "memory"])
def either(request: pytest.FixtureRequest, project: Path) -> Journal:
    return journal(project) if request.param == "disk" else Journal(None, project)


def test_apply_and_undo(project: Path, either: Journal) -> None:
    """Contents, modes, links, folders: made, and exactly as before after undo; a second undo is empty."""
    before = picture(project)
    applied = either.apply(CHANGE)
    assert set(applied) == set(CHANGE.paths)
    assert sorted(either.changes()) == sorted(CHANGE.paths)
    assert either.changes()["old/deep/gone.py"] == "deleted"
    after = picture(project)
    assert after["a.py"] == (0o644, b"new a\n")
    assert after["run.sh"] == (0o755, b"new run\n")
    assert after["tool"][0] & 0o111
    assert after["link"] == (0, b"a.py")
    assert "old" not in after, "a folder goes with its last file"
    undone = either.undo()
    assert (set(undone.restored), undone.conflicts) == (set(CHANGE.paths), ())
    assert picture(project) == before
    assert either.undo().restored == ()
    assert either.changes() == {}


def test_undo_goes_back_to_the_start_of_many(project: Path, either: Journal) -> None:
    """Edits of edits, files made and removed again; then the task goes on and is undone again."""
    before = Tree.scan(project).entries
    for _ in range(2):
        either.apply(Change.write({"a.py": "1", "x/y": "1"}))
        either.apply(Change.write({"a.py": "2", "x/y": None, "z": "3"}))
        assert either.changes() == {"a.py": "modified", "z": "created"}
        assert either.undo().restored == ("a.py", "z")
        assert Tree.scan(project).entries == before
        assert not (project / "x").exists()


def test_the_change_says_what_it_expects(project: Path, either: Journal) -> None:
    """All or none: one file that is not as expected, and nothing is done."""
    before = picture(project)
    change = Change.write({"a.py": "1", "run.sh": "2", "new": "3"}).based_on(Tree.scan(project))
    (project / "run.sh").write_text("old run!")
    (project / "new").write_text("theirs")
    with pytest.raises(EditConflict) as caught:
        either.apply(change)
    assert [c.path for c in caught.value.conflicts] == ["run.sh", "new"]
    (project / "new").unlink()
    (project / "run.sh").write_text("old run\n")
    assert picture(project) == before


def test_a_file_changed_while_it_is_applied(project: Path) -> None:
    """Somebody saves the file between the look and the write: theirs stays, nothing else is done."""

    def meddle(step: str) -> None:
        if step == "stage a.py":
            (project / "run.sh").write_text("theirs")

    with pytest.raises(EditConflict, match="just now"):
        journal(project, meddle).apply(CHANGE)
    assert (project / "run.sh").read_text() == "theirs"
    assert (project / "a.py").read_text() == "old a\n"
    assert not (project / "new").exists()


def test_commands_are_recorded_as_changes(project: Path, either: Journal) -> None:
    """What a formatter did is undone like an edit; nothing done is nothing recorded."""
    before = picture(project)
    either.apply(Change.write({"a.py": "edited\n"}))
    with around(either) as work:
        (project / "a.py").write_text("formatted\n")
        (project / "run.sh").chmod(0o644)
        (project / "made").mkdir()
        (project / "made" / "x").write_text("x")
        (project / "old" / "deep" / "gone.py").unlink()
    assert work.applied == ("a.py", "made/x", "old/deep/gone.py", "run.sh")
    with around(either) as idle:
        pass
    assert idle.applied == ()
    assert not either.undo().conflicts
    assert picture(project) == before


def test_a_body_that_fails_is_recorded_too(project: Path) -> None:
    """Ctrl-C in a fix command: what it did so far can be undone."""
    task = journal(project)
    with pytest.raises(KeyboardInterrupt), around(task):
        (project / "a.py").write_text("half")
        raise KeyboardInterrupt
    assert task.undo().restored == ("a.py",)
    assert (project / "a.py").read_text() == "old a\n"


def test_undo_respects_what_people_did_since(project: Path) -> None:
    """Nothing is done and the files are named; with force all go back, and theirs is kept."""
    task = journal(project)
    task.apply(CHANGE)
    (project / "a.py").write_text("by hand")
    (project / "tool").unlink()
    (project / "run.sh").unlink()
    (project / "run.sh").mkdir()
    before = picture(project)
    undone = task.undo()
    assert undone.restored == ()
    assert {c.path: c.reason for c in undone.conflicts} == {
        "a.py": "somebody has changed it since",
        "run.sh": "cannot be read: run.sh is no regular file",
    }
    assert picture(project) == before
    (project / "run.sh").rmdir()
    forced = task.undo(force=True)
    assert set(forced.restored) == {"a.py", "run.sh", "link", "old/deep/gone.py", "new/deep/b.py"}
    assert (project / "a.py").read_text() == "old a\n"
    storage = DiskJournalStorage(project / ".loki" / "tasks" / "t" / "undo")
    kept = [storage.get(s.before.hash) for s in storage.load()[0][-1].steps if s.before]
    assert b"by hand" in kept


def test_an_edit_between_two_attempts_is_a_conflict(project: Path) -> None:
    """The start would throw away what a person wrote in between."""
    task = journal(project)
    task.apply(Change.write({"a.py": "1"}))
    (project / "a.py").write_text("by hand")
    task.apply(Change.write({"a.py": "2"}))
    assert "between two attempts" in task.undo().conflicts[0].reason
    assert task.undo(force=True).restored == ("a.py",)
    task.apply(Change.write({"a.py": "3"}))
    assert task.undo().restored == ("a.py",), "what was undone is forgotten"


def test_damage_is_reported(project: Path) -> None:
    """A broken record or a lost content costs that much, not the rest."""
    task = journal(project)
    task.apply(Change.write({"a.py": "1"}))
    task.apply(Change.write({"run.sh": "2"}))
    log = project / ".loki" / "tasks" / "t" / "undo" / "journal.jsonl"
    first, *others = log.read_text().splitlines(keepends=True)
    log.write_text(first[:40] + "\n" + "".join(others) + "[]\n")
    damaged = task.recover().damaged
    assert [sentence.split(":")[1] for sentence in damaged] == ["1", "5"]
    task.apply(Change.write({"new": "3"}))
    assert DiskJournalStorage(log.parent).load()[0][-1].number == 3
    undone = task.undo()
    assert undone.restored == ("new", "run.sh")
    assert all("cannot be undone" in sentence for sentence in undone.damaged)


@pytest.mark.parametrize("size", [5, LARGE])
def test_a_lost_content_is_reported(project: Path, size: int) -> None:
    """In its record's line, or in a file of its own."""
    (project / "a.py").write_text("x" * size)
    task = journal(project)
    task.apply(Change.write({"a.py": "new"}))
    folder = project / ".loki" / "tasks" / "t" / "undo"
    kept = [p for p in folder.rglob("*") if p.is_file() and "x" * size in p.read_text()]
    assert len(kept) == 1
    kept[0].write_text(kept[0].read_text().replace("x" * size, "y" * size))
    assert "missing or damaged" in journal(project).undo().conflicts[0].reason
    assert journal(project).undo(force=True).restored == ()


def test_no_link_leads_out(project: Path, tmp_path: Path) -> None:
    """Even one that appears while the change is being applied."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "gone.py").write_text("theirs")

    def swap(step: str) -> None:
        if step == "remove old/deep/gone.py":
            (project / "old" / "deep").rename(project / "moved")
            (project / "old" / "deep").symlink_to(outside)

    before = picture(project)
    with pytest.raises(ApplyError):
        journal(project, swap).apply(CHANGE)
    assert (outside / "gone.py").read_text() == "theirs"
    assert (project / "a.py").read_text() == before["a.py"][1].decode()
    (project / "away").symlink_to(outside)
    with pytest.raises(ApplyError):
        Journal(None, project).apply(Change.write({"away/x": "x"}))
    assert os.listdir(outside) == ["gone.py"]


def test_a_journal_that_cannot_be_written(project: Path) -> None:
    """The project is left alone and the caller told; without a folder it works, undo included."""
    (project / ".loki").write_text("a file where the folder should be")
    before = picture(project)
    task = journal(project)
    for work in (lambda: task.apply(CHANGE), lambda: around(task).__enter__(), task.recover):
        with pytest.raises(StoreError):
            work()
    assert picture(project) == before


def test_one_loki_at_a_time(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody undoes, or recovers, what is just being done."""
    monkeypatch.setattr("loki.action.changes.journal_storage.LOCK_TIMEOUT", 0.01)
    with around(journal(project)), pytest.raises(StoreError, match="another process"):
        journal(project).undo()


def test_permissions_of_what_is_kept(project: Path) -> None:
    """Contents may be secret: files 0600, folders 0700."""
    journal(project).apply(CHANGE)
    for path in (project / ".loki").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_nothing_of_a_large_tree_is_kept_twice(project: Path) -> None:
    """The second command costs only what has changed."""
    task = journal(project)
    objects = project / ".loki" / "tasks" / "t" / "undo" / "objects"
    for number in range(20):
        (project / f"f{number}").write_text(str(number))
    with around(task):
        pass
    first = {p: p.stat().st_ino for p in objects.rglob("*") if p.is_file()}
    with around(task):
        (project / "f1").write_text("changed")
    second = {p: p.stat().st_ino for p in objects.rglob("*") if p.is_file()}
    assert len(second) == len(first) + 1
    assert first.items() <= second.items()


def test_an_edit_of_the_same_size_is_seen_by_caches_that_count_in_seconds(tmp_path: Path) -> None:
    """Python's bytecode is current where size and whole second are equal: neither may hide an edit."""
    (tmp_path / "calc.py").write_text("X = 1\n")
    task = journal(tmp_path)
    stamps = [int((tmp_path / "calc.py").stat().st_mtime)]
    for text in (b"X = 2\n", b"X = 3\n"):
        task.apply(Change((Edit("calc.py", text),)))
        stamps.append(int((tmp_path / "calc.py").stat().st_mtime))
    task.undo()
    stamps.append(int((tmp_path / "calc.py").stat().st_mtime))
    assert len(set(stamps)) == 4
