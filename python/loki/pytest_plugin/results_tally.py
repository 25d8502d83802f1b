"""What became of the tests of a run so far; the controller's."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki.memory.suites.suite_run import SuiteFailure


class Tally:
    """Collects what failed and what passed.

    Attributes:
        failures: those that stand.
        reruns: tries that failed and were made again.
    """

    def __init__(self) -> None:
        self._passed: dict[str, None] = {}
        self.failures: list[SuiteFailure] = []
        self.reruns: list[SuiteFailure] = []

    def passed(self, nodeid: str) -> None:
        """A test's call passed: it may yet fail when it is torn down, or be tried again."""
        self._passed[nodeid] = None

    def failed(self, failing: SuiteFailure) -> None:
        """A test failed, or one of its tries did."""
        if failing.outcome != "rerun":
            self.failures.append(failing)
            return
        self._superseded(failing.test, failing.rerun)
        self.reruns.append(failing)

    def rerun(self, test: str, number: int) -> None:
        """A test is tried again although the try's report tells of no failure: its sub-tests did."""
        self._superseded(test, number)

    def passing(self, prefix: str) -> tuple[str, ...]:
        """Tests that passed in all their phases, as the project calls them."""
        failed = {one.test for one in self.failures}
        return tuple(name for one in self._passed if (name := prefix + one) not in failed)

    def _superseded(self, test: str, number: int) -> None:
        """What failed of a test so far, its sub-tests, belongs to a try that is made again."""
        again = [one for one in self.failures if one.test == test]
        self.failures = [one for one in self.failures if one.test != test]
        self.reruns += (dataclasses.replace(one, outcome="rerun", rerun=number) for one in again)


def counts(stats: Iterable[tuple[str, int]]) -> dict[str, int]:
    """How many tests came out how, by pytest's words, those of no test left out.

    Example:
        >>> counts([("passed", 3), ("", 6), ("warnings", 2), ("failed", 0)])
        {'passed': 3}
    """
    return {name: n for name, n in stats if n and name and name not in {"warnings", "deselected"}}
