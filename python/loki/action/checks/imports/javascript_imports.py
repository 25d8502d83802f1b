"""The imports of a JavaScript or TypeScript file, by its tokens."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence

from loki.action.checks.imports.import_statement import Import
from loki.action.checks.imports.javascript_tokens import Token, tokens_of

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
        self.tokens: Sequence[Token] = tuple(tokens_of(text))
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
        is_type = self._at(position).text == "type" and self._at(position + 1).text not in {
            "from",
            ",",
        }
        names: list[str] = []
        inside = False
        position += is_type
        if word == "export" and self._at(position).text not in {"*", "{"}:
            return
        while True:
            self.read_to = position
            token, following = self._at(position), self._at(position + 1)
            if (
                token.text == "from"
                and not inside
                and following.kind == "string"
                and position > start
            ):
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
