"""Reports, GitHub, and exit codes that somebody asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.suite import Suite

COIN = """
import os

def test_coin():
    assert os.environ["COIN"] == "heads"

def test_fine():
    pass
"""

BAD = "def test_bad():\n    assert 1 == 2\n"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """A project whose test_coin passed and failed on the same code."""
    suite = Suite(tmp_path).write(test_coin=COIN)
    suite.git("init", "-q", ".")
    suite.git("add", "test_coin.py")
    suite.git("commit", "-qm", "first")
    assert suite.pytest("--loki", COIN="heads").code == 0
    assert suite.pytest("--loki", COIN="tails").code == 1
    return suite


def test_reports_of_both_forms(tmp_path: Path) -> None:
    """Several files; relative names are relative to where pytest was started."""
    suite = Suite(tmp_path).write(test_a=BAD).put("sub/keep", "")
    ran = suite.pytest("--loki-report=new/x.json", "--loki-report=x.md", "..", cwd=tmp_path / "sub")
    assert ran.code == 1
    assert json.loads((tmp_path / "sub/new/x.json").read_text("utf-8"))
    assert "test_a.py" in (tmp_path / "sub/x.md").read_text("utf-8")


def test_a_report_is_written_of_a_green_run(tmp_path: Path) -> None:
    """Who reads it finds it there, and the output stays as it was."""
    suite = Suite(tmp_path).write(test_a="def test_a(): pass\n")
    suite.put("pytest.ini", "[pytest]\nloki = true\nloki_report = x.json\n")
    ran = suite.pytest("-q")
    assert "loki" not in ran.out
    assert json.loads((tmp_path / "x.json").read_text("utf-8"))


def test_github_only_on_github(tmp_path: Path) -> None:
    suite = Suite(tmp_path).write(test_a=BAD)
    page = tmp_path / "summary.md"
    assert "::error" not in suite.pytest("--loki", GITHUB_STEP_SUMMARY=str(page)).out
    assert not page.exists()
    ran = suite.pytest("--loki", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(page))
    commands = [line for line in ran.out.splitlines() if line.startswith("::")]
    assert len(commands) == 1
    assert "file=test_a.py,line=2" in commands[0]
    assert "test_a.py" in page.read_text("utf-8")


def test_the_same_code_that_passed_is_flaky(suite: Suite) -> None:
    """Which code it was is told by commit and working tree; what tools write does not change it."""
    ran = suite.pytest("--loki", COIN="tails")
    assert ran.code == 1
    assert "1 flaky" in ran.out
    assert len({(run.commit, run.tree) for run in ran.runs}) == 1


def test_quarantine_excuses_known_flaky_tests_alone(suite: Suite) -> None:
    assert suite.pytest("--loki-quarantine", COIN="heads").code == 0
    ran = suite.pytest("--loki-quarantine", COIN="tails")
    assert ran.code == 0
    assert "excused: test_coin.py::test_coin" in ran.out
    assert "1 failed" in ran.out  # pytest's own line stays
    assert ran.run.exit_code == 1
    assert suite.pytest("--loki-quarantine", "-x", COIN="tails").code == 1
    suite.write(test_bad=BAD)
    assert suite.pytest("--loki-quarantine", COIN="tails").code == 1


def test_quarantine_hides_no_other_plugins_verdict(suite: Suite) -> None:
    """Who counts a failure of his own, as coverage's plugin does, is heard."""
    suite.write(conftest="def pytest_sessionfinish(session): pass\n")
    suite.write(
        conftest="import pytest\n@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtestloop(session):\n    r = yield\n    session.testsfailed += 1\n    return r\n"
    )
    suite.git("add", "-A")
    suite.git("commit", "-qm", "second")
    suite.pytest("--loki", COIN="heads")
    assert suite.pytest("--loki-quarantine", COIN="tails").code == 1


def test_fail_on_new(suite: Suite) -> None:
    """What was there before does not fail the run, what is new does."""
    suite.write(test_bad=BAD)
    assert suite.pytest("--loki-fail-on=new", COIN="heads").code == 1
    assert suite.pytest("--loki-fail-on=new", COIN="heads").code == 0
    assert suite.pytest("--loki-fail-on=new,broken", COIN="heads").code == 1
    suite.put("pytest.ini", "[pytest]\nloki = true\nloki_fail_on = new\n")
    assert suite.pytest(COIN="heads").code == 0
    suite.write(test_worse=BAD.replace("2", "3").replace("test_bad", "test_worse"))
    assert suite.pytest(COIN="heads").code == 1


def test_says_which_files_changed_since_it_passed(tmp_path: Path) -> None:
    """Committed or not; nothing of tests, and nothing where nothing changed."""
    suite = Suite(tmp_path).write(shop="RATE = 2\n", other="x = 1\n")
    suite.write(test_shop="import shop\ndef test_rate():\n    assert shop.RATE == 2\n")
    suite.git("init", "-q", ".")
    suite.git("add", ".")
    suite.git("commit", "-qm", "first")
    assert suite.pytest("--loki").code == 0
    suite.write(shop="RATE = 3\n")
    ran = suite.pytest("--loki", "--loki-report=x.json", "--loki-report=x.md")
    assert any("changed since commit" in line for line in ran.said)
    assert "where it last passed: shop.py" in " ".join(" ".join(ran.said).split())
    (cause,) = json.loads((tmp_path / "x.json").read_text("utf-8"))["causes"]
    assert cause["changed"] == ["shop.py"]
    assert cause["passed_at"] == ran.run.commit
    assert "where it last passed: shop.py" in (tmp_path / "x.md").read_text("utf-8")
