"""What people are told about failures; the words are data, in ``advice.yml``."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from loki.base import codec
from loki.base.yaml_text import load_file

UNKNOWN = "unknown"
"""Stands for every kind that the file does not have."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What is known of a kind of failure, or of what made loki ask.

    Attributes:
        steps: what to do by hand, in order; they may hold placeholders.
        decide: the question that only a person can answer, a clause.
        cause: what usually lies behind it, in a phrase; causes: more closely, most frequent first.
        instead: a simpler way round.
    """

    steps: tuple[str, ...]
    decide: str
    cause: str = ""
    causes: tuple[str, ...] = ()
    instead: str = ""

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


@dataclass(frozen=True, slots=True)
class Contents:
    """All that the file says.

    Attributes:
        kinds: advice by kind of failure.
        triggers: by what made loki ask, where the kind of failure says nothing.
        causes: the more precise causes, first match first.
    """

    kinds: Mapping[str, Advice]
    triggers: Mapping[str, Advice]
    causes: tuple[Cause, ...]


@cache
def contents() -> Contents:
    """What the file says, read once."""
    return codec.parse(Contents, load_file(Path(__file__).parent / "advice.yml"))


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
    known = {**contents().triggers, **contents().kinds}
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
    for one in contents().causes:
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
