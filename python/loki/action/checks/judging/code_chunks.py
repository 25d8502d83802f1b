"""A file of tests in pieces: each test, fixture, helper, import; what a change did to which of them.

Python is read as a tree, languages with brackets by them (comments and strings are blank then), any
other file is one piece. Formatting and comments are no part of a piece. Pure and total.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loki.action.gates.lexer import lex
from loki.action.gates.review_rules import knowledge
from loki.base.python_tree import python_tree

MAX_DEPTH = 6
"""Classes, suites and modules in each other that are taken apart; chosen, not measured."""

MAX_LENGTH = 400_000
"""Characters of a file that is taken apart; a larger one is one piece. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a file.

    Attributes:
        chain: names of the classes, suites or modules that it stands in, the outermost first.
        names: what it defines; empty: it only does something.
        text: it without comments and formatting: equal texts do the same.
        words: every name in it, those in strings too.
        case: it is one of the cases of a test, which may get more of them.
    """

    chain: tuple[str, ...]
    names: frozenset[str]
    text: str
    words: frozenset[str]
    case: bool = False


def chunks(path: str, text: str) -> list[Chunk]:
    """The pieces of a file, in order.

    Args:
        path: of the file, for its language.
        text: what it holds.

    Example:
        >>> found = chunks("test_a.py", "from a import b\\n\\ndef test_b():\\n    assert b == 1\\n")
        >>> [sorted(chunk.names) for chunk in found]
        [['b'], ['test_b']]
    """
    language = knowledge().language(path)
    lexer = language.lexer if language and len(text) <= MAX_LENGTH else ""
    if lexer == "python":
        tree = python_tree(text)
        if tree is not None:
            return list(_python(tree.body, ()))
    elif lexer in _CONTAINERS:
        return list(_Bracketed(text, lexer).chunks())
    return [_chunk((), (), text)]


def words_of(text: str) -> frozenset[str]:
    """The names in a text."""
    return frozenset(_WORD.findall(text))


_WORD = re.compile(r"[A-Za-z_$][\w$]*")


def _chunk(chain: Sequence[str], names: Sequence[str], text: str, *, case: bool = False) -> Chunk:
    return Chunk(tuple(chain), frozenset(names), text, words_of(text), case)


# --- Python ---------------------------------------------------------------------------------------


def _python(body: Sequence[ast.stmt], chain: tuple[str, ...]) -> Iterator[Chunk]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _imported(node, chain)
        elif isinstance(node, ast.ClassDef):
            inside = (*chain, node.name)
            yield _chunk(inside, (), _head(node))
            if len(inside) <= MAX_DEPTH:
                yield from _python(node.body, inside)
            else:
                yield _chunk(chain, (node.name,), _written(node))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _function(node, chain)
        elif not _is_docstring(node):
            yield _chunk(chain, list(_bound(node)), _written(node))


def _imported(node: ast.Import | ast.ImportFrom, chain: tuple[str, ...]) -> Iterator[Chunk]:
    origin = f"{'.' * node.level}{node.module or ''}" if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        name = alias.asname or (alias.name if origin else alias.name.partition(".")[0])
        yield _chunk(chain, (name,), f"{origin} {alias.name} as {name}")


def _head(node: ast.ClassDef) -> str:
    parts = [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
    return f"class {node.name} {' '.join(map(_written, parts))}"


def _function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, chain: tuple[str, ...]
) -> Iterator[Chunk]:
    """A function, and apart from it each of its cases."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _written(decorator.func).endswith("parametrize"):
            for argument in decorator.args[1:2]:
                if isinstance(argument, (ast.List, ast.Tuple)):
                    for case in argument.elts:
                        yield _chunk(chain, (node.name,), _written(case), case=True)
                    argument.elts = []
    node.returns = None  # what a test's types say is not run
    body = node.body[1:] if _is_docstring(node.body[0]) else node.body
    node.body = body or [ast.Pass()]
    yield _chunk(chain, (node.name,), _written(node))


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a value to."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part.name
        elif isinstance(part, ast.alias):
            yield (part.asname or part.name).partition(".")[0]


def _written(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return ast.dump(node)


# --- languages with brackets ------------------------------------------------------------------------

_TITLED = r"""\s*\(\s*["'`](?P<title>[^\n]*?)["'`]\s*,"""
_SUITE = rf"(?:describe|context|suite|fdescribe|xdescribe|xcontext)(?:\.\w+)*{_TITLED}"
_TEST = rf"^(?:it|test|specify|xit|fit|xtest|bench)(?:\.\w+)*(?:\([\s\S]{{0,20000}}?\))??{_TITLED}"
_CONTAINERS = {
    "javascript": re.compile(rf"^(?:export\s+)?(?:default\s+)?(?:{_SUITE}|class\s+(?P<name>\w+))"),
    "go": re.compile(r"(?!)"),
    "rust": re.compile(r"^(?:#\[[^\n]*\]\s*)*(?:pub\s+)?(?:mod\s+(?P<name>\w+)|impl\b[^{]*?)\s*\{"),
    "c": re.compile(
        r"^(?:[@\w\[\]()\"., ]+\s+)?(?:class|namespace|object|interface|struct)\s+(?P<name>[\w.:]+)"
    ),
}
"""By lexer: how what holds tests begins."""

_NAMES = {
    "javascript": (
        re.compile(rf"{_TEST}"),
        re.compile(r"^(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function\s*\*?|class)\s+([\w$]+)"),
        re.compile(r"^(?:export\s+)?(?:const|let|var)\s+([\w$]+)\s*="),
        re.compile(r"^(?:static\s+)?(?:async\s+)?([\w$]+)\s*\([^\n]*\)\s*\{"),
    ),
    "go": (
        re.compile(r"^func\s+(?:\([^)]*\)\s*)?(\w+)"),
        re.compile(r"^(?:var|const|type)\s+(\w+)"),
    ),
    "rust": (
        re.compile(
            r"^(?:#!?\[[^\n]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|unsafe|const|extern)\s+)*"
            r"(?:fn|struct|enum|trait|type|static|const|mod|union)\s+(?:mut\s+)?(\w+)"
        ),
        re.compile(r"^(?:#\[[^\n]*\]\s*)*macro_rules!\s*(\w+)"),
    ),
    "c": (
        # A test of googletest, Catch2, doctest; else what stands before the first parenthesis.
        re.compile(r"^(?:TYPED_)?(?:TEST|TEST_F|TEST_P|TEST_CASE|SCENARIO)\s*\(\s*(?:\w+\s*,\s*(\w+)|\"(?P<title>[^\"]*)\")"),
        re.compile(r"^[^=;{(]*?(\w+)\s*\("),
        re.compile(r"^[^=;{(]*?(\w+)\s*(?:=|;)"),
    ),
}  # fmt: skip

_IMPORT = {
    "javascript": re.compile(
        r"^(?:import\s+(?:type\s+)?(?P<what>[^'\"]*?)\s*(?:from\s*)?['\"](?P<whence>[^'\"]+)['\"]"
        r"|(?:const|let|var)\s+(?P<bound>[^=]+?)\s*=\s*require\(\s*['\"](?P<required>[^'\"]+)['\"]\s*\);?$)"
    ),
    "go": re.compile(r"^import\b(?P<what>[\s\S]*)"),
    "rust": re.compile(
        r"^(?:pub\s+)?use\s+(?P<whence>[\w:]*?)(?P<what>\w+|\{[\s\S]*\}|\*)\s*(?:as\s+\w+)?\s*;"
    ),
    "c": re.compile(r"^(?:import\s+(?:static\s+)?(?P<what>[\w.*]+)|using\s+[\w.]+;|#\s*include\s+\S+)"),
}  # fmt: skip


def _plain(chain: Sequence[str], names: Sequence[str], text: str, *, case: bool = False) -> Chunk:
    """A piece without formatting."""
    bare = re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", text))
    return Chunk(tuple(chain), frozenset(names), bare, words_of(text), case)


_BLANK = "\x01"
"""A blank in a string."""


class _Bracketed:
    """Pieces of a text of a language in which brackets say what belongs together."""

    def __init__(self, text: str, lexer: str) -> None:
        self.lexer = lexer
        lexed = lex(text, lexer, tests=True)
        self.code = lexed.code
        # What is in a string is what it says; elsewhere blanks are formatting.
        kept, at = [], 0
        for begin, end in lexed.strings:
            kept += [lexed.source[at:begin], re.sub(r"[ \t]", _BLANK, text[begin:end])]
            at = end
        self.source = "".join((*kept, lexed.source[at:]))

    def chunks(self) -> Iterator[Chunk]:
        yield from self._between(0, len(self.code), ())

    def _between(self, begin: int, end: int, chain: tuple[str, ...]) -> Iterator[Chunk]:
        for first, last in self._pieces(begin, end):
            text = self.source[first:last].strip()
            if not text.strip(";,") or text.startswith("package "):  # runs nothing
                continue
            container = _CONTAINERS[self.lexer].match(text)
            opened = self._body(first, last) if container and len(chain) < MAX_DEPTH else None
            if container is None or opened is None:
                yield from self._piece(text, chain)
                continue
            name = next((n for n in container.groupdict().values() if n), "")
            inside = (*chain, name)
            yield _plain(inside, (), self.source[first : opened[0]])
            yield from self._between(opened[0] + 1, opened[1], inside)

    def _piece(self, text: str, chain: tuple[str, ...]) -> Iterator[Chunk]:
        imported = _IMPORT[self.lexer].match(text)
        if imported is not None:
            found = imported.groupdict()
            whence = found.get("whence") or found.get("required") or ""
            what = found.get("what") or found.get("bound") or text
            for part in filter(str.strip, re.split(r"[,{}()\n;]", what)):
                named = _WORD.findall(part)[-1:]
                yield _plain(chain, named, f"{whence} {part}")
            return
        for expression in _NAMES[self.lexer]:
            if match := expression.match(text):
                name = next((group for group in match.groups() if group), "")
                yield from self._named(text, chain, name)
                return
        yield _plain(chain, (), text)

    def _named(self, text: str, chain: tuple[str, ...], name: str) -> Iterator[Chunk]:
        """A definition; lines of its own that are each one value are cases, which may be added to."""
        kept = []
        for line in text.split("\n"):
            if _CASE.match(line):
                yield _plain(chain, (name,), line, case=True)
            else:
                kept.append(line)
        yield _plain(chain, (name,), "\n".join(kept))

    def _pieces(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """(first, last) of each piece: lines whose brackets are closed, with what is above them."""
        depth, first, at = 0, begin, begin
        for line in self.code[begin:end].splitlines(keepends=True):
            at += len(line)
            depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
            following = self.code[at:end].lstrip()[:1]
            bare = line.strip()
            is_open = not bare or bare.startswith(("#[", "@")) or bare.endswith((",", "=", "=>"))
            if depth <= 0 and not is_open and following not in {".", "?", ")", "{"}:
                yield first, at
                first, depth = at, 0
        if first < end:
            yield first, end

    def _body(self, first: int, last: int) -> tuple[int, int] | None:
        """The outermost braces of a container."""
        begin = self.code.find("{", first, last)
        end = self.code.rfind("}", first, last)
        return (begin, end) if 0 <= begin < end else None


_CASE = re.compile(r"^\s*[\[{(].*[\]})],?\s*$|^\s*([\"'`]).*\1,?\s*$")
