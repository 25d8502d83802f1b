"""How tests did on the tree that a task began with: ``baseline-<id>.md``, and as data beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from loki.action.checks.results.suite_results import FAILED, PASSED, Results
from loki.action.checks.results_comparison import UNTOLD
from loki.base import codec
from loki.base.codec import IsoTime
from loki.base.markdown import bullets, cell, code, inline
from loki.memory import store as documents
from loki.memory.document_validation import kept_as
from loki.memory.front_matter import front_matter
from loki.memory.store import Store


@kept_as(r"tasks/[^/]+/baseline\.json")
@dataclass
class Baseline:
    """Results by test on the starting tree; it grows as changes touch more.

    Attributes:
        targets: files that the task changes.
        dependents: by file that imports them, the way from it to a target.
        asked: test files that were run for the baseline beside the checks.
        captured_at: when it was taken, ISO 8601 UTC.
        results: by the run that told them: a check's name, or that of a run of dependents' tests.
        flaws: what in the file does not fit.
    """

    targets: tuple[str, ...] = ()
    dependents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    captured_at: IsoTime = ""
    results: dict[str, Results] = field(default_factory=dict)
    flaws: tuple[str, ...] = ()

    def add(self, run: str, results: Results) -> None:
        """Take a run's results in; what failed once failed."""
        self.results[run] = self.results[run] + results if run in self.results else results

    def keep(self, store: Store, task_id: str) -> None:
        """Write it, for people and for the next start."""
        store.put(
            _document(task_id), json.dumps({"version": 1, **codec.write(self)}, ensure_ascii=False)
        )
        store.put(f"tasks/{task_id}/baseline-{task_id}.md", self.page(task_id))

    @classmethod
    def load(cls, store: Store, task_id: str) -> Baseline | None:
        """The baseline that was kept; None where there is none, or it is damaged."""
        found = documents.load_as(cls, store, _document(task_id))
        return None if found is None or found.flaws else found

    def page(self, task_id: str) -> str:
        """The page for people: front matter, files with their counts, tests that failed already."""
        counts = self._counts()
        baseline = [
            {"file": file, "test_count": n, "pass_count": passed, "fail_count": failed}
            for file, (n, passed, failed) in counts.items()
        ]
        rows = [
            f"| {cell(code(file)) if file else UNTOLD} | {passed}/{n} pass | {failed} |"
            for file, (n, passed, failed) in counts.items()
        ]
        failing = sorted(
            f"{code(test)} ({inline(run)})"
            for run, told in self.results.items()
            for test, outcome in told.outcomes.items()
            if outcome == FAILED
        )
        head = {
            "entity_name": f"session.current.baseline.{task_id}",
            "namespace": "session.current",
            "category": "regression-baseline",
            "task_id": task_id,
            "target_files": sorted(self.targets),
            "dependent_files": sorted(self.dependents),
            "baseline_results": baseline,
            "captured_at": self.captured_at,
        }
        listed = "\n".join(
            ["| File | Baseline | Failing |", "|------|----------|---------|", *rows]
        )
        return (
            f"{front_matter(head)}\n## Tests before the task\n\n"
            f"{listed if rows else 'No test reported its result.'}\n\n"
            f"### Failing already\n\n{bullets(failing)}\n\n"
            f"### Files that depend on the change\n\n{self._ways()}\n"
        )

    def _ways(self) -> str:
        ways = [" imports ".join(map(code, way)) for way in self.dependents.values()]
        return "\n".join(f"- {way}" for way in ways) or "None were found."

    def _counts(self) -> dict[str, tuple[int, int, int]]:
        outcomes: dict[str, list[str]] = {}
        for told in self.results.values():
            for test, outcome in told.outcomes.items():
                outcomes.setdefault(told.files.get(test, ""), []).append(outcome)
        return {
            file: (len(found), found.count(PASSED), found.count(FAILED))
            for file, found in sorted(outcomes.items())
        }


def _document(task_id: str) -> str:
    return f"tasks/{task_id}/baseline.json"
