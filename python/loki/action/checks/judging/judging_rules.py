"""What is known of what judges, from ``judging.yml``: read once, when first asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from loki.decision.drift.path_kinds import any_glob

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Setting:
    """Files that decide how checks of some kinds judge, whole or in parts.

    Attributes:
        kinds: of checks.
        files: globs.
        parts: what of such a file counts, by its dotted name; None: all of it.
        programs: of which a check has to start one; empty: whatever it starts.
    """

    kinds: frozenset[str]
    files: tuple[str, ...]
    parts: re.Pattern[str] | None
    programs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Recipe:
    """Files that programs run their steps from.

    Attributes:
        programs: which.
        files: globs.
        lines: what a line says that came or went, for it to count; None: every one counts.
    """

    programs: frozenset[str]
    files: tuple[str, ...]
    lines: re.Pattern[str] | None


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All of the file."""

    always: re.Pattern[str]
    always_marked: re.Pattern[str]
    loaded: tuple[str, ...]
    expected: tuple[str, ...]
    runners: frozenset[str]
    settings: tuple[Setting, ...]
    recipes: tuple[Recipe, ...]
    script: re.Pattern[str]
    asks: dict[str, re.Pattern[str]]
    inside: dict[str, re.Pattern[str]]


@cache
def knowledge() -> Knowledge:
    """What loki knows of runners, their settings, and code that asks for them.

    Example:
        >>> bool(knowledge().asks["python"].search('if "pytest" in sys.modules:'))
        True
    """
    file = Path(__file__).with_name("judging.yml")
    data = yaml.load(file.read_text("utf-8"), Loader=_Loader)  # noqa: S506 - a safe loader
    return Knowledge(
        any_glob(data["always"]),
        any_glob(data["always_marked"]),
        tuple(data["loaded"]),
        tuple(data["expected"]),
        frozenset(data["runners"]),
        tuple(_setting(said) for said in data["settings"]),
        tuple(_recipe(said) for said in data["recipes"]),
        re.compile(data["script"]),
        {lexer: any_glob(said) for lexer, said in data["asks"].items()},
        {suffix: re.compile(said, re.MULTILINE) for suffix, said in data["inside"].items()},
    )


def _setting(said: dict[str, Any]) -> Setting:
    parts = any_glob(said["parts"]) if "parts" in said else None
    programs = frozenset(said.get("programs", ()))
    return Setting(frozenset(said["kinds"]), tuple(said["files"]), parts, programs)


def _recipe(said: dict[str, Any]) -> Recipe:
    lines = re.compile(said["lines"]) if "lines" in said else None
    return Recipe(frozenset(said["programs"]), tuple(said["files"]), lines)
