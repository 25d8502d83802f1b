"""The regression check: tests that passed before the task and can be broken by it still pass.

What the checks themselves tell is used first; only tests that they do not cover are run besides, on the
starting tree and on the tree as it is now. Silence of a runner is no evidence, and what is deleted or skipped
is not fixed.
"""

from __future__ import annotations

import logging
import os
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from loki.action.changes.scratch_copy import scratch_folder
from loki.action.changes.tree import Tree
from loki.action.checks.check import Check, CheckResult, Report
from loki.action.checks.check_runner import CheckRunner, Narrowed
from loki.action.checks.import_graph import Cache, ImportGraph
from loki.action.checks.imports import Files, Import, language_of, locate
from loki.action.checks.results.suite_results import FAILED, PASSED, Results, inside
from loki.action.checks.results_comparison import Baseline, Comparison, compare_results
from loki.action.checks.task_changes import TaskChanges
from loki.action.gates.gate import RegressionDetection
from loki.base.glob import matches
from loki.base.time import Clock, isoformat
from loki.decision.path_kinds import kinds_of_path
from loki.memory.store import Store
from loki.recognition.failure import Failure
from loki.recognition.site import narrowings

# --- What of a change cannot be spoken of, and why ----------------------------------------------------

MAX_NAMED = 3
"""Files that a reason names; chosen, not measured."""

_NO_CODE = frozenset({"example", "lock"})


def unchecked(
    before: Mapping[str, Results],
    now: Iterable[str],
    changed: Sequence[str],
    untold: Iterable[str],
) -> str:
    """Why some test that passed before may be broken unseen; "" where that cannot be.

    Args:
        before: results by run, on the starting tree.
        now: the runs that were looked at again.
        changed: what the task has changed.
        untold: files that depend on it, or are it, and of which no run told anything.

    Example:
        >>> unchecked({}, [], ["a.js"], [])
        'not checked: no check told results per test, before the work and after it'
        >>> unchecked({"t": Results({"a": "failed"})}, ["t"], ["a.py"], ["b.test.js", "b.js"])
        'not checked: no results per test are known of b.test.js'
    """
    globs = [glob for how in narrowings() for glob in how.files]
    tests = sorted(path for path in untold if matches(path, globs))
    if tests:
        return f"not checked: no results per test are known of {_named(tests)}"
    told = [run for run in now if run in before and before[run].outcomes]
    if not told:
        return "not checked: no check told results per test, before the work and after it"
    unknown = [
        path for path in changed if language_of(path) is None and not kinds_of_path(path) & _NO_CODE
    ]
    if unknown:
        return f"not checked beyond the checks' own tests: what uses {_named(unknown)} is not known"
    return ""


def _named(paths: Sequence[str]) -> str:
    shown, rest = ", ".join(paths[:MAX_NAMED]), len(paths) - MAX_NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown


# --- Tests that were seen failing and are not mended --------------------------------------------------


def missing_tests(
    seen_failing: frozenset[tuple[str, str]],
    report: Report,
    gone: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """Tests that were seen failing and are not mended, though no check may say so.

    A test that is deleted, skipped or expected to fail is not fixed, nor is one that fails in a check
    that ends well: its exit code was hidden. A whole file that could not be loaded counts as found
    again once any of its tests passes.

    Args:
        seen_failing: (check, test) of each that was seen failing.
        report: what the checks say now.
        gone: files of tests that checks failed in, and that are not there any more: all that can be
            known where a runner tells no results, or none of what it could not build.

    Returns:
        ``gone``, ``skipped`` or ``failing`` by test.
    """
    lost = dict.fromkeys(gone, "gone")
    for result in report.results:
        tests = result.tests or {}
        hides = result.passed and not result.check.expected  # else its exit code counts for nothing
        for name, test in seen_failing:
            if name != result.check.name or tests.get(test) == PASSED:
                continue
            if tests.get(test) == FAILED:
                if hides:
                    lost[test] = "failing"
                continue
            within = [tests[other] for other in inside(test, tests)]
            if test in tests or (within and PASSED not in within):
                lost[test] = "skipped"
            elif not within:
                lost[test] = "gone"
    return dict(sorted(lost.items()))


def missing_tests_failure(lost: Mapping[str, str]) -> Failure:
    """The failure that lost tests amount to; ``lost`` is what `missing_tests` found, not empty."""
    (test, how), *_ = lost.items()
    message = f"{test} {_MESSAGES[how]}"
    listing = "\n".join(f"{name}: {what}" for name, what in lost.items())
    return Failure.of(
        message,
        tool="loki",
        error_code=f"test-{how}",
        tests=tuple(lost),
        excerpt=listing,
        pattern="test-failure",  # whatever the test's own name says
    )


_NOT_REMOVED = "a test that must pass may not be removed"
_MESSAGES = {
    "gone": f"was failing and is now gone: {_NOT_REMOVED}",
    "skipped": f"was failing and is now skipped or expected to fail: {_NOT_REMOVED}",
    "failing": "still fails, and the check ends with success all the same: mend what it tests, and "
    "let the check end as its tests do",
}


# --- The check ----------------------------------------------------------------------------------------

logger = logging.getLogger("loki")

DEPENDENTS = "dependents: "
"""Before the name of a run of tests that no check covers."""

NOTHING = "no test that passed before can be broken by the change"


@dataclass
class RegressionCheck:
    """Takes the baseline, extends it, and compares.

    Args:
        task_id: the task's id; checks: the task's checks.
        work: what the task has done to the project.
        runner: runs checks in it.
        store: where the baseline is kept.
        clock: the time.
        setting: how far to search, and where not.
        detected: tells the test command of a project, or None where none is found.
    """

    task_id: str
    checks: Sequence[Check]
    work: TaskChanges
    runner: CheckRunner
    store: Store
    clock: Clock
    setting: RegressionDetection = field(default_factory=RegressionDetection)
    detected: Callable[[Tree], tuple[str, ...] | None] = lambda _: None

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self.baseline = Baseline()
        self._cache = Cache()
        self._tree: Tree | None = None
        self._tried: set[str] = set()

    def started(self, report: Report) -> None:
        """Take the results of the checks before the first attempt; they ran on the starting tree.

        Unless an earlier run of the task has left changes: then its baseline goes on.
        """
        if self.work.paths():
            self.baseline = Baseline.load(self.store, self.task_id) or Baseline()
            return
        self.baseline = Baseline(captured_at=isoformat(self.clock.now()))
        for run, results in _told(report).items():
            self.baseline.add(run, results)

    def restart(self) -> None:
        """The starting tree is another one: what is known of the old one tells nothing of it."""
        self.baseline = Baseline(captured_at=isoformat(self.clock.now()))
        self._tried = set()

    def prepare(self, paths: Sequence[str], tree: Tree) -> None:
        """Before a change: run the tests that it can break and that no check covers.

        Args:
            paths: what it will change.
            tree: the project that it is to.
        """
        self._extend((*self.work.paths(), *paths), tree)

    def compare(self, report: Report) -> Comparison:
        """Every test that the task can have broken, now and before it.

        Args:
            report: what the checks just said, all of which pass.
        """
        changed = self.work.paths()
        if not changed:
            return Comparison(skipped="nothing is different")
        self._extend(changed, Tree.scan(self.runner.root, self._tree), report)
        now = self._now(report)
        if self.runner.cancelled.is_set():
            return Comparison(skipped="cancelled")
        found = compare_results(self.baseline.results, now, self._affects())
        found = replace(self._without_flaky(found), unchecked=self._unchecked(now, changed))
        if not found.compared:
            return replace(found, skipped=found.unchecked or NOTHING)
        ways = {b.file: way for b in found.regressions if (way := self._way(b.file))}
        return replace(found, chains=ways, changed=changed)

    def _now(self, report: Report) -> dict[str, Results]:
        """Results of the runs that the baseline has, on the tree as it is; of one that tells none, none."""
        assert self._tree is not None
        asked = self.baseline.asked
        names = {result.check.name for result in report.results}
        names |= {check.name for check, _ in self._besides(asked)}
        now = {run: Results() for run in self.baseline.results.keys() & names}
        now.update(_told(report))
        # A runner that is told to test a file that is gone would test nothing at all.
        for check, _ in self._besides(path for path in asked if path in self._tree.entries):
            now[check.name] = _results(self.runner.run_one(check)) or Results()
        return now

    def _unchecked(self, now: Mapping[str, Results], changed: Sequence[str]) -> str:
        untold = self._untold(self._before())
        return unchecked(self.baseline.results, now, changed, untold)

    def _before(self) -> Files:
        """The project as the task found it."""
        assert self._tree is not None
        return self.work.before(self._tree)

    def _untold(self, before: Files) -> list[str]:
        """The files that the change can break, and that no result of the baseline stands for."""
        covered = self._covered(before)
        return [path for path in self._affected() if path in before and path not in covered]

    # --- The baseline ---

    def _extend(self, paths: Sequence[str], tree: Tree, report: Report | None = None) -> None:
        """See to it that the baseline covers all that these paths can break."""
        self._tree = tree
        before = self.work.before(tree)
        targets = tuple(dict.fromkeys((*self.baseline.targets, *paths)))
        ways = self._graph(before).dependents(targets, self.setting.search_depth)
        if self.work.paths():  # what has come to depend on them since
            now = self._graph(Files(tree.entries, tree.read, tree.hash_of))
            ways = {**now.dependents(targets, self.setting.search_depth), **ways}
        grown = replace(self.baseline, targets=targets, dependents=ways)
        is_new = grown != self.baseline
        self.baseline = grown
        missing = self._missing_checks(report) if report else []
        wanted = [path for path in self._untold(before) if path not in grown.asked]
        runs = [*missing, *(check for check, _ in self._besides(wanted))]
        if runs:
            self._run_before(tree, runs)
            asked = [p for check, files in self._besides(wanted) for p in files]
            self.baseline.asked = tuple(dict.fromkeys((*self.baseline.asked, *asked)))
        if runs or is_new:
            self.baseline.captured_at = self.baseline.captured_at or isoformat(self.clock.now())
            self.baseline.keep(self.store, self.task_id)

    def _missing_checks(self, report: Report) -> list[Check]:
        """Checks that tell results now, and of which the starting tree's are not known."""
        told = _told(report)
        missing = [
            result.check
            for result in report.results
            if result.check.name in told.keys() - self.baseline.results.keys() - self._tried
        ]
        self._tried |= {check.name for check in missing}
        return missing

    def _run_before(self, tree: Tree, runs: Sequence[Check]) -> None:
        """Run checks on the starting tree: in place while it is that, else in a copy of it."""
        names = ", ".join(check.name for check in runs)
        logger.info("[closed-loop] task=%s baseline runs=%d: %s", self.task_id, len(runs), names)
        if not self.work.paths():
            self._take(self.runner, runs)
            return
        with scratch_folder() as folder:
            try:
                root = self.work.copy_before(tree, os.path.join(folder, "tree"))
            except OSError as error:
                logger.warning("no copy of the starting tree, so no baseline of it: %s", error)
                return
            self._take(self.runner.in_copy(root), runs)

    def _take(self, runner: CheckRunner, runs: Sequence[Check]) -> None:
        for check in runs:
            results = _results(runner.run_one(check))
            if results is not None:
                self.baseline.add(check.name, results)

    def _graph(self, files: Files) -> ImportGraph:
        shared = tuple(name for how in narrowings() for name in how.shared)
        return ImportGraph(files, self.setting.exclude_patterns, shared, self._cache)

    # --- What is run besides the checks ---

    def _besides(self, files: Iterable[str]) -> list[tuple[Check, list[str]]]:
        """The runs that test some files, each with those that it tests."""
        left, found = list(files), []
        for check, narrowed in self._commands():
            mine = narrowed.tests(left)
            if mine:
                left = [path for path in left if path not in mine]
                named = narrowed.for_files(sorted(mine))
                name = DEPENDENTS + check.name
                found.append((replace(check, command=named, name=name, kind="test"), mine))
        return found

    def _commands(self) -> list[tuple[Check, Narrowed]]:
        """The test commands that can be told what to test: the task's, then the project's."""
        own = [check for check in self.checks if check.kind in {"test", "command"}]
        assert self._tree is not None
        words = self.detected(self._tree)
        if words and words not in [check.command for check in own]:
            own.append(Check(words, "test", " ".join(words)))
        found = [(check, Narrowed.of(check.command, self.runner.root)) for check in own]
        return [(check, narrowed) for check, narrowed in found if narrowed is not None]

    def _covered(self, files: Files) -> set[str]:
        """The files that the results of the baseline stand for."""
        checks = {check.name: check for check in self.checks}
        found: set[str] = set()
        for run, told in self.baseline.results.items():
            check = checks.get(run)
            if check is None:  # a run besides, whose files were asked for one by one
                asked = self._besides(self.baseline.asked)
                found |= {path for one, mine in asked if one.name == run for path in mine}
            else:
                found |= self._places(check, told, files)
        return found

    def _places(self, check: Check, told: Results, files: Files) -> set[str]:
        """The files that a check's results stand for; none where it picked single tests."""
        narrowed = Narrowed.of(check.command, self.runner.root)
        if narrowed is not None and narrowed.is_selective:
            return set()
        if narrowed is not None and not told.files:
            return set(narrowed.tests(files.paths)) if narrowed.is_whole else set()
        return {path for file in set(told.files.values()) for path in _paths(file, files)}

    # --- What to compare ---

    def _affected(self) -> list[str]:
        paths = dict.fromkeys((*self.baseline.targets, *self.baseline.dependents))
        return [path for path in paths if not matches(path, self.setting.exclude_patterns)]

    def _affects(self) -> Callable[[str], bool]:
        """Whether tests in a file can be broken; where that cannot be told, they can."""
        before = self._before()
        affected = frozenset(self._affected())

        def affects(file: str) -> bool:
            if matches(file, self.setting.exclude_patterns):
                return False
            paths = _paths(file, before)
            known = [path for path in paths if language_of(path) is not None]
            return not known or not affected.isdisjoint(known)

        return affects

    def _way(self, file: str) -> tuple[str, ...]:
        """How a test's file depends on the change."""
        paths = _paths(file, self._before())
        ways = [self.baseline.dependents[p] for p in paths if p in self.baseline.dependents]
        return min(ways, key=len, default=())

    def _without_flaky(self, found: Comparison) -> Comparison:
        """Run what fails now once more: what passes then was no regression."""
        failing = [b for b in found.regressions if b.now == FAILED]
        assert self._tree is not None
        now = Files(self._tree.entries, self._tree.read)
        files = sorted({path for b in failing for path in _paths(b.file, now)})
        if not files:
            return found
        again = Results()
        for check, _ in self._besides(files):
            again += _results(self.runner.run_one(check)) or Results()
        flaky = {b.test for b in failing if again.outcomes.get(b.test) == PASSED}
        if flaky:
            logger.warning("flaky, so no regressions: %s", ", ".join(sorted(flaky)))
        kept = tuple(b for b in found.regressions if b.test not in flaky)
        counts = {b.file: found.counts[b.file] for b in kept}
        return replace(found, regressions=kept, counts=counts, flaky=tuple(sorted(flaky)))


def _told(report: Report) -> dict[str, Results]:
    """Results by check, of the checks that tell them."""
    found = ((result.check.name, _results(result)) for result in report.results)
    return {name: results for name, results in found if results is not None}


def _results(result: CheckResult) -> Results | None:
    return None if result.tests is None else Results(result.tests, result.files)


def _paths(file: str, files: Files) -> tuple[str, ...]:
    """The project's files that a runner means: a file, or all tests of a folder or package."""
    if not file or file in files:
        return (file,) if file else ()
    folder = file
    if not files.is_folder(file):
        found = locate(Import(file, 1, 1), "x.go", files)  # a package, by its import path
        named = (*found.paths, *found.expected)
        if not named:
            return ()
        folder = posixpath.dirname(named[0])
    paths = (posixpath.join(folder, name) for name in sorted(files.names(folder)))
    return tuple(path for path in paths if path in files and path.endswith("_test.go"))
