"""The house: arrows run one way, files stay small, `import loki` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import loki
from support.paths import ROOT

PACKAGE = Path(loki.__file__).parent
SOURCE = ROOT

ORDER = ["base", "recognition", "memory", "decision", "people", "action", "recurrence"]
"""A wing may import itself and what stands before it."""

EDGES = {"stores", "agents", "engines"}
"""Imported only where rooms are joined, and by faces."""

JOINS = {
    "workspace",
    "answering",
    "assembly",
    "dead_letters",
    "running",
    "runs",
    "session",
    "signalling",
    "pipeline",
    "resilience",
    "queueing",
    "scheduling",
    "testing",
    "monitoring",
    "working",
    "triaging",
    "waiting",
    "__init__",
    "__main__",
}
FACES = {"cli", "analysis", "page", "adapters", "pytest_plugin"}
SHARED = {"_core", "config", "settings"}


def wing(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports() -> list[tuple[str, str]]:
    """(importing file, imported module) for every import of loki inside loki."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if "demo/project" in path.as_posix():
            continue
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                modules = [node.module]
                if node.module == "loki":
                    modules = [f"loki.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            else:
                continue
            found += [(name, m) for m in modules if m == "loki" or m.startswith("loki.")]
    return found


def allowed(importer: str, imported: str) -> bool:
    here, there = importer.split("/", maxsplit=1)[0].removesuffix(".py"), wing(imported)
    if here in FACES or here in JOINS or here == there:
        return there not in FACES or here in {"__main__", "cli", *FACES}
    if there == "_core":
        return True
    if there in {"config", "settings"}:  # what settings look like needs base alone
        return here != "base"
    if here in EDGES:
        return there in ORDER
    if here in SHARED:
        return there == "base"
    return here in ORDER and there in ORDER[: ORDER.index(here)]


def test_arrows_run_one_way() -> None:
    wrong = [f"{file} imports {module}" for file, module in imports() if not allowed(file, module)]
    assert not wrong


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        ("recognition/site.py", "loki.base.error", True),
        ("recognition/site.py", "loki.memory.attempt", False),
        ("memory/history.py", "loki.decision.policy", False),
        ("action/loop.py", "loki.people.escalation", True),
        ("action/performer.py", "loki.stores.files", False),
        ("action/driver.py", "loki.agents.command", False),
        ("agents/command.py", "loki.action.tree", True),
        ("agents/command.py", "loki.cli.run", False),
        ("base/file.py", "loki.config", False),
        ("action/gates/schema.py", "loki.config", True),
        ("workspace.py", "loki.stores.files", True),
        ("workspace.py", "loki.cli.run", False),
        ("cli/run.py", "loki.workspace", True),
    ],
)
def test_the_arrows_test_can_fail(importer: str, imported: str, expected: bool) -> None:
    assert allowed(importer, imported) is expected


def test_one_place_says_what_keeps_memory_and_one_takes_locks() -> None:
    owners = {
        "FileStore(": {"stores/__init__.py", "stores/files.py"},
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
    """Over 400 lines is a reason to look again, over 600 one to part it."""
    folders = ["python/loki", "cpp", "bindings", "tests", "benchmarks", "notebooks", "samples"]
    files = [
        p for f in folders for p in (SOURCE / f).rglob("*") if p.suffix in {".py", ".cpp", ".hpp"}
    ]
    assert len(files) > 50
    long = [f"{p}: {n}" for p in files if (n := len(p.read_text("utf-8").splitlines())) > 600]
    assert not long


def test_import_is_light() -> None:
    """`import loki` loads no third party's package."""
    code = "import sys, loki; print([m for m in ('pydantic', 'yaml', 'typer', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "module",
    [
        "loki.recognition.failure",
        "loki.decision.policy",
        "loki.decision.recovery",
        "loki.action.loop",
        "loki.action.waiting",
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
