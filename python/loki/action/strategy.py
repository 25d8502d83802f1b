"""Strategies: what loki does itself between a failure and the next attempt.

Each is a function from `Help` to `Helped`; one that cannot do its work raises `CannotHelp`, and the
next is tried.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loki.action.check import Check
from loki.action.event import Helped
from loki.action.process import Finished
from loki.action.tree import Tree
from loki.base.error import LokiError
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet
from loki.recognition.site import fix_for

AROUND = 50
"""Lines shown before and after an error location, as the closed-loop document has it."""

MAX_SEARCHED_BYTES = 512 * 1024
"""A file larger than this is not searched for definitions; chosen, not measured."""

MAX_DEFINITIONS = 6


class CannotHelp(LokiError):
    """A strategy has nothing to work on; the next one is tried."""


@dataclass(frozen=True)
class Situation:
    """What a strategy works on.

    Attributes:
        root: the project's folder.
        failure: what failed.
        check: the check that failed, or None where none ran.
        patterns: the pattern set.
        run_fix: runs a command in the project and gives its result and the paths that it changed.
        passes_now: runs a check again and tells whether it passes.
    """

    root: Path
    failure: Failure
    check: Check | None
    patterns: PatternSet
    run_fix: Callable[[tuple[str, ...]], tuple[Finished, tuple[str, ...]]]
    passes_now: Callable[[Check], bool]


def carry_out(name: str, situation: Situation) -> Helped:
    """Carry out a strategy; an error is told in the answer, never raised.

    Args:
        name: auto_fix, context_expand, analyze_then_fix or dependency_check.
        situation: what to work on.
    """
    strategy = STRATEGIES.get(name)
    if strategy is None:
        return Helped(name, error=f"no such strategy: expected one of {', '.join(STRATEGIES)}")
    try:
        return strategy(situation)
    except (LokiError, OSError) as error:
        return Helped(name, error=str(error))


def auto_fix(situation: Situation) -> Helped:
    """Run the fix command of the pattern or of the tool, and the check once more."""
    command = _fix_command(situation)
    finished, files = situation.run_fix(command)
    shown = shlex.join(command)
    if finished.exit_code is None:
        raise CannotHelp(f"{shown} was ended before it was done")
    cured = situation.check is not None and situation.passes_now(situation.check)
    if not files and not cured:
        raise CannotHelp(f"{shown} changed nothing")
    result = "the check passes now" if cured else "the check still fails"
    changed = ", ".join(files) or "nothing"
    return Helped("auto_fix", f"ran `{shown}`: changed {changed}; {result}", files=files)


def context_expand(situation: Situation) -> Helped:
    """Read the places and the definitions that the error names."""
    failure = situation.failure
    tree = Tree.scan(situation.root)
    parts = [_lines(situation.root, path, line, 8) for path, line in _locations(failure, tree)]
    found = _definitions(situation.root, tree, _names(failure))
    parts += [_lines(situation.root, path, line, 10) for path, line in found]
    context = "\n\n".join(dict.fromkeys(part for part in parts if part))
    if not context:
        raise CannotHelp("the error names no file or definition of the project")
    where = ", ".join(dict.fromkeys(path for path, _ in (*_locations(failure, tree), *found)))
    return Helped("context_expand", f"read {where}", context)


def analyze_then_fix(situation: Situation) -> Helped:
    """Gather the lines round each error location, and what was expected against what came."""
    failure = situation.failure
    tree = Tree.scan(situation.root)
    parts = []
    expected = [line.strip() for line in failure.excerpt.splitlines() if _COMPARES.search(line)]
    if expected:
        parts.append("expected against actual:\n" + "\n".join(expected[:6]))
    locations = _locations(failure, tree)
    parts += [_lines(situation.root, path, line, AROUND) for path, line in locations]
    context = "\n\n".join(part for part in parts if part)
    done = f"read {', '.join(path for path, _ in locations)}" if locations else ""
    # An error without a location is still worth an analysis; there is only nothing to show.
    return Helped("analyze_then_fix", done, context)


def dependency_check(situation: Situation) -> Helped:
    """Look the missing module up in the project and in its manifests; nothing is installed."""
    found = re.search(r"['\"]([\w./@-]+)['\"]", situation.failure.message)
    if found is None:
        raise CannotHelp("the error names no module")
    module = found.group(1)
    tree = Tree.scan(situation.root)
    top = re.split(r"[./]", module.lstrip("./@"))[0].lower()
    similar = [
        path
        for path in tree.entries
        if Path(path).stem.lower() == top or f"/{top}/" in f"/{path.lower()}"
    ]
    manifests = [path for path in tree.entries if Path(path).name in MANIFESTS]
    named = [
        path
        for path in manifests
        if re.search(rf"\b{re.escape(top)}\b", _read(situation.root, path), re.IGNORECASE)
    ]
    lines = [
        f"module: {module}",
        f"files of that name in the project: {', '.join(similar[:8]) or 'none'}",
        f"manifests that name it: {', '.join(named) or 'none'}",
        f"manifests looked in: {', '.join(manifests) or 'none found'}",
    ]
    return Helped("dependency_check", f"looked {module} up", "\n".join(lines))


STRATEGIES: Mapping[str, Callable[[Situation], Helped]] = {
    "auto_fix": auto_fix,
    "context_expand": context_expand,
    "analyze_then_fix": analyze_then_fix,
    "dependency_check": dependency_check,
}

MANIFESTS = frozenset(
    {
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "requirements.txt",
        "package.json",
        "go.mod",
        "Cargo.toml",
    }
)

_COMPARES = re.compile(r"\bassert\b|\bexpected\b|^E\s|==|!=", re.IGNORECASE)

_DEFINES = (
    r"^\s*(?:export\s+|pub\s+|async\s+)*"
    r"(?:def|class|interface|type|struct|enum|func|function|fn|const|let|var)\s+"
)


def _fix_command(situation: Situation) -> tuple[str, ...]:
    match = situation.failure.match
    pattern = situation.patterns.patterns.get(match.pattern) if match else None
    words: Sequence[str] | None = None
    if pattern is not None and pattern.fix_command:
        words = shlex.split(pattern.fix_command)
    elif situation.check is not None:
        words = fix_for(situation.check.command)
    if words is None:
        raise CannotHelp("no fix command is known for this check")
    path = situation.failure.path
    if not path and any("{file}" in word for word in words):
        raise CannotHelp("the fix command needs a file, and the error names none")
    return tuple(word.replace("{file}", path or "") for word in words)


def _locations(failure: Failure, tree: Tree) -> list[tuple[str, int]]:
    """Places in the project that an error names: its own first, then its stack, innermost last."""
    places = [(failure.path, failure.line)]
    places += [(frame.path, frame.line) for frame in reversed(failure.frames) if frame.in_project]
    known = [(path, line or 1) for path, line in places if path and path in tree.entries]
    return list(dict.fromkeys(known))


def _names(failure: Failure) -> list[str]:
    """Identifiers that an error quotes, and the functions of its stack."""
    quoted = re.findall(r"['\"`]([A-Za-z_]\w*(?:\.\w+)*)['\"`]", failure.message)
    names = [name.rpartition(".")[2] for name in quoted]
    names += re.findall(r"\b([A-Za-z_]\w+)\(", failure.message)
    return list(dict.fromkeys(name for name in names if len(name) > 2))  # noqa: PLR2004


def _definitions(root: Path, tree: Tree, names: Sequence[str]) -> list[tuple[str, int]]:
    if not names:
        return []
    pattern = re.compile(_DEFINES + rf"(?:{'|'.join(map(re.escape, names))})\b", re.MULTILINE)
    found: list[tuple[str, int]] = []
    for path, entry in tree.entries.items():
        if entry.size > MAX_SEARCHED_BYTES:
            continue
        text = _read(root, path)
        found += [(path, text.count("\n", 0, m.end()) + 1) for m in pattern.finditer(text)]
        if len(found) >= MAX_DEFINITIONS:
            break
    return found[:MAX_DEFINITIONS]


def _lines(root: Path, path: str, line: int, around: int) -> str:
    """Numbered lines round a place; the place itself is marked. Nearest lines survive a cut."""
    lines = _read(root, path).splitlines()
    if not lines:
        return ""
    first, last = max(1, line - around), min(len(lines), line + around)
    rows = [
        f"{'>' if number == line else ' '}{number:5} {lines[number - 1]}"
        for number in range(first, last + 1)
    ]
    return f"{path}:{line}\n" + "\n".join(rows)


def _read(root: Path, path: str) -> str:
    try:
        return (root / path).read_text("utf-8", "replace")
    except OSError:
        return ""
