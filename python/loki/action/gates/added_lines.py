"""What a change adds to each file, and in what kind of place it stands; code told from comments and strings.

The lexer is no parser, but total and linear: where a language's own rules are intricate (regular expressions
in JavaScript, markup in JSX) it may take a piece of code for a string up to the end of the line, and a rule
is silent there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from loki.action.changes.tree import Tree
from loki.action.gates.gate import ADVISORY
from loki.base.yaml_document import Strict, read_beside
from loki.decision.drift import kinds_of_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.changes.change import Change


# --- Which language a file is of: ``languages.yml`` ---------------------------------------------------


class Language(Strict):
    """A language by the names of its files, and the lexer that takes it apart."""

    name: str
    lexer: str
    suffixes: tuple[str, ...]
    names: tuple[str, ...] = ()


class _Languages(Strict):
    version: int
    languages: tuple[Language, ...]
    generated: re.Pattern[str]

    @cached_property
    def by_name(self) -> dict[str, Language]:
        return {n: one for one in self.languages for n in (*one.suffixes, *one.names)}


@cache
def _known() -> _Languages:
    return read_beside(__file__, "languages.yml", _Languages)


def language_of(path: str) -> Language | None:
    """The language of a file, by its name; None where it is not known.

    Example:
        >>> [one and one.name for one in map(language_of, ("a.tsx", "deploy/Makefile", "a.txt"))]
        ['javascript', 'shell', None]
    """
    name = PurePosixPath(path)
    return _known().by_name.get(name.name) or _known().by_name.get(name.suffix)


# --- Code told from comments and strings, well enough for rules on tokens -----------------------------

_LINE_COMMENT = r"(?P<c>//[^\n]*|/\*(?:[^*]+|\*(?!/))*(?:\*/)?)"
_DOUBLE = r'"(?:[^"\\\n]|\\.)*"?'
_SINGLE = r"'(?:[^'\\\n]|\\.)*'?"
_BACKTICK = r"`(?:[^`\\]|\\.)*`?"

_LEXERS = {
    "python": r"(?P<c>\#[^\n]*)"
    r'|(?P<s>"""(?:[^"\\]|\\.|"(?!""))*(?:""")?' + r"|'''(?:[^'\\]|\\.|'(?!''))*(?:''')?"
    rf"|{_DOUBLE}|{_SINGLE})",
    # A slash begins a regular expression where no value can stand before it.
    "javascript": rf"{_LINE_COMMENT}|(?P<s>{_DOUBLE}|{_SINGLE}|{_BACKTICK})"
    r"|(?:[(,=:\[!&|?{};+~^%>]|\breturn|\btypeof|\bcase)[ \t]*"
    r"(?P<r>/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.){0,200}\]){1,500}/)",
    "go": rf"{_LINE_COMMENT}|(?P<s>{_DOUBLE}|`[^`]*`?|'(?:[^'\\\n]|\\.){{1,8}}')",
    "rust": rf"{_LINE_COMMENT}"
    r'|(?P<s>\br(?P<h>\#{0,4})".*?(?:"(?P=h)|\Z)|"(?:[^"\\]|\\.)*"?'
    r"|'(?:[^'\\\n]|\\.[^'\n]{0,8})')",
    "c": rf"{_LINE_COMMENT}|(?P<s>{_DOUBLE}|{_SINGLE})",
    "css": rf"(?P<c>/\*(?:[^*]+|\*(?!/))*(?:\*/)?)|(?P<s>{_DOUBLE}|{_SINGLE})",
    "markup": r"(?P<c><!--(?:[^-]+|-(?!->))*(?:-->)?)",
    "hash": r"(?P<c>(?:^|(?<=[\s;]))\#[^\n]*)",
}
_COMPILED = {name: re.compile(text, re.DOTALL | re.MULTILINE) for name, text in _LEXERS.items()}
_TEST_MODULE = re.compile(
    r"#\[cfg\((?:test|all\(test[^\]\n]{0,80})\)\]|#\[(?:\w+::)?test\b[^\]\n]*\]"
)


@dataclass(frozen=True)
class Lexed:
    """A text, and the same text with parts of it blank; offsets are the same in each.

    Attributes:
        text: as it is.
        code: strings and comments are blank; quotes stay.
        source: comments are blank.
        comments, strings: (begin, end) of each; a string with its quotes.
    """

    text: str
    code: str
    source: str
    comments: tuple[tuple[int, int], ...]
    strings: tuple[tuple[int, int], ...]

    @cached_property
    def starts(self) -> list[int]:
        """Offset of each line."""
        return [0, *(m.end() for m in re.finditer("\n", self.text))]

    def line(self, offset: int) -> int:
        """The line, from 1, in which an offset lies."""
        return bisect_right(self.starts, offset)

    def column(self, offset: int) -> int:
        """The column, from 1, of an offset."""
        return offset - self.starts[self.line(offset) - 1] + 1

    def span(self, first: int, last: int) -> str:
        """The text from one line to another, both from 1 and both with."""
        starts = self.starts
        begin = starts[max(first, 1) - 1] if first <= len(starts) else len(self.text)
        return self.text[begin : starts[last] if last < len(starts) else len(self.text)]


def lex(text: str, lexer: str, *, tests: bool = False) -> Lexed:
    """Tell code from comments and strings.

    Args:
        text: of a file.
        lexer: python, javascript, go, rust, c, css, markup, hash; another: all is code.
        tests: tests that stand beside the code are code, too; else they are blank.

    Example:
        >>> lex("x = '#' # why", "python").code
        "x = ' '      "
    """
    expression = _COMPILED.get(lexer)
    if expression is None:
        return Lexed(text, text, text, (), ())
    comments: list[tuple[int, int]] = []
    strings: list[tuple[int, int]] = []
    code, source, at = [], [], 0
    for match in expression.finditer(text):
        kind = match.lastgroup or "s"  # c: a comment, s: a string, r: a regular expression
        begin, end = match.span(kind)
        code.append(text[at:begin])
        source.append(text[at:begin])
        blank = _blank(text[begin:end])
        source.append(blank if kind == "c" else text[begin:end])
        is_quoted = kind != "c" and end - begin > 1
        code.append(text[begin] + blank[1:-1] + text[end - 1] if is_quoted else blank)
        (comments if kind == "c" else strings).append((begin, end))
        at = end
    code.append(text[at:])
    source.append(text[at:])
    lexed = Lexed(text, "".join(code), "".join(source), tuple(comments), tuple(strings))
    return _without_tests(lexed) if lexer == "rust" and not tests else lexed


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _without_tests(lexed: Lexed) -> Lexed:
    """Rust keeps tests beside the code: they are blank, too."""
    parts, at = [], 0
    for match in _TEST_MODULE.finditer(lexed.code):
        if match.start() >= at:
            end = _closing(lexed.code, match.end())
            parts += [lexed.text[at : match.start()], _blank(lexed.text[match.start() : end])]
            at = end
    return lex("".join((*parts, lexed.text[at:])), "rust", tests=True) if parts else lexed


def _closing(code: str, at: int) -> int:
    """Behind the brace that closes the next one opened; behind the ';' if that comes first."""
    depth = 0
    for match in re.compile(r"[{};]").finditer(code, at):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
        if depth <= 0:
            return match.end()
    return len(code)


# --- What a change adds to each file ------------------------------------------------------------------

MAX_SIZE = 400_000
"""Bytes of a file that is looked at: nobody writes a larger one by hand. Chosen, not measured."""

MAX_LINE = 2_000
"""Characters: a longer line in a file's first lines is minified or data. Chosen, not measured."""

_HEAD_LINES = 8
_UNREAD = frozenset({"vendored", "lock"})


@dataclass(frozen=True)
class Addition:
    """One file of a change.

    Attributes:
        path: relative to the project.
        before: its text before; None: it was not there.
        after: its text after; "": it is deleted.
        language: None where it is not known.
        places: what kinds of place it stands in: test, example, vendored, …
    """

    path: str
    before: str | None
    after: str
    language: Language | None
    places: frozenset[str]

    @cached_property
    def lexed(self) -> Lexed:
        """The text after, taken apart."""
        return lex(self.after, self.language.lexer if self.language else "")

    @cached_property
    def was(self) -> Addition:
        """The file as it was, as if that were new."""
        return Addition(self.path, None, self.before or "", self.language, self.places)

    @cached_property
    def added(self) -> frozenset[int]:
        """The lines, from 1, that the text before does not have."""
        return added_lines(self.before or "", self.after)

    @property
    def has_lost_lines(self) -> bool:
        """Whether the text before has lines that are gone."""
        return bool(added_lines(self.after, self.before or ""))


def added_lines(before: str, after: str) -> frozenset[int]:
    """The lines of a text, from 1, that are not in an earlier one; moved lines are none of them.

    Lines count by how often they occur, after the common beginning and end: linear, where the
    shortest difference is quadratic.

    Example:
        >>> sorted(added_lines("a\\nb\\n", "b\\nx\\na\\n"))
        [2]
    """
    old, new = before.split("\n"), after.split("\n")
    first, most = 0, min(len(old), len(new))
    while first < most and old[first] == new[first]:
        first += 1
    last = 0
    while last < most - first and old[-1 - last] == new[-1 - last]:
        last += 1
    known = Counter(line.strip() for line in old[first : len(old) - last])
    found = []
    for number in range(first, len(new) - last):
        line = new[number].strip()
        if known[line] > 0:
            known[line] -= 1
        elif line:
            found.append(number + 1)
    return frozenset(found)


def additions(change: Change, tree: Tree) -> Iterator[Addition]:
    """What a change adds to each file; what is generated, minified, vendored or no text is left out.

    Args:
        change: the proposal.
        tree: the project as it is.
    """
    for edit in change.edits:
        places = kinds_of_path(edit.path)
        if edit.mode == "symlink" or edit.size > MAX_SIZE or places & _UNREAD:
            continue
        before = text_before(tree, edit.path)
        after = "" if edit.after is None else text_of(edit.after)
        if after is not None and before != after and not _is_generated(after):
            yield Addition(edit.path, before, after, language_of(edit.path), places)


def text_before(tree: Tree, path: str) -> str | None:
    """The text of a file before the change; None where it was not there or is no text."""
    entry = tree.entries.get(path)
    if entry is None or entry.is_symlink or entry.size > MAX_SIZE:
        return None
    try:
        return text_of(tree.read(path))
    except (OSError, ValueError):
        return None


def text_of(content: bytes) -> str | None:
    """What a file says, lines ended by line feeds; None where that is no text, or too large."""
    if len(content) > MAX_SIZE or b"\0" in content[:8_000]:
        return None
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _is_generated(text: str) -> bool:
    head = text[: 4 * MAX_LINE].split("\n", _HEAD_LINES)[:_HEAD_LINES]
    if any(len(line) > MAX_LINE for line in head):
        return True
    return _known().generated.search("\n".join(head)) is not None


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault in a text.

    Attributes:
        rule: which rule says so; with `key` it is what a fault that moved is known by.
        concern: name of the concern.
        path: the file, relative to the project.
        line, column: where it begins, from 1.
        last: the line in which it ends.
        description: what is wrong, without the concern.
        severity: blocking or advisory.
        fix: what to do about it; "": what the concern says.
        key: what was found, without its place and its indentation.
    """

    rule: str
    concern: str
    path: str
    line: int
    column: int
    last: int
    description: str
    severity: str = ADVISORY
    fix: str = ""
    key: str = ""
