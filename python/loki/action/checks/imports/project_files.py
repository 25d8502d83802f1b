"""An import as it is written, and a project as imports see it: its paths, and how to read one."""

from __future__ import annotations

import functools
import json
import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from loki.action.gates import data_parsers

if TYPE_CHECKING:
    from loki.action.changes.change import Change
    from loki.action.changes.tree import Tree


@dataclass(frozen=True, slots=True)
class Import:
    """What one import statement, or one of its parts, names.

    Attributes:
        module: as it is written, without the dots of a relative Python import: ``pkg.sub``,
            ``./util``, ``example.com/lib``.
        line, column: where the module's name, or its opening quote, stands; both from 1, in
            characters.
        level: number of leading dots of a relative Python import; 0 elsewhere.
        names: what is taken from the module: ``default`` and ``*`` are JavaScript's default export
            and the whole; empty where the module itself is imported.
        is_type_only: erased before the program runs, or looked at by type checkers only.
        is_optional: whether it runs at all, or may fail, depends on more than the file says: in
            ``try``, under a condition, or by way of a function that takes the name as text.
    """

    module: str
    line: int
    column: int
    level: int = 0
    names: tuple[str, ...] = ()
    is_type_only: bool = False
    is_optional: bool = False

    @property
    def written(self) -> str:
        """The module with its leading dots."""
        return "." * self.level + self.module


# --- The project --------------------------------------------------------------------------------------

_T = TypeVar("_T")

MAX_BYTES = 1_000_000
"""Of a manifest that is read to resolve imports; chosen, not measured."""


class Files:
    """The files of a project, and what their manifests say.

    Args:
        paths: of all files, relative to the project, with ``/``.
        read: gives the bytes of one; an `OSError` means that it cannot be read.
        hash_of: gives SHA-256 in hex of one, as it was a moment ago, where that is known.

    Example:
        >>> files = Files(["src/app.py", "src/lib/__init__.py"], lambda path: b"")
        >>> "src/app.py" in files, files.is_folder("src/lib"), sorted(files.names("src"))
        (True, True, ['app.py', 'lib'])
    """

    def __init__(
        self,
        paths: Iterable[str],
        read: Callable[[str], bytes],
        hash_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self.paths = frozenset(paths)
        self._read = read
        self.hash_of = hash_of
        self._kept: dict[tuple[str, str], Any] = {}

    @classmethod
    def of(cls, tree: Tree, change: Change | None = None) -> Files:
        """The files of a tree, as a change would leave them where one is given.

        Args:
            tree: the project as it is; its root is read when a file is asked for.
            change: what is proposed.
        """
        after = {edit.path: edit.after for edit in (change.edits if change else ())}
        paths = {*tree.entries, *after} - {
            path for path, content in after.items() if content is None
        }

        def read(path: str) -> bytes:
            content = after.get(path)
            return tree.read(path) if content is None else content

        return cls(paths, read)

    def __contains__(self, path: str) -> bool:
        return path in self.paths

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None where there is no such file or it cannot be read."""
        if path not in self.paths:
            return None
        try:
            return self._read(path)
        except OSError:
            return None

    def is_folder(self, path: str) -> bool:
        """Whether any file lies below it; the project's own folder is ``""``."""
        return path in self._folders

    def names(self, folder: str) -> frozenset[str]:
        """Names of the files and folders right inside a folder."""
        return self._folders.get(folder, frozenset())

    def called(self, name: str) -> tuple[str, ...]:
        """Paths of all files with a name, the shallowest first."""
        return self._by_name.get(name, ())

    def nearest(self, name: str, path: str) -> str | None:
        """The file with a name in the folder of ``path`` or the closest one above it."""
        for folder in above(path):
            candidate = posixpath.join(folder, name)
            if candidate in self.paths:
                return candidate
        return None

    def json(self, path: str) -> Mapping[str, Any]:
        """What a JSON file, with or without comments, says; nothing where it cannot be read."""
        return self.keep("json", path, lambda: self._json(path))

    def keep(self, kind: str, key: str, make: Callable[[], _T]) -> _T:
        """Something worked out once: what ``make`` gives for this kind and key."""
        if (kind, key) not in self._kept:
            self._kept[kind, key] = make()
        kept: _T = self._kept[kind, key]
        return kept

    def _json(self, path: str) -> Mapping[str, Any]:
        content = self.read(path)
        if content is None or len(content) > MAX_BYTES:
            return {}
        try:
            value = json.loads(data_parsers.plain_json(content.decode("utf-8-sig")))
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @functools.cached_property
    def _folders(self) -> Mapping[str, frozenset[str]]:
        inside: dict[str, set[str]] = defaultdict(set)
        for path in self.paths:
            rest = path
            while rest:
                rest, _, name = rest.rpartition("/")
                if name in inside[rest]:
                    break
                inside[rest].add(name)
        return {folder: frozenset(names) for folder, names in inside.items()}

    @functools.cached_property
    def _by_name(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self.paths, key=lambda p: (p.count("/"), p)):
            found[path.rpartition("/")[2]].append(path)
        return {name: tuple(paths) for name, paths in found.items()}


def above(path: str) -> Iterable[str]:
    """The folders that a path lies in, the closest first, the project's own ``""`` last."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def join(folder: str, relative: str) -> str | None:
    """A path below the project; None where it leads out of it.

    Example:
        >>> join("src/a", "../b/./c.js"), join("src", "../../c.js")
        ('src/b/c.js', None)
    """
    parts: list[str] = []
    for part in (*folder.split("/"), *relative.split("/")):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)
