"""Runs only the tests of some files, where the test runner can be told which.

How it is told is in the tool's file (`narrow`); no runner is named here.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loki.action.checks.launched_program import Invocation
from loki.base.glob import matches
from loki.recognition.site import Narrowing, narrowings

MAX_NAMED = 500
"""Files or folders that one command names; beyond it runs everything. Chosen, not measured."""


@dataclass(frozen=True)
class Narrowed:
    """A test command that can be told what to test.

    Attributes:
        invocation: what it starts.
        how: how its runner is told.
        lead: the words of the program that say so.
    """

    invocation: Invocation
    how: Narrowing
    lead: tuple[str, ...]

    @classmethod
    def of(cls, command: Sequence[str], root: Path) -> Narrowed | None:
        """The command, where its runner can be told what to test.

        Args:
            command: its words.
            root: the project's folder.
        """
        invocation = Invocation.of(command, root)
        for how in narrowings():
            lead = invocation.begins_with(how.when)
            if lead is not None:
                return cls(invocation, how, lead)
        return None

    def tests(self, paths: Iterable[str]) -> list[str]:
        """The paths that hold tests of this runner."""
        return [path for path in paths if matches(path, self.how.files)]

    @property
    def is_selective(self) -> bool:
        """Whether the command picks single tests, so that it does not stand for whole files."""
        words = self.invocation.program[len(self.lead) :]
        return any(self._selects(word) for word in words)

    @property
    def is_whole(self) -> bool:
        """Whether the command names neither tests nor files, so that it runs all that there are."""
        words = self.invocation.program[len(self.lead) :]
        return not self.is_selective and len(self._options()) == len(words)

    def for_files(self, paths: Sequence[str]) -> tuple[str, ...]:
        """The command for all tests of these files, and no others where that can be said.

        Args:
            paths: relative to the project.

        Example:
            >>> narrowed = Narrowed.of(("go", "test", "-race", "-run", "TestA", "./..."), Path("/"))
            >>> narrowed.for_files(["cart/cart_test.go"])
            ('go', 'test', '-race', './cart')
        """
        units = [p if self.how.unit == "file" else posixpath.dirname(p) or "." for p in paths]
        named = [self.how.form.replace("{path}", unit) for unit in dict.fromkeys(units)]
        if len(named) > MAX_NAMED:
            return self.invocation.words
        if self.invocation.start is None:  # what a script says cannot be taken away
            return self.invocation.with_appended((*self.how.option, *named))
        before = self.invocation.words[: self.invocation.start]
        return (*before, *self.lead, *self._options(), *self.how.option, *named)

    def _options(self) -> list[str]:
        """The options of the command, but for those that pick tests; without paths."""
        kept: list[str] = []
        words = iter(self.invocation.program[len(self.lead) :])
        for word in words:
            option = [word]
            if word in self.how.values:
                option += [value for value in (next(words, None),) if value is not None]
            if word.startswith("-") and not self._selects(word):
                kept += option
        return kept

    def _selects(self, word: str) -> bool:
        return any(
            word == sign or word.startswith(f"{sign}=") if sign.startswith("-") else sign in word
            for sign in self.how.selects
        )


def search_environment(root: Path) -> Mapping[str, str]:
    """Variables by which what runs in a copy finds the copy's modules, not the original's."""
    found = {}
    for how in narrowings():
        if how.search:
            variable = str(how.search["variable"])
            folders = [str(root / folder) for folder in how.search["folders"]]
            known = [path for path in (os.environ.get(variable),) if path]
            found[variable] = os.pathsep.join([*folders, *known])
    return found
