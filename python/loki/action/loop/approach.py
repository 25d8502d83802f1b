"""What a proposal does, in a few words: for the record of who proposed it and did not say."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import takewhile

from loki.action.changes.change import Change, Edit
from loki.action.changes.tree import Tree

MOST_FILES = 3
"""Files that are told of; the others are counted. Chosen, not measured."""

MOST_BYTES = 200_000
"""Bytes of a file up to which its lines are compared. Chosen, not measured."""

LINE = 80
"""Characters told of a line. Chosen, not measured."""


def approach(change: Change, tree: Tree) -> str:
    """Which files a change touches, how, and how the first line of each reads afterwards.

    Two changes of one line are told apart by it; a sign that names nothing but the file would
    forbid to mend it at all.

    Args:
        change: the proposal.
        tree: the project that it is meant for; its files are read.

    Returns:
        One line; "" for the empty change.
    """
    told = [_edited(edit, tree) for edit in change.edits[:MOST_FILES]]
    if len(change.edits) > MOST_FILES:
        told.append(f"{len(change.edits) - MOST_FILES} more files")
    told += [f"ran {shlex.join(command)}" for command in change.commands]
    return "; ".join(told)


def _edited(edit: Edit, tree: Tree) -> str:
    if edit.after is None:
        return f"deleted {edit.path}"
    if edit.path not in tree.entries:
        return f"created {edit.path}"
    try:
        before = tree.read(edit.path)
    except OSError:
        before = b""
    line = _first_difference(before, edit.after)
    return f"changed {edit.path}{f': {line}' if line else ''}"


def _first_difference(before: bytes, after: bytes) -> str:
    """The first line that is new, or else the first that is gone; "" where there is none to show."""
    if max(len(before), len(after)) > MOST_BYTES or b"\0" in before + after:
        return ""
    old, new = (_lines(content) for content in (before, after))
    same = _alike(old, new)
    old, new = old[same:], new[same:]
    tail = _alike(reversed(old), reversed(new))
    added, gone = (list(_told(part[: len(part) - tail])) for part in (new, old))
    shown, word = (added, "") if added else (gone, "without ")
    if not shown:
        return ""
    rest = len(shown) - 1
    return f"{word}{shown[0]}{f' and {rest} more lines' if rest else ''}"


def _alike(one: Iterable[str], other: Iterable[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").split("\n")


def _told(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if text := line.strip():
            yield text if len(text) <= LINE else f"{text[: LINE - 1]}…"
