"""``pytest --loki`` on a small project: what a person sees, and what is remembered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.suite import Suite, outcomes

CART = """
def total(prices):
    return sum(prices) / len(prices["all"])
"""

TESTS = """
import pytest
from cart import total

@pytest.mark.parametrize("n", [1, 2])
def test_total(n):
    assert total([n]) == n

def test_other():
    assert total([5]) == 5

def test_fine():
    pass

@pytest.fixture
def table():
    raise RuntimeError("no table 'prices'")

def test_table(table):
    pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path).write(cart=CART, test_cart=TESTS).put("pytest.ini", "[pytest]\n")


def test_groups_failures_by_cause_and_remembers_the_run(suite: Suite) -> None:
    """Four failures, two causes; all that is known of them is in the project's history."""
    ran = suite.pytest("--loki")
    assert ran.code == 1
    assert "loki: 4 failures, 2 causes" in ran.out
    assert outcomes(ran) == {
        "test_cart.py::test_total[1]": ("call", "failed"),
        "test_cart.py::test_total[2]": ("call", "failed"),
        "test_cart.py::test_other": ("call", "failed"),
        "test_cart.py::test_table": ("setup", "error"),
    }
    assert ran.passed == {"test_cart.py::test_fine"}
    assert ran.run.counts == {"failed": 3, "passed": 1, "error": 1}
    assert (ran.run.exit_code, ran.run.interrupted) == (1, False)
    failure = ran.failing["test_cart.py::test_other"].failure
    assert (failure.path, failure.line, failure.error_type) == ("cart.py", 3, "TypeError")
    assert failure.tests == ("test_cart.py::test_other",)


def test_does_nothing_unless_it_is_asked(suite: Suite) -> None:
    """Without --loki the output is pytest's own and nothing is written."""
    ran = suite.pytest()
    assert ran.code == 1
    assert "loki" not in ran.out
    assert not (suite.folder / ".loki").exists()


def test_says_nothing_about_a_green_suite(suite: Suite) -> None:
    """The output differs in nothing but the time that it took, and the run is remembered."""
    with_loki = suite.pytest("--loki", "-k", "fine")
    without = suite.pytest("-k", "fine")
    assert with_loki.code == without.code == 0
    assert [line for line in with_loki.out.splitlines() if " in " not in line] == [
        line for line in without.out.splitlines() if " in " not in line
    ]
    assert with_loki.err == without.err == ""
    assert with_loki.passed == {"test_cart.py::test_fine"}


@pytest.mark.parametrize(
    ("ini", "arguments", "is_on"),
    [
        ("loki = true", (), True),
        ("loki = true", ("--no-loki",), False),
        ("loki = false", ("--loki",), True),
        ("", ("--loki-report=out.json",), True),
        ("", ("--loki-report=out.json", "--no-loki"), False),
        ("", ("--loki-quarantine",), True),
        ("", ("--loki", "--collect-only"), False),
        ("", ("--loki", "--setup-plan"), False),
        ("", ("--loki", "--fixtures"), False),
    ],
)
def test_is_switched_on_and_off(
    suite: Suite, ini: str, arguments: tuple[str, ...], is_on: bool
) -> None:
    suite.put("pytest.ini", f"[pytest]\n{ini}\n")
    ran = suite.pytest(*arguments)
    assert (suite.folder / ".loki").exists() is is_on
    assert ("loki: 4 failures" in ran.out) is is_on


def test_is_light_where_nobody_asks_for_it() -> None:
    """pytest imports the plugin in every project: it loads nothing beside pytest and itself."""
    code = (
        "import sys, pytest, typing; before = set(sys.modules); import loki.pytest_plugin;"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['loki', 'loki.pytest_plugin']"
