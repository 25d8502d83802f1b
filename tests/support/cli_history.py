"""What tests of cli/test_history of both tiers share."""

from __future__ import annotations

from typer.testing import CliRunner

from loki.cli.app import app


def loki(*words: str) -> str:
    """What it prints; it must succeed."""
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout
