"""The imports of a Go file, and the packages of the project that they name."""

from __future__ import annotations

import posixpath
import re

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
    tokens = _tokens(text)
    position = 0
    # package name;
    while position < len(tokens) and tokens[position][1] in {"package", ";"}:
        position += 2 if tokens[position][1] == "package" else 1
    while position < len(tokens):
        word = tokens[position][1]
        if word == ";":
            position += 1
        elif word == "import":
            position = _declaration(text, tokens, position + 1, found)
        else:
            break
    return tuple(found)


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """(kind, text, index) up to what can stand in no import."""
    tokens: list[tuple[str, str, int]] = []
    index = 0
    while match := _TOKEN.match(text, index):
        index = match.end()
        kind = match.lastgroup or ""
        if kind != "blank":
            tokens.append((kind, match[0], match.start()))
            if match[0] in {"func", "type", "var", "const"}:
                break
    return tokens


def _declaration(
    text: str, tokens: list[tuple[str, str, int]], position: int, found: list[Import]
) -> int:
    """Read one declaration, with or without brackets; the position behind it."""
    grouped = position < len(tokens) and tokens[position][1] == "("
    position += grouped
    name = ""
    while position < len(tokens):
        kind, word, index = tokens[position]
        position += 1
        if kind == "string":
            before = text.rfind("\n", 0, index)
            line = text.count("\n", 0, index) + 1
            names = (name,) if name else ()
            found.append(Import(word[1:-1], line, index - before, names=names))
            name = ""
            if not grouped:
                return position
        elif word == ")" or (not grouped and word == ";"):
            return position
        else:
            name = word if word != ";" else ""
    return position


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
