"""Whether a feature is there: something failed without the change, and passes with it.

A check that failed before the first attempt, or a new test. That such a test fails without the change is
seen by running it: on a copy of the project as the task found it, with nothing but the changed tests laid
on it (of a file of the program that ends with tests, its end); and on that copy with the whole change, as
what cannot run in a copy says nothing.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from loki.action.changes.scratch_copy import scratch_folder
from loki.action.changes.tree import Tree
from loki.action.checks.check import RUN_TESTS, CheckResult, Report
from loki.action.checks.check_runner import CheckRunner, Narrowed
from loki.action.checks.judging.touched_tests import judging_knowledge
from loki.action.checks.results.suite_results import PASSED
from loki.action.checks.task_changes import TaskChanges
from loki.base import codec, path_containment
from loki.memory import store as documents
from loki.memory.store import Store, kept_as
from loki.recognition.failure import is_test_path

logger = logging.getLogger("loki")


@kept_as(r"tasks/[^/]+/before\.json")
@dataclass
class _Before:
    """How the checks did before the task."""

    execution: int = -1
    failed: tuple[str, ...] = ()
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flaws: tuple[str, ...] = ()


@dataclass
class FeatureEvidence:
    """What shows that the feature of a task is there.

    Args:
        task_id: the task.
        work: what it has done to the project.
        runner: runs checks in it.
        store: where it is kept how the checks did before it.
        execution: which execution of the task this is.
    """

    task_id: str
    work: TaskChanges
    runner: CheckRunner
    store: Store
    execution: int = 1
    _before: _Before | None = field(default=None, init=False)

    def started(self, report: Report) -> None:
        """Take how the checks did before the first attempt of an execution.

        Where it goes on, or an earlier one has left work, what was taken then still holds.
        """
        if self._before is not None:
            return
        kept = documents.load_as(_Before, self.store, self._document)
        if kept is None or kept.flaws:
            kept = _Before()  # what is not known shows nothing
        if kept.execution == self.execution or self.work.paths():
            self._before = kept
            return
        self._before = _Before(
            self.execution,
            tuple(r.check.name for r in report.results if not r.passed and not r.is_pending),
            {r.check.name: tuple(sorted(r.tests)) for r in report.results if r.tests is not None},
        )
        data = {"version": 1, **codec.write(self._before)}
        self.store.write(self._document, json.dumps(data) + "\n")

    def found(self, results: Iterable[CheckResult]) -> str:
        """What shows it, a sentence; "" where nothing does.

        Args:
            results: of the checks, all of which pass.
        """
        before, passed = self._before or _Before(), [result for result in results if result.passed]
        if red := next((r for r in passed if r.check.name in before.failed), None):
            return f"{red.check.name} failed before the change, and passes with it"
        for result in passed:
            old = before.tests.get(result.check.name)
            tests = result.tests or {}
            new = [t for t, how in tests.items() if how == PASSED and t not in (old or ())]
            # Of a runner that told nothing before, nobody knows which tests are new.
            if new and old is not None and result.check.kind in RUN_TESTS:
                failing = self._failing_without(result, new)
                if failing:
                    return f"{failing[0]} is new, and fails without the change"
        return ""

    def _failing_without(self, result: CheckResult, new: Sequence[str]) -> list[str]:
        """Those of some new tests that pass with the change only."""
        changed = self.work.paths()
        laid = [path for path in changed if is_test_path(path)]
        inside = self._tests_inside(laid)
        narrowed = Narrowed.of(result.check.command, self.runner.root)
        check = result.check
        if narrowed is not None and not narrowed.is_selective and (own := narrowed.tests(laid)):
            check = replace(check, command=narrowed.for_files(own))
        if not (laid or inside) or len(laid) == len(changed):
            return []  # the tests are all that is new
        logger.info("[closed-loop] task=%s new tests=%d run without it", self.task_id, len(new))
        with scratch_folder() as folder:
            try:
                tree = Tree.scan(self.runner.root)
                root = self.work.copy_before(tree, os.path.join(folder, "tree"))
                self._lay(root, laid)
                for path, text in inside.items():
                    (root / path).write_text(text, encoding="utf-8")
                runner = self.runner.in_copy(root)
                without = runner.run_one(check).tests or {}
                if all(without.get(test) == PASSED for test in new):
                    return []
                self._lay(root, [path for path in changed if path not in laid])
            except OSError as error:
                logger.warning("no copy of the starting tree to run new tests in: %s", error)
                return []
            beside = runner.run_one(check).tests or {}
        return [t for t in new if without.get(t) != PASSED and beside.get(t) == PASSED]

    def _tests_inside(self, laid: Sequence[str]) -> dict[str, str]:
        """Files of the program that end with tests: as they were, with the tests that they have now."""
        found = {}
        for path, (before, after) in self.work.texts().items():
            marker = judging_knowledge().inside.get(os.path.splitext(path)[1])
            if marker is None or before is None or after is None or path in laid:
                continue
            old, new = marker.search(before), marker.search(after)
            if new is not None:
                end = old.start() if old is not None else len(before)
                found[path] = before[:end] + after[new.start() :]
        return found

    def _lay(self, root: Path, paths: Sequence[str]) -> None:
        """Have files of a copy as they are in the project now."""
        for path in paths:
            source, target = self.runner.root / path, root / path
            if os.path.realpath(target.parent) != os.fspath(target.parent):
                raise NotADirectoryError(f"{path} lies beyond a link in the copy")
            with suppress(FileNotFoundError), path_containment.parent(root, path) as (above, name):
                os.unlink(name, dir_fd=above)
            if source.is_symlink() or not source.is_file():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode & 0o777 | 0o600)

    @property
    def _document(self) -> str:
        return f"tasks/{self.task_id}/before.json"
