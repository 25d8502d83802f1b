"""A project with tests of its own, in which a real pytest is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loki.memory.suites.suite_history import PASSED, RESCUED, SuiteFailure, SuiteHistory, SuiteRun
from loki.stores.file_store import FileStore
from support.paths import ROOT

REPOSITORY = ROOT

PLUGINS = REPOSITORY / "build" / "plugins"
"""Where ``make plugins`` puts what pytest can load beside loki."""


@dataclass(frozen=True)
class Ran:
    """What a pytest that ran to its end printed and remembered."""

    code: int
    out: str
    err: str
    project: Path

    @property
    def runs(self) -> list[SuiteRun]:
        """The runs that are remembered, oldest first."""
        log = self.project / ".loki/logs/test-runs.jsonl"
        lines = log.read_text("utf-8").splitlines() if log.exists() else []
        return [SuiteRun.from_dict(json.loads(line)) for line in lines]

    @property
    def run(self) -> SuiteRun:
        """The last one."""
        return self.runs[-1]

    @property
    def failing(self) -> dict[str, SuiteFailure]:
        """Its failing tests by node id."""
        return {one.test: one for one in self.run.failures}

    @property
    def passed(self) -> set[str]:
        """Tests that are remembered as having passed, last."""
        past = SuiteHistory(FileStore(self.project / ".loki")).past
        return {test for test, row in past.rows.items() if row[-1:] in (PASSED, RESCUED)}

    @property
    def said(self) -> list[str]:
        """The lines of loki's own part of the output."""
        lines = self.out.splitlines()
        first = next((n for n, line in enumerate(lines) if "= loki" in line), len(lines))
        own = lines[first + 1 :]
        end = next((n for n, line in enumerate(own) if line.startswith("===")), len(own))
        return own[:end]


@dataclass
class Suite:
    """A project in a folder of its own.

    Attributes:
        folder: the project's.
        plugins: those of pytest's that are loaded beside loki.
    """

    folder: Path
    plugins: tuple[str, ...] = ()

    def write(self, **files: str) -> Suite:
        """Write files: ``test_a="…"`` is test_a.py, ``shop__cart`` is shop/cart.py."""
        for name, text in files.items():
            self.put(f"{name.replace('__', '/')}.py", text)
        return self

    def put(self, path: str, text: str) -> Suite:
        """Write one file."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        return self

    def command(self, *arguments: str) -> list[str]:
        """What starts pytest: only loki and the plugins that are named are loaded."""
        own = ("loki.pytest_plugin", *self.plugins)
        return [
            sys.executable,
            "-m",
            "pytest",
            *(a for one in own for a in ("-p", one)),
            *arguments,
        ]

    def environment(self, **more: str) -> dict[str, str]:
        """Its variables: nothing of the run that this test belongs to."""
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "GITHUB_", "LOKI_"))
        }
        path = os.pathsep.join([str(PLUGINS), str(self.folder)])
        own = {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "100"}
        return {**kept, **own, **more}

    def pytest(self, *arguments: str, cwd: Path | None = None, **variables: str) -> Ran:
        """Run it to its end."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=cwd or self.folder,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr, self.folder)

    def start(self, *arguments: str, is_piped: bool = False) -> subprocess.Popen[bytes]:
        """Start it; whoever asked waits for it, and not for what it may leave behind."""
        return subprocess.Popen(
            [sys.executable, "-u", *self.command(*arguments)[1:]],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.PIPE if is_piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE if is_piped else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def git(self, *arguments: str) -> None:
        """Run git in it."""
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True
        )


def outcomes(ran: Ran) -> dict[str, Any]:
    """What became of each failing test."""
    return {one.test: (one.phase, one.outcome) for one in ran.run.failures}
