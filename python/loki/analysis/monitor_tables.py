"""The tables of what loki watched without working itself: agents' tool calls, runs of tests."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from loki.analysis.arrow import of_rows
from loki.analysis.failures_table import in_short
from loki.memory.suites.suite_history import LOG
from loki.memory.suites.suite_run import SuiteRun
from loki.memory.tool_failure import ToolFailure
from loki.stores.file_store import FileStore

logger = logging.getLogger("loki")


def read_runs(store: FileStore) -> Iterator[SuiteRun]:
    """The runs of the project's tests, as they were kept; one that cannot be read is skipped."""
    for record in store.scan(LOG):
        try:
            yield SuiteRun.from_dict(record)
        except (ValueError, OverflowError) as error:
            logger.warning("%s: skipped a record: %s", LOG, error)


def tool_calls(calls: Iterable[ToolFailure]) -> pa.Table:
    """Agents' tool calls that failed, as they were kept."""
    return of_rows("tool_calls", map(_of_call, calls))


def test_runs(runs: Iterable[SuiteRun]) -> pa.Table:
    """The runs of the project's tests, as they were kept."""
    return of_rows("test_runs", map(_of_run, runs))


def test_failures(runs: Iterable[SuiteRun]) -> pa.Table:
    """The tests that failed in them, every try of each."""
    return of_rows("test_failures", (row for run in runs for row in _failures_of(run)))


def _of_call(call: ToolFailure) -> dict[str, Any]:
    own = ("tool", "call", "exit_code")
    return {
        **{name: getattr(call, name) for name in own},
        **{name: getattr(call, name) or None for name in ("tried", "session", "agent", "task")},
        "timestamp": call.at,
        **in_short(call.failure),
    }


def _of_run(run: SuiteRun) -> dict[str, Any]:
    count = run.counts.get
    return {
        "run": run.id,
        "timestamp": run.started_at,
        "duration_ms": run.duration_ms,
        "branch": run.branch or None,
        "commit": run.commit or None,
        "environment": run.environment or None,
        "passed": count("passed", 0),
        "failed": count("failed", 0),
        "errors": count("error", 0) + count("errors", 0),
        "skipped": count("skipped", 0),
        "reruns": len(run.reruns),
        "interrupted": run.interrupted,
        "exit_code": run.exit_code,
    }


def _failures_of(run: SuiteRun) -> Iterator[dict[str, Any]]:
    for one in (*run.reruns, *run.failures):
        yield {
            "run": run.id,
            "timestamp": one.started_at or run.started_at,
            **{name: getattr(one, name) for name in ("test", "phase", "outcome", "duration_ms")},
            "worker": one.worker or None,
            "rerun": one.rerun,
            **in_short(one.failure),
        }
