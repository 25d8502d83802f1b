"""`loki patterns check`: what people read who write patterns, to the letter: what takes its time."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.paths import ROOT
from support.patterns import FLUX, loki

TOOLS = ROOT / "python/loki/recognition"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("flux.yml").write_text(FLUX, "utf-8")


def test_everything_that_loki_brings_is_right() -> None:
    patterns, tools = TOOLS / "failure-patterns.yml", TOOLS / "tools"
    code, out, _ = loki("check", str(patterns), str(tools))
    assert code == 0
    assert out.count("checked\n") == 1 + len(list(tools.rglob("*.yml")))
