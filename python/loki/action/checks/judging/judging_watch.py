"""Remembers what failed in a task, and asks for a look at work that touches what judges it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from loki.action.checks.check import Check, CheckResult, Report
from loki.action.checks.judging.seen_failures import SeenFailures
from loki.action.checks.judging.touched_tests import TouchedTests, touched
from loki.action.checks.task_changes import TaskChanges
from loki.base import codec
from loki.memory import store as documents
from loki.memory.document_validation import kept_as
from loki.memory.store import Store

CRITERION = "changed_tests"
"""The name of the criterion; approvals are of it."""

NAMES_TESTS = frozenset({"test", "command"})
"""Kinds of check of which it is to be known which test failed."""


@kept_as(r"tasks/[^/]+/judged\.json")
@dataclass
class _Judged:
    failed: frozenset[tuple[str, str]] = frozenset()
    files: frozenset[str] = frozenset()


@dataclass
class JudgingWatch:
    """Knows what failed in a task's life, and what the work has done to that.

    Args:
        checks: the task's.
        task_id: its id.
        work: what it has made of the project.
        store: where what failed is kept.
        is_on: the project wants somebody to look.
    """

    checks: tuple[Check, ...]
    task_id: str
    work: TaskChanges
    store: Store
    is_on: bool = True
    _failed: set[tuple[str, str]] = field(init=False)
    _holding: set[str] = field(init=False)

    def __post_init__(self) -> None:
        """Go on with what is known."""
        known = documents.load_as(_Judged, self.store, self._document) or _Judged()
        self._failed, self._holding = set(known.failed), set(known.files)

    def saw(self, report: Report) -> None:
        """Remember which checks failed, in which tests and files; on disk what is new."""
        failed = {pair for result in report.results for pair in _failed(result)}
        holding = {
            file
            for result in report.results
            for test, file in result.files.items()
            if (result.check.kind, test) in failed | self._failed
        }
        holding |= report.failing_files
        if failed <= self._failed and holding <= self._holding:
            return
        self._failed |= failed
        self._holding |= holding
        said = codec.write(_Judged(frozenset(self._failed), frozenset(self._holding)))
        self.store.put(self._document, json.dumps(said) + "\n")

    def criterion(self, report: Report, *, reviewed: bool) -> Check | None:
        """What somebody has to look at before the work counts; None: it touches nothing that judges.

        Args:
            report: what the checks say of the work.
            reviewed: a reviewer can be asked; else a person is.
        """
        found = self.touched(report) if self.is_on and report.first_failure is None else []
        if not found:
            return None
        said = f"the tests still ask for what they asked for; the work touches {_listed(found)}"
        return Check((), "custom" if reviewed else "approval", CRITERION, description=said)

    def touched(self, report: Report) -> list[TouchedTests]:
        """What the work touches of what judges it."""
        if not any(result.check.kind in NAMES_TESTS for result in report.results):
            return []
        changed = self.work.texts()
        return touched(changed, self._seen(report), self.work.text) if changed else []

    def _seen(self, report: Report) -> SeenFailures:
        names = frozenset(test for _, test in self._failed if test)
        files = {t: f for result in report.results for t, f in result.files.items() if t in names}
        is_blind = any(kind in NAMES_TESTS and not test for kind, test in self._failed)
        return SeenFailures(
            frozenset(kind for kind, _ in self._failed),
            names,
            files,
            frozenset(self._holding),
            [check.command for check in self.checks if check.command],
            is_blind,
        )

    @property
    def _document(self) -> str:
        return f"tasks/{self.task_id}/judged.json"


def _failed(result: CheckResult) -> Iterator[tuple[str, str]]:
    """(kind, test) of each test of a check that failed; of one that names none, with ""."""
    if result.passed or result.check.is_judged:
        return
    kind = result.check.kind
    told = [test for test, outcome in (result.tests or {}).items() if outcome == "failed"]
    named = told or list(result.failure.tests if result.failure else ())
    yield from ((kind, test) for test in named or [""])


def _listed(found: list[TouchedTests]) -> str:
    by_path = groupby(found, key=lambda one: one.path)
    return "; ".join(f"{path} ({', '.join(one.what for one in ones)})" for path, ones in by_path)
