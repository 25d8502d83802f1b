"""Drift: a proposal that leaves what its task is about, seen before a byte of it is applied.

What a proposal touches and runs is held against what is known of the task
(`loki.decision.drift.change_relation`
says which files it is about, and how far others are from them). Deterministic, total on any change,
no model is asked; where nothing is known that a file could be far from, nothing is above ``low``.
How well it does is measured: ``python -m benchmarks.drift``. Why it is so: ``docs/design/drift.md``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from loki.decision.drift.change_relation import SHARE, SMALL, Goal, Relation, Touched, is_test
from loki.decision.drift.path_kinds import kinds_of_path, stem_of
from loki.decision.drift.task_vocabulary import known

Severity = Literal["low", "medium", "high", "critical"]

SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")

SEVERE = 3
"""A drift distance from here on is severe, as the signal's format has it."""

SHOWN = 4
"""Paths that a line names; the others are counted. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One way in which a proposal leaves its task; as in ``.loki/signals/DRIFT_DETECTED``.

    Attributes:
        planned_action: what was to be done.
        detected_drift: what is done instead, a sentence.
        severity: low, medium, high or critical.
        drift_distance: 1: adjacent to the task; 3 or more: severe.
        evidence: the paths and commands that show it.
        kind: elsewhere, formatting, lost-tests, or the id of a rule of ``drift.yml``.
    """

    planned_action: str
    detected_drift: str
    severity: Severity
    drift_distance: int
    evidence: tuple[str, ...] = ()
    kind: str = "elsewhere"

    @property
    def keys(self) -> frozenset[str]:
        """What makes two drifts the same: their kind, and what shows them."""
        return frozenset(f"{self.kind} {one}" for one in self.evidence) or frozenset(
            {self.detected_drift}
        )


@dataclass(frozen=True, slots=True)
class Proposed:
    """What an agent wants to do.

    Attributes:
        files: what it does to files.
        commands: what it runs, each as its words.
        description: in its own words.
    """

    files: Sequence[Touched] = ()
    commands: Sequence[Sequence[str]] = ()
    description: str = ""


def rank(severity: str) -> int:
    """How severe: 0 for low to 3 for critical; what nobody knows is medium.

    Example:
        >>> rank("critical"), rank("whatever")
        (3, 1)
    """
    return SEVERITIES.index(severity) if severity in SEVERITIES else 1


def worst(drifts: Sequence[Drift]) -> Severity | None:
    """The highest severity; None where there is no drift."""
    return max((drift.severity for drift in drifts), key=rank, default=None)


def detect(proposed: Proposed, goal: Goal) -> list[Drift]:
    """How a proposal leaves its task; empty where it does not. The most severe first.

    Args:
        proposed: what is to be done.
        goal: what is known of the task.

    Example:
        >>> goal = Goal("fix the login", named={"app/login.py"})
        >>> detect(Proposed([Touched("app/login.py", added=9)]), goal)
        []
        >>> (drift,) = detect(Proposed([Touched("billing/pdf.py", added=90, removed=40)]), goal)
        >>> drift.severity, drift.drift_distance
        ('medium', 3)
    """
    relation = Relation(goal, proposed.files)
    found = [
        *_protected(relation),
        *_lost_tests(relation),
        *_formatting(relation),
        *_elsewhere(relation),
        *_commands(proposed, goal),
    ]
    planned = " ".join(goal.title.split())
    return sorted(
        (replace(drift, planned_action=planned) for drift in found),
        key=lambda drift: (-rank(drift.severity), drift.kind, drift.evidence),
    )


_drift = partial(Drift, "")


def _protected(relation: Relation) -> Iterator[Drift]:
    goal = relation.goal
    for rule in known()["protected"]:
        hits = [p for p, one in relation.touched.items() if _is_protected(rule, p, relation)]
        if hits and not rule["asked"].search(goal.asked):
            said = f"{_paths(hits)}: {rule['what']}, which the task does not ask to touch"
            distance = max(SEVERE, *map(relation.distance, hits))
            yield _drift(said, rule["severity"], distance, tuple(sorted(hits)), rule["id"])


def _is_protected(rule: dict[str, Any], path: str, relation: Relation) -> bool:
    if not rule["path"].search(path) or kinds_of_path(path) & set(rule.get("not_in", ())):
        return False
    goal = relation.goal
    if path in goal.named or (goal.scope and path in relation.about):
        return False
    # Of what checks the project, a part may be about the very thing that the task is about.
    return rule["id"] != "ci" or path not in relation.about


def _lost_tests(relation: Relation) -> Iterator[Drift]:
    """Tests that are deleted while what they test stays.

    Of those that the task is about the checks tell by themselves that they are gone.
    """
    goal, touched = relation.goal, relation.touched.values()
    others = [one for one in touched if not (one.kind == "deleted" and is_test(one))]
    gone = {stem_of(one.was or one.path) for one in others if one.kind in {"deleted", "renamed"}}
    lost = [
        one.path
        for one in touched
        if one.kind == "deleted" and is_test(one) and stem_of(one.path) not in gone
    ]
    if known()["asks_removal"].search(goal.asked):
        lost = [path for path in lost if relation.is_far(path)]
    removed = sum(relation.touched[path].lines for path in lost)
    added = sum(one.lines for one in touched if one.kind == "created" and is_test(one))
    if lost and relation.has_reference and removed > added:
        said = f"deletes tests that nothing asks to delete: {_paths(lost)}"
        yield _drift(
            said,
            "medium" if any(map(relation.is_far, lost)) else "low",
            max(map(relation.distance, lost)),
            tuple(sorted(lost)),
            "lost-tests",
        )


def _formatting(relation: Relation) -> Iterator[Drift]:
    goal = relation.goal
    spree = [
        one
        for one in relation.touched.values()
        if one.formatting and (relation.is_far(one.path) or not relation.has_reference)
    ]
    if not spree or known()["asks_format"].search(goal.asked):
        return
    lines = sum(one.lines for one in spree)
    paths = [one.path for one in spree]
    severity: Severity = "medium" if lines >= SMALL and relation.has_reference else "low"
    said = f"reformats {_paths(paths)} ({lines} lines), which changes nothing for the task"
    distance = max(map(relation.distance, paths))
    yield _drift(said, severity, distance, tuple(sorted(paths)), "formatting")


def _elsewhere(relation: Relation) -> Iterator[Drift]:
    """Work on files that nothing ties to the task."""
    rules = known()["protected"]
    far = [
        one
        for one in relation.touched.values()
        if relation.is_far(one.path)
        and not one.formatting
        and not any(rule["path"].search(one.path) for rule in rules)
    ]
    if not far or not relation.has_reference:
        return
    distances = {one.path: relation.distance(one.path) for one in far}
    serious = [one for one in far if relation.goal.scope or distances[one.path] > 1]
    # Lines of a file in relation to how many of them are work of their own.
    amount = sum(one.lines / relation.weight(one.path) for one in serious)
    lines = sum(one.lines for one in serious)
    is_weighty = any(known()["weighty"].search(one.path) for one in serious)
    is_much = is_weighty or lines >= SHARE * relation.lines
    is_work = amount >= 1 and is_much
    paths = [one.path for one in (serious if is_work else far)]
    lines = sum(relation.touched[path].lines for path in paths)
    said = f"works on {_paths(paths)} ({lines} lines), which nothing ties to the task"
    severity: Severity = "medium" if is_work else "low"
    distance = max(distances[path] for path in paths)
    yield _drift(said, severity, distance, tuple(sorted(paths)), "elsewhere")


def _commands(proposed: Proposed, goal: Goal) -> Iterator[Drift]:
    for words in proposed.commands:
        typed = " ".join(words)
        for rule in known()["commands"]:
            if rule["match"].search(typed):
                if not rule["asked"].search(goal.asked):
                    said = f"runs `{shlex.join(words)}`, which {rule['what']}; the task does not ask for it"
                    yield _drift(said, rule["severity"], SEVERE, (typed,), rule["id"])
                break


def _paths(paths: Sequence[str]) -> str:
    shown = sorted(paths)
    rest = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return f"{', '.join(shown[:SHOWN])}{rest}"
