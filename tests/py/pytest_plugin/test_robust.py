"""Whatever is wrong with loki or its files, the tests run and tell their own result."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loki.pytest_plugin.error_guard import Guard
from support.suite import Suite

TESTS = "def test_fine(): pass\ndef test_bad():\n    assert 1 == 2\n"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path).write(test_x=TESTS)


def warnings(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("loki")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_project(suite: Suite) -> None:
    (suite.folder / ".loki").mkdir(mode=0o500)
    ran = suite.pytest("--loki", "-p", "no:cacheprovider")
    assert ran.code == 1
    assert len(warnings(ran.out)) == 1


def test_guard_calls_nothing_after_an_error() -> None:
    guard = Guard()
    calls: list[int] = []
    guard(calls.append, 1)
    guard({"a": 1}.__getitem__, "no price")
    guard(calls.append, 2)
    assert calls == [1]
    assert guard.lines == ["loki is off for this run: KeyError: 'no price'"]


def test_guard_says_one_line_without_secrets() -> None:
    guard = Guard()
    guard.warn("cannot write\n  password=hunter2secret")
    guard.warn("cannot write password=hunter2secret")
    assert guard.lines == ["loki: cannot write password=<secret>"]
