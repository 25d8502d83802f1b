"""What earlier runs of a project's tests showed, kept compactly and bounded.

Two things are kept in a store. ``logs/test-runs.jsonl`` has a record of each run, for people and for
tables. ``state/test-history.json`` is what labels are made from (`loki.memory.suites.suite_past_runs`); it
alone
is read at the end of a run. Why it is so: ``docs/design/tests.md``.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loki.memory.log_trimming import trimmed
from loki.memory.store import Masked
from loki.memory.suites.suite_past_runs import NOTHING, Earlier, NewerVersionError, SuitePastRuns

if TYPE_CHECKING:
    from loki.memory.store import Store
    from loki.memory.suites.suite_run import SuiteFailure, SuiteRun
    from loki.recognition.failure import Failure

LOG = "logs/test-runs.jsonl"
"""Name of the log in a store."""

DOCUMENT = "state/test-history.json"
"""Name of the document in a store."""

WHOLE = 50
"""Failures of a run that the log keeps whole; others without excerpt, stack and matches. Chosen."""

MOST = 1_000
"""Failures of a run that the log keeps at all. Chosen."""

RUNS, TEXT = 1_000, 20_000_000
"""Runs that the log keeps, and characters of them all; the oldest go first. Chosen."""

EVERY = 20
"""Runs after which the log is looked at again: to see how long it is, it has to be read. Chosen."""

logger = logging.getLogger("loki")


class SuiteHistory:
    """What the tests of a project showed before.

    Args:
        store: where it is kept; None: nothing is known, nothing is kept.

    Example:
        >>> from loki.recognition.failure import Failure
        >>> SuiteHistory().earlier("tests/test_a.py::test_x", Failure.of("assert 1 == 2")).runs
        ()
    """

    __test__ = False

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._past: SuitePastRuns | None = None

    @property
    def past(self) -> SuitePastRuns:
        """What is known, read at the first question; damage is told once and costs labels only."""
        if self._past is None:
            self._past = _parsed(self._store.get(DOCUMENT) if self._store is not None else None)
        return self._past

    def earlier(self, test: str, failure: Failure, *, before: str = "") -> Earlier:
        """What is known of a test and of a failure of it.

        Args:
            test: node id.
            failure: how it fails now.
            before: id of a run that is left out where it is known: the one that is asked for.
        """
        return self.past.earlier(test, failure, before) if self._store is not None else NOTHING

    def keep(self, run: SuiteRun) -> None:
        """Remember a run; others may do so at the same time.

        Raises:
            StoreError: the store cannot; a `loki.memory.store.ForgivingStore` goes on without.
        """
        if self._store is None:
            return
        store = self._store
        store.append(LOG, _logged(run), durable=False)
        kept = SuitePastRuns()

        def rewrite(text: str | None) -> str | None:
            nonlocal kept
            try:
                kept = SuitePastRuns.loads(text) if text is not None else SuitePastRuns()
            except NewerVersionError:
                return text
            except ValueError as error:
                logger.warning("%s is damaged (%s): begun anew", DOCUMENT, error)
                store.set_aside(DOCUMENT)
                kept = SuitePastRuns()
            kept.add(run)
            return Masked(kept.dumps())

        self._store.update(DOCUMENT, rewrite, durable=False)
        self._past = kept
        if kept.runs and kept.runs[-1].number % EVERY == 0:
            # What another process adds in this very moment may be lost to the log, not to labels.
            self._store.update(LOG, lambda log: trimmed(log, RUNS, TEXT), durable=False)


def _parsed(text: str | None) -> SuitePastRuns:
    try:
        return SuitePastRuns.loads(text) if text is not None else SuitePastRuns()
    except ValueError as error:
        logger.warning("%s: no history of tests can be read: %s", DOCUMENT, error)
        return SuitePastRuns()


def _logged(run: SuiteRun) -> dict[str, Any]:
    """A run as the log keeps it: without the names of what passed."""
    failures = [_reduced(one, index) for index, one in enumerate(run.failures[:MOST])]
    reruns = [_reduced(one, index) for index, one in enumerate(run.reruns[:MOST])]
    kept = replace(run, passed=(), failures=tuple(failures), reruns=tuple(reruns)).to_dict()
    left = len(run.failures) + len(run.reruns) - len(failures) - len(reruns)
    return {**kept, **({"left_out": left} if left else {})}


def _reduced(one: SuiteFailure, index: int) -> SuiteFailure:
    if index < WHOLE:
        return one
    failure = replace(one.failure, excerpt="", frames=(), matches=one.failure.matches[:1])
    return replace(one, failure=failure)
