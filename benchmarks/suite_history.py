"""What a long history of tests costs: ``python -m benchmarks.suite_history``.

A suite of 5,000 tests, 200 runs with 14 random failures each; then the time to read that history, to
ask it for 14 labels, and to add a run, beside the time that Python takes to parse the document.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from loki.decision.suites.suite_summary import summarize
from loki.memory.suites.suite_history import DOCUMENT, LOG, SuiteFailure, SuiteHistory, SuiteRun
from loki.recognition.failure import Failure
from loki.stores.file_store import FileStore, ForgivingStore

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS, RUNS, FAILURES, REPEATS = 5_000, 200, 14, 5


def suite() -> list[str]:
    """Node ids as projects have them."""
    return [
        f"tests/unit/package/test_module_{n // 50}.py::TestClass::test_case_{n % 50}[param-{n}]"
        for n in range(TESTS)
    ]


def run(number: int, tests: list[str], chance: random.Random) -> SuiteRun:
    """A run in which some tests fail."""
    bad = set(chance.sample(tests, FAILURES))
    failing = tuple(
        SuiteFailure(
            test,
            "call",
            "failed",
            Failure.of(f"assert {number} == 2", error_type="AssertionError", path="t.py", line=3),
        )
        for test in bad
    )
    return SuiteRun(
        id=f"r{number}",
        started_at=f"2026-04-{number // 24 % 28 + 1:02}T{number % 24:02}:00:00.000Z",
        commit=f"{number:040x}",
        tree=f"{number:040x}",
        passed=tuple(test for test in tests if test not in bad),
        failures=failing,
    )


def best(work: Callable[[], object]) -> float:
    """Milliseconds of the best of some repeats."""
    found = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return 1000 * min(found)


def main() -> None:
    """Measure and print."""
    chance, tests = random.Random(7), suite()
    with tempfile.TemporaryDirectory() as folder:
        store = ForgivingStore(FileStore(Path(folder)))
        for number in range(RUNS):
            SuiteHistory(store).keep(run(number, tests, chance))
        text = store.read(DOCUMENT) or ""
        last = run(RUNS, tests, chance)
        history = SuiteHistory(store)
        print(f"{TESTS:,} tests, {RUNS} runs, {FAILURES} failures each")
        print(
            f"document {len(text) / 1e6:.2f} MB, log {(Path(folder) / LOG).stat().st_size / 1e6:.2f} MB"
        )
        print(f"read      {best(lambda: SuiteHistory(store).past):7.1f} ms")
        print(f"json.loads{best(lambda: json.loads(text)):7.1f} ms, of the same document")
        print(f"summarize {best(lambda: summarize(last, history)):7.1f} ms, {FAILURES} failures")
        numbers = iter(range(RUNS + 1, RUNS + 100))
        more = iter([run(number, tests, chance) for number in list(numbers)[:REPEATS]])
        print(f"keep      {best(lambda: SuiteHistory(store).keep(next(more))):7.1f} ms, a run")


if __name__ == "__main__":
    main()
