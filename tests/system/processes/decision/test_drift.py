"""Drift as real commits have it: with processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.paths import ROOT


def test_history_is_measured(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    for name in ("cart", "login", "pixel"):
        (tmp_path / "src" / name).mkdir(parents=True)
        (tmp_path / "src" / name / f"{name}.py").write_text(f"def {name}():\n    return 1\n" * 30)
        git("add", "-A")
        git("commit", "-qm", f"Add the {name}")
    command = [
        sys.executable,
        "-m",
        "benchmarks.drift",
        str(tmp_path),
        "--most",
        "9",
        "--code",
        "src",
    ]
    root = ROOT
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == (
        "2 commits as their own task, 2 of them with a scope; 2 as another's\n"
        "  outside-scope: 0 interrupted as their own, 2 as another's\n"
    )
