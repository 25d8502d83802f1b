"""Whatever a tool prints, an agent says or a file holds: it stays data, on every page and in every prompt: what takes its time."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import loki
from support.written import NO_MARKDOWN, PAGES, PARTS


def test_every_module_that_writes_markdown_is_driven() -> None:
    """Whoever adds a page drives it here, too: headings in a module's texts tell."""
    package = Path(loki.__file__).parent
    found = {
        path.relative_to(package).with_suffix("").as_posix()
        for path in package.rglob("*.py")
        if "demo" not in path.parts and writes_headings(path.read_text("utf-8"))
    }
    driven = {name.partition(":")[0] for name in PAGES}
    assert found | {"cli/report/render"} == driven | PARTS | NO_MARKDOWN
    assert {path.name for path in package.rglob("*.md.j2")} == {"report.md.j2"}, "which it fills"


def writes_headings(source: str) -> bool:
    """Whether a text of a module, which is no docstring, begins a line as a heading."""
    tree = ast.parse(source)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in said
        and re.search(r"^#{1,6} ", node.value, re.MULTILINE)
        for node in ast.walk(tree)
    )
