"""What earlier runs of a project's tests showed, kept compactly and bounded.

Two things are kept in a store. ``logs/test-runs.jsonl`` has a record for each run, for people and
for tables. ``state/test-history.json`` is what labels are made from: for each test one letter a run,
and each failure it showed once. Why it is so: ``docs/design/tests.md``. Under test:
``tests/py/memory/test_test_history.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki.memory.store import Store
    from loki.memory.test_run import TestRun
    from loki.recognition.failure import Failure

LOG = "logs/test-runs.jsonl"
"""Name of the log in a store."""

DOCUMENT = "state/test-history.json"
"""Name of the document in a store."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What is known of a test from earlier runs."""

    runs: int = 0
    outcomes: tuple[str, ...] = field(default=())


class TestHistory:
    """What the tests of a project showed before.

    Args:
        store: where it is kept; None: nothing is known, nothing is kept.
    """

    __test__ = False

    def __init__(self, store: Store | None = None) -> None:
        self._store = store

    def keep(self, run: TestRun) -> None:
        """Remember a run."""
        if self._store is not None:
            self._store.append(LOG, run.to_dict(), durable=False)

    def earlier(self, test: str, failure: Failure) -> Earlier:
        """What is known of a test and a failure of it."""
        return Earlier()
