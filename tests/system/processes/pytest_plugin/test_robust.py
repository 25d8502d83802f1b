"""Whatever is wrong with loki or its files, the tests run and tell their own result: with processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.suite import Suite

TESTS = "def test_fine(): pass\ndef test_bad():\n    assert 1 == 2\n"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path).write(test_x=TESTS)


def warnings(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("loki")]


def test_broken_patterns_are_one_line(suite: Suite) -> None:
    suite.put(".loki/failure-patterns.yml", "version: 2\npatterns:\n  - id: 3\n")
    ran = suite.pytest("--loki")
    assert ran.code == 1
    assert "1 failed, 1 passed" in ran.out
    assert len(warnings(ran.out)) == 1
    assert "failure-patterns.yml" in warnings(ran.out)[0]
    assert "INTERNALERROR" not in ran.out


def test_broken_configuration_does_not_matter(suite: Suite) -> None:
    """Nothing in it is about test runs."""
    suite.put(".loki/config.toml", "[loop\n")
    ran = suite.pytest("--loki")
    assert ran.code == 1
    assert "loki: 1 failure" in ran.out


def test_a_place_where_nothing_can_be_kept(suite: Suite) -> None:
    """A file stands where the folder should be."""
    suite.put(".loki", "")
    ran = suite.pytest("--loki")
    assert ran.code == 1
    assert "loki: 1 failure" in ran.out
    assert sum("Could not persist" in line or ".loki" in line for line in warnings(ran.out)) == 1


def test_damaged_history(suite: Suite) -> None:
    suite.put(".loki/state/test-history.json", "{torn").put(
        ".loki/logs/test-runs.jsonl", '{"id": 1\n\x00'
    )
    ran = suite.pytest("--loki")
    assert ran.code == 1
    assert "loki: 1 failure" in ran.out
    assert "INTERNALERROR" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--loki-report=out.txt",), "--loki-report: out.txt should end with one of .json"),
        (("--loki-fail-on=newest",), "--loki-fail-on: found 'newest', expected"),
    ],
)
def test_misuse_is_told_before_anything_runs(
    suite: Suite, arguments: tuple[str, ...], said: str
) -> None:
    ran = suite.pytest(*arguments)
    assert ran.code == 4
    assert said in ran.err


def test_misshapen_environment(suite: Suite) -> None:
    """LOKI_NOW that is no moment, GitHub's files that cannot be written."""
    ran = suite.pytest("--loki", LOKI_NOW="soon")
    assert ran.code == 1
    assert "LOKI_NOW is 'soon'" in ran.out
    ran = suite.pytest("--loki", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY="/no/such/folder/x")
    assert ran.code == 1
    assert "could not write the step summary" in ran.out
