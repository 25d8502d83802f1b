"""The imports of a Go file, and the packages of the project that they name."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from loki.action.checks.imports.import_location import EXTERNAL, FOUND, MISSING, Location
from loki.action.checks.imports.project_files import Files, Import, join
from loki.base.grammar import Grammar, parse, place

if TYPE_CHECKING:
    from tree_sitter import Node

GRAMMAR = Grammar("tree_sitter_go")

_MODULE = re.compile(r'^[ \t]*module[ \t]+"?([^\s"]+)"?', re.MULTILINE)


def imports_of(content: bytes) -> tuple[Import, ...]:
    """What a Go file imports."""
    root = parse(GRAMMAR, content)
    declarations = (
        [n for n in root.named_children if n.type == "import_declaration"] if root else []
    )
    found = []
    for declaration in declarations:
        inside = declaration.named_children
        specs = (
            inside[0].named_children if inside and inside[0].type == "import_spec_list" else inside
        )
        for spec in specs:
            name, path = spec.child_by_field_name("name"), spec.child_by_field_name("path")
            if path is not None:
                names = (_text(name),) if name else ()
                found.append(Import(_text(path)[1:-1], *place(path, content), names=names))
    return tuple(found)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def locate(import_: Import, importer: str, files: Files) -> Location:
    """Where a Go import leads: to every file of a package but its tests."""
    module = import_.module
    if module.startswith(("./", "../")):
        folder = join(importer.rpartition("/")[0], module)
    else:
        folder = _folder(module, files)
    if folder is None:
        return Location(EXTERNAL)
    sources = tuple(
        posixpath.join(folder, name)
        for name in sorted(files.names(folder))
        if name.endswith(".go") and not name.endswith("_test.go")
    )
    if sources:
        return Location(FOUND, sources)
    return Location(MISSING, missing=module, expected=(posixpath.join(folder, "*.go"),))


def _folder(module: str, files: Files) -> str | None:
    """The folder of a package of one of the project's modules; None where it is of none."""
    modules = files.keep("go", "modules", lambda: _modules(files))
    prefix = module
    while prefix:
        if prefix in modules:
            return join(modules[prefix], module[len(prefix) :].lstrip("/"))
        prefix = prefix.rpartition("/")[0]
    return None


def _modules(files: Files) -> dict[str, str]:
    """Folder by module path, of every go.mod."""
    found: dict[str, str] = {}
    for path in files.called("go.mod"):
        match = _MODULE.search((files.read(path) or b"").decode("utf-8", "replace"))
        if match:
            found.setdefault(match[1], path.rpartition("/")[0])
    return found
