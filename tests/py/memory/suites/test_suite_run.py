"""A test run survives being written down."""

from __future__ import annotations

import json

import pytest

from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
from loki.recognition.failure import Failure

FAILED = SuiteFailure(
    "tests/test_a.py::test_x[1]",
    "call",
    "failed",
    Failure.of("assert 1 == 2", error_type="AssertionError", path="tests/test_a.py", line=3),
    started_at="2026-04-04T10:15:30.000Z",
    duration_ms=12,
    worker="gw1",
)
RUN = SuiteRun(
    id="r1",
    started_at="2026-04-04T10:15:30.000Z",
    duration_ms=800,
    branch="main",
    commit="a" * 40,
    tree="b" * 32,
    environment="CPython 3.11",
    passed=("tests/test_a.py::test_y",),
    failures=(FAILED,),
    reruns=(SuiteFailure("t", "call", "rerun", Failure.of("late"), rerun=1),),
    counts={"passed": 1, "failed": 1},
    exit_code=1,
)


def test_comes_back_from_json() -> None:
    """What is written as JSON is read back as it was."""
    assert SuiteRun.from_dict(json.loads(json.dumps(RUN.to_dict()))) == RUN


def test_other_versions_are_read() -> None:
    """Unknown fields are left out, missing ones have their defaults."""
    assert SuiteRun.from_dict({"id": "r", "moon": 1}) == SuiteRun(id="r")


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"id": "r", "failures": [{}]},
        {"id": "r", "failures": [{**FAILED.to_dict(), "phase": "later"}]},
        {"id": "r", "failures": [{**FAILED.to_dict(), "failure": {"tests": []}}]},
        {"id": "r", "counts": 3},
        {"id": "r", "passed": 3},
        {"id": "r", "duration_ms": [1]},
    ],
)
def test_what_is_no_run_says_so(broken: dict[str, object]) -> None:
    """A record of something else is a ValueError, nothing worse."""
    with pytest.raises(ValueError, match=r"record|phase|failure"):
        SuiteRun.from_dict(broken)
