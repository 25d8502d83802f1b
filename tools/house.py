"""How the house stands: which way imports point, how many packages and lines there are, what is named twice.

``python -m tools.house`` prints the figures, and fails where one is worse than its bar; ``--up`` lists
each import that points up. `tests/py/test_layout.py` holds the same.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "loki"

LAYERS = (
    ("base", "config", "settings"),
    ("recognition",),
    ("memory",),
    ("decision",),
    ("people",),
    ("action",),
    ("stores", "agents"),
    ("workspace",),
    ("execution",),
    ("jobs",),
    ("runtime",),
    ("pipelines", "testing"),
    ("adapters",),
    ("analysis", "pytest_plugin"),
    ("cli", "page"),
    ("__main__",),
)
"""From the ground up: a module imports from its own layer's name and from the layers before it."""

PUBLIC = {"__init__", "_core"}
"""The public names, and the compiled module: whoever wants may import them."""

SHARED_NAMES = {"__init__", "protocol", "models"}
"""Basenames that may occur in several packages; so may those of commands, in ``cli``."""

BARS = {
    "imports that point up": 0,
    "packages": 16,
    "circles of imports": 0,
    "equal basenames": 0,
    "lines of code": 57_360,
}


@dataclass(frozen=True, slots=True)
class Import:
    """One import of loki inside loki.

    Attributes:
        file: below the package.
        line: 1 or more.
        module: what is imported: the longest dotted name that is a module.
        is_late: it happens in a function, or for type checkers alone.
    """

    file: str
    line: int
    module: str
    is_late: bool = False


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Dotted name -> file, of every module; the demo's project is none of ours."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if "demo/project" not in path.as_posix():
            found[".".join(["loki", *(p for p in parts if p != "__init__")])] = path
    return found


def imports(package: Path = PACKAGE) -> Iterator[Import]:
    """Every import of loki inside loki, also in functions and under TYPE_CHECKING."""
    known = modules(package)
    for path in known.values():
        file = path.relative_to(package).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        late = {id(below) for node in ast.walk(tree) if _is_late(node) for below in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                wanted = [name if name in known else node.module for name in names]
            elif isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            else:
                continue
            for module in dict.fromkeys(wanted):
                if module == "loki" or module.startswith("loki."):
                    yield Import(file, node.lineno, module, id(node) in late)


def _is_late(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))


def cycles(package: Path = PACKAGE) -> list[list[str]]:
    """Modules that import each other when they are loaded: whichever is first may fail."""
    files = {path.relative_to(package).as_posix(): name for name, path in modules(package).items()}
    needs: dict[str, set[str]] = {name: set() for name in files.values()}
    for one in imports(package):
        if not one.is_late and one.module in needs:
            needs[files[one.file]].add(one.module)
    found = []
    while True:
        try:
            TopologicalSorter(needs).prepare()
        except CycleError as error:
            cycle = error.args[1]
            found.append(cycle)
            needs[cycle[1]].discard(cycle[0])
            needs[cycle[0]].discard(cycle[1])
        else:
            return found


def layer(top: str) -> int:
    """The layer of a package or module at the top; of one that nobody placed, an error."""
    for number, names in enumerate(LAYERS):
        if top in names:
            return number
    raise KeyError(f"{top} stands in no layer: add it to LAYERS in tools/house.py")


def points_up(importer: str, imported: str) -> bool:
    """Whether a file below the package imports what stands above it, or beside it in its layer."""
    here = importer.split("/", maxsplit=1)[0].removesuffix(".py")
    there = [*imported.split("."), "__init__"][1]
    if here in {there, "__init__"} or there in PUBLIC:
        return False
    if layer(here) == 0:
        return layer(there) > 0
    return layer(there) >= layer(here)


def upward(package: Path = PACKAGE) -> list[Import]:
    """The imports that point up."""
    return [one for one in imports(package) if points_up(one.file, one.module)]


def packages(package: Path = PACKAGE) -> list[str]:
    """The packages at the top."""
    return sorted(path.parent.name for path in package.glob("*/__init__.py"))


def equal_basenames(package: Path = PACKAGE) -> dict[str, list[str]]:
    """Basename -> the modules that have it, where they are several."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in modules(package).values():
        file = path.relative_to(package)
        if path.stem not in SHARED_NAMES and file.parts[0] != "cli":
            found[path.stem].append(file.as_posix())
    return {name: files for name, files in found.items() if len(files) > 1}


def lines_of_code(text: str) -> int:
    """Lines with code on them: no blank ones, no comments, no docstrings."""
    lines: set[int] = set()
    idle = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in idle:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def figures(package: Path = PACKAGE) -> dict[str, int]:
    """What is held to a bar."""
    return {
        "imports that point up": len(upward(package)),
        "packages": len(packages(package)),
        "circles of imports": len(cycles(package)),
        "equal basenames": len(equal_basenames(package)),
        "lines of code": sum(
            lines_of_code(p.read_text("utf-8")) for p in modules(package).values()
        ),
    }


def worse(found: dict[str, int]) -> list[str]:
    """The figures that are worse than their bars."""
    return [name for name, figure in found.items() if figure > BARS[name]]


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--up", action="store_true", help="list the imports that point up")
    parser.add_argument("--names", action="store_true", help="list the basenames that are equal")
    arguments = parser.parse_args()
    if arguments.up:
        for one in upward():
            print(f"{one.file}:{one.line}: imports {one.module}")
    for circle in cycles():
        print(f"circle: {' <- '.join(circle)}")
    if arguments.names:
        for name, files in sorted(equal_basenames().items()):
            print(f"{name}: {', '.join(files)}")
    found = figures()
    for name, figure in found.items():
        mark = "   TOO MANY" if name in worse(found) else ""
        print(f"{name:24}{figure:8,}   at most {BARS[name]:,}{mark}")
    return int(bool(worse(found)))


if __name__ == "__main__":
    sys.exit(main())
