"""Faults that a pattern of text or tokens shows, in any language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loki.action.gates.finding import Finding
from loki.action.gates.review_rules import Rule, knowledge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.gates.added_lines import Addition
    from loki.action.gates.lexer import Lexed

MAX_SHOWN = 60
"""Characters of what was found that a description shows. Chosen, not measured."""

_REPLACING = frozenset({"config", "shell", "ruby"})
"""Languages in which strings go over lines without a sign, so that one may hold a comment."""

_OPENERS = tuple("{}([,;:>|")


def text_findings(addition: Addition) -> Iterator[Finding]:
    """What the rules on text and tokens find in the whole file.

    Rules run only where a text that they need stands in the file.
    """
    language = addition.language
    if language is None:
        return
    for rule in knowledge().rules:
        if rule.languages and language.name not in rule.languages:
            continue
        if rule.not_in & addition.places or rule.file not in addition.after:
            continue
        if not any(need in addition.after for need in rule.needs):
            continue
        found = _in_comments if rule.where == "comments" else _in_code
        yield from found(rule, addition)


def _in_code(rule: Rule, addition: Addition) -> Iterator[Finding]:
    lexed = addition.lexed
    view = {"code": lexed.code, "source": lexed.source, "all": lexed.text}[rule.where]
    for match in rule.regex.finditer(view):
        begin = match.start() + len(match[0]) - len(match[0].lstrip())
        # What begins inside of a string or a comment is not code.
        if lexed.code[begin] != lexed.text[begin] or not lexed.text[begin].strip():
            continue
        first, last = lexed.line(begin), lexed.line(max(begin, match.end() - 1))
        if rule.where == "all" and _has_comment(rule, match[0]):
            continue
        around = lexed.span(first - rule.look_behind, last)
        if rule.unless and rule.unless.search(around):
            continue
        if rule.block and _is_meant(rule.block, lexed, match):
            continue
        where = (first, lexed.column(begin), last)
        yield Finding.of(rule, addition.path, where, _described(rule, match), match[0])


def _is_meant(block: str, lexed: Lexed, match: re.Match[str]) -> bool:
    """Whether the block in which a match stands shows that it is no oversight."""
    if block == "function":
        begin = _opening(lexed.code, match.start(), "()")
        return _KEYWORD.search(lexed.code[max(0, begin - 20) : begin]) is not None
    begin = _opening(lexed.code, lexed.code.rfind("}", 0, match.start()), "{}")
    line = lexed.line(begin)
    before = lexed.span(line - 1, line - 1).strip()
    body = lexed.text[begin + 1 : match.start()].rstrip().removesuffix("}")
    is_said = before.startswith(("//", "*", "/*")) or "//" in body or "/*" in body
    following = lexed.code[match.end() : match.end() + 200]
    return is_said or _CHOICE.match(body) is not None or _NOTHING.match(following) is None


_KEYWORD = re.compile(r"\b(?:if|for|while|switch|catch|with|match)\s*$")
_CHOICE = re.compile(r"\s*(?:(?:const|let|var)\s+)?[\w.$\[\]'\"?!]+\s*=(?!=)[^;\n]*;?\s*\Z")
_NOTHING = re.compile(
    r"\s*(?:return\b\s*(?:null|undefined|false|0|''|\"\"|\[\s*\]|\{\s*\})?\s*;?\s*)?(?:\}|\Z)"
)
_FARTHEST = 4_000
"""Characters that are looked back for the beginning of a block. Chosen, not measured."""


def _opening(code: str, at: int, pair: str) -> int:
    """Where the bracket begins that ends at an offset; some offset before where that is far."""
    depth = 0
    for offset in range(at, max(-1, at - _FARTHEST), -1):
        if code[offset] == pair[1]:
            depth += 1
        elif code[offset] == pair[0]:
            depth -= 1
            if depth == 0:
                return offset
    return max(0, at - _FARTHEST)


def _has_comment(rule: Rule, text: str) -> bool:
    # "all" is looked at for the comments that excuse; a TODO is a fault by its comment.
    return rule.concern == "swallowed_error" and ("//" in text or "/*" in text)


def _described(rule: Rule, match: re.Match[str]) -> str:
    groups = match.groupdict()
    name = next((v for k, v in groups.items() if k.startswith("name") and v), "")
    return rule.description.format(match=shown(match[0]), name=name)


def shown(text: str) -> str:
    """A piece of text in quotes, on one line, and not too long."""
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= MAX_SHOWN else plain[: MAX_SHOWN - 1] + "…")


def _in_comments(rule: Rule, addition: Addition) -> Iterator[Finding]:
    lexed, language = addition.lexed, addition.language
    for begin, end in lexed.comments:
        text = lexed.text[begin:end]
        if not any(need in text for need in rule.needs):
            continue
        line = lexed.line(begin)
        head = lexed.code[lexed.starts[line - 1] : begin].rstrip()
        if head and not head.endswith(_OPENERS):
            continue  # behind code: it speaks of that
        match = rule.regex.search(_bare(text))
        if match is None:
            continue
        if language and language.name in _REPLACING and not addition.has_lost_lines:
            continue
        where = (line, lexed.column(begin), lexed.line(max(begin, end - 1)))
        yield Finding.of(rule, addition.path, where, _described(rule, match), match[0])


def _bare(comment: str) -> str:
    """What a comment says, without its signs."""
    return re.sub(r"^(?:#+|//+!?|/\*+|<!--+)[ \t]?|[ \t]*(?:\*+/|-->)$", "", comment)
