"""The validator of documents: what does not fit spoils only itself, and is told: with processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_without_a_form_nothing_heavy_is_loaded() -> None:
    """Hooks keep a session at every call of a tool."""
    code = (
        "import sys; from pathlib import Path; from loki.stores.file_store import FileStore\n"
        f"FileStore(Path({str(Path.cwd() / 'no')!r})).read('x')\n"
        "print([one for one in ('pydantic', 'pydantic_core') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
