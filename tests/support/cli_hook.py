"""What tests of cli/test_hook of both tiers share."""

from __future__ import annotations

import os
from pathlib import Path

from typer.testing import CliRunner

from loki.adapters.hooks.hooked_agents import AGENTS
from loki.cli.app import app


class Person:
    """Somebody with a home and a project."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        for folder in (self.home, self.project):
            folder.mkdir()

    def types(self, *words: str, path: str | None = None) -> tuple[int, str, str]:
        environment = {
            **dict.fromkeys(("CLAUDE_CONFIG_DIR", "CODEX_HOME", "LOKI_TASK")),
            "HOME": str(self.home),
            "PATH": path or os.environ["PATH"],
        }
        done = CliRunner().invoke(app, ["hook", *words], env=environment, catch_exceptions=False)
        return done.exit_code, done.stdout, done.stderr

    def file(self, agent: str, scope: str) -> Path:
        return AGENTS[agent].path(scope, self.project, {}) if scope != "user" else (
            self.home / f".{AGENTS[agent].program}" / AGENTS[agent].files["user"]
        )  # fmt: skip

    def writes(self, agent: str, scope: str, text: str) -> Path:
        path = self.file(agent, scope)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path
