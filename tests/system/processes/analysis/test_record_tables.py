"""What single files say becomes rows: transitions, dead letters, signs, calls, test runs: with processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("logs", "state", "queue", "memory"):
        (tmp_path / ".loki" / name).mkdir(parents=True)
    return tmp_path / ".loki"


HIDE = """
class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden)
"""


@pytest.mark.parametrize(
    ("missing", "code", "expected"),
    [
        ("pyarrow", "analysis.history({folder!r})", "loki.analysis needs pyarrow: pip install"),
        ("pyarrow", "import loki.analysis.plots", "plots need pyarrow and matplotlib: pip install"),
        ("matplotlib", "import loki.analysis.plots", "plots need pyarrow and matplotlib: pip"),
        ("pandas", "analysis.history({folder!r}).pandas('calls')", "loki-core[analysis]"),
        ("polars", "analysis.history({folder!r}).polars('calls')", "loki-core[polars]"),
        ("numpy pandas", "print(analysis.history({folder!r}).polars('calls').shape)", "(0, 19)"),
        ("pyarrow", "print(len(analysis.columns('calls')))", "19"),
    ],
)
def test_what_is_not_installed_is_named(
    folder: Path, missing: str, code: str, expected: str
) -> None:
    hidden = f"import sys\nHIDDEN = {missing.split()!r}\n{HIDE}"
    script = f"{hidden}\nfrom loki import analysis\n{code.format(folder=str(folder))}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert expected in done.stdout + done.stderr
