"""Test results before and after a change, test by test.

A count of failures would miss a swap: one test mended, another broken.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loki.action.checks.results.suite_results import FAILED, PASSED, Results
from loki.base import codec
from loki.base.codec import IsoTime
from loki.base.markup import bullets, cell, code, inline
from loki.base.yaml_text import front_matter
from loki.memory import store as documents
from loki.memory.store import Store, kept_as
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet

PATTERN = "regression-detected"
GONE = "gone"

MAX_LISTED = 40
"""Tests that a report names; chosen, not measured."""

UNTOLD = "(not told by the runner)"
"""What stands for a file that is not known."""

_NOW = {FAILED: "now failing", GONE: "now gone", "skipped": "now skipped"}


@dataclass(frozen=True, slots=True)
class Broken:
    """A test that passed on the starting tree and does not any more.

    Attributes:
        run: the check, or other run, that told.
        test: its id.
        file: where it stands, as far as that is known.
        now: failed, skipped or gone.
    """

    run: str
    test: str
    file: str
    now: str


@dataclass(frozen=True, slots=True)
class Count:
    """How many of a file's tests pass, before and after."""

    passed_before: int = 0
    before: int = 0
    passed_after: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of the tests that a change can have broken.

    Attributes:
        regressions: tests that passed and do not any more.
        counts: by file, of the files with regressions.
        compared: number of tests that passed before and were looked at again.
        flaky: tests that failed once and passed when they were run again: no regressions.
        chains: by file with regressions, the files through which it depends on the change, itself
            first, the changed file last.
        changed: the files that the change touched.
        skipped: why nothing was compared, or "".
        unchecked: why a test may be broken all the same, unseen, or "".
    """

    regressions: tuple[Broken, ...] = ()
    counts: Mapping[str, Count] = field(default_factory=dict)
    compared: int = 0
    flaky: tuple[str, ...] = ()
    chains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    skipped: str = ""
    unchecked: str = ""

    @property
    def tests(self) -> frozenset[str]:
        """Ids of the tests with regressions."""
        return frozenset(broken.test for broken in self.regressions)

    @property
    def outcome(self) -> str:
        """In a word: passed, failed or skipped."""
        return "skipped" if self.skipped else "failed" if self.regressions else "passed"

    def record(self, *, fixed: bool) -> dict[str, Any]:
        """What is kept of it in the attempt's record; ``fixed``: what was broken before is well."""
        said = {
            "ran": not self.skipped,
            "skipped": bool(self.skipped),
            "regressions": len(self.tests),
            "fixed": fixed,
        }
        return {**said, "unchecked": self.unchecked} if self.unchecked else said

    @property
    def dependents(self) -> tuple[str, ...]:
        """Files between the change and the broken tests: where to look first."""
        between = (chain[-2] for chain in self.chains.values() if len(chain) > 1)
        return tuple(dict.fromkeys(between))

    def failure(self, patterns: PatternSet) -> Failure | None:
        """The failure that the regressions amount to; None where there are none."""
        if not self.regressions:
            return None
        count = len(self.regressions)
        first = self.regressions[0]
        many = f"{count} tests" if count > 1 else "1 test"
        return Failure.of(
            f"regression: {many} that passed before the change no longer pass: {first.test}",
            tool="loki",
            error_code=PATTERN,
            pattern=PATTERN if PATTERN in patterns.patterns else None,
            patterns=patterns,
            path=next(iter((*self.dependents, first.file)), None) or None,
            tests=tuple(broken.test for broken in self.regressions),
            excerpt=comparison_report(self),
        )


def compare_results(
    before: Mapping[str, Results],
    after: Mapping[str, Results],
    affects: Callable[[str], bool] = lambda _: True,
) -> Comparison:
    """Results on the starting tree beside those of now; runs that only one of both has are left out.

    Args:
        before: results by run, on the starting tree.
        after: results by the same runs, now.
        affects: whether the change can have broken tests in a file; asked with "" where the runner
            does not say where a test stands.

    Example:
        >>> before = {"pytest": Results({"a.t": "passed", "a.u": "failed"})}
        >>> swapped = {"pytest": Results({"a.t": "failed", "a.u": "passed"})}
        >>> [broken.test for broken in compare_results(before, swapped).regressions]
        ['a.t']
    """
    found, compared = [], 0
    runs = before.keys() & after.keys()
    for run in runs:
        then, now = before[run], after[run]
        for test, outcome in then.outcomes.items():
            file = then.files.get(test, "")
            if outcome != PASSED or not affects(file):
                continue
            compared += 1
            is_now = now.outcomes.get(test, GONE)
            if is_now != PASSED:
                found.append(Broken(run, test, file, is_now))
    found.sort(key=lambda broken: (broken.file, broken.test, broken.run))
    old, new = _by_file(before[run] for run in runs), _by_file(after[run] for run in runs)
    counts = {
        file: Count(
            old[file].count(PASSED), len(old[file]), new[file].count(PASSED), len(new[file])
        )
        for file in dict.fromkeys(broken.file for broken in found)
    }
    return Comparison(tuple(found), counts, compared)


def _by_file(runs: Iterable[Results]) -> dict[str, list[str]]:
    """The outcomes of the tests in each file."""
    found: dict[str, list[str]] = defaultdict(list)
    for results in runs:
        for test, outcome in results.outcomes.items():
            found[results.files.get(test, "")].append(outcome)
    return found


def comparison_report(comparison: Comparison) -> str:
    """The regressions as Markdown: files with their counts, the tests, and where to look."""
    files = list(comparison.counts)
    many = f"{len(files)} files have" if len(files) > 1 else "1 file has"
    table = ["| File | Baseline | Current | New Failures |"]
    table.append("|------|----------|---------|--------------|")
    for file, c in comparison.counts.items():
        passing = f"{c.passed_before}/{c.before} pass | {c.passed_after}/{c.after} pass"
        table.append(f"| {_shown(file)} | {passing} | {len(_of(comparison, file))} |")
    parts = [
        "## Regression Detected",
        f"{many} tests that passed before the change and do not any more:",
        "\n".join(table),
        "### Affected Tests",
        *(_listed(comparison, file) for file in files),
        "### Suggested Investigation",
        _advice(comparison),
    ]
    return "\n\n".join(parts) + "\n"


def _shown(file: str) -> str:
    return cell(code(file)) if file else UNTOLD


def _of(comparison: Comparison, file: str) -> Sequence[Broken]:
    return [broken for broken in comparison.regressions if broken.file == file]


def _listed(comparison: Comparison, file: str) -> str:
    broken = _of(comparison, file)
    lines = [
        f"- {code(b.test)} - was passing, {_NOW.get(b.now) or inline(b.now)}"
        for b in broken[:MAX_LISTED]
    ]
    if len(broken) > MAX_LISTED:
        lines.append(f"- and {len(broken) - MAX_LISTED} more")
    chain = comparison.chains.get(file, ())
    if len(chain) > 1:
        lines.append(f"\n{' imports '.join(code(path) for path in chain)}, which was changed.")
    head = f"{code(file)}:\n\n" if file else ""
    return head + "\n".join(lines)


def _advice(comparison: Comparison) -> str:
    look = ", ".join(map(code, comparison.dependents)) or "the code under these tests"
    changed = ", ".join(map(code, comparison.changed)) or "the change"
    return (
        f"1. Read {look}: how does it use what was changed in {changed}?\n"
        "2. Check whether a contract changed: a signature, what is returned, what is done besides.\n"
        "3. Update what depends on it, or keep the contract. A test that passed may not be removed."
    )


# --- How tests did on the tree that a task began with -------------------------------------------------


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
        data = {"version": 1, **codec.write(self)}
        store.write(_document(task_id), json.dumps(data, ensure_ascii=False))
        store.write(f"tasks/{task_id}/baseline-{task_id}.md", self.page(task_id))

    @classmethod
    def load(cls, store: Store, task_id: str) -> Baseline | None:
        """The baseline that was kept; None where there is none, or it is damaged."""
        found = documents.load_as(cls, store, _document(task_id))
        return None if found is None or found.flaws else found

    def page(self, task_id: str) -> str:
        """The page for people: front matter, files with their counts, tests that failed already."""
        baseline, rows = [], []
        for file, outcomes in sorted(_by_file(self.results.values()).items()):
            n, passed, failed = len(outcomes), outcomes.count(PASSED), outcomes.count(FAILED)
            baseline.append(
                {"file": file, "test_count": n, "pass_count": passed, "fail_count": failed}
            )
            rows.append(f"| {_shown(file)} | {passed}/{n} pass | {failed} |")
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
            ("| File | Baseline | Failing |", "|------|----------|---------|", *rows)
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


def _document(task_id: str) -> str:
    return f"tasks/{task_id}/baseline.json"
