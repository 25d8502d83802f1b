"""The places in the project that a failing check names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from loki.action.strategies.strategy_context import Project, StrategyContext

MAX_OUTPUT = 256 * 1024
"""Characters of the output's beginning and of its end that are searched; chosen, not measured."""

MAX_LENGTH = 1_000
"""Characters of a line that are searched: what names a place stands at its beginning. Chosen, not
measured; each is looked at a few hundred times at worst."""

MAX_LOCATIONS = 40

Location = tuple[str, int]
"""A path of the project, and a line from 1."""

# path:12, path(12,3), path", line 12; a path has an extension, and no blank.
_NAMED = re.compile(
    r"""(?P<path>[^\s:"'`()<>\[\]{},;|=]{1,200}\.\w{1,10})"""
    r"""(?::|\(|",?\ line\ |'?,?\ line\ )(?P<line>\d{1,7})\b""",
    re.VERBOSE,
)
# A file as a heading of its own, and below it lines that begin with line:column.
_HEADING = re.compile(r"\s{0,4}(?P<path>[^\s:\"'`()<>]{1,200}\.\w{1,10})\s*")
_BELOW = re.compile(r"\s{1,8}(?P<line>\d{1,7}):\d{1,5}\b")


def locations(situation: StrategyContext) -> list[Location]:
    """Places that the failing check names, best first.

    The failure's own comes first, then its stack, innermost first, then all others in the order in
    which the output names them.
    """
    failure, project = situation.failure, situation.project
    found = [(failure.path, failure.line)]
    found += [(f.path, f.line) for f in reversed(failure.frames) if f.in_project]
    known = [(path, line or 1) for path, line in found if path and path in project]
    named = _named(situation.output or failure.excerpt, project)
    return list(dict.fromkeys((*known, *named)))[:MAX_LOCATIONS]


def _named(output: str, project: Project) -> list[Location]:
    if len(output) > 2 * MAX_OUTPUT:
        output = f"{output[:MAX_OUTPUT]}\n{output[-MAX_OUTPUT:]}"
    return list(dict.fromkeys(_places(output, project)))


def _places(output: str, project: Project) -> Iterator[Location]:
    heading: str | None = None
    for whole in output.splitlines():
        line = whole[:MAX_LENGTH]
        below = _BELOW.match(line)
        if heading and below:
            yield heading, int(below["line"])
            continue
        if alone := _HEADING.fullmatch(line):
            heading = inside(alone["path"], project)
            continue
        for match in _NAMED.finditer(line):
            if path := inside(match["path"], project):
                yield path, max(1, int(match["line"]))


def inside(named: str, project: Project) -> str | None:
    """The path of the project that a name stands for, or None.

    Args:
        named: absolute, or relative to the project.
        project: its files.
    """
    path = named.replace("\\", "/")
    root = str(project.root).rstrip("/") + "/"
    path = path.removeprefix("file://").removeprefix(root)
    path = posixpath.normpath(path)
    return path if path in project else None
