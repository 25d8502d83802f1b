"""What a message says in its author's own words, sentence by sentence.

Code (fenced, indented, inline) and quotations (``>`` lines, words in quotation marks) are somebody
else's; items of a list that are still to be done are a plan. Positions stay: what is left out becomes
as many blanks. Linear in the text, total.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•\u2013]|\d{1,3}[.)]|[✅❌✓✗☑])\s")
_TO_DO = re.compile(r"[ \t]*[-*+] \[ \]")  # what is left to do is a plan
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_RULE = re.compile(r"[ \t]*[|]|[ \t]*(?:[-=_*][ \t]*){3,}$")
_TICKS = re.compile("`+")
_QUOTES = (  # marks that are farther from each other do not belong together: chosen, not measured
    re.compile(r'"(?:[^"\n]|\n(?!\s)){1,999}"'),
    re.compile(r"[“„](?:[^“”„\n]|\n(?!\s)){1,999}[”“]"),
    re.compile(r"[«»](?:[^«»\n]|\n(?!\s)){1,999}[«»]"),
    re.compile(r"(?<![\w'])'[^'\n]{1,80}'(?![\w'])"),
)
_END = re.compile(r"[.!?]{1,9}[\"')\]*_”]{0,9}(?=\s|$)")  # bounded: linear in a row of dots
# Typographic apostrophes, hyphens and blanks, as rules write them.
_SAME_LENGTH = str.maketrans("\u2018\u2019\u2010\u2011\u00a0\t", "''--  ")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: where it stands in the message, and its words as rules see them.

    Attributes:
        begin, end: code points of the message.
        text: as many characters, on one line, in lower case (ASCII), quotations blank.
    """

    begin: int
    end: int
    text: str


def prose_of(message: str) -> str:
    """The message with code and quotations blank; as long as before, with the same lines.

    Example:
        >>> prose_of('I ran `make test`, it "passed"')
        'I ran            , it         '
    """
    kept = "".join(_without_blocks(message.split("\n")))
    kept = _without_inline_code(kept)
    for quote in _QUOTES:
        kept = quote.sub(lambda found: _blank(found[0]), kept)
    return kept


def sentences(message: str) -> list[Sentence]:
    """The sentences of a message's own words, in order; none is empty.

    Example:
        >>> [sentence.text for sentence in sentences("It works. Ran on\\n3 hosts.")]
        ['it works.', 'ran on 3 hosts.']
    """
    words = prose_of(message)
    found: list[Sentence] = []
    for begin, end in _paragraphs(words):
        joined = _lower(words[begin:end]).replace("\n", " ").replace("\r", " ")
        at = 0
        for stop in [*(one.end() for one in _END.finditer(joined)), len(joined)]:
            part = joined[at:stop]
            blank = len(part) - len(part.lstrip())
            if part.strip():
                sentence = part.strip()
                start = begin + at + blank
                found.append(Sentence(start, start + len(sentence), sentence))
            at = stop
    return found


def folded_prose(message: str) -> str:
    """The whole message as rules see it: in lower case, with plain apostrophes and blanks."""
    return _lower(message)


def _lower(text: str) -> str:
    # Characters that have no lower case of one character stay: positions must.
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(low if len(low := c.lower()) == 1 else c for c in text)
    return lower.translate(_SAME_LENGTH)


def _without_blocks(lines: list[str]) -> Iterable[str]:
    """Each line, blank where it is code or quoted; with its line end."""
    fence = ""
    is_code = in_list = False
    after_blank = True
    last = len(lines) - 1
    for number, line in enumerate(lines):
        end = "" if number == last else "\n"
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not opened[2].strip():
                fence = ""
            yield " " * len(line) + end
            continue
        if opened and not (opened[1][0] == "`" and "`" in opened[2]):
            fence, is_code = opened[1], False
            yield " " * len(line) + end
            continue
        if not line.strip():
            after_blank = True
            yield " " * len(line) + end
            continue
        indented = line.startswith(("    ", "\t"))
        is_code = indented and not in_list and (is_code or after_blank)
        in_list = bool(_ITEM.match(line)) or (in_list and (indented or line.startswith(" ")))
        after_blank = False
        hidden = is_code or line.lstrip().startswith(">") or _TO_DO.match(line)
        yield (" " * len(line) if hidden else line) + end


def _without_inline_code(text: str) -> str:
    """Blank between two runs of as many backticks in one paragraph."""
    runs = list(_TICKS.finditer(text))
    if not runs:
        return text
    breaks = iter([*(found.start() for found in re.finditer(r"\n[ \t]*\n", text)), len(text)])
    following: dict[int, list[int]] = {}
    for index in reversed(range(len(runs))):
        following.setdefault(len(runs[index][0]), []).append(index)
    parts: list[str] = []
    at, border = 0, next(breaks)
    for index, run in enumerate(runs):
        same = following[len(run[0])]
        while same and same[-1] <= index:
            same.pop()
        if run.start() < at:
            continue
        while border < run.start():
            border = next(breaks)
        if not same or runs[same[-1]].start() > border:
            continue
        close = runs[same[-1]].end()
        parts += [text[at : run.start()], _blank(text[run.start() : close])]
        at = close
    return "".join([*parts, text[at:]])


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _paragraphs(text: str) -> Iterable[tuple[int, int]]:
    """(begin, end) of runs of lines that belong together: an item, a heading or a row is its own."""
    begin, at = None, 0
    for line in text.split("\n"):
        end = at + len(line)
        alone = bool(_HEADING.match(line) or _RULE.match(line))
        if begin is not None and (alone or not line.strip() or _ITEM.match(line)):
            yield begin, at - 1
            begin = None
        if alone:
            yield at, end
        elif line.strip() and begin is None:
            begin = at
        at = end + 1
    if begin is not None:
        yield begin, len(text)
