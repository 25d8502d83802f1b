"""Huge and hostile outputs, small enough for every run; benchmarks/robustness.py has the large ones: what takes its time."""

import pytest

from benchmarks import robustness


@pytest.mark.parametrize("name", robustness.CASES)
def test_a_failure_is_found_behind_anything(name: str) -> None:
    assert robustness.measured(name, 300_000)["right"]
