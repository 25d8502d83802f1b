"""A small project with a failing test, for runs of the whole loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECK = f"{sys.executable} -m pytest -q -p no:cacheprovider"
QUICK = f"{sys.executable} -S check.py"
"""The same check without a test runner, for tests that run it often."""

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"


def make_project(root: Path, *, git: bool = False) -> Path:
    """``calc.py`` with a defect, and a test that sees it."""
    (root / "tests").mkdir(parents=True)
    (root / "calc.py").write_text(WRONG)
    (root / "tests" / "test_calc.py").write_text(
        "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    )
    (root / "check.py").write_text("from calc import add\n\nassert add(2, 3) == 5, add(2, 3)\n")
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    if git:
        (root / ".gitignore").write_text("__pycache__/\n")
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        for command in (
            ["init", "-q", "-b", "main"],
            ["add", "-A"],
            [*identity, "commit", "-qm", "x"],
        ):
            subprocess.run(["git", *command], cwd=root, check=True)
    return root
