"""What a change of a file is, by its text and its file's name: a probe, one of tests, one of the agent's own.

Data in ``tool-call.yml`` says it. Pure and total.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from loki.decision.monitor.tool_knowledge import knowledge

LONGEST = 200_000
"""Characters of a text that are looked at; chosen, not measured."""

MOST_EDITS = 100
"""Edits of one call that are looked at; chosen, not measured."""

_PATCH = "*** Begin Patch"


def is_probe(arguments: Mapping[str, Any], *, inserts: bool = False) -> bool:
    """Whether a change only adds or removes lines that look into a program, or remarks.

    Args:
        arguments: what an editing tool was called with.
        inserts: it takes nothing out, by its name.

    Example:
        >>> is_probe({"old_string": "x = f()", "new_string": "x = f()\\nprint(x)"})
        True
    """
    changed = [
        line for old, new in _changes(arguments, inserts=inserts) for line in _differs(old, new)
    ]
    return bool(changed) and all(map(knowledge().probe.match, _whole(changed)))


def _changes(arguments: Mapping[str, Any], *, inserts: bool) -> list[tuple[str, str]]:
    """What a call takes out of a file, and what it puts in; of a file written anew nothing is known."""
    parts = arguments.get("edits")
    if isinstance(parts, (list, tuple)):
        plain = [part for part in parts[:MOST_EDITS] if isinstance(part, Mapping)]
        return [
            pair
            for part in plain
            if "edits" not in part
            for pair in _changes(part, inserts=inserts)
        ]
    old = _text_in(arguments, knowledge().old_arguments)
    new = _text_in(arguments, knowledge().new_arguments)
    if old is None and inserts:
        old = ""
    if old is not None and new is not None:
        return [(old, new)]
    patches = (v for v in arguments.values() if isinstance(v, str) and _PATCH in v[:LONGEST])
    lines = next(patches, "")[:LONGEST].splitlines()
    if any(line.startswith("*** Add File") for line in lines):
        return []
    removed = [line[1:] for line in lines if line[:1] == "-"]
    added = [line[1:] for line in lines if line[:1] == "+"]
    return [("\n".join(removed), "\n".join(added))] if lines else []


def _differs(old: str, new: str) -> list[str]:
    before, after = old.splitlines(), new.splitlines()
    return [*_more(after, before), *_more(before, after)]


def _whole(lines: Sequence[str]) -> list[str]:
    """Statements, each in one line, as far as round brackets tell where one ends."""
    whole: list[str] = []
    is_open = 0
    for line in lines:
        if is_open <= 0:
            whole.append(line)
            is_open = 0
        is_open += line.count("(") - line.count(")")
    return whole


def _more(lines: Sequence[str], than: Sequence[str]) -> list[str]:
    """Lines that say something, and that another text has not."""
    known = {line.strip() for line in than}
    return [line for line in lines if line.strip() and line.strip() not in known]


def _text_in(arguments: Mapping[str, Any], names: frozenset[str]) -> str | None:
    for name, value in arguments.items():
        if str(name).casefold() in names and isinstance(value, str):
            return value[:LONGEST]
    return None


def is_of_tests(path: str) -> bool:
    """Whether a file is one of tests, by its place and its name."""
    plain = posixpath.normpath(path.replace("\\", "/")) if path else ""
    return knowledge().tests.search(plain) is not None


def is_scratch(path: str) -> bool:
    """Whether a file is one of the agent's own, by its name."""
    return knowledge().scratch.match(path.replace("\\", "/").rpartition("/")[2]) is not None


def is_prose(path: str) -> bool:
    """Whether a file is none that checks read, by its name."""
    file = PurePosixPath(path.replace("\\", "/").casefold())
    return file.suffix[1:] in knowledge().prose or file.name in knowledge().prose_names
