"""What happened to breakers since their file was written as a whole, a line for each outcome.

A file of many breakers takes longer to write than what one outcome changes of it. So a longer one is
written at changes of state, and about every second besides; in between an outcome is a line of a log beside
it. Each line has a whole entry, and a mark of the entry in the file that it stands for: where the file says
something else by now, because it was written since or because somebody else has changed it, the line means
nothing. So neither is a line ever counted twice, nor does it undo what another program wrote.

Bytes in, bytes out.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from loki._core import BreakersFile

SMALL = 16 * 1024
"""Bytes of a file that is written with each outcome: some 25 breakers. Chosen by what
`make bench-decision` prints of a shared file: up to there it costs about what a bare write does."""

LONGEST = 256 * 1024
"""Bytes of a log, after which the file is written at once. Chosen, not measured."""

SHARE = 4
"""A line that is longer than this share of the file saves nothing. Chosen, not measured."""

_MARK = 16
"""Characters of a mark."""


@dataclass(frozen=True)
class Content:
    """What a file of breakers says, with its log.

    Attributes:
        data: the file's bytes, a JSON object; in the form of `BreakersFile.bytes`, unless it `is_small`.
        log: the log's bytes.
        is_ours: it is loki that wrote the file last.
    """

    data: bytes
    log: bytes = b""
    is_ours: bool = False

    @property
    def is_small(self) -> bool:
        """Whether it is read and written as a whole."""
        return len(self.data) <= SMALL and not self.has_lines

    @property
    def has_lines(self) -> bool:
        """Whether something happened since the file was written."""
        return b" {" in self.log

    def whole(self) -> BreakersFile:
        """All breakers."""
        return BreakersFile(self.merged() if self.has_lines else self.data)

    def entry(self, name: str) -> BreakersFile:
        """At least that breaker, if it is known."""
        if self.is_small:
            return BreakersFile(self.data)
        key = _key(name)
        if (found := self._last(key)) is not None:
            return found
        return BreakersFile(_document(key, value_of(self.data, key)))

    def _last(self, key: bytes) -> BreakersFile | None:
        """What the newest line that counts says of a breaker; None: there is none."""
        own, at = _mark(value_of(self.data, key)), self.end
        while (at := self.log.rfind(b" {" + key + b": ", 0, at)) >= 0:
            if self.log[max(0, at - _MARK) : at] == own:
                # What a disk that lost its power wrote half is no line.
                with suppress(ValueError):
                    return BreakersFile(self.log[at + 1 : self.log.index(b"\n", at)])
        return None

    def line(self, name: str, content: BreakersFile) -> bytes:
        """What to add to the log for a breaker.

        Args:
            name: the breaker's.
            content: what `entry` gave, changed.
        """
        key = _key(name)
        value = value_of(content.bytes(), key) or b"{}"
        # In JSON no text goes over lines.
        document = _document(key, value).replace(b"\n", b"")
        return _mark(value_of(self.data, key)) + b" " + document + b"\n"

    @property
    def end(self) -> int:
        """Bytes of the log that count: a last line whose writer died does not."""
        return self.log.rfind(b"\n") + 1

    def merged(self, line: bytes = b"") -> bytes:
        """The file as it is to be written: with what the log says, and a line more."""
        changed: dict[bytes, bytes] = {}
        for one in (self.log[: self.end] + line).split(b"\n"):
            mark, _, document = one.partition(b" ")
            try:
                found = BreakersFile(document)
            except ValueError:
                continue  # the head, or what a disk that lost its power wrote half
            for key in map(_key, found.names()):
                if mark == _mark(value_of(self.data, key)):
                    changed[key] = value_of(found.bytes(), key) or b"{}"
        return _replaced(self.data, changed)


def value_of(data: bytes, key: bytes) -> bytes | None:
    """What a file in the form of `BreakersFile.bytes` says of a breaker; None: nothing.

    A key of the object stands on a line of its own after two blanks, and nothing else does: what is deeper
    has more, and no text goes over lines.
    """
    span = _span(data, key)
    return None if span is None else data[slice(*span)]


def head(identity: tuple[int, ...]) -> bytes:
    """The first line of a log: which file it began with, as the system knows it."""
    return b"of " + b" ".join(b"%d" % one for one in identity) + b"\n"


def _span(data: bytes, key: bytes) -> tuple[int, int] | None:
    at = data.find(b"\n  " + key + b": ")
    if at < 0:
        return None
    begin = at + len(key) + 5
    end = data.find(b'\n  "', begin)
    if end < 0:
        return begin, data.rindex(b"\n}")
    return begin, end - 1  # without the comma


def _replaced(data: bytes, changed: dict[bytes, bytes]) -> bytes:
    spans = {key: _span(data, key) for key in changed}
    known = sorted((span, changed[key]) for key, span in spans.items() if span is not None)
    parts, at = [], 0
    for (begin, end), value in known:
        parts += [data[at:begin], value]
        at = end
    new = [b"\n  " + key + b": " + changed[key] for key, span in spans.items() if span is None]
    rest = data[at:].rstrip()
    if not new:
        return b"".join([*parts, rest, b"\n"])
    is_empty = not parts and rest == b"{}"
    joined = b"".join([*parts, rest[:-1].rstrip()])
    return joined + (b"" if is_empty else b",") + b",".join(new) + b"\n}\n"


def _document(key: bytes, value: bytes | None) -> bytes:
    return b"{}" if value is None else b"{" + key + b": " + value + b"}"


def _mark(value: bytes | None) -> bytes:
    """What tells an entry from any other, and from none."""
    return blake2b(value or b"", digest_size=_MARK // 2).hexdigest().encode()


@lru_cache(maxsize=256)
def _key(name: str) -> bytes:
    """A breaker's name as the file has it, in quotes."""
    return BreakersFile(json.dumps({name: {}}).encode()).bytes()[4 : -len(b": {}\n}\n")]
