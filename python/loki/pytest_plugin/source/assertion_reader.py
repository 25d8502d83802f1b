"""What the failing tests of a run assert on, read from the project's files.

Nothing here may cost the run its summary: what cannot be read is no evidence.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from loki.memory.suites.suite_run import SuiteFailure
from loki.pytest_plugin.source.asserted_calls import asserted
from loki.pytest_plugin.source.callees import reached
from loki.pytest_plugin.source.callers import Callers
from loki.pytest_plugin.source.source_module import Library, Sources, conftests
from loki.recognition.root_cause import fails_by_itself
from loki.recognition.shared_callees import NO_ASSERTIONS, Asserted, Assertions, Callee, candidates

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
        if file.stat().st_size > LARGEST:
            return None
        return file.read_text("utf-8")
    except (OSError, ValueError):
        return None


def _roots(project: Path) -> list[str]:
    """Folders of the project that Python looks for modules in."""
    inside = (os.path.relpath(path, project) for path in sys.path if path)
    found = [Path(path).as_posix() for path in inside if not path.startswith("..")]
    return ["" if path == "." else path for path in found if "site-packages" not in path]
