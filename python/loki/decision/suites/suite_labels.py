"""What a failing test's history makes of its failure: new, recurring, flaky, infrastructure, broken.

The table of rules, and why each is as it is: ``docs/design/tests.md``. The first rule that holds
decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from loki.memory.suites.suite_past_runs import RESCUED, Earlier, Sighting
from loki.recognition.underlying_kind import is_infrastructure, underlying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loki.memory.suites.suite_run import SuiteFailure, SuiteRun

LabelName: TypeAlias = Literal["new", "recurring", "flaky", "infrastructure", "broken"]

LABELS: tuple[LabelName, ...] = get_args(LabelName)

CHANCE = 0.01
"""A flaky test that fails so often in a row that this is the chance of it, or less, has broken.
Chosen."""

TURNS = 3
"""Changes between passing and failing on one commit whose working tree is not known, from which a test
is flaky: somebody who edits, and repairs what he broke, makes two. Chosen."""

NEVER_BY_CHANCE = frozenset(
    {
        "import-not-found",
        "syntax-error",
        "env-missing",
        "config-parse-error",
        "permission-error",
        "auth-error",
        "version-mismatch",
        "circular-dependency",
        "disk-full",
    }
)
"""Kinds of failure that come and go with the machine, not by chance, while the code stays."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a failure is, beside what was seen before.

    Attributes:
        name: new, recurring, flaky, infrastructure or broken.
        evidence: why, one sentence with figures.
    """

    name: LabelName
    evidence: str


def label_of(failing: SuiteFailure, run: SuiteRun, earlier: Earlier) -> Label:
    """The label of a failing test.

    Args:
        failing: the test and how it fails.
        run: the run in which it does.
        earlier: what is known of the test and this failure from runs before.

    Example:
        >>> from loki.memory.suites.suite_run import SuiteFailure, SuiteRun
        >>> from loki.recognition.failure import Failure
        >>> failing = SuiteFailure("t.py::test_a", "call", "failed", Failure.of("assert 1 == 2"))
        >>> label_of(failing, SuiteRun(id="r1"), Earlier())
        Label(name='new', evidence='this test was never seen before')
    """
    past = _where_it_ran([one for one in earlier.runs if one.has_passed or one.has_failed], run)
    return (
        _infrastructure(failing, past)
        or _flaky(failing, run, past, earlier)
        or _broken(past, earlier)
        or _recurring(past, earlier)
        or _new(failing, past)
    )


def rescued(test: str, run: SuiteRun, earlier: Earlier) -> Label:
    """The label of a test that passed only when it was tried again: flaky.

    Args:
        test: its node id.
        run: the run, with the tries that failed.
        earlier: what is known of the test from runs before.
    """
    failed = sum(one.test == test for one in run.reruns)
    before = sum(one.letter == RESCUED for one in earlier.runs)
    evidence = f"failed {_times(failed)} in this run, then passed on the same code"
    if before:
        evidence += f"; needed more than one try in {before} of {_runs(earlier.runs)} before, too"
    return Label("flaky", evidence)


def _infrastructure(failing: SuiteFailure, past: Sequence[Sighting]) -> Label | None:
    shown = underlying(failing.failure)
    if shown is None or not is_infrastructure(failing.failure):
        return None
    evidence = f"recognized as {shown.kind} with confidence {shown.confidence:.2f}"
    if past:
        passed = sum(one.has_passed for one in past)
        evidence += f"; the test passed in {passed} of {_runs(past)} before"
    return Label("infrastructure", evidence)


def _flaky(
    failing: SuiteFailure, run: SuiteRun, past: Sequence[Sighting], earlier: Earlier
) -> Label | None:
    shown = underlying(failing.failure)
    if failing.phase == "collect" or (shown is not None and shown.kind in NEVER_BY_CHANCE):
        return None
    here = [one for one in past if _is_same_code(one, run)]
    passed = sum(one.has_passed for one in here)
    failed = sum(one.has_failed for one in here) + 1
    if passed:
        return Label(
            "flaky", f"passed {_times(passed)} and failed {_times(failed)} on {_code(run)}"
        )
    return _unsteady(run, past) or _known_flaky(past, earlier)


def _unsteady(run: SuiteRun, past: Sequence[Sighting]) -> Label | None:
    """It comes and goes on one commit, whose working tree nobody knows."""
    here = [
        one
        for one in past
        if run.commit
        and one.run.commit == run.commit
        and one.run.environment == run.environment
        and not (run.tree and one.run.tree)
    ]
    outcomes = [one.has_passed for one in here] + [False]
    turns = sum(a != b for a, b in pairwise(outcomes))
    if turns < TURNS:
        return None
    passed = sum(outcomes)
    counts = f"passed {_times(passed)} and failed {_times(len(outcomes) - passed)} in turn"
    return Label("flaky", f"{counts} on commit {run.commit[:7]}")


def _known_flaky(past: Sequence[Sighting], earlier: Earlier) -> Label | None:
    """The same failure came by chance before: the test passed on the very same code."""
    codes: dict[tuple[str, str, str], list[Sighting]] = {}
    for one in past:
        code = _code_key(one)
        if code is not None or one.letter == RESCUED:
            codes.setdefault(code or ("", "", str(one.run.number)), []).append(one)
    unsteady = [
        runs
        for runs in codes.values()
        if any(one.has_passed for one in runs)
        and any(one.has_failed and one.is_same for one in runs)
    ]
    if not unsteady:
        return None
    tried = [one for runs in unsteady for one in runs]
    failed = sum(one.has_failed for one in tried)
    passed = sum(one.has_passed for one in tried)
    rate = failed / (failed + passed)
    if rate ** (_streak(past) + 1) <= CHANCE:
        return None
    evidence = (
        f"failed this way in {earlier.times} earlier runs"
        if earlier.times > 1
        else "failed this way in 1 earlier run"
    )
    return Label(
        "flaky",
        f"{evidence}; passed {_times(passed)} and failed {_times(failed)} on unchanged code",
    )


def _broken(past: Sequence[Sighting], earlier: Earlier) -> Label | None:
    streak = past[len(past) - _streak(past) :]
    same = next((place for place, one in enumerate(streak) if one.is_same), None)
    if same is None:
        return None
    streak = streak[same:]
    count, since, commit = len(streak) + 1, streak[0].run.started_at, _at(streak[0])
    if len(streak) == len(past) and earlier.first < since:  # since before what is remembered
        count, since, commit = max(count, earlier.times + 1), earlier.first, ""
    evidence = f"has failed in every one of {count} runs since {_when(since)}{commit}"
    passed = [one for one in past[: len(past) - len(streak)] if one.has_passed]
    if passed:
        evidence += f"; last passed {_when(passed[-1].run.started_at)}{_at(passed[-1])}"
    return Label("broken", evidence)


def _recurring(past: Sequence[Sighting], earlier: Earlier) -> Label | None:
    if not earlier.times:
        return None
    last = max((place for place, one in enumerate(past) if one.is_same), default=-1)
    gone = past[last + 1 :]
    passed = sum(one.has_passed for one in gone)
    evidence = f"seen in {_runs_of(earlier.times)} before, last {_when(earlier.last)}"
    if passed:
        evidence += f"; passed in {passed} of {_runs(gone)} since"
    return Label("recurring", evidence)


def _new(failing: SuiteFailure, past: Sequence[Sighting]) -> Label:
    if not past:
        is_file = failing.phase == "collect"  # of which nothing is kept until it fails
        seen = "file was never seen to fail before" if is_file else "test was never seen before"
        return Label("new", f"this {seen}")
    passes = 0
    for one in reversed(past):
        if not one.has_passed:
            break
        passes += 1
    if passes:
        last = past[-1]
        said = f"passed in the last {_runs_of(passes)}" if passes > 1 else "passed in the last run"
        return Label("new", f"{said}, {_when(last.run.started_at)}{_at(last)}")
    failed = _streak(past)
    said = f" ({past[-1].said[:80]})" if past[-1].said else ""
    runs = f"the last {failed} runs" if failed > 1 else "the last run"
    return Label("new", f"failed in {runs}, too, but with another failure{said}")


def _where_it_ran(past: Sequence[Sighting], run: SuiteRun) -> Sequence[Sighting]:
    """Runs in this environment; all where there is none: another interpreter may do otherwise."""
    return [one for one in past if one.run.environment == run.environment] or past


# --- words -----------------------------------------------------------------------------------------


def _streak(past: Sequence[Sighting]) -> int:
    """How many of the last runs failed, up to the last that passed."""
    for back, one in enumerate(reversed(past)):
        if one.has_passed:
            return back
    return len(past)


def _code_key(one: Sighting) -> tuple[str, str, str] | None:
    """What tells the code of a run from others; None: not known."""
    run = one.run
    return (run.commit, run.tree, run.environment) if run.tree else None


def _is_same_code(one: Sighting, run: SuiteRun) -> bool:
    return _code_key(one) == (run.commit, run.tree, run.environment) and bool(run.tree)


def _code(run: SuiteRun) -> str:
    return f"the very same code (commit {run.commit[:7]})" if run.commit else "the very same code"


def _at(one: Sighting) -> str:
    return f" (commit {one.run.commit[:7]})" if one.run.commit else ""


def _when(moment: str) -> str:
    """A moment as people read it, to the minute; UTC."""
    return f"{moment[:10]} {moment[11:16]} UTC" if moment else "at an unknown time"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _runs(past: Sequence[Sighting]) -> str:
    return f"{len(past)} run{'' if len(past) == 1 else 's'}"


def _runs_of(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"
