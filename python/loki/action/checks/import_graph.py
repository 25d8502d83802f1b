"""Which files of a project depend on others: by what they import, directly and through others.

Extraction is what costs, so only files are asked for their imports whose text shows at a glance that they
may import what is looked for; and only files that have changed since the last look are read again.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from loki.action.checks.imports import Files, Import, imports_of, language_of, resolve
from loki.base.glob import matches

# --- The words by which a file may import others: more than it imports, never less --------------------

RELATIVE = "."
"""Stands for an import that names nothing but folders: ``from . import x``, ``import '..'``."""

_COMMENT = re.compile(rb"#[^\n]*")
_STATEMENT = re.compile(rb"^[^\n]*import(?:[^\n(]|\([^)]*\)?)*", re.MULTILINE)
_WORD = re.compile(rb"[\w\x80-\xff]+")
_QUOTED = re.compile(rb"""['"`]([^'"`\s]{1,300})['"`]""")
_FROM_DOTS = re.compile(rb"\bfrom\s*\.")


def words_of(content: bytes, language: str) -> frozenset[str]:
    """The words by which a file may import, `RELATIVE` among them where it may name none.

    Args:
        content: of the file.
        language: python or javascript.

    Example:
        >>> sorted(words_of(b"from shop import (\\n  cart,  # (all)\\n  till)\\n", "python"))
        ['cart', 'from', 'import', 'shop', 'till']
    """
    found = _python(content) if language == "python" else _javascript(content)
    return frozenset(word.decode("utf-8", "replace") for word in found)


def word_for(path: str) -> str:
    """The word that an import of a file holds, unless it is relative or goes by another name.

    Example:
        >>> word_for("src/cart.test.ts"), word_for("src/cart/index.ts"), word_for("cart/__init__.py")
        ('cart', 'cart', 'cart')
    """
    folder, name = posixpath.split(path)
    stem = name.partition(".")[0]
    return posixpath.basename(folder) if stem in {"__init__", "index"} else stem


def _python(content: bytes) -> Iterator[bytes]:
    # A line that goes on is one with the next: `from a \` stands before its `import`.
    text = _COMMENT.sub(b"", content).replace(b"\\\r\n", b" ").replace(b"\\\n", b" ")
    for statement in _STATEMENT.findall(text):
        yield from _WORD.findall(statement)
        if _FROM_DOTS.search(statement):
            yield RELATIVE.encode()


def _javascript(content: bytes) -> Iterator[bytes]:
    for quoted in _QUOTED.findall(content):
        parts = [part for part in quoted.split(b"/") if part not in {b".", b"..", b""}]
        if not parts and quoted.startswith(b"."):
            yield RELATIVE.encode()
        yield from (part.partition(b".")[0] for part in parts)


# --- Which files hold which words ---------------------------------------------------------------------

MAX_BYTES = 1_000_000
"""A larger file is not searched for imports: nobody wrote it. Chosen, not measured."""


@dataclass
class WordIndex:
    """The files of one language by the words that their imports hold.

    Args:
        language: python or javascript.

    Example:
        >>> from loki.action.checks.imports import Files
        >>> index = WordIndex("python")
        >>> index.update(["a.py"], Files(["a.py"], lambda path: b"import shop"))
        >>> index.holding(["shop"]), index.holding(["cart"])
        ({'a.py'}, set())
    """

    language: str
    _known: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict, init=False)
    _paths: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set), init=False)

    def update(self, paths: Collection[str], files: Files) -> None:
        """Have it say what files say now.

        Args:
            paths: all files of the language; files: the project.
        """
        for path in self._known.keys() - set(paths):
            self._forget(path)
        for path in paths:
            hash_ = files.hash_of(path)
            if hash_ is None or path not in self._known or self._known[path][0] != hash_:
                self._read(path, files)

    def holding(self, words: Iterable[str]) -> set[str]:
        """Paths of the files that hold one of some words."""
        return set[str]().union(*(self._paths.get(word, ()) for word in words))

    def _read(self, path: str, files: Files) -> None:
        self._forget(path)
        content = files.read(path) or b""
        is_written = len(content) <= MAX_BYTES
        words = words_of(content, self.language) if is_written else frozenset[str]()
        # The hash is of what was read, which may be newer.
        self._known[path] = sha256(content).hexdigest(), words
        for word in words:
            self._paths[word].add(path)

    def _forget(self, path: str) -> None:
        _, words = self._known.pop(path, ("", frozenset()))
        for word in words:
            self._paths[word].discard(path)


# --- The graph ----------------------------------------------------------------------------------------

MANIFESTS = ("package.json", "tsconfig.json", "jsconfig.json")
"""Where a file may get another name to be imported by."""


@dataclass
class Cache:
    """What files say, by their content: one that has not changed is read once.

    Attributes:
        imports: what a content imports, by its language and hash.
        words: the files of a language, by the words by which they may import.
        languages: of paths, by what is left out: "" where no imports are looked for.
    """

    imports: dict[str, tuple[Import, ...]] = field(default_factory=dict)
    words: dict[str, WordIndex] = field(default_factory=dict)
    languages: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict)


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
        languages = self.cache.languages.setdefault(self.exclude, {})
        self._known: dict[str, list[str]] = defaultdict(list)
        for path in self.files.paths:
            language = languages.get(path)
            if language is None:
                is_out = matches(path, self.exclude)
                language = languages[path] = "" if is_out else language_of(path) or ""
            if language:
                self._known[language].append(path)
        self._resolved: dict[str, frozenset[str]] = {}
        self._updated: set[str] = set()

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
        implied = self._implied(frontier)
        for path in sorted(self._candidates(frontier) - frontier.keys()):
            imported = implied(path) or min(self._imports(path) & frontier.keys(), default=None)
            if imported is not None:
                yield path, imported

    def _candidates(self, frontier: Mapping[str, object]) -> set[str]:
        """The files that may depend on the frontier, as can be told at a glance."""
        words = _words_for(frontier, self.files)
        below = {language_of(p) for p in frontier if posixpath.basename(p) in self.shared}
        found: set[str] = set()
        for language, paths in self._known.items():
            wanted = words.get(language, set())
            if wanted is None or language in below:
                found.update(paths)
            elif wanted:
                found |= self._index(language).holding(wanted)
        return found

    def _index(self, language: str) -> WordIndex:
        index = self.cache.words.setdefault(language, WordIndex(language))
        if language not in self._updated:
            self._updated.add(language)
            index.update(self._known[language], self.files)
        return index

    def _implied(self, frontier: Mapping[str, object]) -> Callable[[str], str | None]:
        """Tells what of the frontier a file depends on without saying so.

        Its package in Go; shared files above it.
        """
        packages: dict[str, str] = {}
        for path in sorted(frontier):
            if path.endswith(".go") and not path.endswith("_test.go") and self._is_known(path):
                packages.setdefault(posixpath.dirname(path), path)
        shared = [path for path in frontier if posixpath.basename(path) in self.shared]

        def implied(path: str) -> str | None:
            if path.endswith("_test.go"):
                return packages.get(posixpath.dirname(path))
            for other in shared:
                folder = posixpath.dirname(other)
                is_below = path.startswith(f"{folder}/" if folder else "")
                if is_below and language_of(path) == language_of(other):
                    return other
            return None

        return implied

    def _is_known(self, path: str) -> bool:
        return path in self.files and not matches(path, self.exclude)

    def _imports(self, path: str) -> frozenset[str]:
        if path not in self._resolved:
            content = self.files.read(path) or b""
            key = f"{posixpath.splitext(path)[1]}:{sha256(content).hexdigest()}"
            if key not in self.cache.imports:
                self.cache.imports[key] = imports_of(path, content)
            found = (resolve(one, path, self.files) for one in self.cache.imports[key])
            self._resolved[path] = frozenset(target for paths in found for target in paths)
        return self._resolved[path]


def _words_for(paths: Iterable[str], files: Files) -> dict[str, set[str] | None]:
    """By language, the words of which a file must hold one to import one of some files; None: none."""
    found: dict[str, set[str] | None] = {}
    for path in paths:
        language = language_of(path)
        if language is None:
            continue
        words = found.setdefault(language, set())
        # Go's are extracted fast, and packages go by their folder's name or by another.
        if language == "go" or (language == "javascript" and _is_named(path, files)):
            found[language] = None
        elif words is not None:
            word = word_for(path)
            is_folder = posixpath.basename(path).partition(".")[0] != word
            words |= {word, RELATIVE} if is_folder else {word}
    return found


def _is_named(path: str, files: Files) -> bool:
    """Whether a manifest names the file: it may be imported under another name."""
    base = posixpath.basename(path).partition(".")[0].encode()
    manifests = files.keep(
        "import_graph",
        "manifests",
        lambda: [files.read(p) or b"" for name in MANIFESTS for p in files.called(name)],
    )
    return any(base in content for content in manifests)
