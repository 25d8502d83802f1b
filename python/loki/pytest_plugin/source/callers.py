"""How many tests that do not fail name a function: those speak for it.

To name it is enough, in the test, in a helper of the tests that it names, in a fixture that it takes:
a function is rather left out of suspicion than blamed.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from loki.pytest_plugin.source.function_body import fixture_named, parameters
from loki.pytest_plugin.source.source_module import (
    Function,
    FunctionNode,
    Module,
    Sources,
    conftests,
)

if TYPE_CHECKING:
    from loki.recognition.shared_callees import Callee

MOST = 4_000_000
"""Characters of test files that are parsed for this; where there are more, nothing is blamed. Chosen:
some 100,000 lines, which take some seconds."""


class Callers:
    """The tests of a project, as far as their files name some functions.

    Args:
        sources: reads the files.
        files: paths of all known test files.
        failing: functions of tests that fail: whatever they name, they speak for nothing.
        passed: tests that passed, by function; a test that did not run counts as one that passes.
    """

    def __init__(
        self,
        sources: Sources,
        files: Iterable[str],
        failing: Collection[str],
        passed: Mapping[str, int],
    ) -> None:
        self._sources = sources
        self._files = list(files)
        self._failing = failing
        self._passed = passed

    def passing(self, callees: Mapping[Callee, int]) -> dict[Callee, int] | None:
        """How many tests name each of some functions and do not fail; None: there is too much to read.

        Args:
            callees: the functions, and how many tests are enough to clear each: no more are looked for
                once all are cleared.
        """
        words = {callee: callee.word for callee in callees}
        wanted = frozenset(words.values())
        counts: Counter[str] = Counter()
        left = MOST
        for path in self._files:
            text = self._sources.text(path) or ""
            # A fixture of a conftest.py may name it for a file that does not.
            if not (any(word in text for word in wanted) or self._is_given(path, wanted)):
                continue
            left -= len(text)
            module = self._sources.module(path)
            if left < 0:
                return None
            if module is not None:
                counts.update(self._named(module, wanted))
            if all(counts[words[callee]] >= enough for callee, enough in callees.items()):
                break
        return {callee: counts[word] for callee, word in words.items()}

    def _is_given(self, path: str, wanted: Collection[str]) -> bool:
        """Whether a ``conftest.py`` for a file names one of some functions."""
        texts = [self._sources.text(conftest) or "" for conftest in conftests(path)]
        return any(word in text for text in texts for word in wanted)

    def _named(self, module: Module, wanted: frozenset[str]) -> Iterator[str]:
        """A word for each test of a file that names it and does not fail."""
        for name, test in tests_of(module):
            passed = self._passed.get(name, 0)
            if name in self._failing and not passed:
                continue
            for word in wanted & names_in(test):
                yield from [word] * max(1, passed)


def tests_of(module: Module) -> Iterator[tuple[str, Function]]:
    """The functions of a file that may be tests, and their node ids."""
    open_: list[tuple[str, list[ast.stmt], ast.ClassDef | None]] = [
        (module.path, module.tree.body, None)
    ]
    while open_:
        name, body, owner = open_.pop()
        for node in body:
            if isinstance(node, ast.ClassDef):
                open_.append((f"{name}::{node.name}", node.body, node))
            elif isinstance(node, FunctionNode) and node.name.lower().startswith("test"):
                yield f"{name}::{node.name}", Function(module, node, owner)


def names_in(test: Function) -> frozenset[str]:
    """All names in a test, in the helpers of the tests that it names, in the fixtures that it takes."""
    found: set[str] = set()
    seen: set[int] = set()
    open_ = [test]
    while open_:
        function = open_.pop()
        if id(function.node) in seen:
            continue
        seen.add(id(function.node))
        names = set(_words(function.node))
        found |= names
        for name in names:
            known = function.module.named(name)
            if isinstance(known, Function) and known.module.is_test:
                open_.append(known)
        fixtures = (fixture_named(function, name) for name in parameters(function.node))
        open_ += [fixture for fixture in fixtures if fixture is not None]
    return frozenset(found)


def _words(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
