"""Self-review: it says what agents do wrong, and nothing about good code: what takes its time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates.added_lines import MAX_SIZE
from loki.action.gates.self_review import self_review

HOSTILE = [
    "x = '${y}' + z // w\n",
    "(/[",
    "/*",
    "def f():\n  pass\n",
    "<<<<<<< a\n",
    "exec(`rm -rf ",
    "a" * 500 + "\n",
    "password = 'a1b2c3d4e5f6g7h8i9'\n",
    "# TODO: implement\n",
    "pytest || true\n",
    "#[cfg(test)] mod a {",
    ") { // TODO\n",
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("name", ["a.py", "a.ts", "a.go", "a.rs", "a.yml"])
def test_the_largest_file_takes_seconds_at_most(project: Path, name: str, piece: str) -> None:
    tree = Tree.scan(project)
    change = Change.write({name: piece * (MAX_SIZE // len(piece))})
    begin = time.process_time()
    self_review(change, tree)
    assert time.process_time() - begin < 20  # what is quadratic takes minutes
