"""Under pytest-xdist workers recognize, the controller remembers; a crashed worker's test is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.suite import Suite, outcomes

TESTS = """
import os, time
import pytest

def test_fine(): pass
def test_bad(): assert 1 == 2
def test_crash(): os._exit(9)
@pytest.mark.timeout(2, method="thread")
def test_hang(): time.sleep(60)
def test_also_bad(): raise ValueError("\\u00e4 \\U0001f600")
"""

WORKERS = ("xdist.plugin", "xdist.looponfail")


def test_workers_recognize_and_crashes_are_failures(tmp_path: Path) -> None:
    suite = Suite(tmp_path, (*WORKERS, "pytest_timeout")).write(test_x=TESTS)
    # Fewer than two tests for each worker are all sent at the start. What pytest-xdist sends later may
    # be for a worker that has just died, and ends in an INTERNALERROR of its own.
    ran = suite.pytest("--loki", "-q", "-n3", "--dist=load", "--junitxml=x.xml")
    assert ran.code == 1
    assert outcomes(ran) == {
        "test_x.py::test_bad": ("call", "failed"),
        "test_x.py::test_also_bad": ("call", "failed"),
        "test_x.py::test_crash": ("crash", "crashed"),
        "test_x.py::test_hang": ("timeout", "timeout"),
    }
    assert ran.passed == {"test_x.py::test_fine"}
    for one in ran.run.failures:
        assert one.worker.startswith("gw")
        assert one.failure.path == "test_x.py"
        assert one.worker not in one.failure.message
    xml = (tmp_path / "x.xml").read_text("utf-8")
    assert xml.count('name="loki.pattern"') == 4
    assert 'name="loki"' not in xml


@pytest.mark.parametrize(
    "how",
    [
        ("-n2", "--dist=worksteal"),
        ("-n2", "--dist=loadscope"),
        ("-n0",),
        ("-n2", "--dist=no"),
        ("-n1", "--maxfail=1"),
    ],
)
def test_finds_the_same_however_tests_are_spread(tmp_path: Path, how: tuple[str, ...]) -> None:
    suite = Suite(tmp_path, (*WORKERS, "pytest_timeout")).write(test_x=TESTS)
    ran = suite.pytest("--loki", "-q", *how, "-k", "test_bad or fine")
    assert ran.code == (2 if "--maxfail=1" in how else 1)  # pytest-xdist's own
    assert outcomes(ran) == {"test_x.py::test_bad": ("call", "failed")}


def test_a_file_that_no_worker_can_collect_is_one_failure(tmp_path: Path) -> None:
    suite = Suite(tmp_path, WORKERS).write(
        test_x="import nosuchthing\n", test_y="def test_y(): pass\n"
    )
    ran = suite.pytest("--loki", "-q", "-n2")
    assert outcomes(ran) == {"test_x.py": ("collect", "error")}
    assert len(ran.run.failures) == 1


def test_an_error_of_lokis_on_a_worker_is_a_line(tmp_path: Path) -> None:
    suite = Suite(tmp_path, WORKERS).write(test_x="def test_x(): assert 0\n")
    suite.put(".loki/failure-patterns.yml", "patterns: [")
    ran = suite.pytest("--loki", "-q", "-n2")
    assert ran.code == 1
    assert "1 failed" in ran.out
    assert ran.out.count("loki is off for this run: ") == 1
    assert "INTERNALERROR" not in ran.out
