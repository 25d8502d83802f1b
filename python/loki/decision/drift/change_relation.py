"""Which files of a change its task is about, and how far the others are from them.

A file belongs to a task that names it, or its words; and where it is tied to one that does: by an
import, by a name that both changes use, as its test or what a tool makes of it. Pure; no model is
asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from loki.decision.drift.path_kinds import in_scope, kinds_of_path, path_kinds, stem_of
from loki.decision.drift.task_vocabulary import (
    GENERIC,
    alike,
    is_module,
    is_telling,
    known,
    modules_in,
    path_words,
    synonyms,
    words_of,
)

SMALL = 20
"""Lines that may change somewhere else without a word about it: an import mended, a typo. Chosen on
the tuning part of the labelled changes, not measured."""

PROSE = 100
"""The same of prose and tests, which break nothing. Chosen, as above."""

SHARE = 0.1
"""Of a change's lines, those elsewhere up to which they are by the way. Chosen on the project's history."""

FEW_WORDS, MANY_WORDS = 30, 100
"""Changed lines up to which one word of the task in them tells, and two; in more, half of them have to.
Chosen on the tuning part and on the project's own history."""

IMPORT_HOPS = 2
"""How far imports are followed from what failed: a test, what it tests, and what that uses; as
`loki.agents.model_context.HOPS`."""

_ROUNDS = 4
"""How long a chain of names that tie files together may be. Chosen, not measured."""

Kind = Literal["created", "changed", "deleted", "renamed"]


@dataclass(frozen=True, slots=True)
class Touched:
    """What a change does to a file.

    Attributes:
        path: relative to the project, with ``/``.
        kind: created, changed, deleted or renamed.
        added, removed: lines.
        words: names in the lines that differ.
        was: the path that it had before, where it is renamed.
        formatting: nothing but blanks and line breaks differ.
        defines: names that those lines define.
        imports: names in those of them that import.
    """

    path: str
    kind: Kind = "changed"
    added: int = 0
    removed: int = 0
    words: frozenset[str] = frozenset()
    was: str = ""
    formatting: bool = False
    defines: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()

    @property
    def lines(self) -> int:
        """Lines that differ: those of a deleted file are gone, not written."""
        return max(self.added, self.removed)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is known of a task.

    Attributes:
        title: in a person's words.
        said: what people added.
        kind: bug_fix, feature, refactor, security or config_change.
        scope: files, folders and globs that it names; empty: not said.
        named: files that the failure, its frames and failing tests name, and those of earlier
            attempts and of what the briefing showed.
        failure: what failed, in its own words.
        project: paths that there are.
        imports: which files a file imports, as far as known.
    """

    title: str
    said: str = ""
    kind: str = "bug_fix"
    scope: tuple[str, ...] = ()
    named: Collection[str] = ()
    failure: str = ""
    project: Collection[str] = ()
    imports: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def asked(self) -> str:
        """What people said."""
        return f"{self.title}\n{self.said}"


class Relation:
    """How the files of a change stand to a task.

    Args:
        goal: the task.
        touched: the files.

    Attributes:
        about: paths of the change that the task is about.
        companions: those that belong to any change, as long as little of them changes.
        has_reference: anything is known that a file could be far from.
    """

    def __init__(self, goal: Goal, touched: Iterable[Touched]) -> None:
        self.goal = goal
        self.touched = {one.path: one for one in touched}
        self._asked = words_of(goal.asked)
        self._meant = self._asked | synonyms(self._asked)
        self._missing = modules_in(goal.failure)
        self._named = set(goal.named)
        self._near = _within(goal.named, goal.imports)
        self.companions = {p for p, one in self.touched.items() if self._is_companion(one)}
        self.about = {p for p, one in self.touched.items() if self._is_about(one)}
        self._tie()
        self.has_reference = bool(
            goal.scope or goal.named or self.about - self.companions or self._points_somewhere()
        )

    def is_far(self, path: str) -> bool:
        """Whether nothing ties a file of the change to the task."""
        return path not in self.about and path not in self.companions

    def distance(self, path: str) -> int:
        """1: beside what the task is about, or an import away; 2, 3, …: that many folders more.

        Steps between the folders of the file and of the nearest that the task is about, and one.
        """
        near = [*(self.about - self.companions), *self._named, *self._scope_files()]
        if path in self._near or any(path in self.goal.imports.get(p, ()) for p in self.about):
            return 1
        beside = 1
        if is_test(Touched(path)):  # tests of everything may stand in one folder
            beside = 2
        return min((max(beside, 1 + _steps(path, other)) for other in near), default=3)

    def weight(self, path: str) -> int:
        """Lines of a file from which on it counts as work of its own."""
        if known()["weighty"].search(path):
            return SMALL // 4
        return PROSE if kinds_of_path(path) & {"example", "test"} else SMALL

    @property
    def lines(self) -> int:
        """Lines of the whole change, but for what tools write."""
        return sum(one.lines for path, one in self.touched.items() if not is_written(path))

    def _scope_files(self) -> list[str]:
        # A folder is as near as a file in it.
        return [
            re.split(r"[*?]", s)[0] + ("x" if s[-1:] in {"/", "*"} else "") for s in self.goal.scope
        ]

    def _is_about(self, one: Touched) -> bool:
        goal, paths = self.goal, {one.path, one.was or one.path}
        if goal.scope:
            return any(in_scope(path, goal.scope) for path in paths) or self._tests_scope(one)
        if paths & (self._named | self._near) or any(self._is_said(path) for path in paths):
            return True
        if any(stem_of(path) in self._stems() for path in paths):
            return True
        if any(is_module(path, module) for path in paths for module in self._missing):
            return True
        if alike(self._meant, frozenset().union(*map(path_words, paths))):
            return True
        content = frozenset().union(*map(words_of, one.words)) if one.words else frozenset()
        hits = len(self._asked & content)
        # What is deleted is no work: a word tells why.
        needed = 1 if one.kind == "deleted" else self._needed(one.lines)
        return hits >= min(needed, max(1, len(self._asked)))

    def _needed(self, lines: int) -> int:
        """Words of the task that changed lines have to hold to be about it: in many, any may stand."""
        few = 1 if lines <= FEW_WORDS else 2
        return few if lines <= MANY_WORDS else max(few, len(self._asked) // 2)

    def _tests_scope(self, one: Touched) -> bool:
        """Whether a file tests something in the scope that the change touches, or that is there."""
        if "test" not in kinds_of_path(one.path):
            return False
        paths = {*self.touched, *self.goal.project} - {one.path}
        return any(
            stem_of(path) == stem_of(one.path) and "test" not in kinds_of_path(path)
            for path in paths
            if in_scope(path, self.goal.scope)
        )

    def _is_said(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        said = f"{self.goal.asked}\n{self.goal.failure}"
        return (
            "." in name[1:]
            and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", said) is not None
        )

    def _stems(self) -> set[str]:
        return {stem_of(path) for path in self._named} - GENERIC

    def _is_companion(self, one: Touched) -> bool:
        name, rules = one.path.rpartition("/")[2], known()
        if path_kinds()["companions"].search(name) or "lock" in kinds_of_path(one.path):
            return True
        if rules["generated"].search(one.path) and not self.goal.scope:
            return True
        if rules["manifest"].search(name) or rules["small_companion"].search(name):
            return one.lines <= SMALL
        # Support of tests is made for tests: whose, their names need not tell.
        return (
            one.kind == "created" and "test" in kinds_of_path(one.path) and not _is_test(one.path)
        )

    def _tie(self) -> None:
        """Files that are tied to what the task is about, directly or through others."""
        if self.goal.scope:  # it says itself how far it goes
            return
        for _ in range(_ROUNDS):
            seeds = [self.touched[p] for p in sorted(self.about - self.companions)]
            new = {
                p
                for p, one in self.touched.items()
                if self.is_far(p) and any(self._are_tied(one, other) for other in seeds)
            }
            if not new:
                break
            self.about |= new

    def _are_tied(self, one: Touched, other: Touched) -> bool:
        if one.path in self.goal.imports.get(other.path, ()):
            return True
        if other.path in self.goal.imports.get(one.path, ()):
            return True
        stems = stem_of(one.path), stem_of(other.path)
        if stems[0] == stems[1] and stems[0] not in GENERIC:
            return True
        if stems[0] not in GENERIC and stems[0] in other.imports:
            return True
        if stems[1] not in GENERIC and stems[1] in one.imports:
            return True
        shared = (one.words & other.defines) | (one.defines & other.words)
        return any(is_telling(word) for word in shared)

    def _points_somewhere(self) -> bool:
        """Whether the words of the task find files of the project that are not part of the change."""
        return any(
            self._is_said(path) or alike(self._asked, path_words(path))
            for path in self.goal.project
        )


def _is_test(path: str) -> bool:
    """A file of tests, by its name; not what stands beside them."""
    name = PurePosixPath(path).name
    return stem_of(path) != name.lstrip(".").split(".")[0] or ".test." in name or ".spec." in name


def is_written(path: str) -> bool:
    """Whether a tool writes a file, not whoever changes it."""
    return "lock" in kinds_of_path(path) or known()["generated"].search(path) is not None


def is_test(touched: Touched) -> bool:
    """Whether a file holds tests."""
    return "test" in kinds_of_path(touched.path) and _is_test(touched.path)


def _steps(one: str, other: str) -> int:
    """Folders to go up and down from one file to another."""
    a, b = PurePosixPath(one).parts[:-1], PurePosixPath(other).parts[:-1]
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return len(a) + len(b) - 2 * same


def _within(start: Collection[str], imports: Mapping[str, Collection[str]]) -> set[str]:
    """Files that some files import, or that import them, within `IMPORT_HOPS`."""
    seen, front = set(start), set(start)
    for _ in range(IMPORT_HOPS):
        front = {path for one in front for path in imports.get(one, ())} - seen
        seen |= front
    importing = {path for path, found in imports.items() if not set(found).isdisjoint(start)}
    return (seen | importing) - set(start)
