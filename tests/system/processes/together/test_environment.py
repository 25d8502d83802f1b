"""What a program that loki starts knows of this process's environment: really asked, by running env."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.action.changes.change import Change

SECRETS = {
    "GITHUB_TOKEN": "x",
    "DATABASE_URL": "postgres://me:hunter2hunter2@db/x",
    "PLAIN_NAME": "ghp_" + "a1B2" * 9,
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {**SECRETS, "HARMLESS": "1"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / ".loki").mkdir()
    return tmp_path


def names(file: Path) -> set[str]:
    return {line.partition("=")[0] for line in file.read_text().splitlines()}


def run(project: Path, settings: str) -> None:
    """A check and a proposal's command, each of which writes what it knows."""
    (project / ".loki/config.toml").write_text(settings + '[execute]\nallow_commands = ["sh *"]\n')
    loki.run(
        "say what is known",
        agent=lambda _: Change(commands=(("sh", "-c", "env > command.txt"),)),
        checks=["sh -c 'env > check.txt; test -e command.txt'"],
        path=str(project),
    )


def test_secrets_stay_out_of_checks_and_commands(project: Path) -> None:
    """By their names and by their values; all else is there."""
    run(project, "")
    for file in ("check.txt", "command.txt"):
        known = names(project / file)
        assert not known & SECRETS.keys()
        assert {"HARMLESS", "PATH"} <= known


def test_a_check_gets_what_the_settings_name(project: Path) -> None:
    """And a proposal's command does not."""
    run(project, '[loop]\npass_environment = ["DATABASE_*"]\n')
    assert names(project / "check.txt") & SECRETS.keys() == {"DATABASE_URL"}
    assert not names(project / "command.txt") & SECRETS.keys()
