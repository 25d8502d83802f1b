"""Gates: what a proposed change must pass before a byte of the project changes."""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from loki.action.change import Change, Edit
from loki.action.refusal import refusals
from loki.action.tree import Tree
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BLOCKING, ADVISORY = "blocking", "advisory"

MAX_DEPTH = 100
"""Levels of nesting in YAML; chosen, not measured. Real files have fewer than twenty."""

JSON_WITH_COMMENTS = ("tsconfig", "jsconfig", ".eslintrc", "devcontainer", "settings", "launch")
"""Stems of JSON files whose tools allow comments; a strict parser has no say in them."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What a gate found wrong with a proposal.

    Attributes:
        gate: name of the gate.
        severity: blocking or advisory; only a blocking one fails the validation.
        file, line, column: where, relative to the project; None where not known.
        description: what is wrong.
        suggested_fix: what to do about it, or "".
        auto_fixable: a fix command could mend it.
    """

    gate: str
    severity: str
    file: str | None
    description: str
    line: int | None = None
    column: int | None = None
    suggested_fix: str = ""
    auto_fixable: bool = False

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{where or 'change'}: {self.description} [{self.gate}]"


@dataclass(frozen=True, slots=True)
class Validation:
    """What all gates said.

    Attributes:
        gates: names of the gates that ran.
        violations: what they found.
        skipped: VALIDATE did not take place, because the caller edits by itself.
    """

    gates: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    skipped: bool = False

    @property
    def passed(self) -> bool:
        """No violation is blocking."""
        return not self.blocking

    @property
    def blocking(self) -> tuple[Violation, ...]:
        """The violations that fail it."""
        return tuple(v for v in self.violations if v.severity == BLOCKING)

    def record(self) -> dict[str, Any]:
        """What is kept of it in the attempt's record."""
        return {
            "passed": self.passed,
            "skipped": self.skipped,
            "gates": list(self.gates),
            "violations": [str(v) for v in self.violations],
        }

    def failure(self, patterns: PatternSet) -> Failure:
        """The failure that blocking violations amount to."""
        first, *others = self.blocking
        excerpt = "\n".join(str(v) for v in (first, *others))
        # A refusal is about the path itself; a syntax error is the same wherever it stands.
        about_path = first.gate == "change_check" and first.file
        return Failure.of(
            f"{first.file}: {first.description}" if about_path else first.description,
            tool="loki",
            error_code=first.gate,
            path=first.file,
            line=first.line,
            column=first.column,
            excerpt=excerpt,
            pattern="syntax-error" if first.gate == "syntax_check" else None,
            patterns=patterns,
        )


Gate = Callable[[Change, Path, Tree], list[Violation]]


def validate(change: Change, root: Path, tree: Tree) -> Validation:
    """Run every gate on a proposal, in order; nothing is written.

    Args:
        change: the proposal.
        root: the project's folder.
        tree: the project as it is.

    A later gate does not run where an earlier one blocks: a change that may not be applied at all
    need not be well written.
    """
    ran: list[str] = []
    found: list[Violation] = []
    for name, gate in GATES:
        ran.append(name)
        found += gate(change, root, tree)
        if any(v.severity == BLOCKING for v in found):
            break
    return Validation(tuple(ran), tuple(found))


def change_check(change: Change, root: Path, tree: Tree) -> list[Violation]:
    """Refuse edits that leave the project, touch what is not theirs, or came too late."""
    return [
        Violation("change_check", BLOCKING, refusal.path, refusal.reason)
        for refusal in refusals(change, root, tree)
    ]


def syntax_check(change: Change, root: Path, tree: Tree) -> list[Violation]:
    """Parse the proposed content of Python, JSON, TOML and YAML files.

    A file that did not parse before either is only pointed out: its dialect may be one that the
    parser does not know (templates, comments in JSON).
    """
    found = []
    for edit in change.edits:
        parse = _parser(edit.path)
        if parse is None or edit.after is None:
            continue
        problem = _problem(parse, edit)
        if problem is not None and tree.entries.get(edit.path) and _broken(parse, root, edit):
            problem = replace(problem, severity=ADVISORY)
        if problem is not None:
            found.append(problem)
    return found


def broken_files(root: Path, paths: Sequence[str]) -> Validation:
    """Run the syntax check on files as they are in the project now.

    Args:
        root: the project's folder.
        paths: files that something other than a proposal wrote, relative to it.
    """
    found = []
    for path in paths:
        parse = _parser(path)
        if parse is None or not (root / path).is_file():
            continue
        problem = _problem(parse, Edit(path, (root / path).read_bytes()))
        if problem is not None:
            found.append(problem)
    return Validation(("syntax_check",), tuple(found))


GATES: Sequence[tuple[str, Gate]] = (("change_check", change_check), ("syntax_check", syntax_check))


class _Problem(Exception):
    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def _problem(parse: Callable[[str], None], edit: Edit) -> Violation | None:
    try:
        parse((edit.after or b"").decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Violation("syntax_check", BLOCKING, edit.path, f"not UTF-8: {error.reason}")
    except _Problem as problem:
        return Violation(
            "syntax_check", BLOCKING, edit.path, str(problem), problem.line, problem.column
        )
    return None


def _broken(parse: Callable[[str], None], root: Path, edit: Edit) -> bool:
    try:
        parse((root / edit.path).read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, _Problem):
        return True
    return False


def _parser(path: str) -> Callable[[str], None] | None:
    name = PurePosixPath(path)
    if name.suffix == ".json" and any(name.stem.startswith(s) for s in JSON_WITH_COMMENTS):
        return None
    return _PARSERS.get(name.suffix.lower())


def _parse_python(text: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        raise _Problem(f"SyntaxError: {error.msg}", error.lineno, error.offset) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _Problem(f"cannot be parsed: {error or type(error).__name__}") from error


def _parse_json(text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise _Problem(f"invalid JSON: {error.msg}", error.lineno, error.colno) from error
    except RecursionError as error:
        raise _Problem("invalid JSON: nested too deeply") from error


def _parse_toml(text: str) -> None:
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _Problem(f"invalid TOML: {error}") from error


def _parse_yaml(text: str) -> None:
    try:
        # Events only: aliases are not expanded and tags are not built. The scanner's time grows with
        # the square of the depth, so a hostile depth is refused before it costs anything.
        depth = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                depth += 1
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                depth -= 1
            if depth > MAX_DEPTH:
                raise _Problem(f"invalid YAML: nested deeper than {MAX_DEPTH} levels")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise _Problem(
            f"invalid YAML: {error.problem}",
            mark.line + 1 if mark else None,
            mark.column + 1 if mark else None,
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _Problem(f"invalid YAML: {error}") from error


_PARSERS: dict[str, Callable[[str], None]] = {
    ".py": _parse_python,
    ".pyi": _parse_python,
    ".json": _parse_json,
    ".toml": _parse_toml,
    ".yml": _parse_yaml,
    ".yaml": _parse_yaml,
}
