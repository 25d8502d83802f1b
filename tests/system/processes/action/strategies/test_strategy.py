"""What strategies have in common: one that fails is told, and the next one is tried: with processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.strategies.strategy import STRATEGIES, carry_out
from support.strategy import situation, write


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize(
    "output", ["", "\x00\x01", "'" * 5000, "No module named '" + "a." * 5000, "x.py:99999999: error: y\n"]
)  # fmt: skip
def test_hostile_output_ends_no_strategy(tmp_path: Path, name: str, output: str) -> None:
    write(tmp_path, x_dot_py="x = 1\n")
    helped = carry_out(name, situation(tmp_path, output=output))
    assert "Error:" not in helped.error
