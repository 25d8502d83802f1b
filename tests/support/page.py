"""A page of the documentation, run as its reader would: block after block, in one project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from support.paths import ROOT

NOW = "2026-04-04T12:00:00Z"
WITHOUT_RUNNING = {
    "cd",
    "claude",
    "codex",
    "export",
    "gemini",
    "jupyter",
    "npm",
    "npx",
    "pip",
    "uv",
}
"""What lines of a ``norun`` block may begin with: they install, need a key, or stay open."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, its text, its first line in the page."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int

    @property
    def title(self) -> str | None:
        """The file that it is written to instead of being run."""
        return next((w.removeprefix("title=") for w in self.words if w.startswith("title=")), None)


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, also those in lists."""
    found = []
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        if token.type == "fence":
            language, *words = token.info.split() or [""]
            assert token.map is not None
            found.append(Block(language, tuple(words), token.content, token.map[0] + 2))
    return found


class Reader:
    """Follows a page in a project of its own.

    Args:
        page: the page.
        folder: an empty folder; the project is made in it.
    """

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.project = folder / "project"
        self.project.mkdir()
        (folder / "home").mkdir()
        self._cells = ""
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("LOKI_", "GITHUB_", "PYTEST_"))
        }
        self._environment = {
            **kept,
            "HOME": str(folder / "home"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "build" / "plugins"),
            "LOKI_NOW": NOW,
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }

    def follow(self) -> None:
        """Run every block; fails with the page's line where one does not do what the page says."""
        for block in blocks_of(self.page):
            if block.title is not None:
                path = self.project / block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, "utf-8")
            elif block.language == "python":
                self._python(block)
            elif block.language == "console":
                self._console(block)
            elif block.language == "sh":
                self._sh(block)
            else:
                assert block.language == "text", self._at(block, f"nothing runs {block.language!r}")

    def _python(self, block: Block) -> None:
        code = block.text
        if "cell" in block.words:  # a notebook's: it knows what the cells before it defined
            code = self._cells = self._cells + code
        done = self._run([sys.executable, "-c", code])
        assert done.returncode == 0, self._at(block, done.stdout)

    def _console(self, block: Block) -> None:
        assert block.text.startswith("$ "), self._at(block, "expected '$ ' and a command")
        for command, expected in re.findall(
            r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE
        ):
            said = "".join(
                f"{line.rstrip()}\n" for line in self._shell(command).stdout.splitlines()
            )
            assert re.fullmatch(_pattern(expected), said), self._at(block, f"$ {command}\n{said}")

    def _sh(self, block: Block) -> None:
        if "norun" in block.words:
            for line in filter(None, (line.strip() for line in block.text.splitlines())):
                assert line.split()[0] in WITHOUT_RUNNING or line.startswith("#"), self._at(
                    block, line
                )
            return
        done = self._shell(f"set -e\n{block.text}")
        assert done.returncode == 0, self._at(block, done.stdout)

    def _shell(self, command: str) -> subprocess.CompletedProcess[str]:
        return self._run(["bash", "-c", command])

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.project,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=300,
            check=False,
        )

    def _at(self, block: Block, what: str) -> str:
        return f"{self.page.name}:{block.line}: {what}"


def _pattern(expected: str) -> str:
    """A regex of shown output: "…" stands for anything in a line, alone for any lines."""
    lines = []
    for line in expected.splitlines():
        shown = line.rstrip()
        lines.append("(?:.*\n)*" if shown == "…" else re.escape(shown).replace("…", ".*") + "\n")
    return "".join(lines)
