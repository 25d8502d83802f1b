"""What people are told about failures; the words are data, in ``advice.yml``."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

UNKNOWN = "unknown"
"""Stands for every kind that the file does not have."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Advice:
    """What is known of a kind of failure, or of what made loki ask.

    Attributes:
        cause: what usually lies behind it, in a phrase; causes: more closely, most frequent first.
        steps: what to do by hand, in order; they may hold placeholders.
        decide: the question that only a person can answer, a clause.
        instead: a simpler way round.
    """

    cause: str
    causes: tuple[str, ...]
    steps: tuple[str, ...]
    decide: str
    instead: str

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Advice:
        """An entry of the file."""
        return cls(
            entry.get("cause", ""),
            tuple(entry.get("causes", ())),
            tuple(entry["steps"]),
            entry["decide"],
            entry.get("instead", ""),
        )

    def to_do(self, known: Mapping[str, str]) -> list[str]:
        """The steps that can be told of what is known: place, file, test, name, command."""
        filled = (fill(step, known) for step in self.steps)
        return [step for step in filled if step]


@dataclass(frozen=True, slots=True)
class Cause:
    """A more precise cause, and when it holds.

    Attributes:
        kind: of the failures.
        cause: may hold placeholders.
        extensions: of the failing files; empty for any.
        same: what all must share: file, test_file, code, name.
    """

    kind: str
    cause: str
    extensions: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()


@cache
def kinds() -> Mapping[str, Advice]:
    """Advice by kind of failure."""
    return {kind: Advice.of(entry) for kind, entry in _file()["kinds"].items()}


@cache
def triggers() -> Mapping[str, Advice]:
    """Advice by what made loki ask, where the kind of failure says nothing."""
    return {name: Advice.of(entry) for name, entry in _file()["triggers"].items()}


@cache
def causes() -> tuple[Cause, ...]:
    """The more precise causes, first match first."""
    return tuple(
        Cause(
            entry["kind"],
            entry["cause"],
            frozenset(entry.get("extensions", ())),
            frozenset(entry.get("same", ())),
        )
        for entry in _file()["causes"]
    )


def of(*names: str) -> Advice:
    """The advice for the first of some kinds of failure or triggers that has any.

    Args:
        names: most telling first; "" is nothing.

    Example:
        >>> of("type-error").cause
        'A declaration that does not fit its uses'
        >>> of("", "same_failure").decide
        'whether the task is right as it stands'
    """
    known = {**triggers(), **kinds()}
    return next((known[name] for name in names if name in known), known[UNKNOWN])


def cause_of(kind: str, extension: str | None, shared: Mapping[str, str]) -> str:
    """The likely cause of similar failures.

    Args:
        kind: of all of them.
        extension: of their files, or None.
        shared: what they have in common, by name: file, test_file, code, name.

    Example:
        >>> cause_of("type-error", "ts", {})
        'Type system constraints'
    """
    for one in causes():
        fits = not one.extensions or extension in one.extensions
        if one.kind == kind and fits and one.same <= shared.keys():
            return fill(one.cause, shared) or of(kind).cause
    return of(kind).cause


def fill(template: str, known: Mapping[str, str]) -> str | None:
    """A sentence with its placeholders filled; None where it asks for what is not known.

    Example:
        >>> fill("Look at {place}.", {"place": "`a.py:3`"})
        'Look at `a.py:3`.'
    """
    names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
    if not all(known.get(name) for name in names):
        return None
    return template.format_map(known)


@cache
def _file() -> Mapping[str, Any]:
    text = (Path(__file__).parent / "advice.yml").read_text("utf-8")
    data: Mapping[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    return data
