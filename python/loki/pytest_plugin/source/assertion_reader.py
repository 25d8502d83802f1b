"""What the failing tests of a run assert on, read from the project's files.

To name it is enough, in the test, in a helper of the tests that it names, in a fixture that it takes:
a function is rather left out of suspicion than blamed.

Nothing here may cost the run its summary: what cannot be read is no evidence.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from loki.memory.suites.suite_history import SuiteFailure
from loki.pytest_plugin.source.asserted_calls import asserted, callee_of, fixture_named, parameters
from loki.pytest_plugin.source.source_module import (
    Class,
    Function,
    FunctionNode,
    Library,
    Module,
    Sources,
    conftests,
)
from loki.recognition.root_cause import (
    NO_ASSERTIONS,
    Asserted,
    Assertions,
    Callee,
    candidates,
    fails_by_itself,
)

# --- Which functions of a project lead to which others ------------------------------------------------

MOST_CALLEES = 200
"""Functions that are followed from one. Chosen."""


def reached(sources: Sources, callees: Collection[Callee]) -> dict[Callee, frozenset[Callee]]:
    """Which of some functions call which others of them, directly or through the project.

    Args:
        sources: reads the files.
        callees: the functions.
    """
    return {one: frozenset(_all(sources, one)) & frozenset(callees) - {one} for one in callees}


def _all(sources: Sources, callee: Callee) -> set[Callee]:
    first = _definition(sources, callee)
    found: dict[Callee, Function] = {callee: first} if first is not None else {}
    open_ = list(found.values())
    while open_ and len(found) < MOST_CALLEES:
        for known in _named(open_.pop()):
            if callee_of(known) not in found:
                found[callee_of(known)] = known
                open_.append(known)
    return set(found)


def _definition(sources: Sources, callee: Callee) -> Function | None:
    module = sources.module(callee.path)
    bodies: list[tuple[Module, ast.ClassDef | None, list[ast.stmt]]]
    bodies = [(module, None, module.tree.body)] if module is not None else []
    while bodies:
        inside, owner, body = bodies.pop()
        for node in body:
            if isinstance(node, FunctionNode) and node.lineno == callee.line:
                return Function(inside, node, owner)
            for part in ("body", "orelse"):
                inner = [] if isinstance(node, FunctionNode) else getattr(node, part, [])
                bodies.append((inside, node if isinstance(node, ast.ClassDef) else owner, inner))
    return None


def _named(function: Function) -> Iterator[Function]:
    """The functions that one names, its own class's included; a class stands for making one."""
    names = [one for one in ast.walk(function.node) if isinstance(one, ast.Name)]
    own = parameters(function.node)
    own |= {one.id for one in names if not isinstance(one.ctx, ast.Load)}
    for node in ast.walk(function.node):
        known = None
        if isinstance(node, (ast.Name, ast.Attribute)) and _root(node) not in own:
            known = function.module.meaning(node)
        elif isinstance(node, ast.Attribute) and function.owner and _root(node.value) == "self":
            known = Class(function.module, function.owner).member(node.attr)
        if isinstance(known, Class):
            known = known.member("__init__")
        if isinstance(known, Function) and not known.module.is_test:
            yield known


def _root(node: ast.expr) -> str:
    """The first of names with dots between them."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# --- How many tests that do not fail name a function --------------------------------------------------

MOST_BYTES = 4_000_000
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
        left = MOST_BYTES
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
        names = _names(function.node)
        found |= names
        for name in names:
            known = function.module.named(name)
            if isinstance(known, Function) and known.module.is_test:
                open_.append(known)
        fixtures = (fixture_named(function, name) for name in parameters(function.node))
        open_ += [fixture for fixture in fixtures if fixture is not None]
    return frozenset(found)


def _names(node: ast.AST) -> set[str]:
    parts = list(ast.walk(node))
    found = {part.id for part in parts if isinstance(part, ast.Name)}
    return found | {part.attr for part in parts if isinstance(part, ast.Attribute)}


# --- What the failing tests of a run assert on --------------------------------------------------------

LARGEST = 1_000_000
"""Bytes of a file that is read. Chosen: larger ones were written by programs."""

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)|import[ \t]+([\w., \t]+))", re.MULTILINE)
_FAILING = re.compile(r"^> +(.+)$", re.MULTILINE)


def assertions_of(
    failures: Sequence[SuiteFailure],
    passed: Iterable[str],
    known: Iterable[str],
    project: Path,
) -> Assertions:
    """What failing tests assert on, of those that nothing else explains.

    Args:
        failures: of a run.
        passed: node ids of the tests that passed in it.
        known: node ids of the tests that earlier runs had.
        project: the project's folder.
    """
    suspicious = [
        (index, one)
        for index, one in enumerate(failures)
        if one.phase == "call" and one.outcome == "failed" and fails_by_itself(one.failure)
    ]
    if not suspicious:
        return NO_ASSERTIONS
    sources = Sources(lambda path: _text(project, path), _roots(project))
    asserted_at = cache(partial(_asserted, sources))  # many parameters fail in one line
    failing = {index: said for index, one in suspicious if (said := asserted_at(*_place(one)))}
    callees = candidates(failing.values())
    if not callees:
        return Assertions(failing)
    blamed = {o: sum(o in one.callees for one in failing.values()) for o in callees}
    passing = _passing(sources, blamed, failures, passed, known)
    if passing is None:  # nobody knows: as if as many passed as failed
        passing = dict.fromkeys(callees, len(failures))
    return Assertions(failing, passing, reached(sources, callees))


def function_of(test: str) -> str:
    """The node id of a test's function, without parameters.

    Example:
        >>> function_of("tests/test_a.py::TestA::test_x[a::b]")
        'tests/test_a.py::TestA::test_x'
    """
    return test.partition("[")[0]


def _place(one: SuiteFailure) -> tuple[str, int | None, frozenset[str]]:
    """The test's function, its line that failed, and what pytest showed of lines that failed."""
    name = function_of(one.test)
    path = name.partition("::")[0]
    line = next((f.line for f in one.failure.frames if f.in_project and f.path == path), None)
    return name, line, frozenset(said.strip() for said in _FAILING.findall(one.failure.excerpt))


def _asserted(
    sources: Sources, name: str, line: int | None, shown: frozenset[str]
) -> Asserted | None:
    """What a failing test asserts on; None: its source does not say, or is not what ran."""
    path, *names = name.split("::")
    text = sources.text(path) if line and names else None
    if line is None or text is None or not _is_as_it_ran(text, line, shown):
        return None
    if not any(_imports_project(sources, file) for file in (path, *conftests(path))):
        return None  # seen without parsing it, which takes a thousand times as long
    module = sources.module(path)
    test = module.function(names) if module is not None else None
    return asserted(test, name, line) if test is not None else None


def _imports_project(sources: Sources, path: str) -> bool:
    """Whether a file imports anything of the project: another one cannot look at its results."""
    found = set()
    for dots, name, names in _IMPORT.findall(sources.text(path) or ""):
        found |= {(one.split()[0], 0) for one in names.split(",") if one.strip()}
        found |= {(name, len(dots))} if name or dots else set()
    return any(not isinstance(sources.imported(n, path, level), Library) for n, level in found)


def _is_as_it_ran(text: str, line: int, shown: frozenset[str]) -> bool:
    """Whether a file still says what pytest showed of it."""
    lines = text.splitlines()
    return line <= len(lines) and (not shown or lines[line - 1].strip() in shown)


def _passing(
    sources: Sources,
    callees: Mapping[Callee, int],
    failures: Sequence[SuiteFailure],
    passed: Iterable[str],
    known: Iterable[str],
) -> dict[Callee, int] | None:
    good = Counter(map(function_of, passed))
    bad = {function_of(one.test) for one in failures}
    tests = (*good, *bad, *map(function_of, known))
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    return Callers(sources, files, bad, good).passing(callees)


def _text(project: Path, path: str) -> str | None:
    if not path.endswith(".py") or path.startswith(("/", "../")):
        return None
    file = project / path
    try:
        return file.read_text("utf-8") if file.stat().st_size <= LARGEST else None
    except (OSError, ValueError):
        return None


def _roots(project: Path) -> list[str]:
    """Folders of the project that Python looks for modules in."""
    inside = (os.path.relpath(path, project) for path in sys.path if path)
    found = [Path(path).as_posix() for path in inside if not path.startswith("..")]
    return ["" if path == "." else path for path in found if "site-packages" not in path]
