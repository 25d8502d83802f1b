"""What failed in a task's life, as far as it matters to what judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

RUNS_TESTS = frozenset({"test", "build", "command", "custom"})
"""Kinds of check whose failures are tests'."""


@dataclass(frozen=True, slots=True)
class SeenFailures:
    """What failed in a task's life.

    Attributes:
        kinds: of the checks that failed.
        tests: names of the tests that failed, as their runners have them.
        files: the file of a test, where its runner says it.
        holding: files that tests failed in.
        commands: words of the task's checks.
        is_blind: a check of tests failed, and nothing says which of them.
    """

    kinds: frozenset[str] = frozenset()
    tests: frozenset[str] = frozenset()
    files: Mapping[str, str] = field(default_factory=dict)
    holding: frozenset[str] = frozenset()
    commands: Sequence[Sequence[str]] = ()
    is_blind: bool = False

    @property
    def programs(self) -> frozenset[str]:
        """The programs that the checks start."""
        return frozenset(PurePosixPath(command[0]).name for command in self.commands if command)
