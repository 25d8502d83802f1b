"""Hostile proposals are refused with a clear reason, and honest ones are not."""

import os
import tracemalloc
from pathlib import Path

import pytest

from loki.action.changes.change import MAX_FILE_SIZE, Change, Edit
from loki.action.changes.forbidden_changes import MAX_REFUSALS, Refusal, refusals
from loki.action.changes.tree import Tree


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a neighbour, links in and out of it, and a folder."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("theirs")
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a\n")
    (root / "away").symlink_to(tmp_path / "outside")
    (root / "away.txt").symlink_to(tmp_path / "outside" / "file")
    (root / "alias").symlink_to("src")
    (root / "alias.py").symlink_to("src/a.py")
    os.mkfifo(root / "pipe")
    return root


def reasons(change: Change, root: Path, tree: Tree | None = None) -> list[str]:
    return [refusal.reason for refusal in refusals(change, root, tree)]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "is empty"),
        ("../x", "leads out of the project"),
        ("src/../../x", "leads out of the project"),
        ("src\\..\\..\\x", "leads out of the project"),
        ("..", "leads out of the project"),
        ("/etc/passwd", "is absolute"),
        ("\\\\server\\share", "is absolute"),
        ("C:\\x", "is absolute"),
        ("c:x", "is absolute"),
        ("~/.ssh/authorized_keys", "starts with '~'"),
        ("a/" * 101 + "x.py", "nested deeper than 100 folders"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("a\x7fb", "control character"),
        ("a/./b", "is not plain"),
        ("a//b", "is not plain"),
        ("src/", "is not plain"),
        (".", "is not plain"),
        ("\ud800", "half a surrogate pair"),
        (".git/config", "git's own"),
        (".git", "git's own"),
        ("src/.GIT/hooks/post-commit", "git's own"),
        (".git./config", "git's own"),
        (".git /config", "git's own"),
        (".g\u200cit/config", "git's own"),
        ("GIT~1/config", "git's own"),
        (".git::$INDEX_ALLOCATION/config", "git's own"),
        ("src\\.git\\config", "git's own"),
        (".loki/config.toml", "loki's own"),
        (".LOKI/signals/x", "loki's own"),
        ("away/file", "leads out of the project: 'away' is a symbolic link"),
        ("away/new/file", "leads out of the project: 'away' is a symbolic link"),
        ("away.txt", "is a symbolic link that leads out"),
        ("alias/a.py", "goes through the symbolic link 'alias': change 'src' itself"),
        ("alias.py", "is a symbolic link: change 'src/a.py' itself"),
        ("src", "is a folder"),
        ("src/a.py/b.py", "'src/a.py' is a file, not a folder"),
        ("pipe", "is a special file"),
        ("n" * 300, "cannot be looked at: File name too long"),
    ],
)
def test_paths_that_lead_astray(project: Path, path: str, says: str) -> None:
    """Refused by what they are called, or by what is there."""
    (reason,) = reasons(Change.write({path: "x"}), project)
    assert says in reason


def test_honest_changes_are_not_refused(project: Path) -> None:
    """New files and folders, edits, deletions (of links too), modes, links that stay inside."""
    change = Change(
        (
            Edit("src/a.py", b"b\n"),
            Edit("new/deep/file.py", "ä\n".encode()),
            Edit(".gitignore", b"x"),
            Edit(".github/workflows/x.yml", b"x"),
            Edit("git/config", b"x"),
            Edit("image.png", b"\x89\xff"),
            Edit("away.txt", None),
            Edit("alias.py", b"a file now", mode="file"),
            Edit("to/link", b"../src/a.py", mode="symlink"),
        ),
        (("pytest", "-q"),),
    )
    assert refusals(change, project) == ()
    assert refusals(Change.nothing(), project) == ()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("../../outside/file", "leads out of the project"),
        ("/etc/passwd", "leads out of the project"),
        ("../away/file", "leads out of the project"),
        ("../.git/config", "is git's own"),
        ("", "to nowhere"),
    ],
)
def test_links_that_lead_out(project: Path, target: str, says: str) -> None:
    """A change cannot make one, so that a second one cannot use it."""
    (reason,) = reasons(Change((Edit("src/link", target.encode(), mode="symlink"),)), project)
    assert says in reason


def test_too_large_by_its_size_alone(project: Path, tmp_path: Path) -> None:
    """100 MB are refused without being held in memory, from an agent's copy too."""
    copy = Tree.scan(project).copy_to(tmp_path / "copy")
    with (copy.root / "big.bin").open("wb") as big:
        big.truncate(100_000_000)
    tracemalloc.start()
    end = Tree.scan(copy.root, copy, also=copy.entries)
    (reason,) = reasons(Change.between(copy, end), project)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert reason == "is too large: 100,000,000 bytes, at most 10,000,000"
    assert not reasons(Change.write({"big.bin": b"x" * MAX_FILE_SIZE}), project)
    assert reasons(Change.write({"big.bin": b"x" * (MAX_FILE_SIZE + 1)}), project)


def test_text_is_utf8(project: Path) -> None:
    """By its name; where the file was in another encoding before, that is the project's affair."""
    assert reasons(Change.write({"new.py": b"ok\n# \xe9"}), project) == [
        "is not UTF-8: byte 0xe9 in line 2"
    ]
    assert reasons(Change.write({"src/a.py": b"\xff"}), project)
    (project / "latin.py").write_bytes(b"# \xe9\n")
    assert not reasons(Change.write({"latin.py": b"# \xe8\n"}), project)
    assert reasons(Change.write({"x.md": "\udcff"}), project) == [
        "is not UTF-8: byte 0xed in line 1"
    ]


def test_files_that_changed_meanwhile(project: Path) -> None:
    """Changed, deleted or created since the agent looked; untouched ones are fine."""
    tree = Tree.scan(project)
    change = Change.write({"src/a.py": "mine", "new.py": "mine"}).based_on(tree)
    assert not refusals(change, project)
    (project / "src" / "a.py").write_text("theirs")
    (project / "new.py").write_text("theirs")
    assert [refusal.path for refusal in refusals(change, project)] == ["src/a.py", "new.py"]
    (project / "src" / "a.py").unlink()
    assert "was deleted meanwhile" in reasons(change, project)[0]
    assert reasons(Change.write({"never": None}), project) == [
        "cannot be deleted: it does not exist"
    ]


def test_one_edit_per_file(project: Path) -> None:
    """Twice the same path, or a file that is a folder as well."""
    twice = Change((Edit("x", b"1"), Edit("x", b"2")))
    assert reasons(twice, project) == ["is edited more than once in this change"]
    both = Change.write({"x": "1", "x/y": "2"})
    assert reasons(both, project) == ["'x' cannot be a file and a folder"]
    cases = Change.write({"Readme": "1", "README": "2"})
    ignores_case = (project.parent / "PROJECT").exists()
    assert bool(reasons(cases, project)) == ignores_case
    assert not reasons(Change.write({"src/a.py": None, "src/a.py/b.py": "x"}), project)


def test_other_repositories(project: Path) -> None:
    """Submodules and clones inside the project are not the project."""
    (project / "sub" / "deep").mkdir(parents=True)
    (project / "sub" / ".git").mkdir()
    (project / "sub" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for path in ("sub/x", "sub/deep/x"):
        (reason,) = reasons(Change.write({path: "x"}), project)
        assert reason == "'sub' is a repository of its own: loki changes this project only"
    tree = Tree(project, {}, {"gone": "a repository of its own"})
    assert reasons(Change.write({"gone": "x"}), project, tree)


def test_commands_and_floods(project: Path) -> None:
    """A command names a program; a thousand refusals are no briefing."""
    change = Change((), ((), ("",), ("a", "b\0")))
    assert [r.path for r in refusals(change, project)] == ["command 1", "command 2", "command 3"]
    many = Change.write({f"../{n}": "x" for n in range(1000)})
    found = refusals(many, project)
    assert len(found) == MAX_REFUSALS + 1
    assert found[-1].reason == "and 950 refusals more"
    assert str(Refusal("a\nb", "is bad")) == r"'a\nb': is bad"
