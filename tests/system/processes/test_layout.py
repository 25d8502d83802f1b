"""The house: arrows run one way, files stay small, `import loki` stays light: with processes."""

from __future__ import annotations

import subprocess
import sys


def test_import_is_light() -> None:
    """`import loki` loads no third party's package."""
    code = "import sys, loki; print([m for m in ('pydantic', 'yaml', 'typer', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
