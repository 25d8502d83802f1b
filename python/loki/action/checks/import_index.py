"""Which files hold the words of which imports: kept from one look at a project to the next.

Only files that differ since are read, so that a question costs what it finds, not what the project holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from loki.action.checks.import_words import words_of

if TYPE_CHECKING:
    from loki.action.checks.imports import Files

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
    _words: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    _hashes: dict[str, str] = field(default_factory=dict, init=False)
    _paths: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set), init=False)

    def update(self, paths: Collection[str], files: Files) -> None:
        """Have it say what files say now.

        Args:
            paths: all files of the language; files: the project.
        """
        for path in self._words.keys() - set(paths):
            self._forget(path)
        known = self._hashes
        for path in paths:
            hash_ = files.hash_of(path)
            if hash_ is None or known.get(path) != hash_:
                self._read(path, files)

    def holding(self, words: Iterable[str]) -> set[str]:
        """Paths of the files that hold one of some words."""
        return set[str]().union(*(self._paths.get(word, ()) for word in words))

    def _read(self, path: str, files: Files) -> None:
        self._forget(path)
        content = files.read(path) or b""
        is_written = len(content) <= MAX_BYTES
        words = words_of(content, self.language) if is_written else frozenset[str]()
        self._words[path] = words
        self._hashes[path] = sha256(content).hexdigest()  # of what was read, which may be newer
        for word in words:
            self._paths[word].add(path)

    def _forget(self, path: str) -> None:
        for word in self._words.pop(path, ()):
            self._paths[word].discard(path)
