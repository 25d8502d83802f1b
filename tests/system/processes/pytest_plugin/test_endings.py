"""However a run ends, what it showed is kept, and it ends as it would have without loki."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.suite import Suite, outcomes

TESTS = """
import os, signal
import pytest

def test_fine(): pass
def test_bad(): assert 1 == 2
def test_interrupted(): os.kill(os.getpid(), signal.SIGINT)
def test_exit(): pytest.exit("enough", returncode=7)
def test_also_bad(): assert 3 == 4
"""

BREAKS = """
def pytest_runtest_call(item):
    if item.name == "test_breaks":
        item.config.hook.pytest_runtest_logstart(no_such_argument=1)
def pytest_runtest_logfinish(nodeid):
    if "test_breaks" in nodeid:
        raise RuntimeError("a plugin broke")
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path).write(test_x=TESTS)


@pytest.mark.parametrize(
    ("arguments", "code", "failing"),
    [
        (("-k", "fine or bad or interrupted"), 2, {"test_bad"}),
        (
            ("-k", "fine or bad or exit", "--deselect", "test_x.py::test_interrupted"),
            7,
            {"test_bad"},
        ),
        (("-x",), 1, {"test_bad"}),
        (("--maxfail=2", "-k", "bad"), 1, {"test_bad", "test_also_bad"}),
    ],
)
def test_a_run_that_is_cut_short_is_kept(
    suite: Suite, arguments: tuple[str, ...], code: int, failing: set[str]
) -> None:
    assert suite.pytest(*arguments).code == code
    ran = suite.pytest("--loki", *arguments)
    assert ran.code == code
    assert {name.partition("::")[2] for name in outcomes(ran)} == failing
    assert (ran.run.interrupted, ran.run.exit_code) == (True, code)


def test_internal_error(suite: Suite) -> None:
    """What ran before a plugin broke is kept; the error is pytest's to tell."""
    suite.write(conftest=BREAKS, test_y="def test_bad(): assert 0\ndef test_breaks(): pass\n")
    plain = suite.pytest("test_y.py")
    ran = suite.pytest("--loki", "test_y.py")
    assert ran.code == plain.code == 3
    assert "a plugin broke" in ran.out
    assert ran.run.interrupted
    assert "test_y.py::test_bad" in outcomes(ran)


def test_last_failed(suite: Suite) -> None:
    """With --lf only some tests run; the others keep what is known of them."""
    chosen = ("--loki", "-k", "fine or bad")
    suite.pytest(*chosen)
    ran = suite.pytest(*chosen, "--lf")
    assert set(outcomes(ran)) == {"test_x.py::test_bad", "test_x.py::test_also_bad"}
    assert not ran.run.interrupted
    assert "2 broken" in ran.out


@pytest.mark.parametrize("nothing", [("-k", "no such test"), ("--collect-only",), ("--help",)])
def test_no_tests(suite: Suite, nothing: tuple[str, ...]) -> None:
    ran, plain = suite.pytest("--loki", *nothing), suite.pytest(*nothing)
    assert ran.code == plain.code
    assert "loki: " not in ran.out.replace("loki: failures grouped", "")


def test_quiet_and_without_a_terminal(suite: Suite) -> None:
    """-q shows the causes, --no-summary does not, nor can a run without terminal reporter; all keep."""
    chosen = ("--loki", "-k", "fine or bad")
    assert "2 failures" in suite.pytest(*chosen, "-q").out
    assert "2 failures" not in suite.pytest(*chosen, "--no-summary").out
    ran = suite.pytest(*chosen, "-p", "no:terminal")
    assert (ran.code, ran.err) == (1, "")
    assert len(ran.runs) == 3
    assert len(ran.run.failures) == 2
