"""Which files of a project depend on others: by what they import, directly and through others.

Under test: ``tests/py/action/test_import_graph.py``. Extraction is what costs, so only files are asked
for their imports whose text shows at a glance that they may import what is looked for.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from loki.action.import_words import RELATIVE, word_for, words_of
from loki.action.imports import Files, Import, imports_of, language_of, resolve
from loki.base.glob import matches

MAX_BYTES = 1_000_000
"""A larger file is not searched for imports: nobody wrote it. Chosen, not measured."""

MANIFESTS = ("package.json", "tsconfig.json", "jsconfig.json")
"""Where a file may get another name to be imported by."""


@dataclass
class Cache:
    """What files say, by their content: one that has not changed is read once.

    Attributes:
        imports: what a content imports, by its language and hash.
        words: the words by which it may import, likewise.
    """

    imports: dict[str, tuple[Import, ...]] = field(default_factory=dict)
    words: dict[str, frozenset[str]] = field(default_factory=dict)


@dataclass
class ImportGraph:
    """Which files of a project import which.

    Args:
        files: the project.
        exclude: globs of paths that are left out, and not followed.
        shared: names of files on which all files below their folder depend, though none says so.
        cache: kept from an earlier graph.

    Example:
        >>> texts = {"a.py": b"", "b.py": b"import a", "test_b.py": b"import b"}
        >>> graph = ImportGraph(Files(texts, texts.__getitem__))
        >>> graph.dependents(["a.py"], depth=2)
        {'b.py': ('b.py', 'a.py'), 'test_b.py': ('test_b.py', 'b.py', 'a.py')}
    """

    files: Files
    exclude: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    cache: Cache = field(default_factory=Cache)

    def __post_init__(self) -> None:
        """Which files there are to look at."""
        self._known = sorted(
            path
            for path in self.files.paths
            if language_of(path) is not None and not matches(path, self.exclude)
        )
        self._folders: dict[str, list[str]] = defaultdict(list)
        for path in self._known:
            self._folders[posixpath.dirname(path)].append(path)
        self._resolved: dict[str, frozenset[str]] = {}
        self._words: dict[str, frozenset[str]] = {}

    def dependents(self, targets: Iterable[str], depth: int) -> dict[str, tuple[str, ...]]:
        """The files that import the targets, themselves or through others.

        Args:
            targets: paths; some may be of files that are not there.
            depth: levels of imports to follow: 1 for the files that import a target themselves.

        Returns:
            By dependent, nearest first, the way from it to the target: both included.
        """
        chains: dict[str, tuple[str, ...]] = {}
        start = {path: (path,) for path in sorted(targets)}
        frontier: Mapping[str, tuple[str, ...]] = start
        for _ in range(depth):
            found: dict[str, tuple[str, ...]] = {}
            for path, imported in self._importers(frontier):
                if path not in chains and path not in start and path not in found:
                    found[path] = (path, *frontier[imported])
            chains.update(found)
            frontier = found
        return chains

    def _importers(self, frontier: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """(importing file, what it imports of the frontier), each file once."""
        names = _Names(frontier, self.files)
        for path in self._known:
            if path in frontier:
                continue
            implicit = self._implied(path, frontier)
            if implicit is not None:
                yield path, implicit
            elif self._may_import(path, names):
                imported = sorted(self._imports(path) & frontier.keys())
                if imported:
                    yield path, imported[0]

    def _may_import(self, path: str, names: _Names) -> bool:
        language = language_of(path) or ""
        if language in names.any:
            return True
        wanted = names.words.get(language)
        if not wanted:
            return False
        if path not in self._words:
            self._words[path] = self._words_of(path, language)
        return not wanted.isdisjoint(self._words[path])

    def _words_of(self, path: str, language: str) -> frozenset[str]:
        known = self.cache.words.get(f"{language}:{self.files.hash_of(path)}")
        if known is not None:
            return known
        content = self.files.read(path) or b""
        key = f"{language}:{sha256(content).hexdigest()}"  # of what was read, which may be newer
        if key not in self.cache.words:
            is_written = len(content) <= MAX_BYTES
            self.cache.words[key] = words_of(content, language) if is_written else frozenset()
        return self.cache.words[key]

    def _implied(self, path: str, frontier: Mapping[str, object]) -> str | None:
        """What a file depends on without saying so: its package in Go, shared files above it."""
        if path.endswith("_test.go"):
            own = self._folders[posixpath.dirname(path)]
            return next((p for p in own if p in frontier and not p.endswith("_test.go")), None)
        for other in frontier:
            folder, name = posixpath.split(other)
            is_below = path.startswith(f"{folder}/" if folder else "")
            if name in self.shared and is_below and language_of(path) == language_of(other):
                return other
        return None

    def _imports(self, path: str) -> frozenset[str]:
        if path not in self._resolved:
            content = self.files.read(path) or b""
            key = f"{posixpath.splitext(path)[1]}:{sha256(content).hexdigest()}"
            if key not in self.cache.imports:
                self.cache.imports[key] = imports_of(path, content)
            found = (resolve(one, path, self.files) for one in self.cache.imports[key])
            self._resolved[path] = frozenset(target for paths in found for target in paths)
        return self._resolved[path]


class _Names:
    """The words that a file must hold to import one of some files, by language."""

    def __init__(self, paths: Iterable[str], files: Files) -> None:
        self.words: dict[str, set[str]] = defaultdict(set)
        self.any: set[str] = set()
        """Languages of which every file may import one of them."""
        for path in paths:
            language = language_of(path)
            # Go's are extracted fast, and packages go by their folder's name or by another.
            if language == "go" or (language == "javascript" and _is_named(path, files)):
                self.any.add(language)
            elif language is not None:
                word = word_for(path)
                is_folder = posixpath.basename(path).partition(".")[0] != word
                self.words[language] |= {word, RELATIVE} if is_folder else {word}


def _is_named(path: str, files: Files) -> bool:
    """Whether a manifest names the file: it may be imported under another name."""
    base = posixpath.basename(path).partition(".")[0].encode()
    known: tuple[bytes, ...] = files.keep(
        "import_graph",
        "manifests",
        lambda: tuple(files.read(p) or b"" for name in MANIFESTS for p in files.called(name)),
    )
    return any(base in content for content in known)
