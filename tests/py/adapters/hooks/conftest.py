"""What tests of hooks share."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.claude_session import ClaudeSession


@pytest.fixture
def session(tmp_path: Path) -> ClaudeSession:
    """A session of Claude Code that has begun, in a project in git."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    made = ClaudeSession(root)
    made.start()
    return made
