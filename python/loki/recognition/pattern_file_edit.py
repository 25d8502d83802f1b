"""One more pattern in a pattern file that a person wrote: every byte that was there stays. Pure.

The new entry is put in as text, behind the last pattern; YAML is only read, never written anew. What
comes out is read again: it must say what the file said before, and the pattern.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from loki.base.error import ConfigError
from loki.base.yaml_text import dump
from loki.recognition.definition_file import CLOSING, OPENING, Source, read
from loki.recognition.definition_schema import pattern_file
from loki.recognition.pattern import PatternSet

NEW = "# What this project knows beside the built-in patterns.\nversion: 2\nextends: default\n"

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def add_pattern(
    content: bytes | None, entry: Mapping[str, Any], name: str = "failure-patterns.yml"
) -> bytes:
    """A pattern file with one more pattern.

    Args:
        content: the file, or None where there is none: one that extends the built-in set is begun.
        entry: the pattern, of version 2.
        name: what errors call the file.

    Returns:
        The new content; the old one where it has this very pattern already.

    Raises:
        ConfigError: the file cannot be used, now or with the pattern, or is written in a way that
            nothing can be added to.

    Example:
        >>> entry = {"id": "a", "signals": [{"word": "boom"}], "strategy": "escalate",
        ...          "description": "It goes boom."}
        >>> print(add_pattern(b"version: 2  # ours\\n", entry).decode())
        version: 2  # ours
        patterns:
          - id: a
            signals:
              - word: boom
            strategy: escalate
            description: It goes boom.
        <BLANKLINE>
    """
    mark, encoding, text = _decoded(NEW.encode() if content is None else content, name)
    old = read(text, name, pattern_file).value
    if old["version"] == 1:
        raise ConfigError(
            f"found version 1, which cannot say the signals of {entry['id']!r}, expected version: 2",
            file=name,
        )
    known = {pattern["id"]: pattern for pattern in old.get("patterns", [])}
    if entry["id"] in known:
        if known[entry["id"]] == entry and content is not None:
            return content
        raise ConfigError(f"found another pattern {entry['id']!r}, expected none", file=name)
    place, addition = _addition(text, entry)
    new = text[:place] + addition + text[place:]
    _check(new, old, entry, name)
    return mark + new.encode(encoding)


def _decoded(content: bytes, name: str) -> tuple[bytes, str, str]:
    """Byte order mark, encoding and text."""
    mark, encoding = next((m for m in _MARKS if content.startswith(m[0])), (b"", "utf-8"))
    return mark, encoding, Source(content, name).text


def _check(new: str, old: Mapping[str, Any], entry: Mapping[str, Any], name: str) -> None:
    """Refuse what does not load, and what does not say the old and the new."""
    expected = {**old, "patterns": [*old.get("patterns", []), dict(entry)]}
    try:
        PatternSet.loads(new, name)
        same = read(new, name, pattern_file).value == expected
    except ConfigError as error:
        raise ConfigError(
            f"found no place where {entry['id']!r} could be added ({error.reason}), expected "
            "`patterns:` as a list in block style: add it by hand",
            file=name,
        ) from error
    if not same:
        raise ConfigError(
            f"found no place where {entry['id']!r} could be added, expected `patterns:` as a list "
            "in block style: add it by hand",
            file=name,
        )


def _addition(text: str, entry: Mapping[str, Any]) -> tuple[int, str]:
    """Where something is put in, and what."""
    events: list[Any] = list(yaml.parse(text, Loader=yaml.SafeLoader))
    root = next(i for i, event in enumerate(events) if isinstance(event, OPENING))
    begin, end = _patterns(events, root)
    if begin is not None and events[begin].flow_style:
        return _in_brackets(text, events[begin : end + 1], entry)
    newline = "\r\n" if "\r\n" in text else "\n"
    if begin is None:
        column = events[root + 1].start_mark.column
        place, before = _behind(text, events[root:])
        lines = [" " * column + "patterns:", *_entry(entry, column + 2)]
    else:
        place, before = _behind(text, events[begin:end])
        lines = _entry(entry, events[begin].start_mark.column)
    return place, (newline if before else "") + "".join(line + newline for line in lines)


def _patterns(events: list[Any], root: int) -> tuple[int | None, int]:
    """Indexes of the events that open and close the list of patterns."""
    key = root + 1
    while not isinstance(events[key], yaml.MappingEndEvent):
        value, end = key + 1, _end(events, key + 1)
        if events[key].value == "patterns":
            return value, end
        key = end + 1
    return None, 0


def _end(events: list[Any], begin: int) -> int:
    """The event that closes what another one opens; of a scalar the event itself."""
    depth = 0
    for index in range(begin, len(events)):
        depth += isinstance(events[index], OPENING)
        depth -= isinstance(events[index], CLOSING)
        if depth == 0:
            return index
    return begin


def _in_brackets(text: str, events: list[Any], entry: Mapping[str, Any]) -> tuple[int, str]:
    """The same for ``patterns: [...]``."""
    place = events[-1].start_mark.index
    inside = [event.end_mark.index for event in events[1:-1]]
    comma = bool(inside) and "," not in re.sub("#.*", "", text[max(inside) : place])
    return place, (", " if comma else "") + _in_one_line(entry)


def _in_one_line(entry: Mapping[str, Any]) -> str:
    """JSON is YAML, but for characters that JSON escapes in two parts."""
    text = json.dumps(entry, ensure_ascii=False)
    return re.sub(r"[^\x00-\x7e]", lambda found: f"\\U{ord(found[0]):08x}", text)


def _behind(text: str, events: list[Any]) -> tuple[int, bool]:
    """The beginning of the line behind some events, and whether a line feed is missing before it."""
    # A collection in block style ends where the next thing begins; what is in it tells more.
    last: int = max(
        event.end_mark.index
        for event in events
        if type(event) not in CLOSING or event.end_mark.index > event.start_mark.index
    )
    if last and text[last - 1] == "\n":  # a block of text ends with its last line
        return last, False
    end = text.find("\n", last)
    return (len(text), True) if end < 0 else (end + 1, False)


def as_entry(entry: Mapping[str, Any]) -> list[str]:
    """The lines of a pattern as it is added to a list."""
    return dump([dict(entry)], indented=True, width=10**6).rstrip("\n").split("\n")


def _entry(entry: Mapping[str, Any], column: int) -> list[str]:
    return [" " * column + line for line in as_entry(entry)]
