"""Passages of files, and how as many of them as are worth most fit into a briefing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from loki.action.loop.briefing import CONTEXT_TOKENS
from loki.base.token_estimate import BYTES_PER_TOKEN

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


def renamed(passage: Passage | None, why: str) -> Passage | None:
    """The same passage, shown for another reason."""
    return replace(passage, why=why) if passage else None


def _indent(text: str) -> int:
    expanded = text.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())
