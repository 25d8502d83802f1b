"""Telling code from comments and strings, well enough for rules on tokens; total and linear.

This is no parser: where a language's own rules are intricate (regular expressions in JavaScript,
markup in JSX) it may take a piece of code for a string up to the end of the line, and a rule is
silent there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

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
    _starts: list[int] = field(default_factory=list, repr=False)

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
    code, source, at, names = [], [], 0, expression.groupindex
    for match in expression.finditer(text):
        kind = "c" if match.start("c") >= 0 else "s"
        if "r" in names and match.start("r") >= 0:
            kind = "r"
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
    spans: list[tuple[int, int]] = []
    for match in _TEST_MODULE.finditer(lexed.code):
        if not spans or match.start() >= spans[-1][1]:
            spans.append((match.start(), _closing(lexed.code, match.end())))
    if not spans:
        return lexed

    def outside(text: str) -> str:
        parts, at = [], 0
        for begin, end in spans:
            parts += [text[at:begin], _blank(text[begin:end])]
            at = end
        return "".join((*parts, text[at:]))

    def kept(pieces: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        begins = [begin for begin, _ in spans]
        return tuple(
            (b, e) for b, e in pieces if (i := bisect_right(begins, b)) == 0 or b >= spans[i - 1][1]
        )

    code, source, text = outside(lexed.code), outside(lexed.source), outside(lexed.text)
    return Lexed(text, code, source, kept(lexed.comments), kept(lexed.strings))


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
