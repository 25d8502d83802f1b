"""The history of tests is bounded, shared by processes, and survives what is broken: with processes."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from loki.memory.suites.suite_history import LOG, SuiteFailure, SuiteHistory, SuiteRun
from loki.recognition.failure import Failure
from loki.stores.file_store import FileStore

WRONG = Failure.of("assert 1 == 2", error_type="AssertionError", path="test_a.py", line=3)


def run(
    name: str, passed: tuple[str, ...] = (), *failed: str, failure: Failure = WRONG
) -> SuiteRun:
    return SuiteRun(
        id=name,
        started_at=f"2026-04-04T10:15:{int(name) % 60:02}.000Z",
        passed=passed,
        failures=tuple(SuiteFailure(test, "call", "failed", failure) for test in failed),
    )


def letters(history: SuiteHistory, test: str) -> str:
    return "".join(one.letter for one in history.earlier(test, WRONG).runs)


def _keep_many(folder: Path, worker: int) -> None:
    for number in range(10):
        name = str(worker * 100 + number)
        SuiteHistory(FileStore(folder)).keep(run(name, ("a", f"of-{worker}")))


def test_many_processes_keep_runs(tmp_path: Path) -> None:
    """Runs that end at the same time are all remembered."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_keep_many, args=(tmp_path, n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    history = SuiteHistory(FileStore(tmp_path))
    assert len(history.past.runs) == 40
    assert [letters(history, "a"), letters(history, "of-2")] == ["p" * 40, "p" * 10]
    assert len(FileStore(tmp_path).records(LOG)) == 40
