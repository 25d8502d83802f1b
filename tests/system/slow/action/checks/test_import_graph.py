"""Which files depend on a change, in three languages: what takes its time."""

from __future__ import annotations

from pathlib import Path

import loki
from loki.action.checks.imports import Files, imports_of, resolve
from loki.action.checks.regression import RELATIVE, word_for, words_of


def test_a_glance_misses_nothing_that_is_imported() -> None:
    """In loki's own sources."""
    root = Path(loki.__file__).parent
    paths = [p.relative_to(root.parent).as_posix() for p in root.rglob("*.py")]
    files = Files(paths, lambda path: (root.parent / path).read_bytes())
    for path in paths:
        content = files.read(path) or b""
        words = words_of(content, "python")
        for one in imports_of(path, content):
            for target in resolve(one, path, files):
                assert word_for(target) in words or RELATIVE in words, (path, one)
