"""What may have broken tests that passed once: files that changed since. Pure.

The files are git's to tell, so whoever calls this asks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from loki.recognition.underlying_kind import is_test_path

if TYPE_CHECKING:
    from loki.decision.suites.suite_summary import Cause, SuiteSummary
    from loki.memory.suites.suite_history import SuiteHistory
    from loki.memory.suites.suite_run import SuiteRun
    from loki.recognition.failure import Failure

MOST = 5
"""Files that are named; of more, none: they tell nobody where to look. Chosen."""

COMMITS, TESTS = 3, 20
"""Commits that are asked for in one run, and tests of a cause that are looked at. Chosen."""

_OF_CODE = frozenset({"new", "recurring", "broken"})
_PROSE = frozenset({".md", ".rst"})

FilesSince = Callable[[str], Sequence[str] | None]
"""Files that differ from a commit; None: not known."""


def with_changes(
    summary: SuiteSummary, history: SuiteHistory, files_since: FilesSince
) -> SuiteSummary:
    """The summary with, for each cause, the few files that changed since its tests last passed.

    Args:
        summary: of a run.
        history: of earlier runs; the run itself is left out where it is kept already.
        files_since: asked once for a commit, and for few.
    """
    asked: dict[str, Sequence[str]] = {}
    causes = []
    for cause in summary.causes:
        commit = _last_passed(cause, summary.run, history)
        if commit and commit not in asked and len(asked) < COMMITS:
            asked[commit] = files_since(commit) or ()
        files = suspects(asked.get(commit, ()), cause.failure)
        known = 0 < len(files) <= MOST
        causes.append(replace(cause, passed_at=commit, changed=files) if known else cause)
    return replace(summary, causes=tuple(causes))


def suspects(files: Iterable[str], failure: Failure) -> tuple[str, ...]:
    """Which of some files may have broken a test: no tests, no prose; first those in its stack.

    Args:
        files: paths relative to the project.
        failure: of the test.

    Example:
        >>> from loki.recognition.failure import Failure
        >>> suspects(["b.py", "a.py", "tests/test_a.py", "README.md"], Failure.of("x", path="b.py"))
        ('b.py', 'a.py')
    """
    seen = {failure.path, *(frame.path for frame in failure.frames)}
    own = [path for path in files if not is_test_path(path) and not _is_prose(path)]
    return tuple(sorted(own, key=lambda path: (path not in seen, path)))


def _last_passed(cause: Cause, run: SuiteRun, history: SuiteHistory) -> str:
    """The commit of the last run in which a test of a cause passed, in this environment; "" for none."""
    if cause.label.name not in _OF_CODE:
        return ""
    last = (0, "")
    for member in cause.members[:TESTS]:
        earlier = history.earlier(member.failing.test, member.failing.failure, before=run.id)
        passed = [
            (one.run.number, one.run.commit)
            for one in earlier.runs
            if one.has_passed and one.run.environment == run.environment
        ]
        last = max([last, *passed])
    return last[1]


def _is_prose(path: str) -> bool:
    return PurePosixPath(path).suffix in _PROSE or path.startswith(".")
