"""From what an agent's hook says to what it is told: with processes."""

from __future__ import annotations

import subprocess
import sys


def test_what_says_nothing_is_light() -> None:
    """Before a call, and after a read that went well, nothing heavy is imported."""
    code = (
        "import sys, tempfile; from loki.adapters.hooks.hook_handler import answer\n"
        "d = {'session_id': 's', 'cwd': tempfile.mkdtemp(), 'tool_name': 'Read', 'tool_input': {}}\n"
        "for e in ('PreToolUse', 'PostToolUse'): assert answer('claude-code', {**d, 'hook_event_name': e}, {}) is None\n"
        "heavy = ('pydantic', 'yaml', 'typer', 'rich', 'loki.workspace', 'logging', 'dataclasses')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
