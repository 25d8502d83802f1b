"""``context_expand``: read the files and definitions that an error names.

Best first: the places of the error, the definitions of the names in its message, those of the names on
the failing line; of a regression, first how the dependent file uses what was changed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from loki.action.loop.briefing import CONTEXT_TOKENS
from loki.action.loop.loop_events import StrategyResult
from loki.action.strategies.strategy_context import Project, StrategyContext, StrategyNotApplicable
from loki.base.tokens import BYTES_PER_TOKEN

# --- The places that a failing check names ------------------------------------------------------------

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
    output = situation.output or failure.excerpt
    if len(output) > 2 * MAX_OUTPUT:
        output = f"{output[:MAX_OUTPUT]}\n{output[-MAX_OUTPUT:]}"
    return list(dict.fromkeys((*known, *_places(output, project))))[:MAX_LOCATIONS]


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
    root = str(project.root).rstrip("/") + "/"
    path = named.replace("\\", "/").removeprefix("file://").removeprefix(root)
    path = posixpath.normpath(path)
    return path if path in project else None


# --- Passages of files, as many as fit into a briefing ------------------------------------------------

BUDGET = CONTEXT_TOKENS * BYTES_PER_TOKEN
"""Characters of all that a strategy tells."""

SHARES = 3
"""No passage takes more than a third of what is left while others wait; chosen, not measured."""

WIDTH = 160
"""Characters of a line that are shown; chosen, not measured."""

_NEAR = 5
"""Lines from a place that are as good as shown with it; chosen, not measured."""

_BODY_LINES = 20
"""Lines of a definition, at most; chosen, not measured."""


@dataclass(frozen=True)
class Passage:
    """Lines of a file round a place.

    Attributes:
        path: of the file.
        lines: all of its lines.
        line: the place, from 1; it is marked.
        first, last: what may be shown, from 1, both included.
        why: what the passage is shown for, "" where that is plain.
    """

    path: str
    lines: Sequence[str]
    line: int
    first: int
    last: int
    why: str = ""

    def render(self, room: int) -> str:
        """The passage in at most so many characters: the nearest lines survive; "" where none fit."""
        head = f"{self.path}:{self.line}" + (f" ({self.why})" if self.why else "")
        room -= len(head) + 1
        rows: dict[int, str] = {}
        for number in self._nearest_first():
            row = self._row(number)
            if len(row) + 1 > room:
                break
            room -= len(row) + 1
            rows[number] = row
        shown = [number for number in sorted(rows) if self._is_worth_it(number, rows)]
        return "\n".join((head, *(rows[number] for number in shown))) if rows else ""

    def _is_worth_it(self, number: int, rows: Mapping[int, str]) -> bool:
        """Not a blank line at an edge, or behind another."""
        if number == self.line or self.lines[number - 1].strip():
            return True
        return number - 1 in rows and number + 1 in rows and bool(self.lines[number - 2].strip())

    def _nearest_first(self) -> Iterable[int]:
        """Line numbers from the place outwards, what stands above first: it says what the place is in."""
        yield self.line
        for distance in range(1, max(self.line - self.first, self.last - self.line) + 1):
            if self.line - distance >= self.first:
                yield self.line - distance
            if self.line + distance <= self.last:
                yield self.line + distance

    def _row(self, number: int) -> str:
        mark = ">" if number == self.line else " "
        text = self.lines[number - 1].rstrip().expandtabs(4)
        cut = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
        return f"{mark}{number:5} {cut}".rstrip()


def around(path: str, lines: Sequence[str], line: int, reach: int, why: str = "") -> Passage | None:
    """The passage of ``reach`` lines before and after a place; None where the file has no lines."""
    if not lines:
        return None
    line = min(max(1, line), len(lines))
    return Passage(path, lines, line, max(1, line - reach), min(len(lines), line + reach), why)


def definition(path: str, lines: Sequence[str], line: int, why: str = "") -> Passage | None:
    """The passage of what begins on a line: to where the indentation comes back to its own."""
    if not 1 <= line <= len(lines):
        return None
    own = _indent(lines[line - 1])
    last = line
    for number in range(line + 1, min(len(lines), line + _BODY_LINES - 1) + 1):
        text = lines[number - 1]
        if text.strip() and _indent(text) <= own:
            last = number if re.match(r"\s*[)\]}]", text) else last
            break
        last = number if text.strip() else last
    return Passage(path, lines, line, line, last, why)


def merged(passages: Iterable[Passage | None]) -> list[Passage]:
    """The passages without those whose place an earlier one of the same file shows already."""
    kept: list[Passage] = []
    for passage in passages:
        if passage is not None and not any(_covers(other, passage) for other in kept):
            kept.append(passage)
    return kept


def _covers(one: Passage, other: Passage) -> bool:
    # What lies far from a passage's own place may not be shown, as room is short.
    reach = max(_NEAR, one.last - one.line if one.first == one.line else 0)
    return one.path == other.path and abs(one.line - other.line) <= reach


def fitted(texts: Sequence[str], passages: Sequence[Passage], room: int = BUDGET) -> str:
    """Texts and then passages, as much as there is room for; those that come first get most.

    Args:
        texts: each shown whole, or not at all.
        passages: the best first.
        room: characters.
    """
    shown: list[str] = []
    for text in texts:
        if text and len(text) + 2 <= room:
            shown.append(text)
            room -= len(text) + 2
    for number, passage in enumerate(passages):
        waiting = len(passages) - number
        share = room if waiting == 1 else max(room // min(waiting, SHARES), min(room, 400))
        part = passage.render(min(share, room) - 2)
        if part:
            shown.append(part)
            room -= len(part) + 2
    return "\n\n".join(shown)


def _indent(text: str) -> int:
    expanded = text.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


# --- Where the names are defined that an error mentions -----------------------------------------------

MAX_NAMES = 12
MAX_PER_NAME = 3
"""Names that are looked for, and definitions of each that are kept; chosen, not measured."""

SHORTEST = 3
"""Letters of a name that is looked for: `i` and `ok` are defined everywhere."""

# What introduces a name in the languages that people write; a method's receiver may stand between.
_MODIFIERS = (
    r"(?:(?:export|default|declare|abstract|public|private|protected|static|final|async|unsafe|const|"
    r"inline|virtual|override|readonly|pub(?:\([a-z]+\))?)[ \t]+)*"
)
_KEYWORDS = (
    r"(?:def|class|interface|type|struct|enum|union|trait|func|function|fn|const|let|var|val|fun|"
    r"module|namespace|mod|object|record)[ \t*]+(?:\([^()\n]{0,80}\)[ \t]*)?"
)
_DEFINES = (
    rf"^[ \t]*{_MODIFIERS}{_KEYWORDS}(?P<keyword>NAME)\b"
    r"|^(?:[ \t]+(?:self|this)\.)?(?P<assigned>NAME)[ \t]*(?::[^=\n]{0,80})?=(?!=)"
    r"|^[ \t]*(?:[A-Za-z_][\w<>\[\],.*&:]{0,60}[ \t*&]+){1,4}(?P<typed>NAME)[ \t]*"
    r"\([^;\n]{0,200}\)[^;\n]{0,80}\{"
)
_ANY = re.compile(_DEFINES.replace("NAME", r"[A-Za-z_]\w*"), re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile("['\"`\u2018\u201c]([A-Za-z_][\\w.<>\\[\\], |&:-]{0,200})['\"`\u2019\u201d]")
_CALLED = re.compile(r"\b([A-Za-z_]\w+)\(")


def names_in(message: str) -> list[str]:
    """The identifiers that an error message mentions, those in quotes first.

    Example:
        >>> names_in("Property 'user' does not exist on type 'Partial<Session>'.")
        ['user', 'Partial', 'Session']
        >>> names_in("greet() missing 1 required positional argument: 'name'")
        ['name', 'greet']
    """
    quoted = [word for text in _QUOTED.findall(message) for word in _WORD.findall(text)]
    return _long_enough((*quoted, *_CALLED.findall(message)))


def names_of_line(text: str) -> list[str]:
    """The identifiers of a line of code, without what stands in its strings."""
    bare = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`", " ", text)
    return _long_enough(_WORD.findall(bare))


def _long_enough(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for name in names if len(name) >= SHORTEST))


def definitions(
    names: Sequence[str], project: Project, near: str | None, first: Sequence[str] = ()
) -> list[Location]:
    """Where the project defines some names, in the order of the names.

    Args:
        names: what to look for.
        project: its files.
        near: a path; files of its language come first, those in its folder before others.
        first: paths to look into before all others: what the failing file imports.
    """
    wanted = list(names)[:MAX_NAMES]
    if not wanted:
        return []
    either = "|".join(map(re.escape, wanted))
    pattern = re.compile(_DEFINES.replace("NAME", either), re.MULTILINE)
    found: dict[str, list[Location]] = {name: [] for name in wanted}
    for path in _in_order(project, near, first):
        text = project.read(path)
        if not any(name in text for name in wanted):
            continue
        for name, line in _in_text(pattern, text):
            if len(found[name]) < MAX_PER_NAME and (path, line) not in found[name]:
                found[name].append((path, line))
        if all(len(places) >= MAX_PER_NAME for places in found.values()):
            break
    return list(dict.fromkeys(place for name in wanted for place in found[name]))


def defined_in(text: str) -> list[str]:
    r"""The names that a file defines, in order.

    Example:
        >>> defined_in("LIMIT = 3\nclass Cart:\n    def total(self):\n        tax = 1\n")
        ['LIMIT', 'Cart', 'total']
    """
    return _long_enough([name for name, _ in _in_text(_ANY, text)])


def _in_text(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, int]]:
    line, counted = 1, 0
    for match in pattern.finditer(text):
        start = match.start(match.lastgroup or 0)
        line += text.count("\n", counted, start)
        counted = start
        yield match[match.lastgroup or 0], line


def _in_order(project: Project, near: str | None, first: Sequence[str]) -> list[str]:
    extension = posixpath.splitext(near or "")[1]
    folder = posixpath.dirname(near or "")

    def distance(path: str) -> tuple[bool, bool, bool, int]:
        is_other_kind = posixpath.splitext(path)[1] != extension
        is_elsewhere = posixpath.dirname(path) != folder
        return path not in first, is_other_kind, is_elsewhere, path.count("/")

    return sorted(project.paths, key=distance)


# --- The strategy -------------------------------------------------------------------------------------

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
    on_line = [
        name
        for path, line in places[:MAX_PLACES]
        for text in project.lines(path)[line - 1 : line]
        for name in names_of_line(text)
        if name not in mentioned
    ]
    for names in (mentioned, on_line):
        for path, line in definitions(names, project, near, imported):
            name = next(n for n in names_of_line(project.lines(path)[line - 1]) if n in names)
            yield definition(path, project.lines(path), line, f"defines {name}")


# --- A regression -------------------------------------------------------------------------------------


def _uses(situation: StrategyContext, places: Sequence[Location]) -> Iterator[Passage | None]:
    """Lines of the dependent files on which names stand that the changed files define."""
    project = situation.project
    changed = [path for path in situation.changed if path in project]
    named = [path for path in (situation.failure.path,) if path and path in project]
    tests = (re.split(r"::|\s", test)[0] for test in situation.failure.tests)
    dependent = [
        *named,
        *(path for path, _ in places),
        *(path for path in tests if path in project),
    ]
    names = {name: source for source in changed for name in defined_in(project.read(source))}
    for path in dict.fromkeys(dependent):
        if path not in changed:
            yield from _lines_with(path, names, project)


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
