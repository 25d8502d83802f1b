"""Under pytest-rerunfailures each try is counted, and none is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.suite import Suite

TESTS = """
import pytest
tries = {}

def test_third_time_lucky():
    tries["a"] = tries.get("a", 0) + 1
    assert tries["a"] == 3

def test_never():
    assert 1 == 2

def test_parts(subtests):
    tries["b"] = tries.get("b", 0) + 1
    with subtests.test("part"):
        assert tries["b"] == 2

@pytest.fixture
def table():
    tries["c"] = tries.get("c", 0) + 1
    if tries["c"] == 1:
        raise RuntimeError("no table")

def test_table(table):
    pass

def test_fine():
    pass
"""


@pytest.mark.parametrize("workers", [(), ("-n1",)])
def test_counts_each_try(tmp_path: Path, workers: tuple[str, ...]) -> None:
    suite = Suite(tmp_path, ("pytest_rerunfailures", *(["xdist.plugin"] if workers else [])))
    ran = suite.write(test_r=TESTS).pytest("--loki", "--reruns=2", *workers)
    assert ran.code == 1
    tries = [(one.test.partition("::")[2], one.phase, one.rerun) for one in ran.run.reruns]
    assert sorted(tries) == [
        ("test_never", "call", 1),
        ("test_never", "call", 2),
        ("test_parts", "call", 1),
        ("test_table", "setup", 1),
        ("test_third_time_lucky", "call", 1),
        ("test_third_time_lucky", "call", 2),
    ]
    assert {one.outcome for one in ran.run.reruns} == {"rerun"}
    assert [one.test for one in ran.run.failures] == ["test_r.py::test_never"]
    passed = {"test_third_time_lucky", "test_parts", "test_table", "test_fine"}
    assert ran.passed == {f"test_r.py::{name}" for name in passed}


def test_names_what_passed_only_at_a_later_try(tmp_path: Path) -> None:
    """A green run that needed a rerun is not quite green: the test is flaky, with its evidence."""
    suite = Suite(tmp_path, ("pytest_rerunfailures",)).write(test_r=TESTS)
    ran = suite.pytest("--loki", "--reruns=2", "-k", "lucky")
    assert ran.code == 0
    assert "test_third_time_lucky: failed twice in this run, then passed" in ran.out
