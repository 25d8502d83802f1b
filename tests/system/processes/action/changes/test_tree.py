"""A tree is the project's files as they are, and a copy of it shares nothing that can be written."""

import os
import subprocess
from pathlib import Path

import pytest

from loki.action.changes.tree import Difference, Tree


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(params=["git", "plain"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    write(root, a_py="a\n", pkg__b_py="b\n")
    if request.param == "git":
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "first")
    return root


def paths(root: Path) -> list[str]:
    return list(Tree.scan(root).entries)


def test_holds_every_file_as_it_is(project: Path) -> None:
    """Contents, executable bits and links; new files too; never .git, .loki or what loki is writing."""
    write(project, new_py="new\n", **{".loki__state": "x", ".loki-12.tmp": "x"})
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("a.py")
    (project / "out").symlink_to("/etc")
    os.mkfifo(project / "pipe")
    tree = Tree.scan(project)
    assert list(tree.entries) == ["a.py", "link", "new.py", "out", "pkg/b.py", "run.sh"]
    assert tree.entries["run.sh"].is_executable
    assert tree.entries["link"].is_symlink
    assert tree.entries["link"].size == 4
    assert not tree.entries["a.py"].is_executable
    assert tree.read("link") == b"a.py"


def test_difference(project: Path) -> None:
    """What was changed, added, deleted; a changed mode counts; the same is false."""
    before = Tree.scan(project)
    assert not before.difference(Tree.scan(project))
    write(project, a_py="A\n", c_py="c\n")
    (project / "pkg" / "b.py").unlink()
    after = Tree.scan(project)
    assert before.difference(after) == Difference(("a.py",), ("c.py",), ("pkg/b.py",))
    assert before.difference(after).paths == ("a.py", "c.py", "pkg/b.py")
    (project / "a.py").chmod(0o755)
    assert after.difference(Tree.scan(project)).changed == ("a.py",)


def test_an_earlier_tree_saves_reading_but_never_hides_an_edit(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files long untouched are not read again; the same size and time do not fool it."""
    old = project / "a.py"
    os.utime(old, (1, 1))
    previous = Tree.scan(project)
    future = Tree(
        previous.root, previous.entries, {}, previous.is_git, previous._stats,
        previous._taken + 10**11,
    )  # fmt: skip
    read: list[str] = []
    real = os.open

    def spy(path: str, *arguments: int, **options: int) -> int:
        read.append(os.fspath(path))
        return real(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", spy)
        Tree.scan(project, previous=previous)
        assert str(old) in read, "just touched (ctime): racy, so it is read again"
        read.clear()
        assert Tree.scan(project, previous=future).entries == previous.entries
        assert str(old) not in read
    stamp = old.stat()
    old.write_text("z\n")
    os.utime(old, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert previous.difference(Tree.scan(project, previous=previous)).changed == ("a.py",)
    assert previous.difference(Tree.scan(project, previous=future)).changed == ("a.py",)


def test_names_of_any_bytes(project: Path) -> None:
    """Names that are no UTF-8, with line feeds, quotes, leading dashes."""
    names = [b"caf\xe9.py", b"a\nb", b'"q"', b"-n", "ü ".encode(), b":(top)x"]
    for name in names:
        (project / os.fsdecode(name)).write_text("x")
    found = {os.fsencode(path) for path in paths(project)}
    assert set(names) <= found
    copy = Tree.scan(project).copy_to(project.parent / "copy")
    assert {os.fsencode(path) for path in copy.entries} == found


def test_git_says_what_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignored files do not; deleted ones are gone; nobody's GIT_DIR leads elsewhere; caches stay out."""
    write(tmp_path, a_py="a", gone_py="x", **{".gitignore": "*.log\nbuild/\n"})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    write(tmp_path, x="x", build__y="y", __pycache____z="z", node_modules__m="m")
    (tmp_path / "t.log").write_text("log")
    (tmp_path / "gone.py").unlink()
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    tree = Tree.scan(tmp_path)
    assert tree.is_git
    assert list(tree.entries) == [".gitignore", "a.py", "x"]


def test_a_folder_that_became_a_link_is_a_link(tmp_path: Path) -> None:
    """Tracked files below it are gone, though the file system would show some through the link."""
    write(tmp_path, d__a_py="a", other__a_py="a")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    (tmp_path / "d" / "a.py").unlink()
    (tmp_path / "d").rmdir()
    (tmp_path / "d").symlink_to("other")
    assert paths(tmp_path) == ["d", "other/a.py"]


def test_repositories_inside_are_left_out(tmp_path: Path) -> None:
    """Submodules and clones inside a project are named, not read; in git or not."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for root in (inner, outer, outer / "clone"):
        root.mkdir()
        git(root, "init", "-q")
        write(root, a_py="a")
        git(root, "add", "a.py")
        git(root, "commit", "-qm", "first")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    tree = Tree.scan(outer)
    assert list(tree.entries) == [".gitmodules", "a.py"]
    assert set(tree.skipped) == {"clone", "sub"}
    plain = Tree.scan(tmp_path)
    assert not plain.is_git
    assert set(plain.skipped) == {"inner", "outer"}


def test_without_git_caches_and_environments_stay_out(tmp_path: Path) -> None:
    """Built-in names, virtual environments by their pyvenv.cfg, caches by their CACHEDIR.TAG."""
    write(tmp_path, a_py="a", node_modules__x="x", env__pyvenv="", sub__node_modules__y="y")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "CACHEDIR.TAG").touch()
    (tmp_path / "a.pyc").touch()
    assert paths(tmp_path) == ["a.py"]


def test_a_subfolder_of_a_repository(tmp_path: Path) -> None:
    """Only its files count; the copy keeps its place, its history, and the ignore rules above it."""
    write(tmp_path, top="t", app__a_py="a", **{".gitignore": "*.log"})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "app" / "x.log").write_text("log")
    tree = Tree.scan(tmp_path / "app")
    assert list(tree.entries) == ["a.py"]
    copy = tree.copy_to(tmp_path.parent / (tmp_path.name + "-copy"))
    assert copy.root.name == "app"
    assert git(copy.root, "log", "--format=%s") == "first\n"
    assert git(copy.root, "status", "--porcelain") == ""
    (copy.root / "y.log").write_text("log")
    assert list(Tree.scan(copy.root, copy, also=copy.entries).entries) == ["a.py"]


def test_a_project_that_an_outer_repository_ignores(tmp_path: Path) -> None:
    """It is a project without git, not an empty one."""
    write(tmp_path, build__p__a_py="a", **{".gitignore": "build/"})
    git(tmp_path, "init", "-q")
    assert paths(tmp_path / "build" / "p") == ["a.py"]


def test_what_the_repository_configures_does_not_run(tmp_path: Path) -> None:
    """A file system monitor is a program named by the repository: it is not started."""
    git(tmp_path, "init", "-q")
    write(tmp_path, a_py="a")
    script = tmp_path / ".git" / "monitor"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    script.chmod(0o755)
    git(tmp_path, "config", "core.fsmonitor", str(script))
    assert paths(tmp_path) == ["a.py"]
    assert not (tmp_path / "ran").exists()


def test_the_copy_is_whole_and_apart(project: Path) -> None:
    """Uncommitted and untracked files are in it; nothing done to it or its git reaches the project."""
    write(project, a_py="changed\n", new_py="new\n")
    (project / "run").write_text("x")
    (project / "run").chmod(0o755)
    (project / "link").symlink_to("a.py")
    tree = Tree.scan(project)
    copy = tree.copy_to(project.parent / "copy")
    assert copy.entries == tree.entries
    assert not tree.difference(Tree.scan(copy.root, copy, also=copy.entries))
    assert not any(
        (copy.root / p).lstat().st_ino == (project / p).lstat().st_ino for p in tree.entries
    )
    if tree.is_git:
        head = git(project, "rev-parse", "HEAD")
        assert git(copy.root, "rev-parse", "HEAD") == head
        assert git(copy.root, "remote") == ""
        assert git(copy.root, "status", "--porcelain").split() == [
            "M", "a.py", "??", "link", "??", "new.py", "??", "run"
        ]  # fmt: skip
        git(copy.root, "add", "-A")
        git(copy.root, "commit", "-qm", "agent's own")
        git(copy.root, "gc", "-q", "--prune=now")
        assert git(project, "rev-parse", "HEAD") == head
        git(project, "fsck")
    for path in copy.entries:
        (copy.root / path).unlink()
    assert not tree.difference(Tree.scan(project))


def test_a_repository_without_commits(tmp_path: Path) -> None:
    """There is no history yet; the files are copied all the same."""
    root = tmp_path / "p"
    root.mkdir()
    git(root, "init", "-q")
    write(root, a_py="a")
    copy = Tree.scan(root).copy_to(tmp_path / "copy")
    assert list(Tree.scan(copy.root, copy, also=copy.entries).entries) == ["a.py"]


def test_tracked_files_that_are_ignored_stay_in_sight(tmp_path: Path) -> None:
    """Added by force and not committed: in the copy git would ignore it; the copy's tree does not."""
    root = tmp_path / "p"
    root.mkdir()
    git(root, "init", "-q")
    write(root, **{".gitignore": "*.log"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    (root / "x.log").write_text("log")
    git(root, "add", "-f", "x.log")
    copy = Tree.scan(root).copy_to(tmp_path / "copy")
    assert "x.log" in copy.entries
    assert not copy.difference(Tree.scan(copy.root, copy, also=copy.entries))
