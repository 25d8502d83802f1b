"""The imports of a Go file, and the packages of the project that they name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from loki.action.checks.imports.import_location import EXTERNAL, FOUND, MISSING, Location
from loki.action.checks.imports.project_files import Files, Import, join

# Imports stand between the package clause and everything else (go.dev/ref/spec, "Source file
# organization"), so what comes first that is neither ends the search.
_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|//[^\n]*|/\*[\s\S]*?\*/)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign>[().;])
""",
    re.VERBOSE,
)
_MODULE = re.compile(r'^[ \t]*module[ \t]+"?([^\s"]+)"?', re.MULTILINE)


def imports_of(text: str) -> tuple[Import, ...]:
    """What a Go file imports."""
    found: list[Import] = []
    is_import = is_grouped = False
    name, before = "", ""
    for kind, word, index in _tokens(text):
        if word in {"func", "type", "var", "const"}:
            break
        if not is_import and before != "package":  # behind that stands a name
            is_import, is_grouped, name = word == "import", False, ""
            if word not in {"import", "package", ";"}:
                break
        elif kind == "string" and is_import:
            line_start = text.rfind("\n", 0, index)
            line = text.count("\n", 0, index) + 1
            names = (name,) if name else ()
            found.append(Import(word[1:-1], line, index - line_start, names=names))
            is_import, name = is_grouped, ""
        elif word == "(" and before == "import":
            is_grouped = True
        elif word == ")" or (word == ";" and not is_grouped):
            is_import = False
        else:
            name = word if word != ";" else ""
        before = word
    return tuple(found)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """(kind, text, index) up to what no import holds."""
    index = 0
    while match := _TOKEN.match(text, index):
        index = match.end()
        if match.lastgroup != "blank":
            yield match.lastgroup or "", match[0], match.start()


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
