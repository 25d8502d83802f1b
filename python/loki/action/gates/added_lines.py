"""What a change adds to each file, and in what kind of place the file stands."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.changes.tree import read_entry
from loki.action.gates.lexer import Lexed, lex
from loki.action.gates.review_rules import Language, knowledge
from loki.decision.drift.path_kinds import kinds_of_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.changes.change import Change
    from loki.action.changes.tree import Tree

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

    def __init__(self, change: Change, root: Path, tree: Tree) -> None:
        self.change, self.root, self.tree = change, root, tree
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
            return _text(read_entry(os.path.join(self.root, path)))
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
