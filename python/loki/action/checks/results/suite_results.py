"""What became of each test of a run."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
"""A test that is expected to fail counts as skipped wherever its runner says so."""

SEPARATORS = (".", " > ", "::")
"""What stands between a file or package and the tests in it, in the ids of the formats here."""


@dataclass(frozen=True, slots=True)
class Results:
    """Outcome by test.

    Attributes:
        outcomes: passed, failed or skipped, by the test's id: as stable as its name.
        files: by test, the file or folder that it stands in, relative to the project; only of tests
            whose runner says so.
    """

    outcomes: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def __add__(self, other: Results) -> Results:
        """Both; what failed in one of them failed."""
        collected = Collected()
        for results in (self, other):
            for test, outcome in results.outcomes.items():
                collected.add(test, outcome, results.files.get(test, ""))
        return collected.results()


class Collected:
    """Gathers results; a test that ran several times failed if it failed once."""

    def __init__(self) -> None:
        self._outcomes: dict[str, str] = {}
        self._files: dict[str, str] = {}

    def add(self, test: str, outcome: str, file: str = "") -> None:
        """One more result."""
        if outcome == FAILED or self._outcomes.get(test) not in {FAILED, PASSED}:
            self._outcomes[test] = outcome
        if file:
            self._files[test] = file

    def results(self) -> Results:
        """All of them."""
        return Results(self._outcomes, self._files)


def inside(whole: str, tests: Iterable[str]) -> list[str]:
    """The tests of a file or package, by its id.

    Example:
        >>> inside("a", ["a.b", "ab.c", "a > c"])
        ['a.b', 'a > c']
    """
    heads = tuple(whole + separator for separator in SEPARATORS)
    return [test for test in tests if test.startswith(heads)]


def relative(path: str, root: str) -> str:
    """A path relative to the project where it is in it, with ``/``.

    Example:
        >>> relative("/srv/shop/a/b.py", "/srv/shop"), relative("./a.py", "/srv/shop")
        ('a/b.py', 'a.py')
    """
    path = posixpath.normpath(path.replace("\\", "/")) if path else ""
    return path.removeprefix(root.rstrip("/") + "/")
