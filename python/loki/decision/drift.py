"""Drift: a proposal that leaves what its task is about, seen before a byte of it is applied.

The one notion of a task's scope: self-review points out what is outside, drift sends back what works there.
What the path of a file says of it is data, in ``path-kinds.yml``.

Held against each other are what a proposal touches and runs, and what the task declares: its scope, and what
nobody touches or runs who is not asked to. Deterministic, total on any change, no model is asked. What each
rule sees of real commits is measured: ``python -m benchmarks.drift``. Why it is so: ``docs/design/drift.md``.

What follows (`decide`), in this order:

1. high or critical                           → pause: a person looks
2. the same drift again, nobody can review it → pass: it was told of it, and insists
3. `MAX_RETURNS` returns in an execution     → pause: it does not come back to its task
4. the same again, or the second since the
   last clear, where somebody can review it   → review: approved it passes, else back to reasoning
5. any other                                  → back to reasoning, and a warning
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from loki.base import glob
from loki.base.yaml_text import load_file

# --- What the path of a file says of it, and whether a scope holds it ---------------------------------

_FILE = Path(__file__).with_name("path-kinds.yml")
_TEST_AFFIX = re.compile(r"^tests?[_.-]|[_.-](?:tests?|spec)$|(?<=[a-z0-9])(?:Tests?|Spec)$")


@dataclass(frozen=True, slots=True)
class PathKind:
    """A kind of place: the folders and file names that belong to it."""

    name: str
    folders: frozenset[str]
    names: re.Pattern[str]


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = load_file(_FILE)
    return data


@cache
def _places() -> tuple[PathKind, ...]:
    return tuple(
        PathKind(name, frozenset(said.get("folders", ())), any_glob(said.get("names") or ["(?!)"]))
        for name, said in _data()["places"].items()
    )


@cache
def path_kinds() -> dict[str, re.Pattern[str]]:
    """Kinds of files by their name: companions, leftovers, copies, licences."""
    return {name: any_glob(said) for name, said in _data()["scope"].items()}


def any_glob(said: str | Sequence[str]) -> re.Pattern[str]:
    """One expression for several; flags of each hold for it alone."""
    texts = [said] if isinstance(said, str) else said
    # Flags may only stand at the very beginning of an expression.
    parts = [re.sub(r"^\(\?i\)(.*)$", r"(?i:\1)", text) for text in texts]
    return re.compile("|".join(parts), re.MULTILINE)


def kinds_of_path(path: str) -> frozenset[str]:
    """The kinds of place in which a file stands, by its path alone.

    Example:
        >>> sorted(kinds_of_path("tests/data/vendor/run.min.js"))
        ['test', 'test_data', 'vendored']
    """
    name = PurePosixPath(path)
    folders = {part.lower() for part in name.parts[:-1]}
    return frozenset(
        place.name
        for place in _places()
        if folders & place.folders or place.names.search(name.name)
    )


def stem_of(path: str) -> str:
    """The name of what a file is about: its own, or of what it tests; a package's is its folder's.

    Example:
        >>> stem_of("src/cart/price.test.ts"), stem_of("tests/test_cart.py"), stem_of("cart/__init__.py")
        ('price', 'cart', 'cart')
    """
    name = PurePosixPath(path)
    stem = name.name.lstrip(".").split(".")[0]
    if stem in {"__init__", "index", "mod"} and name.parent.name:
        return name.parent.name
    return _TEST_AFFIX.sub("", stem) or stem


def in_scope(path: str, scope: Sequence[str]) -> bool:
    """Whether a task is about a file.

    Args:
        path: relative to the project.
        scope: files, folders and globs (`loki.base.glob`) that it names. Tests of a file that it
            names, and the project's list of changes, belong to it.

    Example:
        >>> in_scope("tests/test_money.py", ["shop/money.py"]), in_scope("shop/tax.py", ["shop/money.py"])
        (True, False)
    """
    if glob.matches(path, scope) or any(path.startswith(s.rstrip("/") + "/") for s in scope):
        return True
    if path_kinds()["companions"].search(PurePosixPath(path).name):
        return True
    if "test" not in kinds_of_path(path):
        return False
    return any(stem_of(path) == PurePosixPath(pattern).stem for pattern in scope)


Severity = Literal["low", "medium", "high", "critical"]

SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")

SEVERE = 3
"""A drift distance from here on is severe, as the signal's format has it."""

SHOWN = 4
"""Paths that a line names; the others are counted. Chosen, not measured."""

SMALL, PROSE = 20, 100
"""Lines outside of a declared scope from which on they are work of their own, not an import mended or a
typo; and the same of prose and tests, which break nothing. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One way in which a proposal leaves its task; as in ``.loki/signals/DRIFT_DETECTED``.

    Attributes:
        planned_action: what was to be done.
        detected_drift: what is done instead, a sentence.
        severity: low, medium, high or critical.
        drift_distance: 1: adjacent to the task; 3 or more: severe.
        evidence: the paths and commands that show it.
        kind: outside-scope, lost-tests, or the id of a rule of ``drift.yml``.
    """

    planned_action: str
    detected_drift: str
    severity: Severity
    drift_distance: int
    evidence: tuple[str, ...] = ()
    kind: str = "outside-scope"

    @property
    def keys(self) -> frozenset[str]:
        """What makes two drifts the same: their kind, and what shows them."""
        return frozenset(f"{self.kind} {one}" for one in self.evidence) or frozenset(
            {self.detected_drift}
        )


Kind = Literal["written", "deleted", "renamed"]


@dataclass(frozen=True, slots=True)
class Touched:
    """What a change does to a file.

    Attributes:
        path: relative to the project, with ``/``.
        kind: written, deleted or renamed.
        lines: that differ.
        was: the path that it had before, where it is renamed.
        is_new: it was not there.
    """

    path: str
    kind: Kind = "written"
    lines: int = 0
    was: str = ""
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """What is known of a task.

    Attributes:
        title: in a person's words.
        said: what people added.
        scope: files, folders and globs that it names; empty: not said.
        failure: what failed, in its own words; "" where nothing did.
        known: files that tests failed in, or that the task has changed.
        project: paths that there are.
    """

    title: str
    said: str = ""
    scope: tuple[str, ...] = ()
    failure: str = ""
    known: Collection[str] = ()
    project: Collection[str] = ()

    @property
    def asked(self) -> str:
        """What people said."""
        return f"{self.title}\n{self.said}"


@dataclass(frozen=True, slots=True)
class Proposed:
    """What an agent wants to do.

    Attributes:
        files: what it does to files.
        commands: what it runs, each as its words.
    """

    files: Sequence[Touched] = ()
    commands: Sequence[Sequence[str]] = ()


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


@cache
def known() -> dict[str, Any]:
    """What ``drift.yml`` says."""
    data: dict[str, Any] = load_file(Path(__file__).with_name("drift.yml"))
    data["companions"] = any_glob(data["companions"])
    data["asks_removal"] = re.compile(data["asks_removal"])
    for rule in (*data["protected"], *data["commands"]):
        for key in ("path", "asked", "match"):
            if key in rule:
                rule[key] = re.compile(rule[key])
    return data


# --- What is drift ------------------------------------------------------------------------------------


def detect(proposed: Proposed, goal: Goal) -> list[Drift]:
    """How a proposal leaves its task; empty where it does not. The most severe first.

    Args:
        proposed: what is to be done.
        goal: what is known of the task.

    Example:
        >>> goal = Goal("fix the login", scope=("app/login.py",))
        >>> detect(Proposed([Touched("app/login.py", lines=9)]), goal)
        []
        >>> (drift,) = detect(Proposed([Touched("billing/pdf.py", lines=90)]), goal)
        >>> drift.severity, drift.drift_distance
        ('medium', 3)
    """
    found = [
        *_protected(proposed.files, goal),
        *_lost_tests(proposed.files, goal),
        *_outside_scope(proposed.files, goal),
        *_commands(proposed, goal),
    ]
    planned = " ".join(goal.title.split())
    return sorted(
        (replace(drift, planned_action=planned) for drift in found),
        key=lambda drift: (-rank(drift.severity), drift.kind, drift.evidence),
    )


_drift = partial(Drift, "")


def _protected(files: Sequence[Touched], goal: Goal) -> Iterator[Drift]:
    """Files that nobody touches whom the task does not ask to."""
    for rule in known()["protected"]:
        hits = sorted(one.path for one in files if _is_protected(rule, one.path, goal))
        if hits and not rule["asked"].search(goal.asked):
            said = f"{_paths(hits)}: {rule['what']}, which the task does not ask to touch"
            yield _drift(said, rule["severity"], SEVERE, tuple(hits), rule["id"])


def _is_protected(rule: dict[str, Any], path: str, goal: Goal) -> bool:
    if not rule["path"].search(path) or kinds_of_path(path) & set(rule.get("not_in", ())):
        return False
    # What checks the project may change with what it checks, but not to have a failing check pass.
    if rule.get("while_failing") and not goal.failure:
        return False
    is_named = path in goal.known or _is_said(path, goal)
    return not (is_named or (goal.scope and in_scope(path, goal.scope)))


def _is_said(path: str, goal: Goal) -> bool:
    """Whether people or the failure name a file."""
    name, said = path.rpartition("/")[2], f"{goal.asked}\n{goal.failure}"
    pattern = rf"(?<![\w.-]){re.escape(name)}(?![\w-])"
    return "." in name[1:] and re.search(pattern, said) is not None


def _lost_tests(files: Sequence[Touched], goal: Goal) -> Iterator[Drift]:
    """Tests that are deleted while what they test stays."""
    deleted = [one for one in files if one.kind == "deleted" and _is_test(one.path)]
    if not deleted or known()["asks_removal"].search(goal.asked):
        return
    gone = {
        stem_of(one.was or one.path)
        for one in files
        if one.kind == "renamed" or (one.kind == "deleted" and not _is_test(one.path))
    }
    lost = [one for one in deleted if stem_of(one.path) not in gone]
    added = sum(one.lines for one in files if one.is_new and _is_test(one.path))
    if lost and sum(one.lines for one in lost) > added:
        paths = sorted(one.path for one in lost)
        said = f"deletes tests that nothing asks to delete: {_paths(paths)}"
        yield _drift(said, "medium", 1, tuple(paths), "lost-tests")


def _is_test(path: str) -> bool:
    """A file of tests, by its name; not what stands beside them."""
    name = PurePosixPath(path).name
    is_called_so = stem_of(path) != name.lstrip(".").split(".")[0]
    is_called_so = is_called_so or ".test." in name or ".spec." in name
    return is_called_so and "test" in kinds_of_path(path)


def _outside_scope(files: Sequence[Touched], goal: Goal) -> Iterator[Drift]:
    """Work on files that the task's scope does not hold; it says itself how far it goes."""
    if not goal.scope:
        return
    rules, paths = known()["protected"], {*(one.path for one in files), *goal.project}
    tested = {stem_of(one.path) for one in files if "test" in kinds_of_path(one.path)}
    own = {stem for p in paths if (stem := stem_of(p)) in tested and in_scope(p, goal.scope)}
    far = [
        one
        for one in files
        if not (_is_in_scope(one, own, goal) or _is_companion(one))
        and not any(rule["path"].search(one.path) for rule in rules)
    ]
    lines = sum(one.lines for one in far)
    if sum(one.lines / _weight(one.path) for one in far) >= 1:
        outside = sorted(one.path for one in far)
        said = f"works on {_paths(outside)} ({lines} lines), outside of what the task is about"
        distance = max(min(_steps(path, within) for within in goal.scope) for path in outside)
        yield _drift(said, "medium", max(1, 1 + distance), tuple(outside))


def _is_in_scope(one: Touched, own: Collection[str], goal: Goal) -> bool:
    if any(in_scope(path, goal.scope) for path in (one.path, one.was) if path):
        return True
    # A test of something in the scope that the change touches, or that is there.
    return "test" in kinds_of_path(one.path) and stem_of(one.path) in own


def _is_companion(one: Touched) -> bool:
    """Whether it belongs to any change: what tools write, and small edits of what declares things."""
    kinds = kinds_of_path(one.path)
    # Support of tests is made for tests: whose, its name need not tell.
    if "lock" in kinds or (one.is_new and "test" in kinds and not _is_test(one.path)):
        return True
    name = one.path.rpartition("/")[2]
    return one.lines <= SMALL and known()["companions"].search(name) is not None


def _weight(path: str) -> int:
    """Lines of a file from which on it counts as work of its own."""
    return PROSE if kinds_of_path(path) & {"example", "test"} else SMALL


def _steps(path: str, within: str) -> int:
    """Folders to go up and down from a file to what a scope names, up to its first wildcard."""
    a = PurePosixPath(path).parts[:-1]
    named = re.split(r"[*?]", within)[0]
    b = PurePosixPath(named).parts[: None if named.endswith("/") else -1]
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return len(a) + len(b) - 2 * same


def _commands(proposed: Proposed, goal: Goal) -> Iterator[Drift]:
    for words in proposed.commands:
        typed = " ".join(words)
        rule = next((one for one in known()["commands"] if one["match"].search(typed)), None)
        if rule is not None and not rule["asked"].search(goal.asked):
            said = f"runs `{shlex.join(words)}`, which {rule['what']}; the task does not ask for it"
            yield _drift(said, rule["severity"], SEVERE, (typed,), rule["id"])


def _paths(paths: Sequence[str]) -> str:
    rest = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"{', '.join(paths[:SHOWN])}{rest}"


# --- What follows from drift --------------------------------------------------------------------------

REVIEWED = 2
"""The drift since the last clear at which a task is reviewed, as the specification has it."""

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
    is_told = all(drift.keys <= before.told for drift in drifts)
    if is_told and not has_reviewer:
        move, why = DriftResponse.PASS, "told of it once, it insists"
    elif before.returns >= MAX_RETURNS:
        move, why = DriftResponse.PAUSE, f"sent back {before.returns} times, it still drifts"
    elif has_reviewer and (is_told or count == REVIEWED):
        move, why = DriftResponse.REVIEW, "the same drift again" if is_told else f"drift {count}"
    else:
        move, why = DriftResponse.RETURN, f"drift {count} since the last context clear"
    return DriftDecision(move, f"{why}: {said}")
