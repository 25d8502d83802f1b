"""Known kinds of failure, each with the strategy that answers it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from loki import _core
from loki.recognition import builtin
from loki.recognition.html_repr import match_html

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loki.recognition.text import Text

OWN, LEARNED = "failure-patterns.yml", "learned-patterns.yml"
"""In a project's ``.loki``: patterns that people write, and those that they approved, which loki writes."""

HIGH, MEDIUM, LEAST = 0.7, 0.5, 0.30

INFRASTRUCTURE_KINDS = frozenset({"network-error", "rate-limit", "infra-lost"})
"""Kinds of failure that say nothing about the work."""
DEFAULT_RETRIES = 3
DEFAULT_STRATEGY = "analyze_then_fix"


def band(confidence: float) -> str:
    """The band of a confidence: high (0.7 and more), medium (0.5 and more), low, or none (0).

    Example:
        >>> band(0.55)
        'medium'
    """
    if confidence >= HIGH:
        return "high"
    if confidence >= MEDIUM:
        return "medium"
    return "low" if confidence > 0 else "none"


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern that a text shows.

    Attributes:
        pattern: id of the pattern.
        kind: what kind of failure that is; often the same.
        confidence: 0.3 to 1.
        band: ``"high"``, ``"medium"`` or ``"low"``.
        coverage: share of the pattern's signals that hit, 0 to 1.
        strategy: how the next attempt is gone about.
        signals: the signals that hit, as written.
        spans: where each stands in the text that was passed, (begin, end) in code points of a str
            and bytes of bytes; (0, 0) for a hit outside the text (in the name of the tool).
    """

    pattern: str
    kind: str
    confidence: float
    band: str
    coverage: float
    strategy: str
    signals: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def is_infrastructure(self) -> bool:
        """Its kind says that infrastructure failed, not the work, and it is sure enough of it."""
        return self.kind in INFRASTRUCTURE_KINDS and self.confidence >= MEDIUM

    def _repr_html_(self) -> str:
        return match_html(self)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A known kind of failure.

    Attributes:
        id: its name.
        kind: several patterns may be of one kind.
        strategy: what answers it first.
        description: one line for people.
        max_auto_retries: failures of this pattern in one task, without progress, after which no retry
            is made; a number of the task's own comes first.
        auto_fixable: a command may repair it.
        language: it competes only for failures in this language, or in an unknown one.
        fix_command: the command, with ``{file}``.
        alternatives: strategies to try after the first; None: the general ones; (): none at all.
        non_retryable: never retried by itself.
        examples: texts that it must match.
        near_misses: texts that it must not match.
        signals: what it is known by, as written.
    """

    id: str
    kind: str
    strategy: str
    description: str
    max_auto_retries: int = DEFAULT_RETRIES
    auto_fixable: bool = False
    language: str | None = None
    fix_command: str | None = None
    alternatives: tuple[str, ...] | None = None
    non_retryable: bool = False
    examples: tuple[str, ...] = ()
    near_misses: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Strategy:
    """How an attempt is gone about: a line for people, and its steps."""

    description: str
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that must hold for a task to succeed.

    Attributes:
        name: its name.
        type: lint, type, test, build, syntax, command, custom or approval.
        command: what checks it, where a command does.
        description: what must hold, in words.
        expected: what the command should show.
        scope: what it covers.
        agent: who approves.
    """

    name: str
    type: str
    command: str | None = None
    description: str | None = None
    expected: str | None = None
    scope: str | None = None
    agent: str | None = None


class PatternSet:
    """Patterns, strategies and success criteria; immutable.

    Make one by `default`, `load` or `loads`.
    """

    def __init__(self, definition: Mapping[str, Any]) -> None:
        """Args: definition: a checked pattern file as plain data; see `loads` for text."""
        self.definition = definition
        entries = definition.get("patterns", [])
        version = definition["version"]
        self.patterns: Mapping[str, Pattern] = MappingProxyType(
            {entry["id"]: _pattern(entry) for entry in entries}
        )
        self.strategies: Mapping[str, Strategy] = MappingProxyType(
            {
                name: Strategy(entry["description"], tuple(entry.get("steps", ())))
                for name, entry in definition.get("strategies", {}).items()
            }
        )
        self.success_criteria: Mapping[str, tuple[Criterion, ...]] = MappingProxyType(
            {
                task: tuple(Criterion(**criterion) for criterion in criteria)
                for task, criteria in definition.get("success_criteria", {}).items()
            }
        )
        self._order = tuple(self.patterns.values())
        core = {"version": version, "patterns": [core_pattern(entry) for entry in entries]}
        self.core = _core.PatternSet(json.dumps(core))

    @staticmethod
    def default() -> PatternSet:
        """The built-in set.

        Example:
            >>> PatternSet.default().patterns["lint-error"].strategy
            'auto_fix'
        """
        return _default()

    @staticmethod
    def load(path: str | Path) -> PatternSet:
        """The set in a file.

        Args:
            path: a failure-patterns.yml of version 1 or 2.

        Raises:
            ConfigError: it cannot be read, or is not as it should be; nothing is half-loaded.
        """
        from loki.base.yaml_document import content

        return PatternSet.loads(content(path), name=str(path))

    @staticmethod
    def of_project(folder: Path) -> PatternSet:
        """The set in force in a project: its own or the built-in one, and what it learned.

        Args:
            folder: the project's ``.loki``.

        Raises:
            ConfigError: a file cannot be read, or is not as it should be.
        """
        own, learned = folder / OWN, folder / LEARNED
        known = PatternSet.load(own) if own.exists() else PatternSet.default()
        if not learned.exists():
            return known
        return known.with_patterns(PatternSet.load(learned).definition.get("patterns", []))

    def with_patterns(self, entries: Iterable[Mapping[str, Any]]) -> PatternSet:
        """The set with more patterns of version 2; where it has one of that name, its own stays."""
        more = [{**entry, "version": 2} for entry in entries if entry["id"] not in self.patterns]
        known = self.definition.get("patterns", [])
        return PatternSet({**self.definition, "patterns": [*known, *more]})

    @staticmethod
    def loads(yaml: str | bytes, name: str = "failure-patterns.yml") -> PatternSet:
        """The set in a YAML text.

        Args:
            yaml: the text, at most 4 MiB. With ``extends: default`` the built-in set is the base:
                the same id replaces, new ids are added behind.
            name: what errors call it.

        Raises:
            ConfigError: ``file:line:column``, what was found, what was expected.

        Example:
            >>> PatternSet.loads('''
            ... version: 2
            ... patterns:
            ...   - id: flux
            ...     signals: [{word: flux}]
            ...     strategy: escalate
            ...     description: The flux capacitor is out.
            ... ''').match("no flux")[0].pattern
            'flux'
        """
        from loki.recognition import definition_inspection

        return PatternSet.of(definition_inspection.read_patterns(yaml, name))

    @staticmethod
    def of(definition: Mapping[str, Any]) -> PatternSet:
        """The set in a checked pattern file, on top of the built-in one where it extends that."""
        return PatternSet(_extended(definition) if "extends" in definition else definition)

    def match(self, text: Text, language: str | None = None) -> list[Match]:
        """The patterns that a text shows, best first; under 0.3 nothing is matched.

        Args:
            text: str or bytes of any size; it is cleaned first.
            language: of the failure, where it is known: patterns of other languages do not compete.

        Example:
            >>> PatternSet.default().match("ModuleNotFoundError: No module named 'flask'")[0].kind
            'import-not-found'
        """
        return [self.described(found) for found in self.core.match(text, language or "")]

    def described(self, found: tuple[int, float, float, list[tuple[int, int, int]]]) -> Match:
        """A match of the core, with what this set says of its pattern."""
        index, confidence, coverage, hits = found
        pattern = self._order[index]
        return Match(
            pattern=pattern.id,
            kind=pattern.kind,
            confidence=round(confidence, 6),
            band=band(confidence),
            coverage=round(coverage, 6),
            strategy=pattern.strategy,
            signals=tuple(pattern.signals[signal] for signal, _, _ in hits),
            spans=tuple((begin, end) for _, begin, end in hits),
        )

    def named(self, pattern: str) -> Match:
        """The match for a failure whose pattern is known: confidence 1.

        Raises:
            KeyError: there is no such pattern.
        """
        known = self.patterns[pattern]
        return Match(known.id, known.kind, 1.0, band(1.0), 1.0, known.strategy)

    def __repr__(self) -> str:
        return f"<PatternSet: {len(self.patterns)} patterns>"


@cache
def _default() -> PatternSet:
    return PatternSet(builtin.patterns())


def _pattern(entry: Mapping[str, Any]) -> Pattern:
    listed = {
        name: tuple(entry[name])
        for name in ("alternatives", "examples", "near_misses")
        if name in entry
    }
    plain = {
        name: value for name, value in entry.items() if name not in {*listed, "signals", "version"}
    }
    signals = tuple(_shown(signal) for signal in entry["signals"])
    return Pattern(**{"kind": entry["id"], **plain, **listed, "signals": signals})


KINDS_OF_SIGNAL = ("literal", "word", "regex", "any")


def weight(signal: Any) -> float | None:
    """What a hit of a signal counts; None in version 1, where each counts the same.

    Example:
        >>> weight({"literal": "boom", "w": "weak"})
        0.15
    """
    if isinstance(signal, str):
        return None
    return {"strong": 0.7, "weak": 0.15}.get(signal.get("w", "strong")) or float(signal["w"])


def _shown(signal: Any) -> str:
    """A signal in a word or two, for people."""
    if isinstance(signal, str):
        return signal
    if "any" in signal:
        return " | ".join(_shown(one) for one in signal["any"])
    if "not" in signal:
        return f"not {_shown(signal['not'])}"
    return str(next(signal[kind] for kind in ("literal", "word", "regex") if kind in signal))


def core_pattern(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What the core wants to know of a pattern."""
    keys = ("id", "signals", "language", "non_retryable", "version")
    return {key: entry[key] for key in keys if key in entry}


def _extended(own: Mapping[str, Any]) -> dict[str, Any]:
    base = builtin.patterns()
    marked = [{**entry, "version": own["version"]} for entry in own.get("patterns", [])]
    replacing = {entry["id"]: entry for entry in marked}
    kept = [replacing.pop(entry["id"], entry) for entry in base["patterns"]]
    return {
        "version": base["version"],
        "patterns": [*kept, *replacing.values()],
        "strategies": {**base["strategies"], **own.get("strategies", {})},
        "success_criteria": {**base["success_criteria"], **own.get("success_criteria", {})},
    }
