"""What the commands that look at a queue load: starting them must not cost more than the look."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WORK = (
    "loki.action.loop.loop_driver",
    "loki.action.loop.performer",
    "loki.action.changes.executor",
    "loki.action.changes.journal",
)


@pytest.mark.parametrize(
    "words",
    [
        ("queue",),
        ("status",),
        ("submit", "--task", "Do it", "--check", "true"),
    ],
)
def test_how_work_is_done_is_not_loaded(words: tuple[str, ...], tmp_path: Path) -> None:
    script = (
        "import sys\nfrom loki.cli import main\ntry: main()\nexcept SystemExit: pass\n"
        f"print(sorted({set(WORK)!r} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", script, *words, "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout
