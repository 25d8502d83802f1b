"""Drift: what is seen, what is not, and what holds for any change: with processes."""

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
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text(f"def {name}():\n    return 1\n" * 30)
        git("add", "-A")
        git("commit", "-qm", f"Add the {name}")
    command = [sys.executable, "-m", "benchmarks.drift_history", str(tmp_path), "--most", "2"]
    root = ROOT
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2 commits under their own first line: 0 interrupted")
