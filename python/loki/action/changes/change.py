"""A change as data: which files become what, and which commands run; nothing here touches files.

What may not be applied says `loki.action.changes.forbidden_changes`; applying and undoing is
`loki.action.changes.journal`.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import enum
import hashlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from loki.action.processes.command_line import split_command_line
from loki.base.error import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loki.action.changes.tree import Entry, Tree
    from loki.recognition.failure import Failure


# --- Bringing what was worked out in a copy into the project ------------------------------------------


@dataclass(frozen=True, slots=True)
class Merge:
    """Bring the work into the project, all or none; answered by `Merged`."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of it.

    Attributes:
        moved: the project has changed elsewhere since the copy was taken. The copy is of the newer
            project now, the work in it: it has to be checked once more. Nothing has landed yet.
        failure: the work does not fit the project any more. The copy is of the newer project now,
            without the work.
    """

    moved: bool = False
    failure: Failure | None = None


# --- Changes ------------------------------------------------------------------------------------------

MAX_FILE_SIZE = 10_000_000
"""Bytes: a larger file is not carried in a change, and refused. Chosen, not measured."""

MAX_DIFF_SIZE = 500_000
"""Bytes of a file, before or after, up to which its difference is shown line by line.

The comparison is quadratic at worst. Chosen, not measured.
"""

Mode: TypeAlias = Literal["file", "executable", "symlink"]
"""What a path becomes: a plain file, one that may be run, a symbolic link."""

_MODES: tuple[Mode, ...] = get_args(Mode)


class Unknown(enum.Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN
"""Nobody said what the file was before; None would say that there was none."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What one path becomes.

    Attributes:
        path: relative to the project, with ``/``.
        after: its whole new content (of a link: where it points to); None: it is deleted.
        before: SHA-256 in hex of what whoever proposes this saw there; None: there was nothing;
            UNKNOWN: not said.
        mode: what it becomes; None: as it is, a plain file where it is new.
        size: bytes of the new content. More than ``len(after)``: it was over `MAX_FILE_SIZE` and
            has been left out.
    """

    path: str
    after: bytes | None
    before: str | Unknown | None = UNKNOWN
    mode: Mode | None = None
    size: int = -1

    def __post_init__(self) -> None:
        if self.size < 0:
            object.__setattr__(self, "size", len(self.after or b""))


@dataclass(frozen=True, slots=True)
class Change:
    """Edits and commands, as data.

    Attributes:
        edits: what paths become; in any order, each path once.
        commands: programs with their arguments, to run after the edits, in this order.

    Example:
        >>> change = Change.write({"a.py": "x = 1\\n", "old.py": None}, commands=["ruff check"])
        >>> change.paths, change.commands
        (('a.py', 'old.py'), (('ruff', 'check'),))
    """

    edits: tuple[Edit, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def write(
        cls,
        files: Mapping[str, str | bytes | None],
        commands: Iterable[str | Sequence[str]] = (),
    ) -> Change:
        """A change that gives files a new content.

        Args:
            files: path to content; text is written as UTF-8; None deletes the file. A leading
                ``./`` is dropped.
            commands: each a list of words, or text that is split as a shell would.

        Raises:
            UsageError: a command that needs a shell, or a content of another type.
        """
        return cls(
            tuple(Edit(plain_path(path), _content(path, text)) for path, text in files.items()),
            tuple(split_command_line(c) if isinstance(c, str) else tuple(c) for c in commands),
        )

    @classmethod
    def between(cls, before: Tree, after: Tree, commands: Iterable[tuple[str, ...]] = ()) -> Change:
        """The change that leads from one tree to a later one, whose files are still on the disk.

        Args:
            before: what was seen.
            after: what became of it; its root is read.
            commands: to run afterwards.

        Raises:
            OSError: a file of the later tree cannot be read.
        """
        edits = []
        for path in before.difference(after).paths:
            old, new = before.entries.get(path), after.entries.get(path)
            seen = old.hash if old else None
            if new is None:
                edits.append(Edit(path, None, seen))
            elif new.size > MAX_FILE_SIZE:
                edits.append(Edit(path, b"", seen, mode_of(new), new.size))
            else:
                edits.append(Edit(path, after.read(path), seen, mode_of(new)))
        return cls(tuple(edits), tuple(commands))

    @classmethod
    def nothing(cls) -> Change:
        """The empty change: nothing more is to be done."""
        return cls()

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that are edited, in the order of the edits."""
        return tuple(edit.path for edit in self.edits)

    @property
    def is_empty(self) -> bool:
        """Whether it neither edits nor runs anything."""
        return not self.edits and not self.commands

    def digest(self) -> str:
        """Equal for changes that do the same, whatever the files were before: 64 hex digits."""
        digest = hashlib.sha256()
        for edit in sorted(self.edits, key=lambda edit: edit.path):
            what = "-" if edit.after is None else hashlib.sha256(edit.after).hexdigest()
            line = "\0".join((edit.path, what, edit.mode or "", str(edit.size)))
            digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
        for command in self.commands:
            digest.update(b"$" + "\0".join(command).encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()

    def based_on(self, tree: Tree) -> Change:
        """The same change, saying of each file what it was in ``tree`` where nobody said it yet.

        A file that exists but is not in the tree (an ignored one) counts as nothing: loki does not
        overwrite what nobody has seen.
        """
        entries = tree.entries
        edits = (
            replace(e, before=entries[e.path].hash if e.path in entries else None)
            if e.before is UNKNOWN
            else e
            for e in self.edits
        )
        return Change(tuple(edits), self.commands)

    def diff(self, tree: Tree) -> str:
        """What it would do to the files as they are now, as a unified diff for people to read.

        Args:
            tree: the project; the files under its root are read.
        """
        parts = [_file_diff(edit, tree) for edit in sorted(self.edits, key=lambda e: e.path)]
        return "".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON values; `Change.from_dict` reads them."""
        return {
            "edits": [_edit_to_dict(edit) for edit in self.edits],
            "commands": [list(command) for command in self.commands],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Change:
        """The change that `to_dict` described.

        Raises:
            UsageError: the values are not such a description; says which and what was expected.
        """
        edits, commands = data.get("edits", []), data.get("commands", [])
        if not isinstance(edits, list) or not isinstance(commands, list):
            raise UsageError("change: expected lists under 'edits' and 'commands'")
        for number, command in enumerate(commands):
            if not isinstance(command, list) or not all(isinstance(w, str) for w in command):
                raise UsageError(f"change: commands[{number}]: expected a list of words")
        return cls(
            tuple(_edit_from_dict(edit, number) for number, edit in enumerate(edits)),
            tuple(tuple(command) for command in commands),
        )


def mode_of(entry: Entry) -> Mode:
    """What kind of file an entry of a tree is."""
    if entry.is_symlink:
        return "symlink"
    return "executable" if entry.is_executable else "file"


def plain_path(path: str) -> str:
    """A path without a leading ``./``.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(path, str):  # a caller that is not typed
        raise UsageError(f"{path!r}: is no path: expected text")
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def _content(path: str, content: object) -> bytes | None:
    if isinstance(content, str):
        # Lone surrogates make bytes that are no UTF-8; those are refused later, with a reason.
        return content.encode("utf-8", "surrogatepass")
    if content is None or isinstance(content, bytes):
        return content
    kind = type(content).__name__
    raise UsageError(f"{path}: its content is of type {kind}: expected text, bytes or None")


def _file_diff(edit: Edit, tree: Tree) -> str:
    try:
        old = tree.read(edit.path)
    except OSError:
        old = None
    return file_diff(edit.path, old, edit.after, edit.size)


def file_diff(path: str, old: bytes | None, new: bytes | None, size: int = 0) -> str:
    """A unified diff of one file.

    Args:
        path: the file.
        old: what it held, new: what it holds; None: there is none.
        size: bytes of what it holds, where that is more than is given.
    """
    size = max(size, len(new or b""))
    names = ("/dev/null" if old is None else f"a/{path}",
             "/dev/null" if new is None else f"b/{path}")  # fmt: skip
    if max(len(old or b""), size) > MAX_DIFF_SIZE or b"\0" in (old or b"") + (new or b""):
        return f"Files {names[0]} and {names[1]} differ ({len(old or b'')} → {size} bytes)\n"
    before, after = (_lines(content or b"") for content in (old, new))
    lines = difflib.unified_diff(before, after, *names)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(content: bytes) -> list[str]:
    # Only at line feeds: str.splitlines would also cut at form feeds and the like.
    text = content.decode("utf-8", "replace")
    return [line + "\n" for line in text.split("\n")[:-1]] + [
        line for line in text.split("\n")[-1:] if line
    ]


def _edit_to_dict(edit: Edit) -> dict[str, Any]:
    data: dict[str, Any] = {"path": edit.path}
    if edit.after is None:
        data["deleted"] = True
    else:
        try:
            data["text"] = edit.after.decode()
        except UnicodeDecodeError:
            data["base64"] = base64.b64encode(edit.after).decode()
    if edit.before is not UNKNOWN:
        data["before"] = edit.before
    if edit.mode is not None:
        data["mode"] = edit.mode
    if edit.size != len(edit.after or b""):
        data["size"] = edit.size
    return data


def _edit_from_dict(data: object, number: int) -> Edit:
    where = f"change: edits[{number}]"
    if not isinstance(data, dict) or not isinstance(data.get("path"), str):
        raise UsageError(f"{where}: expected an object with a 'path'")
    before, mode, size = data.get("before", UNKNOWN), data.get("mode"), data.get("size", -1)
    if not (before is None or before is UNKNOWN or isinstance(before, str)):
        raise UsageError(f"{where}.before: expected a hash or null")
    if mode is not None and mode not in _MODES:
        raise UsageError(f"{where}.mode: {mode!r}: expected one of {', '.join(_MODES)}")
    if not isinstance(size, int):
        raise UsageError(f"{where}.size: expected a number of bytes")
    after = _after_from_dict(cast("dict[str, Any]", data), where)
    return Edit(os.fspath(data["path"]), after, before, cast("Mode | None", mode), size)


def _after_from_dict(data: dict[str, Any], where: str) -> bytes | None:
    if isinstance(data.get("text"), str):
        return _content(where, data["text"])
    if isinstance(data.get("base64"), str):
        try:
            return base64.b64decode(data["base64"], validate=True)
        except binascii.Error as error:
            raise UsageError(f"{where}.base64: {error}") from error
    if data.get("deleted") is True:
        return None
    raise UsageError(f"{where}: expected 'text', 'base64' or 'deleted': true")
