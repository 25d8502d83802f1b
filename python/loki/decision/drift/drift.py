"""Drift: a proposal that leaves what its task is about, seen before a byte of it is applied.

What a proposal touches and runs is held against what is known of the task
(`loki.decision.drift.task_relation` says which files it is about, and how far others are from them).
Deterministic, total on any change, no model is asked; where nothing is known that a file could be far from,
nothing is above ``low``. How well it does is measured: ``python -m benchmarks.drift``. Why it is so:
``docs/design/drift.md``.

What follows (`decide`), in this order:

1. high or critical                          → pause: a person looks
2. the same drift again                      → pass, or review where somebody can: it was told of it
3. `MAX_RETURNS` returns in an execution    → pause: it does not come back to its task
4. the third or more since the last clear    → back to reasoning, with a cleared context
5. the second                                → review: approved it passes, else back to reasoning
6. the first                                 → back to reasoning, and a warning
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Literal

from loki.decision.drift.task_relation import (
    SHARE,
    SMALL,
    Goal,
    Relation,
    Touched,
    is_test,
    kinds_of_path,
    known,
    stem_of,
)

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
    deleted = [one.path for one in touched if one.kind == "deleted" and is_test(one)]
    others = [one for one in touched if one.path not in deleted]
    gone = {stem_of(one.was or one.path) for one in others if one.kind in {"deleted", "renamed"}}
    lost = [path for path in deleted if stem_of(path) not in gone]
    if known()["asks_removal"].search(goal.asked):
        lost = [path for path in lost if relation.is_far(path)]
    removed = sum(relation.touched[path].lines for path in lost)
    added = sum(one.lines for one in touched if one.kind == "created" and is_test(one))
    if lost and relation.has_reference and removed > added:
        said = f"deletes tests that nothing asks to delete: {_paths(lost)}"
        severity: Severity = "medium" if any(map(relation.is_far, lost)) else "low"
        distance = max(map(relation.distance, lost))
        yield _drift(said, severity, distance, tuple(sorted(lost)), "lost-tests")


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


# --- What follows from drift --------------------------------------------------------------------------

REVIEWED, CLEARED = 2, 3
"""Drifts since the last clear from which on a task is reviewed, and its context cleared, as the
specification has it."""

MAX_RETURNS = 6
"""Times that an execution is sent back at most: two whole rounds up to a clear. Chosen, not measured."""

PAUSE_RANK = rank("high")


class DriftResponse(str, Enum):
    """What the loop does about drift."""

    RETURN = "return"
    REVIEW = "review"
    PASS = "pass"  # noqa: S105 - no password
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class ScopeDrift:
    """How a task has drifted in this execution.

    Attributes:
        told: what it was sent back for (`Drift.keys`).
        returns: how often it was.
    """

    told: frozenset[str] = frozenset()
    returns: int = 0

    def sent_back(self, drifts: Sequence[Drift]) -> ScopeDrift:
        """The same after it was sent back once more."""
        keys = frozenset().union(*(drift.keys for drift in drifts))
        return replace(self, told=self.told | keys, returns=self.returns + 1)


@dataclass(frozen=True, slots=True)
class DriftDecision:
    """What is to be done, and why.

    Attributes:
        move: return, review, pass or pause.
        reason: one sentence.
    """

    move: DriftResponse
    reason: str


def decide(
    drifts: Sequence[Drift], count: int, before: ScopeDrift, *, has_reviewer: bool = False
) -> DriftDecision:
    """What to do about the drift of a proposal.

    Args:
        drifts: one or more.
        count: drifts of the task since its context was cleared last, these included.
        before: what it was told already.
        has_reviewer: an agent can be asked.

    Example:
        >>> drift = Drift("fix a", "works on b.py", "medium", 2, ("b.py",))
        >>> decide([drift], 1, ScopeDrift()).move.value
        'return'
        >>> decide([drift], 2, ScopeDrift().sent_back([drift])).move.value
        'pass'
    """
    severity, said = worst(drifts) or "low", drifts[0].detected_drift
    if rank(severity) >= PAUSE_RANK:
        return DriftDecision(DriftResponse.PAUSE, f"drift of severity {severity}: {said}")
    if all(drift.keys <= before.told for drift in drifts):
        move, why = (
            (DriftResponse.REVIEW, "the same drift again")
            if has_reviewer
            else (DriftResponse.PASS, "told of it once, it insists")
        )
    elif before.returns >= MAX_RETURNS:
        move, why = DriftResponse.PAUSE, f"sent back {before.returns} times, it still drifts"
    elif count >= CLEARED:
        move, why = DriftResponse.RETURN, f"drift {count} since the last context clear"
    elif count >= REVIEWED:
        move, why = DriftResponse.REVIEW, f"drift {count} in this task"
    else:
        move, why = DriftResponse.RETURN, "drift"
    return DriftDecision(move, f"{why}: {said}")


# --- When a conversation is begun anew ----------------------------------------------------------------

ITERATIONS = 25
CONVERSATION = 50 * 1024
SAME_ERROR = 3
"""Attempts, bytes of briefings and answers, and times of one error: as the specification has them."""


@dataclass(frozen=True, slots=True)
class Load:
    """What has come together since the context was cleared last.

    Attributes:
        drifts: lines of drift.
        iterations: attempts of this session.
        conversation: bytes of what was told and answered.
        same_error: how often the most frequent error came.
        requested: who asks for it, or "".
    """

    drifts: int = 0
    iterations: int = 0
    conversation: int = 0
    same_error: int = 0
    requested: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on it is cleared; 0 switches one off."""

    drifts: int = CLEARED
    iterations: int = ITERATIONS
    conversation: int = CONVERSATION
    same_error: int = SAME_ERROR


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a context is cleared: a short name, and a sentence."""

    name: str
    reason: str


TRIGGERS: Mapping[str, str] = {
    "drifts": "{} drifts since the last clear",
    "same_error": "the same error {} times",
    "iterations": "{} iterations",
    "conversation": "{} bytes of conversation",
}
"""By limit, the sentence that says how much has come together; the most telling first."""


def trigger(load: Load, limits: Limits = Limits()) -> Trigger | None:
    """Why a context is to be cleared now; None: it is not.

    Args:
        load: what has come together.
        limits: from where on.

    Example:
        >>> trigger(Load(iterations=24)) is None, trigger(Load(iterations=25)).name
        (True, 'iterations')
    """
    if load.requested:
        return Trigger("requested", f"{load.requested} asks for it")
    for name, sentence in TRIGGERS.items():
        found, limit = getattr(load, name), getattr(limits, name)
        # So many bytes may be; of all else the last one is one too many.
        is_over = found > limit if name == "conversation" else found >= limit
        if limit > 0 and is_over:
            return Trigger(name, sentence.format(found))
    return None
