"""Where a project defines the names that an error mentions."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from loki.action.strategies.error_locations import Location
from loki.action.strategies.strategy_context import Project

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
        same_kind = posixpath.splitext(path)[1] == extension
        return (
            path not in first,
            not same_kind,
            posixpath.dirname(path) != folder,
            path.count("/"),
        )

    return sorted(project.paths, key=distance)
