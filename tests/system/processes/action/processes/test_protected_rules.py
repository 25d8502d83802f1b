"""What decides is put back where a command changed it, and nothing else is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from loki.action.processes.command_guard import ASIDE, Rules, Watched, git_part, hook_settings
from loki.adapters.hooks.hooked_agents import AGENTS

AT = "2026-04-04T10:00:00Z"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".loki").mkdir(parents=True)
    (root / ".loki" / "config.toml").write_text("[loop]\nmax_retries = 2\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def rules_of(project: Path) -> Rules:
    home = project.parent / "home"
    home.mkdir(exist_ok=True)
    more = tuple(hook_settings(project, {"CLAUDE_CONFIG_DIR": str(home), "CODEX_HOME": str(home)}))
    return Rules(project, project / ".loki", more, {"t"})


CHANGED = (
    ".loki/config.toml", ".loki/verification-gates.yml", ".loki/failure-patterns.yml",
    ".loki/learned-patterns.yml", ".loki/tasks/t/approvals.jsonl", ".loki/tasks/t/undo/journal.jsonl", ".loki/tasks/t/judged.json",
    ".loki/tasks/t/before.json", ".loki/tasks/t/baseline.json", ".git/config", ".git/hooks/pre-commit",
    ".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json", ".gemini/settings.json",
)  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("before", [None, b"as it was\n"], ids=["new", "there"])
@pytest.mark.parametrize("how", ["write", "delete", "link", "folder", "replace", "mode"])
def test_put_back(project: Path, name: str, before: bytes | None, how: str) -> None:
    path, rules = project / name, rules_of(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if before is not None:
        path.write_bytes(before)
        path.chmod(0o640)
    look = rules.look()
    stamp = (path.stat().st_atime_ns, path.stat().st_mtime_ns) if before else (1, 1)
    if how == "write":
        path.write_bytes(b"evil....\n\n"[: len(before or b"123")])
        os.utime(path, ns=stamp)  # neither the time nor the size tells
    elif how == "replace":
        (path.parent / "new").write_bytes(b"evil")
        (path.parent / "new").rename(path)
    elif how == "mode":
        if before is None:
            return  # nothing to change the mode of
        path.chmod(0o777)
    else:
        path.unlink(missing_ok=True)
        if how == "link":
            path.symlink_to("/etc/passwd")
        elif how == "folder":
            (path / "deep").mkdir(parents=True)
    found = rules.finish(look, "make test", AT)
    assert [one.path for one in found] == ([] if how == "delete" and not before else [str(path)])
    if before is None:
        assert not os.path.lexists(path)
    else:
        assert not path.is_symlink()
        assert path.read_bytes() == before
        assert path.stat().st_mode & 0o777 == 0o640
    for one in found:
        assert one.command == "make test"
        assert (project / ".loki" / one.kept).exists() or how in {"delete", "link"}
    assert rules.finish(look, "again", AT) == []


def test_what_is_as_it_was_is_left_alone(project: Path) -> None:
    rules = rules_of(project)
    look = rules.look()
    subprocess.run(["git", "config", "branch.main.remote", "origin"], cwd=project, check=True)
    (project / "src.py").write_text("x = 1\n")
    (project / ".loki" / "tasks" / "other").mkdir(parents=True)
    (project / ".loki" / "tasks" / "other" / "approvals.jsonl").write_text("{}\n")
    (project.parent / "home" / "settings.json").write_text('{"model": "opus"}')
    assert rules.finish(look, "make test", AT) == []
    assert not (project / ".loki" / ASIDE).exists()


@pytest.mark.parametrize("line", [b"[" * 9_000, b"{", b"\xff", b'{"id": 5}'])
def test_a_log_that_a_command_broke_keeps_nothing_from_being_put_back(
    line: bytes, project: Path
) -> None:
    rules = rules_of(project)
    config = project / ".loki" / "config.toml"
    config.write_bytes(b"[signs]\n")
    look = rules.look()
    config.write_bytes(b"evil")
    log = project / ".loki" / "logs" / "rules.jsonl"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(line + b"\n")
    (found,) = rules.finish(look, "make test", AT)
    assert (found.path, config.read_bytes()) == (str(config), b"[signs]\n")


def test_a_recurring_task_that_a_command_files(project: Path) -> None:
    """Its command would run with all rights of the user; what a dispatcher counts there is its own."""
    rules, place = rules_of(project), project / ".loki" / "recurring"
    mine = place / "mine" / "task.json"
    mine.parent.mkdir(parents=True)
    mine.write_text('{"command": ["make"], "runs": 1}')
    look = rules.look()
    mine.write_text('{"command": ["make"], "runs": 2}')
    assert rules.finish(look, "make test", AT) == []
    evil = place / "evil" / "task.json"
    evil.parent.mkdir()
    evil.write_text('{"command": ["sh", "-c", "rm -rf ~"]}')
    mine.write_text('{"command": ["sh"], "runs": 2}')
    found = rules.finish(look, "make test", AT)
    assert [one.path for one in found] == [str(evil), str(mine)]
    assert not evil.exists()
    assert "make" in mine.read_text()


def test_hooks_in_a_folder_of_the_projects_own(project: Path) -> None:
    rules, hook = rules_of(project), project / ".husky" / "_" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    subprocess.run(["git", "config", "core.hooksPath", ".husky/_"], cwd=project, check=True)
    look = rules.look()
    hook.write_text("#!/bin/sh\nevil\n")
    (hook.parent / "post-merge").write_text("evil")
    subprocess.run(["git", "config", "--unset", "core.hooksPath"], cwd=project, check=True)
    found = [os.path.relpath(one.path, project) for one in rules.finish(look, "x", AT)]
    assert found == [".git/config", ".husky/_/post-merge", ".husky/_/pre-commit"]
    assert hook.read_text() == "#!/bin/sh\n"


def test_hooks_in_a_users_settings(project: Path) -> None:
    rules, settings = rules_of(project), project.parent / "home" / "settings.json"
    settings.write_text('{"model": "opus", "hooks": {"Stop": []}}')
    look = rules.look()
    settings.write_text('{"model": "opus", "hooks": {"Stop": ["evil"]}}')
    assert [one.path for one in rules.finish(look, "x", AT)] == [str(settings)]
    assert "evil" not in settings.read_text()


def test_of_two_commands_at_a_time_one_is_undone(project: Path) -> None:
    """The second began on what the first had left: it does not bring that back."""
    config = project / ".loki" / "config.toml"
    right = config.read_bytes()
    one, two = rules_of(project), rules_of(project)
    first = one.look()
    config.write_text("[execute]\nallow_commands = ['*']\n")
    second = two.look()
    assert len(one.finish(first, "evil", AT)) == 1
    assert two.finish(second, "good", AT) == []
    assert config.read_bytes() == right


def test_the_folder_itself_becomes_a_link(project: Path, tmp_path: Path) -> None:
    rules = rules_of(project)
    look = rules.look()
    (project / ".loki").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "config.toml").write_text("evil")
    (project / ".loki").symlink_to(tmp_path / "elsewhere")
    rules.finish(look, "x", AT)
    assert not (project / ".loki").is_symlink()
    assert "max_retries" in (project / ".loki" / "config.toml").read_text()


def test_settings_of_git_that_decide() -> None:
    own = b"[core]\n\tbare = false\n[alias]\n\tx = y\n"
    upkeep = b'[branch "a] [b\\"]"]\n\tremote = origin\n\tmerge = refs/heads/a\n[gc]\n\tauto = 0\n'
    assert git_part(own + upkeep) == own
    assert git_part(upkeep + own) == own
    hidden = b'[branch "a"]\n\tdescription = x \\\n\n[core]\n\tfsmonitor = evil\n'
    assert git_part(hidden) != git_part(b"")
    assert b"fsmonitor" in git_part(b"[branch]x=y\n [core]fsmonitor=evil\n")
    assert b"fsmonitor" in git_part(b"[branch] [core] fsmonitor=evil\n")


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_all_settings_that_loki_installs_hooks_in(agent: object, project: Path) -> None:
    watched = {one.path for one in hook_settings(project, {})}
    for scope in agent.files:  # type: ignore[attr-defined]
        assert str(agent.path(scope, project, {})) in watched  # type: ignore[attr-defined]


def test_a_worktree(project: Path, tmp_path: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(
        ["git", *who, "commit", "-q", "--allow-empty", "-m", "x"], cwd=project, check=True
    )
    tree = tmp_path / "tree"
    subprocess.run(["git", "worktree", "add", "-q", str(tree)], cwd=project, check=True)
    rules = Rules(tree, tree / ".loki", (Watched(str(tree / "x")),))
    look = rules.look()
    (project / ".git" / "hooks" / "pre-push").write_text("evil")
    with (project / ".git" / "config").open("a") as config:
        config.write("[core]\n pager = evil\n")
    (tree / ".git").write_text("gitdir: /elsewhere\n")
    found = {Path(one.path).name for one in rules.finish(look, "x", AT)}
    assert found == {".git", "config", "pre-push"}
    assert (tree / ".git").read_text() != "gitdir: /elsewhere\n"
