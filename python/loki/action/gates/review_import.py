"""Names that a change imports from modules which it edits, and which those do not define.

Only what is certain: a module whose names are made at run time, or come from another by a star, is
not judged. Whether modules are there at all is another gate's question.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from loki.action.gates.finding import Finding
from loki.action.gates.gate import ADVISORY
from loki.action.gates.lexer import lex
from loki.action.gates.python_ast import dotted, walk
from loki.base.python_tree import python_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.gates.added_lines import Addition, Reader

_MODULE_NAMES = frozenset(
    [
        "__name__",
        "__doc__",
        "__file__",
        "__path__",
        "__package__",
        "__spec__",
        "__loader__",
        "__dict__",
        "__builtins__",
        "__annotations__",
        "__cached__",
    ]
)
_MAKERS = frozenset({"globals", "vars", "locals", "setattr", "exec", "__import__", "lazy_import"})
_SUFFIXES = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")


class Imports:
    """Looks names up in the modules that a change edits, each read once."""

    def __init__(self, reader: Reader, additions: list[Addition]) -> None:
        self._reader = reader
        self._edited = {addition.path: addition for addition in additions}
        paths = [PurePosixPath(path) for path in self._edited]
        self._stems = {path.stem for path in paths} | {path.parent.name for path in paths}
        self._python: dict[str, frozenset[str] | None] = {}
        self._script: dict[str, frozenset[str] | None] = {}

    def findings(self, addition: Addition) -> Iterator[Finding]:
        """The names that a file imports in vain."""
        name = addition.language.name if addition.language else ""
        if name == "python":
            yield from self._of_python(addition)
        elif name == "javascript":
            yield from self._of_script(addition)

    # --- Python ---

    def _of_python(self, addition: Addition) -> Iterator[Finding]:
        if not self._may_import(addition.after) or (tree := python_tree(addition.after)) is None:
            return
        for node, context in walk(tree):
            is_guarded = context.is_guarded or (context.functions and "test" in addition.places)
            if not isinstance(node, ast.ImportFrom) or is_guarded:
                continue
            path = self._module(addition.path, node)
            if path is None or path not in self._edited or path == addition.path:
                continue
            for alias in node.names:
                if alias.name != "*" and not self._defines(path, alias.name):
                    where = (node.lineno, node.col_offset + 1, node.end_lineno or node.lineno)
                    yield self._finding(addition, where, alias.name, path)

    def _may_import(self, text: str) -> bool:
        """Whether the last part of a module's name is that of an edited one; parsing costs more."""
        return any(
            (match[1].rpartition(".")[2] or "__init__") in self._stems
            for match in _FROM_IMPORT.finditer(text)
        )

    def _module(self, importer: str, node: ast.ImportFrom) -> str | None:
        """The file that a statement imports from, where only one can be meant."""
        parts = node.module.split(".") if node.module else []
        if node.level:
            folder = importer.split("/")[:-1]
            if node.level - 1 > len(folder):
                return None
            base = folder[: len(folder) - node.level + 1] + parts
            return self._file("/".join(base))
        if parts and parts[0] in sys.stdlib_module_names:
            return None
        folder = importer.split("/")[:-1]
        # The package's own root is the folder above the topmost one with an __init__.
        while folder and self._reader.exists_after("/".join((*folder, "__init__.py"))):
            folder.pop()
        roots = {"/".join(folder), "", "src", "lib"}
        found = {f for root in roots if (f := self._file("/".join((root, *parts)).lstrip("/")))}
        return found.pop() if len(found) == 1 else None

    def _file(self, base: str) -> str | None:
        files = [f"{base}.py".lstrip("/"), f"{base}/__init__.py".lstrip("/")]
        found = [path for path in files if self._reader.exists_after(path)]
        return found[0] if len(found) == 1 else None

    def _defines(self, path: str, name: str) -> bool:
        if path not in self._python:
            self._python[path] = _bound(self._edited[path].after)
        names = self._python[path]
        if names is None or name in names or name in _MODULE_NAMES:
            return True
        if not path.endswith("/__init__.py") and path != "__init__.py":
            return False
        folder = path.rpartition("/")[0]
        base = f"{folder}/{name}".lstrip("/")
        known = (*self._reader.tree.entries, *self._reader.change.paths)
        return any(p.startswith((f"{base}.", f"{base}/")) for p in known)

    # --- JavaScript, TypeScript ---

    def _of_script(self, addition: Addition) -> Iterator[Finding]:
        lexed = addition.lexed
        if "import" not in lexed.code:
            return
        for match in _NAMED_IMPORT.finditer(lexed.source):
            if lexed.code[match.start()] != "i" or "/*" in lexed.text[match.start() : match.end()]:
                continue
            path = self._script_file(addition.path, match["from"])
            if path is None or path == addition.path:
                continue
            if path not in self._script:
                self._script[path] = _exported(self._edited[path].after)
            names = self._script[path]
            if names is None:
                continue
            first = lexed.line(match.start())
            where = (first, lexed.column(match.start()), lexed.line(match.end() - 1))
            for part in match["names"].split(","):
                name = re.sub(r"^\s*type\s+(?=\w)", "", part).split(" as ")[0].strip()
                if re.fullmatch(r"[\w$]+", name) and name not in names:
                    yield self._finding(addition, where, name, path)

    def _script_file(self, importer: str, said: str) -> str | None:
        base = posixpath.normpath(posixpath.join(posixpath.dirname(importer), said))
        stem = re.sub(r"\.[cm]?jsx?$", "", base)
        wanted = [base, *(s + x for s in (base, stem) for x in _SUFFIXES)]
        wanted += [f"{base}/index{suffix}" for suffix in _SUFFIXES]
        found = [path for path in dict.fromkeys(wanted) if self._reader.exists_after(path)]
        return found[0] if len(found) == 1 and found[0] in self._edited else None

    def _finding(
        self, addition: Addition, where: tuple[int, int, int], name: str, path: str
    ) -> Finding:
        description = f"{path} does not define {name!r}"
        return Finding(
            "import", "broken_import", addition.path, *where, description, ADVISORY,
            key=f"{path}:{name}",
        )  # fmt: skip


def _bound(text: str) -> frozenset[str] | None:
    """Every name that a module may bind; None where that cannot be known."""
    tree = python_tree(text)
    if tree is None:
        return None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == "__getattr__":
                return None
            names.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            if any(alias.name == "*" for alias in node.names):
                return None
            names.update((a.asname or a.name.partition(".")[0]) for a in node.names)
        elif (isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _MAKERS) or (
            isinstance(node, ast.Attribute) and dotted(node) == "sys.modules"
        ):
            return None
        elif isinstance(node, ast.Global):
            names.update(node.names)
        else:
            names.update(_other_names(node))
    return frozenset(names)


def _other_names(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    if isinstance(node, ast.ExceptHandler):
        return [node.name] if node.name else []
    if type(node).__name__ == "TypeAlias":
        return [getattr(node, "name").id]  # noqa: B009 - not in every Python's ast
    return []


_FROM_IMPORT = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import\b", re.MULTILINE)
_NAMED_IMPORT = re.compile(
    r"^[ \t]*import\s+(?:type\s+)?(?:[\w$]{1,80}\s*,\s*)?\{(?P<names>[^{}]{1,4000})\}\s*"
    r"from\s*[\"'](?P<from>\.[^\"'\n]{0,200})[\"']",
    re.MULTILINE,
)
_UNKNOWABLE = re.compile(
    r"\bexport\s*\*\s*from\b|\bmodule\.exports\b|\bexports\s*[.\[]|\bexport\s*="
    r"|\bexport\s+(?:const|let|var)\s*[{\[]|\bObject\.defineProperty\(\s*exports"
)
_EXPORT = re.compile(
    r"\bexport\s+(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\s*\*?|class|interface|type|const\s+enum|enum|namespace|module)\s*(?P<name>[\w$]+)"
)
_VALUES = re.compile(
    r"\bexport\s+(?:declare\s+)?(?:const|let|var)\s+(?!enum\b)(?P<rest>[^;]{1,4000})"
)
_LIST = re.compile(r"\bexport\s+(?:type\s+)?\{(?P<names>[^{}]{0,8000})\}")
_NAMESPACE = re.compile(r"\bexport\s*\*\s*as\s+(?P<name>[\w$]+)")


def _exported(text: str) -> frozenset[str] | None:
    """The names that a module exports; None where that cannot be known."""
    code = lex(text, "javascript").code
    if _UNKNOWABLE.search(code):
        return None
    names = {match["name"] for match in _EXPORT.finditer(code)}
    names |= {match["name"] for match in _NAMESPACE.finditer(code)}
    for match in _VALUES.finditer(code):
        # Too many rather than too few: every word behind the first counts as a name.
        names |= set(re.findall(r"[\w$]+", match["rest"]))
    for match in _LIST.finditer(code):
        for part in match["names"].split(","):
            names.add(re.split(r"\s+as\s+", part.strip())[-1].strip())
    if re.search(r"\bexport\s+default\b", code):
        names.add("default")
    return frozenset(names)
