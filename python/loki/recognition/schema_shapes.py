"""Small shapes of definition files; `schema` puts them together to the large.

A shape is a function from a `Cursor` to plain data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loki.recognition.definition_file import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loki.base.error import ConfigError
    from loki.recognition.definition_file import Check, Cursor

_MAX_DIGITS = 18
_LONGEST_KEY = 60
MAX_REGEXES = 5_000
"""Of one file: each is compiled once when the file is read. Chosen, not measured."""


def text(cursor: Cursor) -> str:
    """Text of one character or more."""
    value = cursor.text()
    if not value:
        raise cursor.wrong("text of 1 character or more")
    return value


def any_text(cursor: Cursor) -> str:
    """Text that may be empty."""
    return cursor.text()


def regex(cursor: Cursor) -> str:
    """A regex: noted, so that the core can be asked what it says of it."""
    value = text(cursor)
    cursor.document.regexes[cursor.pointer] = value
    if len(cursor.document.regexes) > MAX_REGEXES:
        raise cursor.error(f"found more than {MAX_REGEXES} regexes, expected at most so many")
    return value


def truth(cursor: Cursor) -> bool:
    """Either of true and false."""
    return cursor.scalar(("bool",), "true or false").lower() in {"true", "yes", "on"}


def whole(least: int, most: int) -> Check:
    """A whole number within bounds."""
    expected = f"a whole number from {least} to {most}"

    def check(cursor: Cursor) -> int:
        value = cursor.scalar(("int",), expected)
        if len(value) > _MAX_DIGITS or not value.isascii() or not value.lstrip("+-").isdigit():
            raise cursor.wrong(expected)
        if not least <= int(value) <= most:
            raise cursor.wrong(expected)
        return int(value)

    return check


def one_of(*names: str) -> Check:
    """One of several words."""
    expected = f"one of {', '.join(names)}"

    def check(cursor: Cursor) -> str:
        value = cursor.scalar(("str",), expected)
        if value not in names:
            raise cursor.wrong(expected + did_you_mean(value, names))
        return value

    return check


def list_of(item: Check, least: int = 0, what: str = "a list") -> Check:
    """A list; with fewer entries than `least` it is wrong."""

    def check(cursor: Cursor) -> list[Any]:
        values = [entry.gather(item) for entry in cursor.items(what)]
        if len(values) < least:
            raise cursor.error(f"found an empty list, expected {least} or more entries")
        return values

    return check


def one_or_more(item: Check) -> Check:
    """A list, or one entry that stands for a list of one."""

    def check(cursor: Cursor) -> Any:
        return list_of(item, 1)(cursor) if cursor.found() == "a list" else [item(cursor)]

    return check


def mapping_of(value: Check, names: tuple[str, ...] = ()) -> Check:
    """A mapping from free names (or from some of the given ones) to one shape."""

    def check(cursor: Cursor) -> dict[str, Any]:
        result = {}
        for key, (node, entry) in cursor.entries("a mapping").items():
            if names and key not in names:
                cursor.document.note(_unknown(cursor, node, names))
            else:
                result[key] = entry.gather(value)
        return result

    return check


def record(required: dict[str, Check], optional: dict[str, Check], what: str) -> Check:
    """A mapping with known keys."""
    known = {**required, **optional}

    def check(cursor: Cursor) -> dict[str, Any]:
        entries = cursor.entries(f"{what}: a mapping")
        result, meant = {}, set()
        for key, (node, entry) in entries.items():
            if key in known:
                result[key] = entry.gather(known[key])
            else:
                cursor.document.note(_unknown(cursor, node, known))
                meant.add(closest(key, known))
        # A key that was misspelt is not missing, too.
        missing = [repr(key) for key in required if key not in entries and key not in meant]
        if missing:
            them = "it" if len(missing) == 1 else "them"
            raise cursor.error(f"found {what} without {', '.join(missing)}, expected {them}")
        return result

    return check


def _unknown(cursor: Cursor, node: Any, names: Iterable[str]) -> ConfigError:
    shown = node.value[:_LONGEST_KEY]
    expected = f"one of {', '.join(names)}{did_you_mean(shown, names)}"
    return cursor.error(f"found unknown key {shown!r}, expected {expected}", node)


def unique(item: Check, key: str, what: str) -> Check:
    """A list of records whose `key` differs."""

    def check(cursor: Cursor) -> list[Any]:
        seen: set[str] = set()
        values = []
        for entry in cursor.items(f"a list of {what}s"):
            value = entry.gather(item)
            name = value.get(key) if value else None
            if name in seen:
                said = (
                    f"found {key} {name[:_LONGEST_KEY]!r} a second time, expected each {key} once"
                )
                cursor.document.note(cursor.document.error(f"{entry.pointer}/{key}", said))
            elif name:
                seen.add(name)
            values.append(value)
        return values

    return check


def exactly_one(shape: Check, names: tuple[str, ...]) -> Check:
    """A record of which exactly one of several keys is there."""

    def check(cursor: Cursor) -> Any:
        before = len(cursor.document.problems)
        value = shape(cursor)
        if sum(name in value for name in names) != 1 and len(cursor.document.problems) == before:
            found = ", ".join(value) or "none"
            raise cursor.error(f"found {found}, expected exactly one of {', '.join(names)}")
        return value

    return check
