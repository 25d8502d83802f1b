"""Nothing that a repository names is run by loki, whatever it sets: every call of loki's is made."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from loki.action.changes.git import GitHead, code_state, end_of, files_since, git, run_git, start_of
from loki.action.changes.scratch_copy import repository
from loki.action.changes.tree import Tree, list_files

HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-merge",
    "pre-merge-commit", "post-index-change", "reference-transaction", "pre-auto-gc", "post-rewrite",
    "fsmonitor-watchman",
)  # fmt: skip


def plain(root: Path, *words: str) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *who, *words], cwd=root, check=False, capture_output=True)


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, Path]:
    """A repository with a branch to merge, in which all that can name a program names one."""
    root, mark = tmp_path / "project", tmp_path / "ran"
    root.mkdir()
    plain(root, "init", "-q", "-b", "main")
    (root / ".gitattributes").write_text("*.txt filter=evil diff=evil merge=evil\n")
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("b\n")
    plain(root, "add", ".")
    plain(root, "commit", "-q", "-m", "first")
    plain(root, "checkout", "-q", "-b", "work")
    (root / "a.txt").write_text("two\n")
    plain(root, "commit", "-q", "-am", "second")
    plain(root, "checkout", "-q", "main")
    (root / "a.txt").write_text("three\n")
    plain(root, "commit", "-q", "-am", "third")
    sub = root / "sub"
    sub.mkdir()
    plain(sub, "init", "-q")
    (sub / "a.txt").write_text("sub\n")
    plain(sub, "add", ".")
    plain(sub, "commit", "-q", "-m", "sub")
    plain(root, "add", "sub")
    plain(root, "commit", "-q", "-m", "with a nested repository")
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {mark}\ncat\n')
    program.chmod(0o755)
    for folder in (root / ".git", sub / ".git"):
        (folder / "hooks").mkdir(exist_ok=True)
        for name in HOOKS:
            hook = folder / "hooks" / name
            hook.write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
            hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
        (folder / "included").write_text(
            f'[filter "evil"]\n clean = {program}\n smudge = {program}\n process = {program}\n'
            f" required = true\n"
        )
        with (folder / "config").open("a") as config:
            config.write(
                f"[core]\n fsmonitor = {program}\n pager = {program}\n editor = {program}\n"
                f" sshCommand = {program}\n askPass = {program}\n alternateRefsCommand = {program}\n"
                f" hooksPath = {folder}/hooks\n"
                f'[diff]\n external = {program}\n[diff "evil"]\n command = {program}\n'
                f' textconv = {program}\n[merge "evil"]\n driver = {program} %A\n'
                f"[gpg]\n program = {program}\n[commit]\n gpgSign = true\n[log]\n"
                f" showSignature = true\n[credential]\n helper = {program}\n"
                f'[alias]\n status = "!{program}"\n ls-files = "!{program}"\n'
                f'[hook "evil"]\n command = {program}\n event = pre-commit\n'
                f"[include]\n path = included\n[user]\n name = Ann\n email = ann@example.org\n"
            )
    for file in (root / "a.txt", root / "b.txt", sub / "a.txt"):
        os.utime(file, (1, 1))  # git has to read it to know whether it changed
    mark.unlink(missing_ok=True)
    return root, mark


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("diff",),
        ("log", "-p"),
        ("merge", "work"),
        ("commit", "-m", "x", "--allow-empty"),
    ],
    ids=lambda words: words[0],
)
def test_plain_git_falls_into_the_trap(trap: tuple[Path, Path], words: tuple[str, ...]) -> None:
    root, mark = trap
    plain(root, *words)
    assert mark.exists()


def test_what_loki_asks_runs_nothing(trap: tuple[Path, Path], tmp_path: Path) -> None:
    root, mark = trap
    before = git(str(root), "rev-parse", "HEAD~1")
    assert before is not None
    assert "a.txt" in list_files(str(root)).paths
    (root / "b.txt").write_text("changed\n")
    assert code_state(str(root)).tree
    assert "b.txt" in (files_since(str(root), before.decode().strip()) or ())
    assert GitHead(str(root))()[0] == "main"
    assert start_of(str(root), "work")
    assert end_of(str(root), "work", {"commit": "x"}) == ""
    assert git(str(root), "log", "-p", "--format=%H") is not None
    assert git(str(root), "show", "HEAD") is not None
    assert git(str(root), "diff") is not None
    assert git(str(root), "status", "--porcelain") is not None
    assert not mark.exists(), mark.read_text()
    copied = Tree.scan(root).copy_to(tmp_path / "copy")
    assert not mark.exists(), mark.read_text()
    assert (tmp_path / "copy" / "b.txt").read_text() == "changed\n"
    repository(copied.root)
    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize("writes", [False, True])
def test_what_loki_changes_runs_nothing(trap: tuple[Path, Path], writes: bool) -> None:
    root, mark = trap
    merged = run_git(str(root), "merge", "--no-ff", "--no-commit", "work", writes=writes)
    # Both sides changed the file, and its driver is none that may run: a person decides.
    assert merged.returncode != 0
    assert git(str(root), "rev-parse", "-q", "--verify", "MERGE_HEAD") is not None
    assert run_git(str(root), "merge", "--abort", writes=writes).returncode == 0
    (root / "b.txt").write_text("changed\n")
    assert run_git(str(root), "add", "b.txt", writes=writes).returncode == 0
    assert run_git(str(root), "commit", "-m", "by loki", writes=writes).returncode == 0
    assert not mark.exists(), mark.read_text()


def test_a_worktree_of_its_own_settings(trap: tuple[Path, Path], tmp_path: Path) -> None:
    root, mark = trap
    run_git(str(root), "worktree", "add", "-q", str(tmp_path / "tree"), "work")
    tree = tmp_path / "tree"
    run_git(str(root), "config", "extensions.worktreeConfig", "true")
    settings = Path(subprocess.check_output(
        ["git", "-c", "core.fsmonitor=false", "rev-parse", "--absolute-git-dir"], cwd=tree, text=True
    ).strip(), "config.worktree")  # fmt: skip
    program = tmp_path / "mine"
    program.write_text(f"#!/bin/sh\necho mine >> {mark}\ncat\n")
    program.chmod(0o755)
    settings.write_text(f'[filter "mine"]\n clean = {program}\n')
    (tree / ".gitattributes").write_text("*.txt filter=mine\n")
    (tree / "a.txt").write_text("four\n")
    mark.unlink(missing_ok=True)
    plain(tree, "-c", "core.fsmonitor=false", "diff", "--no-ext-diff")
    assert "mine" in mark.read_text()  # the trap is one
    mark.unlink()
    os.utime(tree / "a.txt", (1, 1))
    assert code_state(str(tree)).tree
    assert git(str(tree), "diff", "--stat") is not None
    assert not mark.exists(), mark.read_text()


def test_a_name_that_cannot_be_overruled(tmp_path: Path) -> None:
    plain(tmp_path, "init", "-q")
    with (tmp_path / ".git" / "config").open("a") as config:
        config.write(f'[filter "a=b"]\n clean = touch {tmp_path}/ran\n')
    (tmp_path / ".gitattributes").write_text("* filter=a=b\n")
    (tmp_path / "a").write_text("a")
    assert git(str(tmp_path), "add", "a") is None
    assert list_files(str(tmp_path)).paths == (".gitattributes", "a")
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_only_looks_like_a_repository(tmp_path: Path) -> None:
    plain(tmp_path, "init", "-q")
    fake = tmp_path / "fake"
    (fake / "objects").mkdir(parents=True)
    (fake / "refs").mkdir()
    (fake / "HEAD").write_text("ref: refs/heads/main\n")
    (fake / "config").write_text(f"[core]\n bare = true\n fsmonitor = touch {tmp_path}/ran\n")
    found = git(str(fake), "rev-parse", "--absolute-git-dir")
    assert found is None or Path(os.fsdecode(found).strip()) != fake


def test_nothing_of_the_callers_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("a")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {tmp_path}/ran")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {tmp_path}/ran")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert git(str(tmp_path), "status", "--porcelain") is not None
    assert git(str(tmp_path), "diff") is not None
    assert not (tmp_path / "ran").exists()
