"""What of a task's work touches the tests that failed, or what judges them: who looks at it first.

Agents that are to make a test pass change the test, or what decides that it does. An honest change
does so, too, so nothing is forbidden: a reviewer or a person sees it. What only stands beside a test
that failed (another test, a new one, a helper that it does not use) is nobody's concern.

A file is taken apart: Python as a tree, languages with brackets by them (comments and strings are blank
then), any other file is one piece; formatting and comments are no part of one. Total, linear in the texts.
Why it is so: ``docs/design/checks.md``.
"""

from __future__ import annotations

import ast
import configparser
import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BeforeValidator

from loki.action.checks.check import RUN_TESTS, Check, CheckResult, Report
from loki.action.checks.task_changes import TaskChanges
from loki.action.gates.added_lines import added_lines, language_of, lex
from loki.base import codec, documents, glob
from loki.base.documents import kept_as
from loki.base.python_tree import Function, python_tree, string_of, written
from loki.base.toml import tomllib
from loki.base.yaml_document import Strict, read_beside
from loki.decision.drift import any_glob, kinds_of_path
from loki.memory.store import Store

# --- A file of tests in pieces: each test, fixture, helper, import ------------------------------------

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
    language = language_of(path)
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


# --- Python -------------------------------------------------------------------------------------------


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
        elif isinstance(node, Function):
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


def _function(node: Function, chain: tuple[str, ...]) -> Iterator[Chunk]:
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
    return isinstance(node, ast.Expr) and string_of(node.value) is not None


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a value to."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, Function | ast.ClassDef):
            yield part.name
        elif isinstance(part, ast.alias):
            yield (part.asname or part.name).partition(".")[0]


def _written(node: ast.AST) -> str:
    return written(node) or ast.dump(node)


# --- Languages with brackets --------------------------------------------------------------------------

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
    return replace(_chunk(chain, names, text, case=case), text=bare)


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
        return self._between(0, len(self.code), ())

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


# --- What is known of what judges: ``judging.yml`` ----------------------------------------------------

Expressions = Annotated[re.Pattern[str], BeforeValidator(any_glob)]
"""One or several, of which any may fit."""


class Setting(Strict):
    """Files that decide how checks of some kinds judge, whole or in parts.

    Attributes:
        kinds: of checks.
        files: globs.
        parts: what of such a file counts, by its dotted name; None: all of it.
        programs: of which a check has to start one; empty: whatever it starts.
    """

    kinds: frozenset[str]
    files: tuple[str, ...]
    parts: Expressions | None = None
    programs: frozenset[str] = frozenset()


class Recipe(Strict):
    """Files that programs run their steps from.

    Attributes:
        programs: which.
        files: globs.
        lines: what a line says that came or went, for it to count; None: every one counts.
    """

    programs: frozenset[str]
    files: tuple[str, ...]
    lines: re.Pattern[str] | None = None


class Knowledge(Strict):
    """All of the file."""

    version: int
    always: Expressions
    always_marked: Expressions
    loaded: tuple[str, ...]
    expected: tuple[str, ...]
    runners: frozenset[str]
    settings: tuple[Setting, ...]
    recipes: tuple[Recipe, ...]
    script: re.Pattern[str]
    asks: Mapping[str, Expressions]
    inside: Mapping[str, Expressions]


@cache
def judging_knowledge() -> Knowledge:
    """What loki knows of runners, their settings, and code that asks for them.

    Example:
        >>> bool(judging_knowledge().asks["python"].search('if "pytest" in sys.modules:'))
        True
    """
    return read_beside(__file__, "judging.yml", Knowledge)


# --- What failed in a task's life ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeenFailures:
    """What failed in a task's life.

    Attributes:
        kinds: of the checks that failed.
        tests: names of the tests that failed, as their runners have them.
        files: the file of a test, where its runner says it.
        holding: files that tests failed in.
        commands: words of the task's checks.
        is_blind: a check of tests failed, and nothing says which of them.
    """

    kinds: frozenset[str] = frozenset()
    tests: frozenset[str] = frozenset()
    files: Mapping[str, str] = field(default_factory=dict)
    holding: frozenset[str] = frozenset()
    commands: Sequence[Sequence[str]] = ()
    is_blind: bool = False

    @property
    def programs(self) -> frozenset[str]:
        """The programs that the checks start."""
        return frozenset(PurePosixPath(command[0]).name for command in self.commands if command)


# --- Which settings of what judges a change has touched -----------------------------------------------


def settings_touched(
    path: str, before: str | None, after: str | None, seen: SeenFailures
) -> list[str]:
    """The settings in a file that decide how checks of some kinds judge, and that have changed.

    Args:
        path: of the file.
        before, after: what it held and holds; None: it was not, or is not there.
        seen: which checks failed, and what they start.

    Returns:
        Their names; the file's where all of it counts, or it cannot be read.

    Example:
        >>> text = '[tool.pytest.ini_options]\\naddopts = "--deselect tests/test_a.py"\\n'
        >>> settings_touched("pyproject.toml", "", text, SeenFailures(frozenset({"test"})))
        ['tool.pytest.ini_options.addopts']
    """
    found: list[str] = []
    for setting in judging_knowledge().settings:
        if setting.programs and not setting.programs & seen.programs:
            continue
        if setting.kinds & seen.kinds and glob.matches(path, setting.files):
            found += _touched(path, before or "", after or "", setting)
    return list(dict.fromkeys(found))


def _touched(path: str, before: str, after: str, setting: Setting) -> list[str]:
    if setting.parts is None:
        return [path]
    try:
        old, new = _parts(path, before), _parts(path, after)
    except (ValueError, configparser.Error, RecursionError):
        return [path]
    names = [*old, *(name for name in new if name not in old)]
    changed = [name for name in names if old.get(name) != new.get(name)]
    return [name for name in changed if setting.parts.fullmatch(name)]


def _parts(path: str, text: str) -> dict[str, Any]:
    """What a file says, by dotted name; of a section of an INI file, all of it."""
    if not text.strip():
        return {}
    ending = PurePosixPath(path).suffix
    if ending in {".toml", ".json"}:
        data = tomllib.loads(text) if ending == ".toml" else json.loads(text)
        return dict(_flat(data, "")) if isinstance(data, dict) else {}
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    return {section: dict(parser[section]) for section in parser.sections()}


def _flat(data: Mapping[str, Any], head: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        name = f"{head}.{key}" if head else str(key)
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        else:
            yield name, value


# --- What of a task's work touches the tests that failed, or what judges them -------------------------

MOST = 12
"""Concerns that are told; one more says how many were left out. Chosen, not measured."""

Pair = tuple["str | None", "str | None"]
"""A file's text before and after; None: it was not, or is not there, or is no text."""


@dataclass(frozen=True, slots=True)
class TouchedTests:
    """Something that judges, and that the work has touched.

    Attributes:
        path: where.
        what: what it is, a clause.
    """

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def touched(
    changed: Mapping[str, Pair], seen: SeenFailures, read: Callable[[str], str | None]
) -> list[TouchedTests]:
    """What of the work somebody has to look at before it counts, in the order of the files.

    Args:
        changed: the files that the task has left different.
        seen: what failed.
        read: tells what a file of the project holds; of one that did not change.

    Example:
        >>> before = "def test_a():\\n    assert f() == 5\\n"
        >>> after = "def test_a():\\n    assert f() is not None\\n"
        >>> seen = SeenFailures(frozenset({"test"}), frozenset({"test_a.py::test_a"}))
        >>> [str(one) for one in touched({"test_a.py": (before, after)}, seen, lambda _: None)]
        ['test_a.py: test_a, which failed']
    """
    look = _Look(changed, seen, read)
    all_found = (
        TouchedTests(path, what)
        for path, (before, after) in sorted(changed.items())
        if before != after
        for what in look.at(path, before, after)
    )
    found = list(dict.fromkeys(all_found))
    if len(found) > MOST:
        found[MOST:] = [TouchedTests(found[MOST].path, f"and {len(found) - MOST} more")]
    return found


class _Look:
    def __init__(
        self, changed: Mapping[str, Pair], seen: SeenFailures, read: Callable[[str], str | None]
    ) -> None:
        self.seen, self.read, self.changed = seen, read, changed
        self.tests_failed = bool(seen.kinds & RUN_TESTS)
        self.holding = frozenset({*seen.holding, *seen.files.values()})
        self.used = self._used() if self.tests_failed else frozenset()

    def _used(self) -> frozenset[str]:
        """The names that failing tests use, in the files that hold them as they were."""
        found: set[str] = set()
        for path in self.holding:
            if text := self._before(path):
                parts = chunks(path, text)
                failing = self._failing(path, parts)
                found |= _closure(parts, failing or parts)
        if not self.holding:  # of those that do not say where they stand
            for path, (before, _) in self.changed.items():
                if before and "test" in kinds_of_path(path):
                    parts = chunks(path, before)
                    found |= _closure(parts, self._failing(path, parts))
        return frozenset(found)

    def at(self, path: str, before: str | None, after: str | None) -> Iterator[str]:
        """What one file's change touches."""
        yield from self._loaded(path)
        if self.seen.kinds and self._is_above(path):
            for name in settings_touched(path, before, after, self.seen):
                yield f"the setting {name}" if name != path else "settings of what judges"
        if self._is_recipe(path, before, after or ""):
            yield "what a check runs"
        language = language_of(path)
        lexer = language.lexer if language else ""
        is_test = self._is_test(path, lexer, before or "")
        if not self.tests_failed:
            is_test = False
        elif is_test or lexer == "rust":
            yield from self._tested(path, lexer, before, after, is_test=is_test)
        if not is_test and not kinds_of_path(path) & {"test", "example", "vendored"}:
            yield from _asking(lexer, before or "", after or "")

    def _is_test(self, path: str, lexer: str, text: str) -> bool:
        """Whether a file is for tests: by its place, or because tests failed in it."""
        if "test" in kinds_of_path(path) or glob.matches(path, judging_knowledge().expected):
            return True
        if path not in self.holding or lexer == "rust":
            return False
        # A runner of examples in docstrings names the program's own file.
        failing = self._failing(path, chunks(path, text))
        return lexer != "python" or any("test" in n.lower() for c in failing for n in c.names)

    # --- Tests and what they use ---

    def _tested(
        self, path: str, lexer: str, before: str | None, after: str | None, *, is_test: bool
    ) -> Iterator[str]:
        old, new = chunks(path, before or ""), chunks(path, after or "")
        failing = self._failing(path, old)
        if not is_test:  # tests in a file of the program: only what stands with them
            failing = [chunk for chunk in failing if chunk.chain]
            roots = {chunk.chain[0] for chunk in failing}
            old = [chunk for chunk in old if chunk.chain[:1] and chunk.chain[0] in roots]
            new = [chunk for chunk in new if chunk.chain[:1] and chunk.chain[0] in roots]
        if failing:
            yield from _differences(old, new, failing, _closure(old, failing))
        elif is_test and _is_data(path):
            is_expected = glob.matches(path, judging_knowledge().expected)
            is_kept = is_expected or "test_data" in kinds_of_path(path)
            if before is not None and is_kept and self._mentions(path):
                yield "data that a failing test reads"
        elif is_test and self._is_shared(path, lexer):
            yield from _differences(old, new, (), self.used)

    def _failing(self, path: str, parts: Sequence[Chunk]) -> list[Chunk]:
        """The pieces of a file that are failing tests."""
        if self.seen.is_blind and not self.seen.tests:
            return [chunk for chunk in parts if chunk.names]
        found: list[Chunk] = []
        for test in self.seen.tests:
            file = self.seen.files.get(test)
            if file and file != path and (file in self.changed or _is_file(file)):
                continue
            named = [chunk for chunk in parts if any(_names(name, test) for name in chunk.names)]
            nearer = [c for c in named if c.chain and c.chain[-1].replace(_BLANK, " ") in test]
            found += nearer or named
            if not named and file == path:  # its name is made when it runs
                found += [chunk for chunk in parts if chunk.names]
        return list(dict.fromkeys(found))

    def _is_shared(self, path: str, lexer: str) -> bool:
        """Whether failing tests may get something from a file that holds none of them."""
        name = PurePosixPath(path)
        if not self.holding:
            return True
        if lexer == "go" and any(PurePosixPath(one).parent == name.parent for one in self.holding):
            return True  # all files of a folder are one
        if name.name == "conftest.py":
            return self._is_above(path)
        stem = name.parent.name if name.stem in {"__init__", "index", "mod"} else name.stem
        return stem in self.used_files

    @property
    def used_files(self) -> frozenset[str]:
        """Names that the files with failing tests hold anywhere."""
        return frozenset(w for file in self.holding for w in words_of(self._before(file)))

    def _before(self, path: str) -> str:
        pair = self.changed.get(path)
        return (pair[0] if pair else self.read(path)) or ""

    def _mentions(self, path: str) -> bool:
        """Whether failing tests speak of a file of data."""
        name = PurePosixPath(path)
        if not self.holding:
            return True
        quoted = rf"""["'/]{re.escape(name.stem)}["'.]"""
        for file in self.holding:
            text, own = self._before(file), PurePosixPath(file)
            if name.name.startswith((own.name, own.stem)) or re.search(quoted, text):
                return True
            near = posixpath.dirname(file) == str(name.parent.parent)
            if near and re.search(rf"""["'/]{re.escape(name.parent.name)}["'/]""", text):
                return True
        leaves = (re.split(r"[.:>/ ]", test)[-1] for test in self.seen.tests)
        return any(len(leaf) > _SHORT and leaf in name.name for leaf in leaves)

    def _is_above(self, path: str) -> bool:
        """Whether a file stands in a folder above failing tests, as far as that is known."""
        folder = posixpath.dirname(path)
        folder = "" if folder.startswith(".") else folder
        return not (folder and self.holding) or any(
            file.startswith(folder + "/") for file in self.holding
        )

    # --- Beside the tests ---

    def _loaded(self, path: str) -> Iterator[str]:
        known = judging_knowledge()
        if glob.matches(path, known.loaded):
            yield "what is loaded before any test"
        top = path.removeprefix("src/").split("/")[0]
        if top.endswith(".py") or "/" in path:
            is_new = self.changed[path][0] is None
            if is_new and top.removesuffix(".py") in known.runners:
                yield "it would be taken for the test runner"

    def _is_recipe(self, path: str, before: str | None, after: str) -> bool:
        """Whether a check that failed runs its steps from what has changed in a file."""
        if before is None:
            return False
        for command in self.seen.commands:
            program = PurePosixPath(command[0]).name if command else ""
            for recipe in judging_knowledge().recipes:
                if program in recipe.programs and glob.matches(path, recipe.files):
                    return recipe.lines is None or _says(recipe.lines, before, after)
            named = {posixpath.normpath(word) for word in command}
            if path in named and judging_knowledge().script.search(path) and self.tests_failed:
                return "test" not in kinds_of_path(path)
        return False


_SHORT = 3
"""Characters of a test's name that may stand in a file's name by chance. Chosen, not measured."""


def _says(expression: re.Pattern[str], before: str, after: str) -> bool:
    """Whether a line that came or went says something."""
    return any(
        expression.search(new.split("\n")[number - 1])
        for old, new in ((before, after), (after, before))
        for number in added_lines(old, new)
    )


def _names(name: str, test: str) -> bool:
    """Whether a test's id is that of a piece with a name."""
    pattern = re.escape(name.replace(_BLANK, " "))
    pattern = re.sub(r"%\w|\\\$\\\{.*?\\\}|\\\$\w+", ".*", pattern)
    return re.search(rf"(?:^|[.:>/#\s]){pattern}(?:$|\[|/|\()", test) is not None


def _is_file(path: str) -> bool:
    return "." in posixpath.basename(path) and language_of(path) is not None


def _is_data(path: str) -> bool:
    language = language_of(path)
    return language is None or language.lexer not in {"python", "javascript", "go", "rust", "c"}


def _closure(parts: Sequence[Chunk], start: Sequence[Chunk]) -> frozenset[str]:
    """The names that pieces use, also by way of other pieces of the file."""
    words = {word for chunk in start for word in chunk.words}
    while True:
        more = {w for c in parts if c.names & words for w in c.words} - words
        if not more:
            return frozenset(words)
        words |= more


def _differences(
    old: Sequence[Chunk], new: Sequence[Chunk], failing: Sequence[Chunk], used: frozenset[str]
) -> Iterator[str]:
    """What of the pieces that failing tests are, or use, has changed."""
    chains = {chunk.chain[:depth] for chunk in failing for depth in range(len(chunk.chain) + 1)}
    own = frozenset((chunk.chain, chunk.names) for chunk in failing)
    defined = frozenset(name for chunk in old for name in chunk.names)
    gone, come = Counter(old), Counter(new)
    gone, come = gone - come, come - gone

    for chunk in (*gone, *come):
        is_new = chunk in come
        if chunk.case and is_new:
            continue
        label = _label(chunk)
        if (chunk.chain, chunk.names) in own:
            yield f"{label}, which failed"
        elif not chunk.names:
            if chunk.chain in chains or (not failing and set(chunk.chain) <= used):
                yield f"{label}, which failing tests run with"
        elif _is_always(chunk):
            yield f"{label}, which runs with every test"
        elif chunk.names & used and (not is_new or chunk.names & (defined | used)):
            yield f"{label}, which failing tests use"


def _is_always(chunk: Chunk) -> bool:
    known = judging_knowledge()
    return any(known.always.fullmatch(name) for name in chunk.names) or (
        known.always_marked.search(chunk.text) is not None
    )


def _label(chunk: Chunk) -> str:
    if chunk.names:
        return ", ".join(sorted(chunk.names)).replace(_BLANK, " ")[:80]
    return f"`{chunk.text.replace(_BLANK, ' ')[:60]}`"


def _asking(lexer: str, before: str, after: str) -> Iterator[str]:
    """Code that asks whether it is being tested, or changes how; not where the file did so before."""
    asks = judging_knowledge().asks.get(lexer)
    if asks is None or asks.search(after) is None:
        return
    new = lex(after, lexer).source
    if asks.search(lex(before, lexer).source):
        return
    added = added_lines(before, after)
    for match in asks.finditer(new):
        first = new.count("\n", 0, match.start() + len(match[0]) - len(match[0].lstrip())) + 1
        if first in added:
            shown = " ".join(match[0].split())
            yield f"line {first} reaches for what tests it: `{shown[:60]}`"
            return


# --- Asks for a look at such work ---------------------------------------------------------------------

CRITERION = "changed_tests"
"""The name of the criterion; approvals are of it."""

NAMES_TESTS = frozenset({"test", "command"})
"""Kinds of check of which it is to be known which test failed."""


@kept_as(r"tasks/[^/]+/judged\.json")
@dataclass
class _Judged:
    failed: frozenset[tuple[str, str]] = frozenset()
    files: frozenset[str] = frozenset()


@dataclass
class JudgingWatch:
    """Knows what failed in a task's life, and what the work has done to that.

    Args:
        checks: the task's.
        task_id: its id.
        work: what it has made of the project.
        store: where what failed is kept.
        is_on: the project wants somebody to look.
    """

    checks: tuple[Check, ...]
    task_id: str
    work: TaskChanges
    store: Store
    is_on: bool = True
    _known: _Judged = field(init=False)

    def __post_init__(self) -> None:
        """Go on with what is known."""
        self._known = documents.load_as(_Judged, self.store, self._document) or _Judged()

    def saw(self, report: Report) -> None:
        """Remember which checks failed, in which tests and files; on disk what is new."""
        failed = self._known.failed.union(*map(_failed, report.results))
        holding = {
            file
            for result in report.results
            for test, file in result.files.items()
            if (result.check.kind, test) in failed
        }
        known = _Judged(failed, self._known.files.union(holding, report.failing_files))
        if known != self._known:
            self._known = known
            self.store.write(self._document, json.dumps(codec.write(known)) + "\n")

    def criterion(self, report: Report, *, reviewed: bool) -> Check | None:
        """What somebody has to look at before the work counts; None: it touches nothing that judges.

        Args:
            report: what the checks say of the work.
            reviewed: a reviewer can be asked; else a person is.
        """
        found = self.touched(report) if self.is_on and report.first_failure is None else []
        if not found:
            return None
        said = f"the tests still ask for what they asked for; the work touches {_listed(found)}"
        return Check((), "custom" if reviewed else "approval", CRITERION, description=said)

    def touched(self, report: Report) -> list[TouchedTests]:
        """What the work touches of what judges it."""
        if not any(result.check.kind in NAMES_TESTS for result in report.results):
            return []
        changed = self.work.texts()
        return touched(changed, self._seen(report), self.work.text) if changed else []

    def _seen(self, report: Report) -> SeenFailures:
        failed = self._known.failed
        names = frozenset(test for _, test in failed if test)
        files = {t: f for result in report.results for t, f in result.files.items() if t in names}
        is_blind = any(kind in NAMES_TESTS and not test for kind, test in failed)
        return SeenFailures(
            frozenset(kind for kind, _ in failed),
            names,
            files,
            self._known.files,
            [check.command for check in self.checks if check.command],
            is_blind,
        )

    @property
    def _document(self) -> str:
        return f"tasks/{self.task_id}/judged.json"


def _failed(result: CheckResult) -> Iterator[tuple[str, str]]:
    """(kind, test) of each test of a check that failed; of one that names none, with ""."""
    if result.passed or result.check.is_judged:
        return
    kind = result.check.kind
    told = [test for test, outcome in (result.tests or {}).items() if outcome == "failed"]
    named = told or list(result.failure.tests if result.failure else ())
    yield from ((kind, test) for test in named or [""])


def _listed(found: list[TouchedTests]) -> str:
    by_path = groupby(found, key=lambda one: one.path)
    return "; ".join(f"{path} ({', '.join(one.what for one in ones)})" for path, ones in by_path)
