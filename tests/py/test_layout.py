"""The house: arrows run one way, files stay small, `import loki` stays light."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import loki
from support.paths import ROOT
from tools import house

PACKAGE = Path(loki.__file__).parent
SOURCE = ROOT


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    return house.figures()


def test_the_house_stands_as_it_should(figures: dict[str, int]) -> None:
    assert not house.worse(figures)


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        ("recognition/site.py", "loki.base.error", False),
        ("recognition/site.py", "loki.memory.attempt", True),
        ("memory/attempt.py", "loki.decision.loop_policy", True),
        ("action/loop/loop.py", "loki.people.escalation", False),
        ("action/loop/performer.py", "loki.stores.file_store", True),
        ("action/loop/loop_driver.py", "loki.agents.command_agent", True),
        ("agents/command_agent.py", "loki.action.changes.tree", False),
        ("agents/command_agent.py", "loki.stores.file_store", True),
        ("agents/command_agent.py", "loki.cli.run", True),
        ("base/atomic_file.py", "loki.config", False),
        ("config.py", "loki.recognition.site", True),
        ("workspace.py", "loki.stores.file_store", False),
        ("workspace.py", "loki.jobs.queue.queue", True),
        ("jobs/queue/queue.py", "loki.execution.assembly", False),
        ("cli/run.py", "loki.workspace", False),
        ("cli/run.py", "loki", False),
    ],
)
def test_the_arrows_test_can_fail(importer: str, imported: str, expected: bool) -> None:
    assert house.points_up(importer, imported) is expected


def test_imports_are_counted_wherever_they_stand(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "cli.py").write_text("")
    (tmp_path / "base" / "error.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from loki.cli import app\n"
        "def late():\n    import loki.cli\n    from loki import cli\n"
    )
    assert [one.line for one in house.upward(tmp_path)] == [3, 5, 6]


def test_a_circle_of_imports_is_found(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "one.py").write_text("from loki.base import two\n")
    (tmp_path / "base" / "two.py").write_text("def late():\n    from loki.base.one import x\n")
    assert house.cycles(tmp_path) == []
    (tmp_path / "base" / "two.py").write_text("from loki.base.one import x\n")
    assert len(house.cycles(tmp_path)) == 1


def test_what_is_code_is_counted() -> None:
    text = '"""What it is."""\n\n# why\nx = (\n    1,\n)\n\n\ndef f() -> None:\n    """Do."""\n'
    assert house.lines_of_code(text) == 4


def test_one_place_says_what_keeps_memory_and_one_takes_locks() -> None:
    owners = {
        "FileStore(": {"stores/__init__.py", "stores/file_store.py"},
        "import fcntl": {"base/locks.py"},
    }
    for what, allowed_in in owners.items():
        found = {
            path.relative_to(PACKAGE).as_posix()
            for path in PACKAGE.rglob("*.py")
            if what in path.read_text("utf-8")
        }
        assert found <= allowed_in, what


def test_the_core_includes_no_python() -> None:
    for path in (SOURCE / "cpp").rglob("*.?pp"):
        text = path.read_text("utf-8")
        assert "pybind11" not in text, path
        assert "Python.h" not in text, path
        assert "fstream" not in text, path


def test_no_file_is_two() -> None:
    """A room that is longer than this has more than one concept in it; no file is parted by size alone."""
    folders = ["python/loki", "cpp", "bindings", "tests", "benchmarks", "notebooks", "samples"]
    files = [
        p for f in folders for p in (SOURCE / f).rglob("*") if p.suffix in {".py", ".cpp", ".hpp"}
    ]
    assert len(files) > 50
    long = [f"{p}: {n}" for p in files if (n := len(p.read_text("utf-8").splitlines())) > 1_000]
    assert not long


@pytest.mark.parametrize(
    "module",
    [
        "loki.recognition.failure",
        "loki.decision.loop_policy",
        "loki.decision.recovery",
        "loki.action.loop.loop",
    ],
)
def test_the_pure_middle_reads_no_clock(module: str) -> None:
    path = PACKAGE / (module.removeprefix("loki.").replace(".", "/") + ".py")
    tree = ast.parse(path.read_text("utf-8"))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert not names & {"time", "random", "subprocess", "socket"}
    called = {
        n.func.attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
    }
    assert not called & {"now", "utcnow", "today", "monotonic"}
