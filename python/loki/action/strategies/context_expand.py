"""``context_expand``: read the files and definitions that an error names.

Best first: the places of the error, the definitions of the names in its message, those of the names on
the failing line; of a regression, first how the dependent file uses what was changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from loki.action.loop.loop_events import StrategyResult
from loki.action.strategies.code_excerpts import (
    Passage,
    around,
    definition,
    fitted,
    merged,
    renamed,
)
from loki.action.strategies.definition_search import (
    defined_in,
    definitions,
    names_in,
    names_of_line,
)
from loki.action.strategies.error_locations import Location, locations
from loki.action.strategies.strategy_context import Project, StrategyContext, StrategyNotApplicable

REACH = 8
"""Lines shown before and after a place of the error; chosen, not measured."""

MAX_PLACES, MAX_USES = 3, 6
"""Places of the error, and uses of what was changed, that are shown; chosen, not measured."""

REGRESSION = "regression-detected"


def context_expand(situation: StrategyContext) -> StrategyResult:
    """Read what the error names, as much of it as a briefing has room for.

    Raises:
        StrategyNotApplicable: it names nothing of the project.
    """
    passages = merged(_passages(situation))
    context = fitted((), passages)
    if not context:
        raise StrategyNotApplicable("the error names no file or definition of the project")
    where = ", ".join(dict.fromkeys(passage.path for passage in passages))
    return StrategyResult("context_expand", f"read {where}", context)


def _passages(situation: StrategyContext) -> Iterator[Passage | None]:
    project, failure = situation.project, situation.failure
    places = locations(situation)
    if failure.match and REGRESSION in {failure.match.pattern, failure.match.kind}:
        yield from _uses(situation, places)
    for path, line in places[:MAX_PLACES]:
        yield around(path, project.lines(path), line, REACH)
    near = places[0][0] if places else None
    imported = project.imported_by(near) if near else ()
    mentioned = names_in(failure.message)
    on_line = [n for n in _names_on(places[:MAX_PLACES], project) if n not in mentioned]
    for names in (mentioned, on_line):
        for path, line in definitions(names, project, near, imported):
            name = next(n for n in names_of_line(project.lines(path)[line - 1]) if n in names)
            yield renamed(definition(path, project.lines(path), line), f"defines {name}")


def _names_on(places: Sequence[Location], project: Project) -> list[str]:
    return [
        name
        for path, line in places
        for text in project.lines(path)[line - 1 : line]
        for name in names_of_line(text)
    ]


# --- a regression ---------------------------------------------------------------------------------


def _uses(situation: StrategyContext, places: Sequence[Location]) -> Iterator[Passage | None]:
    """Lines of the dependent files on which names stand that the changed files define."""
    project = situation.project
    changed = [path for path in situation.changed if path in project]
    named = [path for path in (situation.failure.path,) if path and path in project]
    dependent = [*named, *(path for path, _ in places), *_test_files(situation)]
    for path in dict.fromkeys(dependent):
        if path in changed:
            continue
        names = {name: source for source in changed for name in defined_in(project.read(source))}
        yield from _lines_with(path, names, project)


def _test_files(situation: StrategyContext) -> list[str]:
    found = (re.split(r"::|\s", test)[0] for test in situation.failure.tests)
    return [path for path in found if path in situation.project]


def _lines_with(path: str, names: Mapping[str, str], project: Project) -> Iterator[Passage | None]:
    """The lines of a file on which a name stands, each name's first use: an import is none."""
    lines, imports = project.lines(path), project.import_lines(path)
    shown: set[str] = set()
    for number, text in enumerate(lines, 1):
        if number in imports:
            continue
        for name in names_of_line(text):
            if name in names and name not in shown and len(shown) < MAX_USES:
                shown.add(name)
                yield around(path, lines, number, 2, f"uses {name} of {names[name]}")
