"""A copy that is kept is as new each time, whatever was done in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loki.action.changes.scratch_copy import ProjectCopies, refresh_copy
from loki.action.changes.tree import Tree


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scratch folders go here, so that a test can see that none is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(params=["git", "plain"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.py").write_text("aaaa\n")
    (root / "src" / "deep" / "b.sh").write_text("b\n")
    (root / "src" / "deep" / "b.sh").chmod(0o755)
    (root / "link").symlink_to("src")
    (root / ".gitignore").write_text("*.log\n")
    if request.param == "git":
        commit(root)
    (root / "untracked.txt").write_text("untracked\n")
    return root


def commit(root: Path) -> None:
    script = "git init -q && git add -A && git -c user.name=A -c user.email=a commit -qm first"
    subprocess.run(script, shell=True, cwd=root, check=True)


def on_disk(root: Path) -> dict[str, tuple[int, bytes]]:
    """All that is there but what git keeps: modes, contents, where links lead."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            shown = path.relative_to(root).as_posix()
            if not shown.startswith(".git/"):
                data = os.readlink(path).encode() if path.is_symlink() else b""
                is_file = path.is_file() and not path.is_symlink()
                found[shown] = path.lstat().st_mode, path.read_bytes() if is_file else data
    return found


def same_time(root: Path) -> None:
    """Another content, of the same length and with the same time."""
    path = root / "src" / "a.py"
    times = path.stat()
    path.write_text("bbbb\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def another_repository(root: Path) -> None:
    shutil.rmtree(root / ".git", ignore_errors=True)
    commit(root)
    (root / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")


def a_link_in_place_of_a_folder(root: Path) -> None:
    shutil.rmtree(root / "src")
    (root / "src").symlink_to(root.parent)


def a_folder_in_place_of_a_file(root: Path) -> None:
    (root / "src" / "a.py").unlink()
    (root / "src" / "a.py" / "more").mkdir(parents=True)
    (root / "untracked.txt").unlink()
    os.mkfifo(root / "untracked.txt")


def leavings(root: Path) -> None:
    (root / "x.log").write_text("ignored\n")
    (root / "src" / "__pycache__").mkdir()
    (root / "src" / "__pycache__" / "a.pyc").write_bytes(b"\0")
    (root / ".loki" / "signals").mkdir(parents=True)
    commit_inside = root / "src" / "deep"
    subprocess.run(["git", "init", "-q"], cwd=commit_inside, check=True)


def modes(root: Path) -> None:
    (root / "src" / "deep" / "b.sh").chmod(0o600)
    (root / "src" / "a.py").chmod(0o777)
    (root / "src" / "deep").chmod(0o500)


def another_link(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("/etc")


def all_gone(root: Path) -> None:
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def the_root_gone(root: Path) -> None:
    shutil.rmtree(root)


def very_deep(root: Path) -> None:
    script = "import os\nfor _ in range(1500):\n os.mkdir('deep-enough'); os.chdir('deep-enough')"
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True)


MESSES = (
    same_time, another_repository, a_link_in_place_of_a_folder, a_folder_in_place_of_a_file,
    leavings, modes, another_link, all_gone, the_root_gone, very_deep,
)  # fmt: skip


@pytest.mark.parametrize("mess", MESSES)
def test_it_is_as_new(mess: Callable[[Path], None], project: Path, tmp_path: Path) -> None:
    """File for file what a copy would be that is made now; what lies outside is left alone."""
    (tmp_path / "outside.txt").write_text("outside\n")
    copies = ProjectCopies()
    with copies.copy(Tree.scan(project)) as first:
        mess(Path(first.root))
    (project / "src" / "a.py").write_text("since\n")
    (project / "new" / "c.py").parent.mkdir()
    (project / "new" / "c.py").write_text("c\n")
    (project / "untracked.txt").unlink()
    now = Tree.scan(project)
    fresh = now.copy_to(tmp_path / "fresh" / "project")
    with copies.copy(now) as second:
        assert on_disk(second.root) == on_disk(fresh.root)
        assert second.entries == now.entries
        assert (second.root / ".git").exists() == now.is_git == second.is_git
        assert not Tree.scan(second.root, second).difference(now)
        if now.is_git:
            log = subprocess.run(["git", "log", "--oneline"], cwd=second.root, check=True)
            assert log.returncode == 0
            assert not (second.root / ".git" / "hooks" / "pre-commit").exists()
    assert (tmp_path / "outside.txt").read_text() == "outside\n"
    assert not Tree.scan(project).difference(now)
    copies.close()


def test_what_was_left_alone_is_not_written_again(project: Path, temporary: Path) -> None:
    copies = ProjectCopies()
    tree = Tree.scan(project)
    with copies.copy(tree) as given:
        # As if it had been given away a while after it was written.
        later = replace(given, _taken=given._taken + 10**9)
        before = (given.root / "src" / "a.py").stat().st_ino
        (given.root / "src" / "deep" / "b.sh").write_text("other\n")
        again = refresh_copy(later, tree, str(given.root.parent / "aside"))
        assert (again.root / "src" / "a.py").stat().st_ino == before
        assert (again.root / "src" / "deep" / "b.sh").read_text() == "b\n"
        assert not list(temporary.glob("*/*/aside"))
    copies.close()


def test_who_works_at_the_same_time_has_another(project: Path, temporary: Path) -> None:
    copies = ProjectCopies()
    tree = Tree.scan(project)
    with copies.copy(tree) as one, copies.copy(tree) as other:
        assert one.root != other.root
    with copies.copy(tree) as again:
        assert again.root == one.root
        copies.close()
        assert again.root.exists()
    assert [path for parent in temporary.iterdir() for path in parent.iterdir()] == []


def test_a_part_of_a_repository(tmp_path: Path) -> None:
    (tmp_path / "whole" / "part").mkdir(parents=True)
    (tmp_path / "whole" / "part" / "a.py").write_text("a\n")
    (tmp_path / "whole" / "b.py").write_text("b\n")
    commit(tmp_path / "whole")
    copies = ProjectCopies()
    for _ in range(2):
        with copies.copy(Tree.scan(tmp_path / "whole" / "part")) as copy:
            assert sorted(copy.entries) == ["a.py"]
            (copy.root / "a.py").write_text("other\n")
    copies.close()


def test_what_is_mounted_in_it_is_left_alone(tmp_path: Path) -> None:
    """It is removed from around it; nothing of what is mounted is."""
    script = f"""
import os, subprocess, tempfile
from pathlib import Path
tempfile.tempdir = {str(tmp_path)!r}
from loki.action.changes.scratch_copy import refresh_copy
from loki.action.changes.scratch_copy import scratch_folder
from loki.action.changes.tree import Tree
project, precious = Path({str(tmp_path)!r}, "project"), Path({str(tmp_path)!r}, "precious")
for folder in (project / "src", precious):
    folder.mkdir(parents=True)
(project / "src" / "a.py").write_text("a")
(precious / "all.txt").write_text("all")
tree = Tree.scan(project)
with scratch_folder() as folder:
    copy = tree.copy_to(os.path.join(folder, "my project"))
    subprocess.run(["mount", "--bind", precious, copy.root / "src"], check=True)
    try:
        refresh_copy(copy, tree, os.path.join(folder, "aside"))
    except OSError as error:
        print(error.strerror)
    subprocess.run(["umount", copy.root / "src"], check=True)
print((precious / "all.txt").read_text())
"""
    can = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if can.returncode:
        pytest.skip("nothing can be mounted here")
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["something is mounted in it", "all"], done.stderr
