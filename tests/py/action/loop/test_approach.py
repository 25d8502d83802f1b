"""What a proposal does in a line: files, how, and the line that tells it from another."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.loop.agent_call import approach

CODE = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "calc.py").write_text(CODE)
    (tmp_path / "a.bin").write_bytes(b"\0\1")
    return Tree.scan(tmp_path)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"calc.py": CODE.replace("a - b", "a + b", 1)},
            "changed calc.py: return a + b",
        ),
        (
            {"calc.py": CODE.replace("    return a - b\n\n\n", "")},
            "changed calc.py: without return a - b",
        ),
        (
            {"calc.py": CODE.replace("a - b", "a + b")},
            "changed calc.py: return a + b and 2 more lines",
        ),
        ({"calc.py": CODE + "# end"}, "changed calc.py: # end"),
        ({"calc.py": CODE + "\n"}, "changed calc.py"),
        ({"calc.py": "x" * 200}, f"changed calc.py: {'x' * 79}…"),
        ({"a.bin": b"\0\2"}, "changed a.bin"),
        ({"new.py": "x = 1\n", "calc.py": None}, "created new.py; deleted calc.py"),
        (
            {f"{n}.py": "" for n in range(5)},
            "created 0.py; created 1.py; created 2.py; 2 more files",
        ),
        ({}, ""),
    ],
)
def test_what_a_change_does(tree: Tree, files: dict[str, str | bytes | None], told: str) -> None:
    assert approach(Change.write(files), tree) == told


def test_commands_are_told_of(tree: Tree) -> None:
    assert approach(Change.write({}, ["pip install 'a b'"]), tree) == "ran pip install 'a b'"


def test_what_is_gone_meanwhile_is_no_error(tree: Tree) -> None:
    (tree.root / "calc.py").unlink()
    assert approach(Change.write({"calc.py": "x\n"}), tree) == "changed calc.py: x"


def test_a_large_file_is_not_compared(tree: Tree) -> None:
    assert approach(Change.write({"calc.py": "x\n" * 200_000}), tree) == "changed calc.py"
