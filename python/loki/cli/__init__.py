"""The command line: it parses, calls and shows; a decision found here is a bug."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the ``loki`` command."""
    if sys.argv[1:2] == ["hook"]:  # an agent's, perhaps, at each of its tool calls: nothing heavy
        from loki.cli import hook_call

        if hook_call.is_one(sys.argv[1:]):
            hook_call.run(sys.argv[2])

    from loki.cli.app import app

    app()
