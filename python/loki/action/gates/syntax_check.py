"""The syntax check: what is proposed parses, by whatever judge of its language is here.

Which judges a language has stands in ``syntax-check.yml``. Where several are here, a text is refused only if
none takes it: compilers extend languages, and grammars lag behind them. A grammar of tree-sitter is an
optional package (``pip install loki-core[gates]``): https://tree-sitter.github.io/py-tree-sitter/
"""

from __future__ import annotations

import itertools
import posixpath
import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pydantic import Field

from loki.action.changes.change import Edit
from loki.action.changes.safe_path import ancestors
from loki.action.changes.scratch_copy import scratch_folder
from loki.action.checks.command_detection import MANIFEST
from loki.action.gates.added_lines import lex
from loki.action.gates.data_parsers import PARSERS, Problem
from loki.action.gates.gate import ADVISORY, BLOCKING, Subject, Validation, Violation
from loki.action.processes import process
from loki.action.processes.command_line import find_program
from loki.base.grammar import INSTALL, Grammar, parse, place
from loki.base.yaml_document import Strict, read_beside
from loki.recognition.failure import recognize

if TYPE_CHECKING:
    from tree_sitter import Node


# --- By tree-sitter, for languages whose own parser is not here ---------------------------------------

_SHOWN = 30
_PARTNERS = {"(": ")", "[": "]", "{": "}", "${": "}"}


def grammar_problem(root: Node, content: bytes) -> Problem | None:
    """The first place where a text does not fit its grammar.

    Args:
        root: of the text's tree.
        content: the text, UTF-8.
    """
    if not root.has_error:
        return None
    node = _error(root)
    return Problem(_message(node, content), *place(node, content))


def _error(root: Node) -> Node:
    """The first error in the text; of nested ones the innermost."""
    for node in _nodes(root):
        inside = any(child.has_error or child.is_missing for child in node.children)
        if node.is_missing or (node.is_error and not inside):
            return node
    return root


def is_balanced(root: Node) -> bool:
    """Whether every bracket among a text's tokens has its partner."""
    opened: list[str] = []
    for node in _nodes(root):
        if node.is_missing:
            continue
        if node.type in _PARTNERS:
            opened.append(_PARTNERS[node.type])
        elif node.type in _PARTNERS.values() and (not opened or opened.pop() != node.type):
            return False
    return not opened


def _nodes(root: Node) -> Iterator[Node]:
    """All pieces of a text, in its order."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)


def _message(node: Node, content: bytes) -> str:
    if node.is_missing:
        return f"syntax error: expected {node.type!r}"
    text = content[node.start_byte : node.end_byte].decode("utf-8", "replace")
    first = text.strip().split("\n")[0]
    shown = first if len(first) <= _SHOWN else first[:_SHOWN] + "…"
    return f"syntax error: unexpected {shown!r}" if shown else "syntax error"


# --- By a language's own tool, run on a copy ----------------------------------------------------------

_CARET = re.compile(r"[ \t]*\^+[ \t~]*")


class TooSlow(Exception):
    """The tool was ended because it took too long."""


def check_by_toolchain(
    command: Sequence[str],
    name: str,
    content: bytes,
    *,
    seconds: float,
    cancelled: threading.Event | None = None,
) -> None:
    """Have a tool look at a text in a folder of its own; nothing of the project is run.

    Args:
        command: its words; ``{file}`` is the path of the text.
        name: of the file, with the extension that the tool goes by.
        content: the text.
        seconds: how long it may take.
        cancelled: ends it when set.

    Raises:
        Problem: the tool refuses the text.
        TooSlow: it was ended.
    """
    with scratch_folder() as folder:
        file = Path(folder, PurePosixPath(name).name.lstrip("-") or "file")
        file.write_bytes(content)
        finished = process.run(
            [word.replace("{file}", str(file)) for word in command],
            cwd=folder,
            timeout=seconds,
            environment={"NODE_OPTIONS": "", "PYTHONPATH": ""},
            cancelled=cancelled,
            merge=True,
        ).masked()
    if finished.timed_out:
        raise TooSlow(command[0])
    if finished.is_success:
        return
    output = finished.output.decode("utf-8", "replace")
    failure = recognize(output, command=" ".join(command[:2]), exit_code=finished.exit_code)
    if failure.line is None or not failure.message:
        first = next((line for line in output.split("\n") if line.strip()), "nothing")
        raise Problem(
            f"{command[0]} refuses it, and what it printed cannot be read: {first.strip()[:200]}"
        )
    column = failure.column or _column(output, content, failure.line)
    kind = f"{failure.error_type}: " if failure.error_type else "syntax error: "
    raise Problem(kind + failure.message, failure.line, column)


def _column(output: str, content: bytes, line: int) -> int | None:
    """The column that a caret under the quoted line points at."""
    source = content.decode("utf-8", "replace").split("\n")[line - 1 : line]
    printed = output.split("\n")
    for quoted, mark in itertools.pairwise(printed):
        if source and quoted.rstrip() == source[0].rstrip() and _CARET.fullmatch(mark):
            return mark.index("^") + 1
    return None


# --- The check ----------------------------------------------------------------------------------------

GATE = "syntax_check"


class _Tool(Strict):
    command: tuple[str, ...]
    needs: str = ""
    extensions: tuple[str, ...] = ()
    written_as: str = Field(default="", alias="as")


class Language(Strict):
    """One language of ``syntax-check.yml``."""

    name: str
    extensions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    parser: str = ""
    grammar: Grammar | None = None
    tools: tuple[_Tool, ...] = ()
    lags: bool = False
    dialects: frozenset[str] = frozenset()
    compilers: frozenset[str] = frozenset()
    unknown_dialect: tuple[str, ...] = ()


class _Knowledge(Strict):
    version: int
    languages: tuple[Language, ...]
    template_marks: tuple[str, ...]
    template_languages: tuple[str, ...]


@cache
def knowledge() -> _Knowledge:
    """What this release knows of languages."""
    return read_beside(__file__, "syntax-check.yml", _Knowledge)


def language_of(path: str) -> Language | None:
    """The language that a file is checked as; None where there is no check for it."""
    folder, name = posixpath.split(path)
    extension = posixpath.splitext(name)[1].lower()
    by_extension = None
    for language in knowledge().languages:
        if any(fnmatchcase(name, pattern) for pattern in language.names):
            return language
        if extension in {".json", *language.extensions} and any(
            f"/{folder}".endswith("/" + inner) for inner in language.folders
        ):
            return language
        if extension in language.extensions and by_extension is None:
            by_extension = language
    return by_extension


def syntax_check(subject: Subject) -> list[Violation]:
    """Parse the proposed content of every file whose language is known.

    A file that did not parse before either is only pointed out: its dialect may be one that no
    judge knows.
    """
    judge = _Judge(subject, time.monotonic() + subject.setting.timeout)
    found = []
    for edit in subject.written:
        language = language_of(edit.path)
        violation = judge.violation(edit, language) if language else None
        if violation is not None:
            found.append(violation)
    return found


def is_parsable(path: str) -> bool:
    """Whether loki has a parser of its own for a file.

    Example:
        >>> is_parsable("app.toml"), is_parsable("notes.txt")
        (True, False)
    """
    language = language_of(path)
    return language is not None and bool(language.parser)


def broken_files(root: Path, paths: Sequence[str]) -> Validation:
    """Run the built-in parsers on files as they are in the project now.

    Args:
        root: the project's folder.
        paths: files that something other than a proposal wrote, relative to it.
    """
    found = []
    for path in paths:
        language = language_of(path)
        if language and language.parser and (root / path).is_file():
            problem = _parsed(language, (root / path).read_bytes())
            if problem is not None:
                found.append(_violation(path, problem))
    return Validation((GATE,), tuple(found))


@dataclass
class _Verdict:
    """A problem, and whether it is certain that it is one."""

    problem: Problem
    is_certain: bool = True


class _Judge:
    def __init__(self, subject: Subject, deadline: float) -> None:
        self.subject, self.deadline = subject, deadline

    def violation(self, edit: Edit, language: Language) -> Violation | None:
        content = edit.after or b""
        verdict = self._verdict(language, edit.path, content)
        if verdict is None:
            return None
        violation = _violation(edit.path, verdict.problem)
        before = self.subject.content_before(edit.path)
        is_template = language.name in knowledge().template_languages and _is_template(content)
        was_broken = before is not None and self._verdict(language, edit.path, before) is not None
        if not verdict.is_certain or is_template or was_broken:
            return replace(violation, severity=ADVISORY)
        return violation

    def _verdict(self, language: Language, path: str, content: bytes) -> _Verdict | None:
        problem = _parsed(language, content)
        by_tools: Problem | bool | None = True
        if problem is not None or not language.parser:
            by_tools = self._by_tools(language, path, content)
        if by_tools is True:
            return None
        if problem is not None:
            return _Verdict(problem)
        root = parse(language.grammar, content) if language.grammar else None
        by_grammar = grammar_problem(root, content) if root else None
        is_known = self._is_known(language, path, content)
        if isinstance(by_tools, Problem):
            if root and not by_grammar and _is_dialect(language, root):
                return None
            # Without the grammar a dialect can be told, but no mistake in one.
            is_dialect = root is None and bool(language.dialects)
            is_certain = is_known and not (is_dialect and is_compiled(_text(content)))
            return _Verdict(_placed(by_tools, by_grammar), is_certain)
        if root and by_grammar:
            # Brackets that do not match are wrong in every version of the language.
            is_certain = not language.lags or not is_balanced(root)
            return _Verdict(by_grammar, is_known and is_certain)
        if root is None:
            self.subject.warn(
                f"{GATE}: {language.name} is not checked: neither its tool nor its grammar is here; "
                f"install the grammar: {INSTALL}"
            )
        return None

    def _is_known(self, language: Language, path: str, content: bytes) -> bool:
        """Whether no sign, in the text or in a manifest above it, names a dialect that no judge knows."""
        head = _text(content[:5000])
        if any(mark in head for mark in language.unknown_dialect):
            return False
        folders = (*ancestors(path), "") if language.compilers else ()
        return not any(self._compilers(folder) & language.compilers for folder in folders)

    def _compilers(self, folder: str) -> frozenset[str]:
        """What the manifest of a folder says that the project depends on."""
        manifest = self.subject.after.json(posixpath.join(folder, MANIFEST))
        tables = (manifest.get(key) for key in ("dependencies", "devDependencies"))
        return frozenset(name for table in tables if isinstance(table, dict) for name in table)

    def _by_tools(self, language: Language, path: str, content: bytes) -> Problem | bool | None:
        """The problem of the tool that came farthest; True: one takes it; None: none could say."""
        stem, extension = posixpath.splitext(posixpath.basename(path))
        found: Problem | None = None
        for tool in language.tools:
            if tool.extensions and extension not in tool.extensions:
                continue
            command = self._command(tool)
            left = self.deadline - time.monotonic()
            if command is None or left <= 0 or not find_program(command[0], self.subject.root):
                continue
            name = stem + (tool.written_as or extension)
            try:
                check_by_toolchain(
                    command, name, content, seconds=left, cancelled=self.subject.cancelled
                )
            except Problem as problem:
                # Read as what it is not, a text ends sooner: a module as a script at its first import.
                found = max(filter(None, (found, problem)), key=lambda p: p.line or 0)
            except TooSlow:
                limit = f"{self.subject.setting.timeout:g} s"
                self.subject.warn(
                    f"{GATE}: {command[0]} took over {limit}: the rest is not shown to it"
                )
            else:
                return True
        return found

    def _command(self, tool: _Tool) -> tuple[str, ...] | None:
        from loki.action.strategies.dependency.installed import interpreter_of_project

        root = self.subject.root
        python = interpreter_of_project(root) if "{python}" in tool.command else ""
        if python is None or (tool.needs and not (root / tool.needs).is_file()):
            return None
        return tuple(
            word.replace("{python}", python).replace("{root}", str(root)) for word in tool.command
        )


def _is_dialect(language: Language, root: Node) -> bool:
    """Whether what the tool refuses and the grammar takes is more than a rule beyond grammar."""
    return any(node.type in language.dialects for node in _nodes(root))


def is_compiled(text: str) -> bool:
    """Whether a text seems to have what a compiler turns into JavaScript first: JSX, or decorators.

    Example:
        >>> is_compiled("const a = <p>1</p>;"), is_compiled("@store class A {}")
        (True, True)
        >>> is_compiled("if (a < b) { c = a <= 1; d.e #f }"), is_compiled("'@a' // @b <p>")
        (False, False)
    """
    return _COMPILED.search(lex(text, "javascript").code) is not None


_COMPILED = re.compile(r"(?:^|[(=?:,&|{};>]|\breturn\b)\s*<(?:[A-Za-z_$]|>)|(?<![\w$.])@[A-Za-z_$]")


def _parsed(language: Language, content: bytes) -> Problem | None:
    try:
        text = content.decode("utf-8-sig")
        if language.parser:
            PARSERS[language.parser](text)
    except UnicodeDecodeError as error:
        return Problem(f"not UTF-8: {error.reason}", content[: error.start].count(b"\n") + 1)
    except Problem as problem:
        return problem
    return None


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _placed(problem: Problem, other: Problem | None) -> Problem:
    """A tool's words with the column that the grammar has for the same line."""
    if other and problem.column is None and other.line == problem.line:
        return Problem(str(problem), problem.line, other.column)
    return problem


def _is_template(content: bytes) -> bool:
    text = _text(content).replace("${{", "")
    return any(mark in text for mark in knowledge().template_marks)


def _violation(path: str, problem: Problem) -> Violation:
    return Violation(GATE, BLOCKING, path, str(problem), problem.line, problem.column)
