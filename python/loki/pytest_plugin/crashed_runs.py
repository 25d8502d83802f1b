"""Earlier runs whose process died without a word: kept as interrupted runs, and told of once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loki.pytest_plugin.report_wording import counted, day, ending, plain

if TYPE_CHECKING:
    from loki.memory.suites.suite_history import SuiteHistory
    from loki.memory.suites.suite_journal import UnfinishedRun
    from loki.memory.suites.suite_run import SuiteFailure, SuiteRun
    from loki.pytest_plugin.failure_recognition import Recognizer

UNKNOWN = -1
"""Exit code of a run whose process was ended by somebody else; pytest-timeout ends it with 1."""

NAMED, WIDTH = 3, 200
"""Tests of a run that a line names, and characters of each. Chosen."""


def keep_unfinished(
    folder: Path, history: SuiteHistory, recognizer: Callable[[], Recognizer]
) -> list[str]:
    """Keep the runs whose process is gone; what to say of each, one line.

    Args:
        folder: the project's ``.loki``.
        history: where they are kept.
        recognizer: gives that of this run, which takes long to load.
    """
    from loki.pytest_plugin.run_journal import left_behind

    said = []
    for found in left_behind(folder):
        if any(known.id == found.run.id for known in history.past.runs):
            continue  # it was kept, and then there was no time to remove the journal
        run = ended_run(found, recognizer())
        history.keep(run)
        said.append(line_of(found, run))
    return said


def ended_run(found: UnfinishedRun, recognizer: Recognizer) -> SuiteRun:
    """The run as it is kept: what failed, and what was running when its process died.

    Args:
        found: what its journal tells.
        recognizer: makes failing tests of texts.
    """
    from loki.pytest_plugin.results_tally import Tally

    tally = Tally()
    for failing in (*found.run.failures, *_culprits(found, recognizer)):
        tally.failed(failing)
    words = {"failed": sum(one.outcome == "failed" for one in tally.failures)}
    words["error"] = len(tally.failures) - words["failed"]
    return replace(
        found.run,
        failures=tuple(tally.failures),
        reruns=tuple(tally.reruns),
        counts={word: n for word, n in words.items() if n},
        exit_code=1 if not found.has_workers and _timed_out(found) else UNKNOWN,
    )


def line_of(found: UnfinishedRun, run: SuiteRun) -> str:
    """What is said of a run whose process died.

    Args:
        found: what its journal tells.
        run: as it is kept.
    """
    tests = [ending(test, WIDTH) for test in found.running[:NAMED]]
    more = f" and {len(found.running) - NAMED} more" if len(found.running) > NAMED else ""
    when = day(found.run.started_at)
    if found.has_workers:
        during = f" while {', '.join(tests)}{more} ran" if tests else ""
        said = f"the run of {when} was killed{during}"
    elif _timed_out(found):
        said = f"the run of {when} was ended by pytest-timeout in {tests[0]}"
    elif tests:
        said = f"the run of {when} died without a word in {tests[0]} (a crash, or killed)"
    elif found.collecting:
        said = f"the run of {when} died without a word collecting {plain(found.collecting, WIDTH)}"
    else:
        said = f"the run of {when} died without a word while no test ran"
    others = len({one.test for one in run.failures} - {*found.running, found.collecting})
    after = f", after {counted(others, 'other failure')}" if others else ""
    return f"loki: {said}{after}"


def _timed_out(found: UnfinishedRun) -> bool:
    return any(test in found.timeouts for test in found.running)


def _culprits(found: UnfinishedRun, recognizer: Recognizer) -> list[SuiteFailure]:
    """The test that the process died in, where it ran in that process."""
    if found.has_workers:
        return []
    if found.collecting and not found.running:
        return [recognizer.crashed(found.collecting, "collect")]
    return [
        recognizer.timed_out(test, found.timeouts[test])
        if test in found.timeouts
        else recognizer.crashed(test, "crash")
        for test in found.running
    ]
