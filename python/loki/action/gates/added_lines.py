"""What a change adds to each file, in what kind of place it stands, and the faults that patterns show.

The lexer is no parser, but total and linear: where a language's own rules are intricate (regular expressions
in JavaScript, markup in JSX) it may take a piece of code for a string up to the end of the line, and a rule
is silent there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from loki.action.changes.tree import Tree
from loki.action.gates.gate import Finding, Language, Rule, knowledge
from loki.decision.drift.task_relation import kinds_of_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.changes.change import Change


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
        places: what kinds of place it stands in: test, example, script, program, …
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
        places = self.places - {"script"} | _script(self.language, self.before or "")
        return Addition(self.path, None, self.before or "", self.language, places)

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


class Reader:
    """Reads what a change adds; what is generated, minified, vendored or no text is left out."""

    def __init__(self, change: Change, tree: Tree) -> None:
        self.change, self.tree = change, tree
        self._after = {edit.path: edit.after for edit in change.edits}
        self._programs: dict[str, bool] = {}

    def additions(self) -> Iterator[Addition]:
        """Each file that has a text before or after."""
        for edit in self.change.edits:
            if edit.mode == "symlink" or edit.size > MAX_SIZE:
                continue
            language = knowledge().language(edit.path)
            places = kinds_of_path(edit.path)
            if places & _UNREAD:
                continue
            before = self.before(edit.path)
            after = "" if edit.after is None else _text(edit.after)
            if after is None or before == after or _is_generated(after):
                continue
            places |= _script(language, after)
            if self._is_program(edit.path):
                places |= {"program"}
            yield Addition(edit.path, before, after, language, places)

    def before(self, path: str) -> str | None:
        """The text of a file before the change; None where it was not there or is no text."""
        entry = self.tree.entries.get(path)
        if entry is None or entry.is_symlink or entry.size > MAX_SIZE:
            return None
        try:
            return _text(self.tree.read(path))
        except (OSError, ValueError):
            return None

    def after(self, path: str) -> str | None:
        """The text of a file after the change."""
        if path not in self._after:
            return self.before(path)
        content = self._after[path]
        return None if content is None or len(content) > MAX_SIZE else _text(content)

    def exists_after(self, path: str) -> bool:
        """Whether there is such a file after the change."""
        return self._after[path] is not None if path in self._after else path in self.tree.entries

    def _is_program(self, path: str) -> bool:
        """Whether the nearest folders above say that they hold a program, which may print."""
        folder = path.rpartition("/")[0]
        if folder not in self._programs:
            marks = knowledge().program.items()
            self._programs[folder] = any(
                mark.search(text)
                for name, mark in marks
                if (text := self.after(f"{folder}/{name}".lstrip("/"))) is not None
            ) or (folder != "" and self._is_program(folder))
        return self._programs[folder]


def _script(language: Language | None, text: str) -> frozenset[str]:
    is_script = language and language.script and language.script.search(text)
    return frozenset({"script"} if is_script else ())


def _text(content: bytes) -> str | None:
    if b"\0" in content[:8_000]:
        return None
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _is_generated(text: str) -> bool:
    head = text[: 4 * MAX_LINE].split("\n", _HEAD_LINES)[:_HEAD_LINES]
    if any(len(line) > MAX_LINE for line in head):
        return True
    return knowledge().generated.search("\n".join(head)) is not None


# --- Faults that a pattern shows, in any language -----------------------------------------------------

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
