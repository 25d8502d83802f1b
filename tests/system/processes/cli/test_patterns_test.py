"""`loki patterns test`: what people read who try their patterns out, to the letter: with processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.patterns import FLUX


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("flux.yml").write_text(FLUX, "utf-8")


def test_as_a_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loki", "patterns", "test", "flux.yml", "-"],
        input=b"FluxError\n",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"The text matches 1 pattern of flux.yml" in done.stdout
