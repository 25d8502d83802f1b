"""JavaScript and TypeScript as tokens: enough to tell code from comments, strings, templates, regexes.

Where a ``/`` begins a regex cannot be told without parsing; it is taken for one where an operand is
expected (ECMA-262, 12.1, "InputElementRegExp"), and only if it ends on its line. JSX is not parsed:
a quote in its text begins no string unless it ends on its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["word", "string", "template", "regex", "number", "sign"]


class Token(NamedTuple):
    """A token: its kind, its text (of a string: without quotes), and the index of its first character."""

    kind: Kind
    text: str
    start: int


_BLANK: Final = re.compile(r"(?:\s+|//[^\n\u2028\u2029]*|/\*[\s\S]*?(?:\*/|\Z))+")
_WORD: Final = re.compile(r"[^\W\d][\w$]*|[$#@][\w$]*")
_NUMBER: Final = re.compile(r"\.?\d[\w.]*")
_STRING: Final = re.compile(r"""'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*\"""")
_REGEX: Final = re.compile(r"/(?![*/>])(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/[a-z]*")
_TEMPLATE: Final = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*")
_PATTERNS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("word", _WORD),
    ("string", _STRING),
    ("number", _NUMBER),
    ("regex", _REGEX),
)
_OPERAND_FOLLOWS: Final = frozenset(
    [
        "await",
        "case",
        "delete",
        "do",
        "else",
        "extends",
        "in",
        "instanceof",
        "new",
        "of",
        "return",
        "throw",
        "typeof",
        "void",
        "yield",
    ]
)
_PARTNERS: Final = {"(": ")", "[": "]", "{": "}"}
_HEADS: Final = frozenset({"if", "while", "for", "with"})


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a text, whatever it is; comments and blanks are left out.

    The parts of a template with ``${`` come as several tokens of kind template around the code.
    """
    return _Lexer(text).run()


def is_balanced(text: str) -> bool:
    """Whether every bracket outside strings, comments and regexes has its partner.

    Example:
        >>> is_balanced("f({a: [1]}) // )"), is_balanced("if (a) {"), is_balanced("f(]")
        (True, False, False)
    """
    lexer, opened = _Lexer(text), list[str]()
    for token in lexer.run():
        if token.kind == "sign" and token.text in _PARTNERS:
            opened.append(_PARTNERS[token.text])
        elif (
            token.kind == "sign"
            and token.text in {")", "]", "}"}
            and (not opened or opened.pop() != token.text)
        ):
            return False
    return not opened and not any(bracket == "`" for bracket, _ in lexer.brackets)


def is_compiled(text: str) -> bool:
    """Whether a text has what a compiler turns into JavaScript first: JSX, or decorators.

    Example:
        >>> is_compiled("const a = <p>1</p>;"), is_compiled("@store class A {}")
        (True, True)
        >>> is_compiled("if (a < b) { c = a <= 1; d.e #f }"), is_compiled("'@a' // @b <p>")
        (False, False)
    """
    lexer = _Lexer(text)
    for token in lexer.run():
        if token.kind == "word" and token.text.startswith("@"):
            return True
        if token.text == "<" and _TAG.match(text, token.start) and lexer.expects_operand():
            return True
    return False


_TAG: Final = re.compile(r"<(?:[A-Za-z_$]|>)")


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.before = Token("sign", ";", 0)
        self.brackets: list[tuple[str, str]] = []
        self.closed_head = False

    def run(self) -> Iterator[Token]:
        index, text = 0, self.text
        while index < len(text):
            if blank := _BLANK.match(text, index):
                index = blank.end()
                continue
            token, index = self._next(index)
            yield token
            self.before = token

    def _next(self, index: int) -> tuple[Token, int]:
        text, char = self.text, self.text[index]
        if char == "`":
            return self._template(index, index + 1)
        if char == "}" and self.brackets and self.brackets[-1][0] == "`":
            self.brackets.pop()
            return self._template(index, index + 1)
        for kind, pattern in _PATTERNS:
            if (match := pattern.match(text, index)) and (char != "/" or self.expects_operand()):
                inside = match[0][1:-1] if kind == "string" else match[0]
                return Token(kind, inside, index), match.end()
        self._bracket(char)
        return Token("sign", char, index), index + 1

    def _template(self, start: int, index: int) -> tuple[Token, int]:
        match = _TEMPLATE.match(self.text, index)
        assert match is not None
        end = match.end()
        if self.text.startswith("${", end):
            self.brackets.append(("`", ""))
            return Token("template", "${" + match[0], start), end + 2
        return Token("template", match[0], start), end + 1

    def _bracket(self, char: str) -> None:
        self.closed_head = False
        if char in "([{":
            self.brackets.append((char, self.before.text if self.before.kind == "word" else ""))
        elif char in ")]}" and self.brackets and self.brackets[-1][0] != "`":
            self.closed_head = char == ")" and self.brackets[-1][1] in _HEADS
            self.brackets.pop()

    def expects_operand(self) -> bool:
        """Whether no operator can stand behind the token before."""
        kind, text, start = self.before
        if kind == "word":
            return text in _OPERAND_FOLLOWS
        if kind != "sign":
            return False
        if text == "<":  # the end tag of JSX: an operator would have a blank behind it
            return self.text[start + 1] != "/"
        return self.closed_head if text == ")" else text != "]"
