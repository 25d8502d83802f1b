"""What a concern found in one file, before it is known whether the change brought it."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from loki.action.changes.change import Change, Edit
from loki.action.changes.tree import Tree
from loki.action.checks.imports.project_files import Files
from loki.action.gates.gate import ADVISORY, BLOCKING, Violation
from loki.action.gates.gate_config import GateSetting
from loki.base import glob

# --- What a gate judges: a proposal, the project it is meant for, and what the configuration says -----


@dataclass
class Subject:
    """A proposal under judgement by one gate.

    Attributes:
        change: the proposal.
        root: the project's folder.
        tree: the project as it is.
        setting: what the configuration says of the gate.
        scope: globs of the files that the task is about; none: not said.
        warnings: why something was not looked at, and how to have it looked at.
        cancelled: ends what the gate runs when set.
    """

    change: Change
    root: Path
    tree: Tree
    setting: GateSetting = field(default_factory=GateSetting)
    scope: Sequence[str] = ()
    cancelled: threading.Event = field(default_factory=threading.Event)
    warnings: list[str] = field(default_factory=list)

    @property
    def written(self) -> list[Edit]:
        """The edits that give a file a content and are not excluded."""
        return [
            edit
            for edit in self.change.edits
            if edit.after is not None
            and edit.mode != "symlink"
            and not glob.matches(edit.path, self.setting.exclude)
        ]

    @functools.cached_property
    def before(self) -> Files:
        """The project as it is."""
        return Files.of(self.tree)

    @functools.cached_property
    def after(self) -> Files:
        """The project as the proposal would leave it."""
        return Files.of(self.tree, self.change)

    def content_before(self, path: str) -> bytes | None:
        """What a file holds now; None where there is none, or it is no plain file."""
        entry = self.tree.entries.get(path)
        return None if entry is None or entry.is_symlink else self.before.read(path)

    def warn(self, sentence: str) -> None:
        """Say once why something was not looked at."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)


# --- What self-review knows, from ``self-review.yml``: read once, when first asked for ----------------


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


# --- What a concern found in one file, before it is known whether the change brought it ---------------

GATE = "self_review"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault in a text.

    Attributes:
        rule: which rule says so; with `key` it is what a fault that moved is known by.
        concern: name of the concern.
        path: the file, relative to the project.
        line, column: where it begins, from 1.
        last: the line in which it ends.
        description: what is wrong, without the concern.
        severity: blocking or advisory.
        fix: what to do about it; "": what the concern says.
        key: what was found, without its place and its indentation.
        unusual: no fault where the file did the same before.
    """

    rule: str
    concern: str
    path: str
    line: int
    column: int
    last: int
    description: str
    severity: str = ADVISORY
    fix: str = ""
    key: str = ""
    unusual: bool = False

    @classmethod
    def of(
        cls, rule: Rule, path: str, where: tuple[int, int, int], description: str, key: str
    ) -> Finding:
        """What a rule of the file found at (line, column, last line)."""
        return cls(
            rule.id,
            rule.concern,
            path,
            *where,
            description,
            rule.severity,
            rule.fix,
            " ".join(key.split()),
            rule.unusual,
        )

    def violation(self) -> Violation:
        """The same as a gate says it."""
        concern = knowledge().concerns[self.concern]
        return Violation(
            GATE,
            self.severity,
            self.path,
            f"{concern.title}: {self.description}",
            self.line or None,
            self.column or None,
            self.fix or concern.fix,
            security=self.severity == BLOCKING and concern.is_security,
        )
