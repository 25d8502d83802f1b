"""What may not be done to a project: proposals are hostile until shown otherwise.

Each refusal is a sentence that the next briefing can show. Nothing is written here, and only the
files that a change names are read.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
import unicodedata
from collections import Counter
from dataclasses import dataclass

from loki.action.changes.change import MAX_FILE_SIZE, UNKNOWN, Change, Edit
from loki.action.changes.journal import unexpected
from loki.action.changes.safe_path import ancestors
from loki.action.changes.tree import Tree, content_hash, hash_file, read_entry
from loki.base.path_containment import is_below
from loki.people import signal

TEXT = frozenset(
    {
        ".c", ".cc", ".cfg", ".cpp", ".cs", ".css", ".csv", ".go", ".h", ".hpp", ".htm",
        ".html", ".ini", ".java", ".js", ".json", ".jsonl", ".jsx", ".kt", ".lock", ".lua",
        ".md", ".mjs", ".php", ".pl", ".proto", ".py", ".pyi", ".rb", ".rs", ".rst", ".scss",
        ".sh", ".sql", ".svelte", ".swift", ".tf", ".toml", ".ts", ".tsx", ".txt", ".vue",
        ".xml", ".yaml", ".yml",
    }
)  # fmt: skip
"""Endings of files that hold text, which is UTF-8."""

MAX_FOLDERS = 100
"""Folders above a file; chosen, not measured."""

MAX_REFUSALS = 50
"""Refusals that are listed; one more says how many were left out. Chosen, not measured."""


class Breach(str):
    """A reason by which what is refused is a security violation: it reaches for what is not its own."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is refused (a path, or ``command 1``) and why, in a sentence.

    Attributes:
        path: the path, or which command.
        reason: why; a `Breach` where a person has to know of it at once.
    """

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path!r}: {self.reason}"


def refusals(
    change: Change, root: str | os.PathLike[str], tree: Tree | None = None
) -> tuple[Refusal, ...]:
    """Why a change may not be applied to a project; empty where it may.

    Args:
        change: the proposal.
        root: the project.
        tree: the project's tree, where there is one: it knows the repositories inside.

    Example:
        >>> [str(r) for r in refusals(Change.write({"../x": "hello"}), "/")]
        ["'../x': leads out of the project ('..')"]
    """
    folder = os.path.realpath(root)
    nested = frozenset(tree.skipped) if tree else frozenset()
    found = [
        Refusal(edit.path, reason)
        for edit in change.edits
        if (
            reason := _signal(edit)
            or _name(edit.path, folder)
            or _file(edit, folder, nested, change)
        )
    ]
    found += _doubles(change, folder)
    for number, command in enumerate(change.commands, 1):
        if not command or not command[0] or any("\0" in word for word in command):
            found.append(Refusal(f"command {number}", "names no program, or holds a NUL"))
    if len(found) > MAX_REFUSALS:
        rest = len(found) - MAX_REFUSALS
        found[MAX_REFUSALS:] = [Refusal(found[MAX_REFUSALS].path, f"and {rest} refusals more")]
    return tuple(found)


def _signal(edit: Edit) -> str:
    """Why it is refused as a signal; those that agents may give are none of a change's edits any more."""
    if not edit.path.startswith(signal.AGENT_SIGNALS) or edit.mode == "symlink":
        return ""
    reason = signal.why_signal_refused(edit.path, edit.after)
    return Breach(reason) if reason and signal.is_for_people(edit.path) else reason


# --- By name alone -------------------------------------------------------------------------------


def _name(path: str, root: str) -> str:  # noqa: C901, PLR0911 - one question after the other
    """Why a path is refused whatever is on the disk; "" where it is not."""
    if not path:
        return "is empty: expected a path relative to the project"
    if any(unicodedata.category(c) == "Cc" for c in path):
        return "holds a control character"
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return "is no file name: it holds half a surrogate pair"
    if path[0] in "/\\" or re.match(r"[A-Za-z]:", path):
        reason = "is absolute: expected a path relative to the project"
        return reason if is_below(os.path.normpath(path), root) else Breach(reason)
    if path.startswith("~"):
        return Breach("starts with '~': expected a path relative to the project")
    if path.count("/") > MAX_FOLDERS:
        return f"is nested deeper than {MAX_FOLDERS} folders"
    parts = re.split(r"[/\\]", path)  # a backslash separates where Windows checks the project out
    if ".." in parts:
        reason = "leads out of the project ('..')"
        return Breach(reason) if posixpath.normpath("/".join(parts)).startswith("..") else _PLAIN
    if any(part in {"", "."} for part in path.split("/")):
        return _PLAIN
    for part in parts:
        if (name := _folded(part)) in {".git", "git~1"}:
            return Breach("is git's own: nothing in .git may be changed")
        if name == ".loki":
            return Breach("is loki's own: nothing in .loki may be changed")
    return ""


_PLAIN = "is not plain: expected names with single slashes between, such as 'src/a.py'"


def _folded(name: str) -> str:
    # What case-insensitive file systems take for the same: HFS+ ignores format characters, NTFS
    # trailing dots and spaces and what follows a colon (git: fsck for ".git", CVE-2014-9390).
    plain = "".join(
        c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) != "Cf"
    )
    return plain.split(":")[0].casefold().rstrip(". ")


# --- By what is there ----------------------------------------------------------------------------


def _file(edit: Edit, root: str, nested: frozenset[str], change: Change) -> str:
    try:
        return (
            _above(edit.path, root, nested, change)
            or _target(edit, root)
            or _content(edit, root)
            or _before(edit, root)
        )
    except OSError as error:
        return f"cannot be looked at: {error.strerror or error}"


def _above(path: str, root: str, nested: frozenset[str], change: Change) -> str:
    removed = {edit.path for edit in change.edits if edit.after is None}
    for folder in ancestors(path):
        full = os.path.join(root, folder)
        mode = _mode(full)
        if stat.S_ISLNK(mode):
            inside = _inside(full, root)
            if inside is None:
                return Breach(f"leads out of the project: {folder!r} is a symbolic link")
            return f"goes through the symbolic link {folder!r}: change {inside!r} itself"
        if mode and not stat.S_ISDIR(mode) and folder not in removed:
            return f"{folder!r} is a file, not a folder"
        if folder in nested or os.path.lexists(os.path.join(full, ".git")):
            return f"{folder!r} is a repository of its own: loki changes this project only"
    if path in nested:
        return "is a repository of its own: loki changes this project only"
    return ""


def _target(edit: Edit, root: str) -> str:
    full = os.path.join(root, edit.path)
    mode = _mode(full)
    if stat.S_ISDIR(mode):
        return "is a folder"
    if mode and not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        return "is a special file (a pipe, socket or device)"
    if not mode and edit.after is None:
        return "cannot be deleted: it does not exist"
    if stat.S_ISLNK(mode) and edit.after is not None and edit.mode is None:
        inside = _inside(full, root)
        if inside is None:
            return Breach("is a symbolic link that leads out of the project")
        return f"is a symbolic link: change {inside!r} itself"
    return ""


def _content(edit: Edit, root: str) -> str:
    if edit.after is None:
        return ""
    if edit.size > MAX_FILE_SIZE:
        return f"is too large: {edit.size:,} bytes, at most {MAX_FILE_SIZE:,}"
    if edit.mode == "symlink":
        return _link(edit.path, edit.after, root)
    if os.path.splitext(edit.path)[1].lower() in TEXT and (where := _not_text(edit.after)):
        full = os.path.join(root, edit.path)
        # A project may hold text in an older encoding; that is its own affair.
        if not os.path.isfile(full) or os.path.getsize(full) > MAX_FILE_SIZE:
            return where
        return "" if _not_text(read_entry(full)) else where
    return ""


def _link(path: str, target: bytes, root: str) -> str:
    if not target or b"\0" in target:
        return "is a symbolic link to nowhere"
    link = os.fsdecode(target)
    folder = os.path.dirname(os.path.join(root, path))
    resolved = os.path.realpath(os.path.join(folder, link))
    if os.path.isabs(link) or not is_below(resolved, root):
        reason = f"is a symbolic link that leads out of the project, to {link!r}"
        return reason if is_below(resolved, root) else Breach(reason)
    if reason := _name(os.path.relpath(resolved, root), root) if resolved != root else "":
        return type(reason)(f"is a symbolic link to {link!r}, which {reason}")
    return ""


def _before(edit: Edit, root: str) -> str:
    if edit.before is UNKNOWN:
        return ""
    full = os.path.join(root, edit.path)
    mode = _mode(full)
    if stat.S_ISLNK(mode):
        present: str | None = content_hash(read_entry(full))
    else:
        present = hash_file(full)[0] if mode else None
    return unexpected(edit, present is not None) if present != edit.before else ""


def _doubles(change: Change, root: str) -> list[Refusal]:
    written = {edit.path for edit in change.edits if edit.after is not None}
    found = [
        Refusal(path, "is edited more than once in this change")
        for path, count in Counter(change.paths).items()
        if count > 1
    ]
    found += [
        Refusal(path, f"{folder!r} cannot be a file and a folder")
        for path in sorted(written)
        for folder in ancestors(path)
        if folder in written
    ]
    folded: dict[str, str] = {}
    for path in dict.fromkeys(change.paths):
        first = folded.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
        if first != path and _ignores_case(root):
            found.append(Refusal(path, f"is the same file as {first!r} here"))
    return found


def _ignores_case(folder: str) -> bool:
    """Whether a folder's file system takes names that differ in case for the same."""
    while (name := os.path.basename(folder)) and name == name.swapcase():
        folder = os.path.dirname(folder)
    other = os.path.join(os.path.dirname(folder), os.path.basename(folder).swapcase())
    return other != folder and os.path.exists(other) and os.path.samefile(other, folder)


def _not_text(data: bytes) -> str:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"is not UTF-8: byte 0x{data[error.start]:02x} in line {line}"
    return ""


def _inside(path: str, root: str) -> str | None:
    """Where a path really is, relative to the project; None outside of it."""
    real = os.path.realpath(path)
    return os.path.relpath(real, root) if is_below(real, root) else None


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
