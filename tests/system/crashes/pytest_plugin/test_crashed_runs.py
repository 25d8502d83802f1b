"""A run whose process dies without a word is kept by the next one, which says so in one line."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.suite import Ran, Suite, outcomes

TESTS = """
import ctypes, os, signal, time
import pytest

def test_fine(): pass
def test_bad(): assert 1 == 2
def test_dies():
    {deed}
def test_never(): pass
"""

JOURNALS = ".loki/state/test-runs"


def journals(suite: Suite) -> list[str]:
    """Names of the journals that are there."""
    folder = suite.folder / JOURNALS
    return sorted(os.listdir(folder)) if folder.exists() else []


def told(ran: Ran) -> list[str]:
    """Lines about earlier runs."""
    return [line for line in ran.out.splitlines() if line.startswith("loki: the run of ")]


@pytest.mark.parametrize(
    ("deed", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os._exit(5)", 5),
        ("ctypes.string_at(0)", -signal.SIGSEGV),
        ("os.fork() and os._exit(0) or time.sleep(20)", 0),
    ],
)
def test_a_run_that_died_is_kept_by_the_next(tmp_path: Path, deed: str, code: int) -> None:
    suite = Suite(tmp_path).write(test_x=TESTS.format(deed=deed))
    died = suite.start("--loki")
    assert died.wait(60) == code
    assert len(journals(suite)) == 1
    ran = suite.pytest("--loki", "-k", "fine", "-q")
    assert ran.code == 0
    [line] = told(ran)
    assert "died without a word in test_x.py::test_dies" in line
    assert line.endswith("after 1 other failure")
    earlier = ran.runs[0]
    assert (earlier.interrupted, earlier.exit_code) == (True, -1)
    assert {one.test: (one.phase, one.outcome) for one in earlier.failures} == {
        "test_x.py::test_bad": ("call", "failed"),
        "test_x.py::test_dies": ("crash", "crashed"),
    }
    assert all(one.failure.path == "test_x.py" for one in earlier.failures)
    assert journals(suite) == []
    assert told(suite.pytest("--loki", "-k", "fine")) == []


def test_a_death_counts_as_having_failed_before(tmp_path: Path) -> None:
    suite = Suite(tmp_path).write(test_x=TESTS.format(deed="os._exit(5)"))
    suite.start("--loki").wait(60)
    assert "1 broken" in suite.pytest("--loki", "-k", "bad").out


def test_pytest_timeout_ended_it(tmp_path: Path) -> None:
    """Where it hung is known, from the stack that its thread saw."""
    suite = Suite(tmp_path, ("pytest_timeout",)).write(
        shop="import time\ndef wait():\n    time.sleep(60)\n",
        test_x="import shop\ndef test_hang():\n    shop.wait()\n",
    )
    assert suite.pytest("--loki", "--timeout=3", "--timeout-method=thread").code == 1
    ran = suite.pytest("--loki", "-k", "nothing")
    assert "was ended by pytest-timeout in test_x.py::test_hang" in told(ran)[0]
    [one] = ran.runs[0].failures
    assert (one.phase, one.outcome) == ("timeout", "timeout")
    assert (one.failure.path, one.failure.line) == ("shop.py", 3)
    assert one.failure.message == "Timeout (>3.0s) from pytest-timeout."
    assert ran.runs[0].exit_code == 1


def test_dies_while_a_file_is_collected(tmp_path: Path) -> None:
    suite = Suite(tmp_path).write(test_x="import os\nos._exit(3)\n", test_a="def test_a(): pass\n")
    assert suite.pytest("--loki").code == 3
    ran = suite.pytest("--loki", "test_a.py")
    assert "died without a word collecting test_x.py" in told(ran)[0]
    assert ran.runs[0].failures[0].phase == "collect"


def test_two_runs_at_once(tmp_path: Path) -> None:
    """What goes on is left alone, also where its process has given birth."""
    suite = Suite(tmp_path).write(
        test_slow="import sys\ndef test_slow(): sys.stdin.readline()\n",
        test_a="def test_a(): pass\n",
    )
    slow = suite.start("--loki", "-s", "test_slow.py", is_piped=True)
    assert slow.stdout is not None
    assert any(b"collected 1 item" in line for line in iter(slow.stdout.readline, b""))
    assert told(suite.pytest("--loki", "test_a.py")) == []
    assert len(journals(suite)) == 1
    out, _ = slow.communicate(b"\n", timeout=60)
    assert b"1 passed" in out
    assert journals(suite) == []
    assert len(suite.pytest("--loki", "test_a.py").runs) == 3


def test_a_torn_line_and_rubbish(tmp_path: Path) -> None:
    suite = Suite(tmp_path).write(test_x=TESTS.format(deed="os._exit(5)"))
    suite.start("--loki").wait(60)
    [name] = journals(suite)
    journal = tmp_path / JOURNALS / name
    journal.write_bytes(journal.read_bytes() + b'\xff[[[\n{"fail": {"test": 1}}\n{"start": "test_x')
    for other, text in {"1-a": "", "2-b": "\0\0", "3-c": '{"run": {"version": 99}}\n'}.items():
        suite.put(f"{JOURNALS}/{other}.jsonl", text)
    ran = suite.pytest("--loki", "-k", "fine")
    assert ran.code == 0
    assert "in test_x.py::test_dies" in told(ran)[0]
    assert journals(suite) == ["3-c.jsonl"]  # a newer loki's is left to it
    assert "loki is off" not in ran.out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    suite = Suite(tmp_path).write(test_x="def test_bad(): assert 0\n").put(".loki/keep", "")
    (tmp_path / ".loki").chmod(0o500)
    ran = suite.pytest("--loki")
    assert ran.code == 1
    assert "1 failure, 1 cause" in ran.out


def test_the_folder_of_journals_is_a_file(tmp_path: Path) -> None:
    suite = Suite(tmp_path).write(test_x="def test_bad(): assert 0\n").put(JOURNALS, "")
    ran = suite.pytest("--loki")
    assert (ran.code, set(outcomes(ran))) == (1, {"test_x.py::test_bad"})
    assert "loki is off" not in ran.out


def test_the_process_that_has_workers_is_killed(tmp_path: Path) -> None:
    """The tests that ran then are named, and not to blame: they ran elsewhere."""
    suite = Suite(tmp_path, ("xdist.plugin", "xdist.looponfail")).write(
        test_x="import glob, os, signal, time\ndef test_bad(): assert 1 == 2\n"
        "def test_kills():\n"
        f"    journal = glob.glob('{JOURNALS}/*')[0]\n"
        "    while 'test_kills' not in open(journal).read() or 'fail' not in open(journal).read():\n"
        "        time.sleep(0.01)\n    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(5)\n"
    )
    killed = suite.start("--loki", "-n1")
    assert killed.wait(60) == -signal.SIGKILL
    ran = suite.pytest("--loki", "-k", "nothing")
    assert "was killed while test_x.py::test_kills ran, after 1 other failure" in told(ran)[0]
    assert {one.test for one in ran.runs[0].failures} == {"test_x.py::test_bad"}


@pytest.mark.parametrize(
    "how", [("-x",), ("-p", "no:terminal"), ("--no-summary",), ("no_such.py",)]
)
def test_no_journal_stays_of_a_run_that_ends(tmp_path: Path, how: tuple[str, ...]) -> None:
    suite = Suite(tmp_path).write(test_x=TESTS.format(deed="raise KeyboardInterrupt"))
    suite.pytest("--loki", *how)
    assert journals(suite) == []


def test_a_child_that_ends_as_pytest_would_takes_no_journal_along(tmp_path: Path) -> None:
    suite = Suite(tmp_path).write(
        test_x="import os, sys\ndef test_forks():\n    child = os.fork()\n    if not child:\n"
        "        raise KeyboardInterrupt\n    os.waitpid(child, 0)\ndef test_dies(): os._exit(4)\n"
    )
    assert suite.pytest("--loki").code == 4
    ran = suite.pytest("--loki", "-k", "nothing")
    assert "test_x.py::test_dies" in told(ran)[0]
