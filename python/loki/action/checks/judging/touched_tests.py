"""What of a task's work touches the tests that failed, or what judges them: who looks at it first.

Agents that are to make a test pass change the test, or what decides that it does. An honest change
does so, too, so nothing is forbidden: a reviewer or a person sees it. What only stands beside a test
that failed (another test, a new one, a helper that it does not use) is nobody's concern.
Why it is so: ``docs/design/checks.md``. Pure, total, linear in the texts.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from loki.action.checks.judging.code_chunks import Chunk, chunks, words_of
from loki.action.checks.judging.judging_rules import knowledge
from loki.action.checks.judging.judging_settings import settings_touched
from loki.action.checks.judging.seen_failures import RUNS_TESTS, SeenFailures
from loki.action.gates.added_lines import added_lines
from loki.action.gates.lexer import lex
from loki.action.gates.review_rules import knowledge as languages
from loki.base import glob
from loki.decision.drift.path_kinds import kinds_of_path

MOST = 12
"""Concerns that are told; one more says how many were left out. Chosen, not measured."""

Pair = tuple["str | None", "str | None"]
"""A file's text before and after; None: it was not, or is not there, or is no text."""


@dataclass(frozen=True, slots=True)
class TouchedTests:
    """Something that judges, and that the work has touched.

    Attributes:
        path: where.
        what: what it is, a clause.
    """

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def touched(
    changed: Mapping[str, Pair], seen: SeenFailures, read: Callable[[str], str | None]
) -> list[TouchedTests]:
    """What of the work somebody has to look at before it counts, in the order of the files.

    Args:
        changed: the files that the task has left different.
        seen: what failed.
        read: tells what a file of the project holds; of one that did not change.

    Example:
        >>> before = "def test_a():\\n    assert f() == 5\\n"
        >>> after = "def test_a():\\n    assert f() is not None\\n"
        >>> from loki.action.checks.judging.seen_failures import SeenFailures
        >>> seen = SeenFailures(frozenset({"test"}), frozenset({"test_a.py::test_a"}))
        >>> [str(one) for one in touched({"test_a.py": (before, after)}, seen, lambda _: None)]
        ['test_a.py: test_a, which failed']
    """
    look = _Look(changed, seen, read)
    found = [
        TouchedTests(path, what)
        for path, (before, after) in sorted(changed.items())
        if before != after
        for what in look.at(path, before, after)
    ]
    found = list(dict.fromkeys(found))
    if len(found) > MOST:
        found[MOST:] = [TouchedTests(found[MOST].path, f"and {len(found) - MOST} more")]
    return found


class _Look:
    def __init__(
        self, changed: Mapping[str, Pair], seen: SeenFailures, read: Callable[[str], str | None]
    ) -> None:
        self.seen, self.read, self.changed = seen, read, changed
        self.tests_failed = bool(seen.kinds & RUNS_TESTS)
        self.holding = frozenset({*seen.holding, *seen.files.values()})
        self.used = self._used() if self.tests_failed else frozenset()

    def _used(self) -> frozenset[str]:
        """The names that failing tests use, in the files that hold them as they were."""
        found: set[str] = set()
        for path in self.holding:
            pair = self.changed.get(path)
            text = pair[0] if pair else self.read(path)
            if text:
                parts = chunks(path, text)
                failing = self._failing(path, parts)
                found |= _closure(parts, failing or parts)
        if not self.holding:  # of those that do not say where they stand
            for path, (before, _) in self.changed.items():
                if before and "test" in kinds_of_path(path):
                    parts = chunks(path, before)
                    found |= _closure(parts, self._failing(path, parts))
        return frozenset(found)

    def at(self, path: str, before: str | None, after: str | None) -> Iterator[str]:
        """What one file's change touches."""
        yield from self._loaded(path)
        if self.seen.kinds and self._is_above(path):
            for name in settings_touched(path, before, after, self.seen):
                yield f"the setting {name}" if name != path else "settings of what judges"
        if self._is_recipe(path, before, after or ""):
            yield "what a check runs"
        language = languages().language(path)
        lexer = language.lexer if language else ""
        is_test = self._is_test(path, lexer, before or "")
        if not self.tests_failed:
            is_test = False
        elif is_test or lexer == "rust":
            yield from self._tested(path, lexer, before, after, is_test=is_test)
        if not is_test and not kinds_of_path(path) & {"test", "example", "vendored"}:
            yield from _asking(lexer, before or "", after or "")

    def _is_test(self, path: str, lexer: str, text: str) -> bool:
        """Whether a file is for tests: by its place, or because tests failed in it."""
        if "test" in kinds_of_path(path) or glob.matches(path, knowledge().expected):
            return True
        if path not in self.holding or lexer == "rust":
            return False
        # A runner of examples in docstrings names the program's own file.
        failing = self._failing(path, chunks(path, text))
        return lexer != "python" or any("test" in n.lower() for c in failing for n in c.names)

    # --- tests and what they use ------------------------------------------------------------------

    def _tested(
        self, path: str, lexer: str, before: str | None, after: str | None, *, is_test: bool
    ) -> Iterator[str]:
        old, new = chunks(path, before or ""), chunks(path, after or "")
        failing = self._failing(path, old)
        if not is_test:  # tests in a file of the program: only what stands with them
            failing = [chunk for chunk in failing if chunk.chain]
            roots = {chunk.chain[0] for chunk in failing}
            old = [chunk for chunk in old if chunk.chain[:1] and chunk.chain[0] in roots]
            new = [chunk for chunk in new if chunk.chain[:1] and chunk.chain[0] in roots]
        if failing:
            yield from _differences(old, new, failing, _closure(old, failing))
        elif is_test and _is_data(path):
            is_kept = "test_data" in kinds_of_path(path) or glob.matches(path, knowledge().expected)
            if before is not None and is_kept and self._mentions(path):
                yield "data that a failing test reads"
        elif is_test and self._is_shared(path, lexer):
            yield from _differences(old, new, (), self.used)

    def _failing(self, path: str, parts: Sequence[Chunk]) -> list[Chunk]:
        """The pieces of a file that are failing tests."""
        if self.seen.is_blind and not self.seen.tests:
            return [chunk for chunk in parts if chunk.names]
        found: list[Chunk] = []
        for test in self.seen.tests:
            file = self.seen.files.get(test)
            if file is not None and file != path and file in self.changed:
                continue
            if file is not None and file != path and _is_file(file):
                continue
            named = [chunk for chunk in parts if any(_names(name, test) for name in chunk.names)]
            nearer = [c for c in named if c.chain and c.chain[-1].replace(_BLANK, " ") in test]
            found += nearer or named
            if not named and file == path:  # its name is made when it runs
                found += [chunk for chunk in parts if chunk.names]
        return list(dict.fromkeys(found))

    def _is_shared(self, path: str, lexer: str) -> bool:
        """Whether failing tests may get something from a file that holds none of them."""
        name = PurePosixPath(path)
        if not self.holding:
            return True
        if lexer == "go" and any(PurePosixPath(one).parent == name.parent for one in self.holding):
            return True  # all files of a folder are one
        if name.name == "conftest.py":
            return self._is_above(path)
        stem = name.parent.name if name.stem in {"__init__", "index", "mod"} else name.stem
        return stem in self.used_files

    @property
    def used_files(self) -> frozenset[str]:
        """Names that the files with failing tests hold anywhere."""
        return frozenset(w for file in self.holding for w in words_of(self._before(file)))

    def _before(self, path: str) -> str:
        pair = self.changed.get(path)
        return (pair[0] if pair else self.read(path)) or ""

    def _mentions(self, path: str) -> bool:
        """Whether failing tests speak of a file of data."""
        name = PurePosixPath(path)
        if not self.holding:
            return True
        quoted = rf"""["'/]{re.escape(name.stem)}["'.]"""
        for file in self.holding:
            text, own = self._before(file), PurePosixPath(file)
            if name.name.startswith((own.name, own.stem)) or re.search(quoted, text):
                return True
            near = posixpath.dirname(file) == str(name.parent.parent)
            if near and re.search(rf"""["'/]{re.escape(name.parent.name)}["'/]""", text):
                return True
        leaves = (re.split(r"[.:>/ ]", test)[-1] for test in self.seen.tests)
        return any(len(leaf) > _SHORT and leaf in name.name for leaf in leaves)

    def _is_above(self, path: str) -> bool:
        """Whether a file stands in a folder above failing tests, as far as that is known."""
        folder = posixpath.dirname(path)
        folder = "" if folder.startswith(".") else folder
        return not (folder and self.holding) or any(
            file.startswith(folder + "/") for file in self.holding
        )

    # --- beside the tests ---------------------------------------------------------------------------

    def _loaded(self, path: str) -> Iterator[str]:
        known = knowledge()
        if glob.matches(path, known.loaded):
            yield "what is loaded before any test"
        top = path.removeprefix("src/").split("/")[0]
        if top.endswith(".py") or "/" in path:
            is_new = self.changed[path][0] is None
            if is_new and top.removesuffix(".py") in known.runners:
                yield "it would be taken for the test runner"

    def _is_recipe(self, path: str, before: str | None, after: str) -> bool:
        """Whether a check that failed runs its steps from what has changed in a file."""
        if before is None:
            return False
        for command in self.seen.commands:
            program = PurePosixPath(command[0]).name if command else ""
            for recipe in knowledge().recipes:
                if program in recipe.programs and glob.matches(path, recipe.files):
                    return recipe.lines is None or _says(recipe.lines, before, after)
            named = {posixpath.normpath(word) for word in command}
            if path in named and knowledge().script.search(path) and self.tests_failed:
                return "test" not in kinds_of_path(path)
        return False


_BLANK = "\x01"

_SHORT = 3
"""Characters of a test's name that may stand in a file's name by chance. Chosen, not measured."""


def _says(expression: re.Pattern[str], before: str, after: str) -> bool:
    """Whether a line that came or went says something."""
    return any(
        expression.search(new.split("\n")[number - 1])
        for old, new in ((before, after), (after, before))
        for number in added_lines(old, new)
    )


def _names(name: str, test: str) -> bool:
    """Whether a test's id is that of a piece with a name."""
    pattern = re.escape(name.replace(_BLANK, " "))
    pattern = re.sub(r"%\w|\\\$\\\{.*?\\\}|\\\$\w+", ".*", pattern)
    return re.search(rf"(?:^|[.:>/#\s]){pattern}(?:$|\[|/|\()", test) is not None


def _is_file(path: str) -> bool:
    return "." in posixpath.basename(path) and languages().language(path) is not None


def _is_data(path: str) -> bool:
    language = languages().language(path)
    return language is None or language.lexer not in {"python", "javascript", "go", "rust", "c"}


def _closure(parts: Sequence[Chunk], start: Sequence[Chunk]) -> frozenset[str]:
    """The names that pieces use, also by way of other pieces of the file."""
    words = {word for chunk in start for word in chunk.words}
    while True:
        more = {w for c in parts if c.names & words for w in c.words} - words
        if not more:
            return frozenset(words)
        words |= more


def _differences(
    old: Sequence[Chunk], new: Sequence[Chunk], failing: Sequence[Chunk], used: frozenset[str]
) -> Iterator[str]:
    """What of the pieces that failing tests are, or use, has changed."""
    chains = {chunk.chain[:depth] for chunk in failing for depth in range(len(chunk.chain) + 1)}
    own = frozenset((chunk.chain, chunk.names) for chunk in failing)
    defined = frozenset(name for chunk in old for name in chunk.names)
    gone, come = Counter(old), Counter(new)
    gone, come = gone - come, come - gone

    for chunk in (*gone, *come):
        is_new = chunk in come
        if chunk.case and is_new:
            continue
        label = _label(chunk)
        if (chunk.chain, chunk.names) in own:
            yield f"{label}, which failed"
        elif not chunk.names:
            if chunk.chain in chains or (not failing and set(chunk.chain) <= used):
                yield f"{label}, which failing tests run with"
        elif _is_always(chunk):
            yield f"{label}, which runs with every test"
        elif chunk.names & used and (not is_new or chunk.names & (defined | used)):
            yield f"{label}, which failing tests use"


def _is_always(chunk: Chunk) -> bool:
    known = knowledge()
    return any(known.always.fullmatch(name) for name in chunk.names) or (
        known.always_marked.search(chunk.text) is not None
    )


def _label(chunk: Chunk) -> str:
    if chunk.names:
        return ", ".join(sorted(chunk.names)).replace(_BLANK, " ")[:80]
    return f"`{chunk.text.replace(_BLANK, ' ')[:60]}`"


def _asking(lexer: str, before: str, after: str) -> Iterator[str]:
    """Code that asks whether it is being tested, or changes how; not where the file did so before."""
    asks = knowledge().asks.get(lexer)
    if asks is None or asks.search(after) is None:
        return
    new = lex(after, lexer).source
    if asks.search(lex(before, lexer).source):
        return
    added = added_lines(before, after)
    for match in asks.finditer(new):
        first = new.count("\n", 0, match.start() + len(match[0]) - len(match[0].lstrip())) + 1
        if first in added:
            shown = " ".join(match[0].split())
            yield f"line {first} reaches for what tests it: `{shown[:60]}`"
            return
