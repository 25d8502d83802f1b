"""`loki patterns` in this process, and a pattern file to try it on."""

from __future__ import annotations

from typer.testing import CliRunner

from loki.cli.app import app

FLUX = """\
version: 2
patterns:
  - id: flux-error
    description: The flux capacitor is out.
    strategy: retry_with_backoff
    signals:
      - {word: FluxError}
      - {literal: capacitor, w: weak}
      - {regex: 'gigawatts? (needed|missing)'}
      - {not: {literal: spare capacitor}}
    examples:
      - 'FluxError: no capacitor'
    near_misses: ['no capacitor in stock']
"""


def loki(*arguments: str, data: bytes = b"") -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    done = CliRunner().invoke(app, ["patterns", *arguments], input=data)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.stdout, done.stderr


def changed(*pairs: tuple[str, str]) -> bytes:
    text = FLUX
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text.encode()
