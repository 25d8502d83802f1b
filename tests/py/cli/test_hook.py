"""`loki hook install`, `uninstall` and `status`, as a person types them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from loki.adapters.hooks.hook_installation import is_ours
from loki.adapters.hooks.hooked_agents import AGENTS
from support.cli_hook import Person

MINE = '{\n    "model": "opus",\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}\n}'


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    made = Person(tmp_path)
    monkeypatch.chdir(made.project)
    return made


def files(person: Person) -> dict[Path, bytes]:
    both = (*person.project.rglob("*"), *person.home.rglob("*"))
    return {path: path.read_bytes() if path.is_file() else b"" for path in both}


SCOPES = [(name, scope) for name, agent in AGENTS.items() for scope in agent.files]


@pytest.mark.parametrize(("agent", "scope"), SCOPES)
@pytest.mark.parametrize("text", [None, MINE])
def test_install_and_uninstall(agent: str, scope: str, text: str | None, person: Person) -> None:
    if text is not None:
        person.writes(agent, scope, text)
    before = files(person)
    code, out, err = person.types("install", agent, f"--{scope}")
    assert (code, err) == (0, "")
    assert str(person.file(agent, scope)) in out
    said = json.loads(person.file(agent, scope).read_text())
    lines = {
        hook["command"] for groups in said["hooks"].values() for g in groups for hook in g["hooks"]
    }
    assert len([line for line in lines if is_ours(line)]) == 1
    there = files(person)
    assert person.types("install", agent, f"--{scope}")[0] == 0
    assert files(person) == there, "once more changes nothing"
    assert person.types("uninstall", agent)[0] == 0
    assert files(person) == before


def test_status_says_when_an_agent_calls_no_hooks_at_all(person: Person) -> None:
    person.writes("claude-code", "local", '{"disableAllHooks": true}')
    person.types("install", "claude-code")
    code, out, _ = person.types("status")
    assert code == 1
    assert "disableAllHooks" in out


def test_dry_run_shows_what_would_change(person: Person) -> None:
    person.writes("claude-code", "project", MINE)
    before = files(person)
    code, out, _ = person.types("install", "claude-code", "--project", "--dry-run")
    assert code == 0
    assert "+" in out
    assert "hook claude-code" in out
    assert files(person) == before


@pytest.mark.parametrize(
    "text", ['{"a": 1,}', '{\n  "hooks": }', "// no\n{}", "\n", "[]", '{"hooks": 3}']
)
def test_broken_settings_are_refused_with_their_place(text: str, person: Person) -> None:
    path = person.writes("claude-code", "local", text)
    for command in ("install", "uninstall"):
        code, _, err = person.types(command, "claude-code")
        assert code == 2
        assert str(path) in err
    assert path.read_text() == text
    assert str(path) in person.types("status")[1]


def test_a_link_stays_one_and_permissions_stay(person: Person) -> None:
    """Settings are often links into a folder that is kept in git."""
    kept = person.home / "dotfiles.json"
    kept.write_text(MINE)
    kept.chmod(0o640)
    path = person.file("claude-code", "user")
    path.parent.mkdir()
    path.symlink_to(kept)
    person.types("install", "claude-code", "--user")
    assert path.is_symlink()
    assert "hook claude-code" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o640
    person.types("uninstall", "claude-code")
    assert kept.read_text() == MINE


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["install", "cursor"], "expected one of claude-code, codex, gemini"),
        (["install", "codex", "--local"], "no settings for --local"),
        (["install", "codex", "--user", "--project"], "expected one of them"),
        (["install", "codex", "--path", "/nowhere"], "not a folder"),
    ],
)
def test_mistakes_are_said(words: Sequence[str], says: str, person: Person) -> None:
    code, _, err = person.types(*words)
    assert code == 2
    assert says in err
    assert not files(person)
