"""What self-review knows, from ``self-review.yml``: read once, when first asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from loki.action.gates.gate import ADVISORY


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of text or tokens that is a fault where a change adds it.

    Attributes:
        id, concern, severity, description, fix: what is said. ``{match}`` and ``{name}`` in the
            description stand for what was found.
        regex: what is looked for.
        where: ``code``, ``source``, ``comments`` or ``all``.
        needs: texts of which one stands in every file that the regex can match in.
        languages: empty: all.
        not_in: kinds of place where it is no fault.
        unless: what excuses it, in the statement or in `look_behind` lines before it.
        unusual: no fault where the file did the same before.
        file: what the file has to hold besides.
        block: what the block round a match is asked for: ``try``, ``function`` or nothing.
    """

    id: str
    concern: str
    severity: str
    description: str
    fix: str
    regex: re.Pattern[str]
    where: str
    needs: tuple[str, ...]
    languages: frozenset[str]
    not_in: frozenset[str]
    unless: re.Pattern[str] | None
    look_behind: int
    unusual: bool
    file: str
    block: str


@dataclass(frozen=True, slots=True)
class Language:
    """How a language is read: its name, its lexer, and what shows that a file is a program."""

    name: str
    lexer: str
    script: re.Pattern[str] | None


@dataclass(frozen=True, slots=True)
class Concern:
    """What self-review looks for: the words it is called by, and what to do about it.

    Attributes:
        title, fix: those words.
        is_security: what of it is certain goes to a person at once.
    """

    title: str
    fix: str
    is_security: bool = False


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All of the file."""

    concerns: dict[str, Concern]
    rules: tuple[Rule, ...]
    generated: re.Pattern[str]
    program: dict[str, re.Pattern[str]]
    secret: dict[str, re.Pattern[str]]
    python: dict[str, re.Pattern[str]]
    names: dict[str, dict[str, str]]
    _suffixes: dict[str, Language]
    _files: dict[str, Language]

    def language(self, path: str) -> Language | None:
        """The language of a file, by its name."""
        name = PurePosixPath(path)
        return self._files.get(name.name) or self._suffixes.get(name.suffix)


@cache
def knowledge() -> Knowledge:
    """What self-review knows.

    Example:
        >>> knowledge().concerns["injection"].title
        'injection'
    """
    data = yaml.load(_FILE.read_text("utf-8"), Loader=yaml.CSafeLoader)
    concerns = {
        name: Concern(c["title"], c["fix"], c.get("security", False))
        for name, c in data["concerns"].items()
    }
    suffixes, files = {}, {}
    for name, said in data["languages"].items():
        language = Language(name, said["lexer"], _regex(said.get("script")))
        suffixes.update(dict.fromkeys(said["suffixes"], language))
        files.update(dict.fromkeys(said.get("names", ()), language))
    python = data["python"]
    fragments: dict[str, str] = {}
    for name, text in data["fragments"].items():
        fragments[name] = _filled(text, fragments)
    return Knowledge(
        concerns,
        tuple(_rule(rule, concerns, fragments) for rule in data["rules"]),
        re.compile(data["generated"]),
        {name: re.compile(text, re.MULTILINE) for name, text in data["program"].items()},
        {name: re.compile(text) for name, text in data["secret"].items()},
        {
            k: re.compile(v, re.MULTILINE | re.DOTALL)
            for k, v in python.items()
            if isinstance(v, str)
        },
        {
            k: v if isinstance(v, dict) else dict.fromkeys(v, "")
            for k, v in python.items()
            if not isinstance(v, str)
        },
        suffixes,
        files,
    )


_FILE = Path(__file__).with_name("self-review.yml")


def _rule(said: dict[str, Any], concerns: dict[str, Concern], fragments: dict[str, str]) -> Rule:
    return Rule(
        said["id"],
        said["concern"],
        said.get("severity", ADVISORY),
        said["description"],
        said.get("fix", concerns[said["concern"]].fix),
        re.compile(_filled(said["regex"], fragments), re.MULTILINE),
        said["in"],
        tuple(said["needs"]),
        frozenset(said.get("languages", ())),
        frozenset(said.get("not_in", ())),
        _regex(said.get("unless")),
        said.get("look_behind", 0),
        said.get("unusual", False),
        said.get("file", ""),
        said.get("block", ""),
    )


def _filled(text: str, fragments: dict[str, str]) -> str:
    """A regex with the fragments that it names by ``{{name}}``."""
    return _FRAGMENT.sub(lambda found: fragments[found[1]], text)


_FRAGMENT = re.compile(r"\{\{(\w+)\}\}")


def _regex(text: str | None) -> re.Pattern[str] | None:
    return re.compile(text, re.MULTILINE) if text else None
