"""The command line: it parses, calls and shows; a decision found here is a bug."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``loki`` command."""
    from loki.cli.app import app

    app()
