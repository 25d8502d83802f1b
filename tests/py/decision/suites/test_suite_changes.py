"""Few files that changed since tests last passed are named; many, prose and tests are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from loki.decision.suites.suite_summary import COMMITS, MOST, summarize, with_changes
from loki.memory.suites.suite_history import SuiteFailure, SuiteHistory, SuiteRun
from loki.recognition.failure import Failure, Frame, recognize
from loki.stores.file_store import FileStore

WRONG = Failure.of("assert 1 == 2", error_type="AssertionError", path="tests/test_a.py", line=3)
REFUSED = recognize("E   ConnectionRefusedError: [Errno 111] Connection refused", command="pytest")


def run(
    number: int, *failing: tuple[str, Failure], passed: Sequence[str] = (), environment: str = "e"
) -> SuiteRun:
    """A run at a commit of its own."""
    return SuiteRun(
        id=str(number),
        started_at=f"2026-04-{number:02}T10:15:30.000Z",
        commit=f"{number:040}",
        environment=environment,
        passed=tuple(passed),
        failures=tuple(SuiteFailure(test, "call", "failed", failure) for test, failure in failing),
    )


class Asked:
    """What git would say, and for which commits it was asked."""

    def __init__(self, files: Sequence[str] | None) -> None:
        self.files = files
        self.commits: list[int] = []

    def __call__(self, commit: str) -> Sequence[str] | None:
        self.commits.append(int(commit))
        return self.files


@pytest.fixture
def history(tmp_path: Path) -> SuiteHistory:
    history = SuiteHistory(FileStore(tmp_path))
    history.keep(run(1, passed=("a", "b")))
    history.keep(run(2, passed=("a", "b")))
    history.keep(run(3, ("a", WRONG), passed=("b",)))
    history.keep(run(4, passed=("a", "b"), environment="another interpreter"))
    return history


def changed(
    history: SuiteHistory, now: SuiteRun, asked: Asked
) -> list[tuple[str, tuple[str, ...]]]:
    """Commit and files of each cause."""
    found = with_changes(summarize(now, history), history, asked).causes
    return [(cause.passed_at.lstrip("0"), cause.changed) for cause in found]


def test_since_it_last_passed(history: SuiteHistory) -> None:
    """In this environment; tests and prose are left out, what is in the stack comes first."""
    low = Failure(
        message="no",
        normalized="no",
        path="tests/test_a.py",
        frames=(Frame("src/z.py", 9, None, True),),
    )
    asked = Asked(["README.md", ".github/ci.yml", "src/b.py", "src/z.py", "tests/test_a.py"])
    assert changed(history, run(5, ("a", low)), asked) == [("2", ("src/b.py", "src/z.py")[::-1])]
    assert asked.commits == [2]
    assert changed(history, run(5, ("b", WRONG)), asked) == [("3", ("src/b.py", "src/z.py"))]


@pytest.mark.parametrize(
    "files", [None, (), ("tests/test_a.py",), [f"{n}.py" for n in range(MOST + 1)]]
)
def test_nothing_to_tell(history: SuiteHistory, files: Sequence[str] | None) -> None:
    """Git does not know, nothing changed, only tests did, or too much."""
    assert changed(history, run(5, ("a", WRONG)), Asked(files)) == [("", ())]


def test_nobody_is_asked_in_vain(history: SuiteHistory) -> None:
    """Not of what never passed, not of what the code is not to blame for, and not often."""
    asked = Asked(["x.py"])
    assert changed(history, run(5, ("new", WRONG)), asked) == [("", ())]
    assert changed(history, run(5, ("a", REFUSED)), asked) == [("", ())]
    assert asked.commits == []
    for number in range(6, 12):
        history.keep(run(number, passed=(f"t{number}",)))
    own = [Failure.of(f"assert {n}", path=f"tests/test_{n}.py", line=n) for n in range(6, 12)]
    now = run(12, *((f"t{n}", one) for n, one in zip(range(6, 12), own, strict=True)))
    changed(history, now, asked)
    assert len(asked.commits) == COMMITS
