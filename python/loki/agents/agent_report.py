"""What a command-line agent printed, as one value: its last words, its figures, what went wrong.

Pure: bytes in as they come, a `Report` out. Total: no bytes make it raise, and where they are cut does
not matter. Bounded: whatever is printed, a few megabytes are kept.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from loki.base.token_usage import TokenUsage

LONGEST_LINE = 8 * 2**20
"""Bytes of a line, at most; a longer one is dropped. Ten times the longest answer. Chosen."""

LONGEST_TEXT = 2**18
"""Characters kept of what the agent said, the last ones. Chosen, not measured."""

PLAIN = 2**20
"""Bytes kept of what is no event, the last ones. Chosen, not measured."""

CANDIDATES = 50
"""Places where a document may begin that are looked at. Chosen, not measured."""

Event: TypeAlias = Mapping[str, Any]


@dataclass
class Report:
    """What an agent says of its work.

    Attributes:
        text: its last message.
        said: all its messages.
        model, session: as it names them, or "".
        usage: tokens; None: it does not say.
        cost: US dollars; None: it does not say.
        error: what went wrong; "": nothing.
        kind: what it calls that, or "".
        status: the HTTP status that its service answered with, where it tells.
        is_whole: its last event has come.
        events: how many were read; unreadable: lines that should have been one.
        plain: the end of what was no event.
        in_code: a block of code has begun, in what prints plain text.
    """

    text: str = ""
    said: str = ""
    model: str = ""
    session: str = ""
    usage: TokenUsage | None = None
    cost: float | None = None
    error: str = ""
    kind: str = ""
    status: int | None = None
    is_whole: bool = False
    events: int = 0
    unreadable: int = 0
    plain: str = ""
    in_code: bool = field(default=False, repr=False)
    pieces: deque[str] = field(default_factory=deque, repr=False)
    size: int = field(default=0, repr=False)

    def say(self, text: str, *, joined: bool = False) -> None:
        """Take another message, or a piece that goes on with the last one."""
        if not text:
            return
        self.text = (self.text + text if joined else text)[-LONGEST_TEXT:]
        self.pieces.append(text if joined else f"{text}\n\n")
        self.size += len(self.pieces[-1])
        while len(self.pieces) > 1 and self.size - len(self.pieces[0]) > LONGEST_TEXT:
            self.size -= len(self.pieces.popleft())

    def fail(self, error: str, kind: str = "", status: int | None = None) -> None:
        """Take what went wrong; the last that is said counts."""
        self.error, self.kind, self.status = error or kind or "no reason was given", kind, status


Form: TypeAlias = Callable[[Report, Event], str]
"""Takes an event into a report; what people are shown of it, or ""."""


class Reader:
    """Reads what an agent prints, as it comes.

    Args:
        form: takes each event.
        line: takes each line that is no event, where the program prints plain text.

    Example:
        >>> from loki.agents.agent_report_formats import FORMS
        >>> reader = Reader(FORMS["codex"])
        >>> reader.feed(b'{"type": "item.completed", "item": {"type": "agent_mess')
        []
        >>> reader.feed(b'age", "text": "Done."}}\\n')
        ['Done.']
        >>> reader.close().text
        'Done.'
    """

    def __init__(self, form: Form, line: Callable[[Report, str], str] | None = None) -> None:
        self.report = Report()
        self._form, self._take_line = form, line
        self._parts: list[bytes] = []
        self._length = 0
        self._plain: deque[bytes] = deque()
        self._plain_size = 0

    def feed(self, chunk: bytes) -> list[str]:
        """Take the next bytes; what people are shown of them."""
        *lines, rest = chunk.split(b"\n")
        shown = []
        for line in lines:
            self._add(line)
            shown.append(self._end_line())
        self._add(rest)
        return [line for line in shown if line]

    def close(self, errors: bytes = b"") -> Report:
        """The report.

        Args:
            errors: the end of what was printed as errors: some programs say there why they failed.
        """
        self._end_line()
        report = self.report
        plain = b"".join(self._plain)
        report.plain = plain.decode("utf-8", "replace")
        if self._take_line is None and not report.is_whole:
            # One document over many lines, instead of a line for each event.
            for text in (report.plain, errors[-PLAIN:].decode("utf-8", "replace")):
                document = next(_documents(text), None)
                if document is not None and not report.is_whole:
                    report.events += 1
                    report.unreadable = 0
                    self._form(report, document)
        report.said = "".join(report.pieces).strip()[-LONGEST_TEXT:]
        return report

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= LONGEST_LINE:
            self._parts.append(part)
        else:
            self._parts.clear()

    def _end_line(self) -> str:
        line, length = b"".join(self._parts), self._length
        self._parts.clear()
        self._length = 0
        if length > LONGEST_LINE:
            self.report.unreadable += 1
            return ""
        text = line.strip()
        if not text:
            return ""
        if self._take_line is not None:
            return self._take_line(self.report, text.decode("utf-8", "replace"))
        event = _event(text)
        if event is None:
            self.report.unreadable += text.startswith(b"{")
            self._keep(line + b"\n")
            return ""
        self.report.events += 1
        return self._form(self.report, event)

    def _keep(self, line: bytes) -> None:
        self._plain.append(line[-PLAIN:])
        self._plain_size += len(self._plain[-1])
        while self._plain_size - len(self._plain[0]) > PLAIN:
            self._plain_size -= len(self._plain.popleft())


def _event(line: bytes | str) -> Event | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _documents(text: str) -> Iterator[Event]:
    """Objects that begin at the start of a line, the last first."""
    decoder, start = json.JSONDecoder(), len(text)
    for _ in range(CANDIDATES):
        start = max(text.rfind("\n{", 0, start) + 1, 0)
        with suppress(ValueError, RecursionError):
            found, _end = decoder.raw_decode(text, start)
            if isinstance(found, dict):
                yield found
        if start == 0:
            return
