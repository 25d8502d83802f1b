"""The imports of a JavaScript or TypeScript file, by its tokens.

Where a ``/`` begins a regex cannot be told without parsing; it is taken for one where an operand is
expected (ECMA-262, 12.1, "InputElementRegExp"), and only if it ends on its line. JSX is not parsed:
a quote in its text begins no string unless it ends on its line.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from loki.action.checks.imports.project_files import Import

# --- Tokens: enough to tell code from comments, strings, templates, regexes ---------------------------

Kind: TypeAlias = Literal["word", "string", "template", "regex", "number", "sign"]


class Token(NamedTuple):
    """A token: its kind, its text (of a string: without quotes), and the index of its first character."""

    kind: Kind
    text: str
    start: int


_BLANK: Final = re.compile(r"(?:\s+|//[^\n\u2028\u2029]*|/\*[\s\S]*?(?:\*/|\Z))+")
_TEMPLATE: Final = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*")
_PATTERNS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("word", re.compile(r"[^\W\d][\w$]*|[$#@][\w$]*")),
    ("string", re.compile(r"""'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*\"""")),
    ("number", re.compile(r"\.?\d[\w.]*")),
    ("regex", re.compile(r"/(?![*/>])(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/[a-z]*")),
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


def is_balanced(text: str) -> bool:
    """Whether every bracket outside strings, comments and regexes has its partner.

    Example:
        >>> is_balanced("f({a: [1]}) // )"), is_balanced("if (a) {"), is_balanced("f(]")
        (True, False, False)
    """
    lexer, opened = _Lexer(text), list[str]()
    for token in lexer.run():
        if token.kind != "sign":
            continue
        if token.text in _PARTNERS:
            opened.append(_PARTNERS[token.text])
        elif token.text in ")]}" and (not opened or opened.pop() != token.text):
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
        """The tokens of a text, whatever it is; comments and blanks are left out.

        The parts of a template with ``${`` come as several tokens of kind template around the code.
        """
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


# --- Imports ------------------------------------------------------------------------------------------

_BREAK = re.compile("\r\n|[\n\r\u2028\u2029]")
KEYWORDS = {"import", "export", "require"}
_NOTHING = Token("sign", "", -1)
_ESCAPE = re.compile(
    r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\r?\n|([\s\S]))"
)


def imports_of(text: str) -> tuple[Import, ...]:
    """What a JavaScript or TypeScript file imports: statements, ``require`` and ``import()``."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: Sequence[Token] = tuple(_Lexer(text).run())
        self.lines = [0, *(found.end() for found in _BREAK.finditer(text))]
        self.found: list[Import] = []
        self.read_to = 0  # no clause is read twice: time stays linear, whatever the text

    def read(self) -> tuple[Import, ...]:
        brackets: list[str] = []
        for position, token in enumerate(self.tokens):
            before = self._at(position - 1)
            if token.kind == "sign" and token.text in "([{":
                brackets.append(token.text)
            elif token.kind == "sign" and token.text in ")]}" and brackets:
                brackets.pop()
            elif token.kind != "word" or token.text not in KEYWORDS or position < self.read_to:
                continue
            elif before[:2] != ("sign", ".") or self._is_spread(position):
                self._word(position, token.text, brackets)
        return tuple(self.found)

    def _word(self, position: int, word: str, brackets: list[str]) -> None:
        following = self._at(position + 1)
        if following.text == "(" and following.kind == "sign" and word != "export":
            is_deferred = self._at(position - 1)[:2] == ("sign", ">")  # () => import("x")
            self._call(position + 2, bool(brackets) or is_deferred)
        elif word == "import" and following.kind == "string" and "(" not in brackets:
            self._add(following, (), False, False)
        elif word != "require" and "(" not in brackets:
            self._clause(position + 1, word)

    def _call(self, position: int, is_optional: bool) -> None:
        """``require("x")`` and ``import("x")``: inside of anything they may never run, or be caught."""
        name, closing = self._at(position), self._at(position + 1)
        is_text = name.kind == "string" or (name.kind == "template" and name.text[:2] != "${")
        if is_text and closing.text in {")", ","}:
            caught = [t.text for t in self.tokens[position + 2 : position + 4]] == [".", "catch"]
            self._add(name, (), False, is_optional or caught)

    def _clause(self, position: int, word: str) -> None:
        """``import … from "x"`` and ``export … from "x"``; anything else is none."""
        start = position
        first, second = self._at(position), self._at(position + 1)
        is_type = first.text == "type" and second.text not in {"from", ","}
        names: list[str] = []
        inside = False
        position += is_type
        if word == "export" and self._at(position).text not in {"*", "{"}:
            return
        while True:
            self.read_to = position
            token, following = self._at(position), self._at(position + 1)
            is_end = token.text == "from" and not inside and position > start
            if is_end and following.kind == "string":
                only_types = _only_types(self.tokens[start:position])
                self._add(following, tuple(names), is_type or only_types, False)
                return
            if not _is_of_clause(token, inside):
                return
            inside = token.text == "{" or (inside and token.text != "}")
            name = self._name(position, inside)
            if name:
                names.append(name)
            position += 1

    def _name(self, position: int, inside: bool) -> str:
        """What a token of a clause takes from the module: a name, ``default``, ``*``, or nothing."""
        before, token, after = (self._at(position + k) for k in (-1, 0, 1))
        if token.text == "*":
            return "*"
        if token.kind == "sign" or token.text == "as" or before.text == "as":
            return ""
        if inside:
            is_modifier = token.text == "type" and after.text not in {",", "}", "as"}
            return "" if is_modifier else token.text
        return "default"

    def _add(self, name: Token, names: tuple[str, ...], is_type: bool, is_optional: bool) -> None:
        line = bisect.bisect_right(self.lines, name.start)
        column = name.start - self.lines[line - 1] + 1
        module = _ESCAPE.sub(_character, name.text) if "\\" in name.text else name.text
        if module:
            self.found.append(Import(module, line, column, 0, names, is_type, is_optional))

    def _is_spread(self, position: int) -> bool:
        return [t.text for t in self.tokens[max(0, position - 3) : position]] == [".", ".", "."]

    def _at(self, position: int) -> Token:
        return self.tokens[position] if 0 <= position < len(self.tokens) else _NOTHING


def _is_of_clause(token: Token, inside: bool) -> bool:
    if token.kind == "word":
        return inside or token.text not in KEYWORDS
    return token.kind == "string" or (token.kind == "sign" and token.text in set("{},*"))


def _only_types(clause: Sequence[Token]) -> bool:
    """Whether each name in the braces of a clause is marked as a type, and there is nothing else."""
    words = [token.text for token in clause]
    if len(words) < 2 or words[0] != "{" or words[-1] != "}":  # noqa: PLR2004 - the braces
        return False
    parts = " ".join(words[1:-1]).split(",")
    return all(p.split()[:1] == ["type"] and len(p.split()) > 1 for p in parts if p.strip())


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    return {"n": "\n", "t": "\t"}.get(escape[4], escape[4] or "")
