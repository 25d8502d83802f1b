"""What there is to say about a test run: its root causes, each with its label and what to do. Pure.

Faces show this and decide nothing. The table of rules, and why each is as it is: ``docs/design/tests.md``;
the first rule that holds decides. Which files changed is git's to tell: whoever calls this asks it.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

from loki.memory import advice
from loki.memory.suites.suite_history import (
    RESCUED,
    Earlier,
    PastRun,
    Sighting,
    SuiteFailure,
    SuiteHistory,
    SuiteRun,
)
from loki.recognition.failure import is_test_path
from loki.recognition.root_cause import (
    NO_ASSERTIONS,
    Assertions,
    Callee,
    RootCause,
    is_infrastructure,
    root_causes,
    underlying,
)
from loki.recognition.signature import normalize

if TYPE_CHECKING:
    from loki.recognition.failure import Failure


# --- Files that changed since tests passed ------------------------------------------------------------

MOST = 5
"""Files that are named; of more, none: they tell nobody where to look. Chosen."""

COMMITS, TESTS = 3, 20
"""Commits that are asked for in one run, and tests of a cause that are looked at. Chosen."""

_OF_CODE = frozenset({"new", "recurring", "broken"})
_PROSE = frozenset({".md", ".rst"})

FilesSince = Callable[[str], Sequence[str] | None]
"""Files that differ from a commit; None: not known."""


def with_changes(
    summary: SuiteSummary, history: SuiteHistory, files_since: FilesSince
) -> SuiteSummary:
    """The summary with, for each cause, the few files that changed since its tests last passed.

    Args:
        summary: of a run.
        history: of earlier runs; the run itself is left out where it is kept already.
        files_since: asked once for a commit, and for few.
    """
    asked: dict[str, Sequence[str]] = {}
    causes = []
    for cause in summary.causes:
        commit = _last_passed(cause, summary.run, history)
        if commit and commit not in asked and len(asked) < COMMITS:
            asked[commit] = files_since(commit) or ()
        files = suspects(asked.get(commit, ()), cause.failure)
        known = 0 < len(files) <= MOST
        causes.append(replace(cause, passed_at=commit, changed=files) if known else cause)
    return replace(summary, causes=tuple(causes))


def suspects(files: Iterable[str], failure: Failure) -> tuple[str, ...]:
    """Which of some files may have broken a test: no tests, no prose; first those in its stack.

    Args:
        files: paths relative to the project.
        failure: of the test.

    Example:
        >>> from loki.recognition.failure import Failure
        >>> suspects(["b.py", "a.py", "tests/test_a.py", "README.md"], Failure.of("x", path="b.py"))
        ('b.py', 'a.py')
    """
    seen = {failure.path, *(frame.path for frame in failure.frames)}
    own = [path for path in files if not is_test_path(path) and not _is_prose(path)]
    return tuple(sorted(own, key=lambda path: (path not in seen, path)))


def _last_passed(cause: Cause, run: SuiteRun, history: SuiteHistory) -> str:
    """The commit of the last run in which a test of a cause passed, in this environment; "" for none."""
    if cause.label.name not in _OF_CODE:
        return ""
    last = (0, "")
    for member in cause.members[:TESTS]:
        earlier = history.earlier(member.failing.test, member.failing.failure, before=run.id)
        here = [one for one in earlier.runs if one.run.environment == run.environment]
        last = max([last, *((one.run.number, one.run.commit) for one in here if one.has_passed)])
    return last[1]


def _is_prose(path: str) -> bool:
    return PurePosixPath(path).suffix in _PROSE or path.startswith(".")


# --- What a failing test's history makes of its failure -----------------------------------------------

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
        *("import-not-found", "syntax-error", "env-missing", "config-parse-error", "auth-error"),
        *("permission-error", "version-mismatch", "circular-dependency", "disk-full"),
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
        >>> from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
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
        runs = _runs(len(earlier.runs))
        evidence += f"; needed more than one try in {before} of {runs} before, too"
    return Label("flaky", evidence)


def _infrastructure(failing: SuiteFailure, past: Sequence[Sighting]) -> Label | None:
    shown = underlying(failing.failure)
    if shown is None or not is_infrastructure(failing.failure):
        return None
    evidence = f"recognized as {shown.kind} with confidence {shown.confidence:.2f}"
    if past:
        passed = sum(one.has_passed for one in past)
        evidence += f"; the test passed in {passed} of {_runs(len(past))} before"
    return Label("infrastructure", evidence)


def _flaky(
    failing: SuiteFailure, run: SuiteRun, past: Sequence[Sighting], earlier: Earlier
) -> Label | None:
    shown = underlying(failing.failure)
    if failing.phase == "collect" or (shown is not None and shown.kind in NEVER_BY_CHANCE):
        return None
    here = [one for one in past if run.tree and _code_key(one.run) == _code_key(run)]
    passed = sum(one.has_passed for one in here)
    failed = sum(one.has_failed for one in here) + 1
    if passed:
        counts = f"passed {_times(passed)} and failed {_times(failed)}"
        return Label("flaky", f"{counts} on {_code(run)}")
    return _unsteady(run, past) or _known_flaky(past, earlier)


def _unsteady(run: SuiteRun, past: Sequence[Sighting]) -> Label | None:
    """It comes and goes on one commit, whose working tree nobody knows."""
    code = run.commit, run.environment
    on_it = [one for one in past if run.commit and (one.run.commit, one.run.environment) == code]
    outcomes = [one.has_passed for one in on_it if not (run.tree and one.run.tree)] + [False]
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
        code = _code_key(one.run)
        if code is not None or one.letter == RESCUED:
            codes.setdefault(code or ("", "", str(one.run.number)), []).append(one)
    tried: list[Sighting] = []
    for runs in codes.values():
        failed_so = any(one.has_failed and one.is_same for one in runs)
        tried += runs if failed_so and any(one.has_passed for one in runs) else ()
    if not tried:
        return None
    failed = sum(one.has_failed for one in tried)
    passed = sum(one.has_passed for one in tried)
    rate = failed / (failed + passed)
    if rate ** (_streak(past) + 1) <= CHANCE:
        return None
    evidence = f"failed this way in {_runs(max(earlier.times, 1), 'earlier run')}"
    counts = f"passed {_times(passed)} and failed {_times(failed)} on unchanged code"
    return Label("flaky", f"{evidence}; {counts}")


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
    evidence = f"seen in {_runs(earlier.times)} before, last {_when(earlier.last)}"
    if passed:
        evidence += f"; passed in {passed} of {_runs(len(gone))} since"
    return Label("recurring", evidence)


def _new(failing: SuiteFailure, past: Sequence[Sighting]) -> Label:
    if not past:
        is_file = failing.phase == "collect"  # of which nothing is kept until it fails
        seen = "file was never seen to fail before" if is_file else "test was never seen before"
        return Label("new", f"this {seen}")
    passes = sum(1 for _ in takewhile(lambda one: one.has_passed, reversed(past)))
    if passes:
        last = past[-1]
        said = f"passed in the last {_runs(passes)}" if passes > 1 else "passed in the last run"
        return Label("new", f"{said}, {_when(last.run.started_at)}{_at(last)}")
    failed = _streak(past)
    said = f" ({past[-1].said[:80]})" if past[-1].said else ""
    runs = f"the last {failed} runs" if failed > 1 else "the last run"
    return Label("new", f"failed in {runs}, too, but with another failure{said}")


def _where_it_ran(past: Sequence[Sighting], run: SuiteRun) -> Sequence[Sighting]:
    """Runs in this environment; all where there is none: another interpreter may do otherwise."""
    return [one for one in past if one.run.environment == run.environment] or past


# --- Words -----------------------------------------------------------------------------------------


def _streak(past: Sequence[Sighting]) -> int:
    """How many of the last runs failed, up to the last that passed."""
    return sum(1 for _ in takewhile(lambda one: not one.has_passed, reversed(past)))


def _code_key(run: SuiteRun | PastRun) -> tuple[str, str, str] | None:
    """What tells the code of a run from others; None: not known."""
    return (run.commit, run.tree, run.environment) if run.tree else None


def _code(run: SuiteRun) -> str:
    return f"the very same code (commit {run.commit[:7]})" if run.commit else "the very same code"


def _at(one: Sighting) -> str:
    return f" (commit {one.run.commit[:7]})" if one.run.commit else ""


def _when(moment: str) -> str:
    """A moment as people read it, to the minute; UTC."""
    return f"{moment[:10]} {moment[11:16]} UTC" if moment else "at an unknown time"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _runs(count: int, name: str = "run") -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


# --- The root causes of a run, each with its label and what to do -------------------------------------

URGENCY: tuple[LabelName, ...] = ("new", "recurring", "broken", "flaky", "infrastructure")
"""The label of a cause is the first of these that one of its tests has: what is new in a known cause
must not hide behind it."""

MESSAGES = 3
"""Different messages that are quoted of tests that have only a function in common: two mistakes in it
are not to look like one. Chosen."""


@dataclass(frozen=True, slots=True)
class Member:
    """A failing test of a cause.

    Attributes:
        failing: the test and how it fails.
        label: its own.
    """

    failing: SuiteFailure
    label: Label


@dataclass(frozen=True, slots=True)
class Cause:
    """Why some tests failed.

    Attributes:
        failure: the one that shows it best.
        label: of the cause; its tests may have others.
        where: ``path:line`` to look at, or "".
        kind: what kind of failure it is.
        members: the failures that it explains, by node id.
        times: runs in which it was seen, this one included.
        since: when it was first seen, ISO 8601 UTC.
        todo: what to do next, one sentence.
        passed_at: commit of the last run in which one of its tests passed, where few files changed since.
        changed: those files, of the project and no tests.
        callee: the function on whose results all its tests assert, where their source says so.
        is_shared: that function is what makes them one cause.
    """

    failure: Failure
    label: Label
    where: str
    kind: str
    members: tuple[Member, ...]
    times: int
    since: str
    todo: str
    passed_at: str = ""
    changed: tuple[str, ...] = ()
    callee: Callee | None = None
    is_shared: bool = False

    @property
    def evidence(self) -> str:
        """Why it has its label, one sentence with figures."""
        return self.label.evidence

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that it fails, each once."""
        return tuple(dict.fromkeys(member.failing.test for member in self.members))

    @property
    def shared(self) -> str:
        """What its tests have in common where each fails by its own assertion, one sentence; or ""."""
        if self.callee is None or not self.is_shared:
            return ""
        return f"{len(self.tests)} tests assert on what {self.callee.name} returns"

    @property
    def messages(self) -> tuple[str, ...]:
        """What they say then, each in its own words: a few that differ."""
        return differing([one.failing.failure for one in self.members]) if self.shared else ()


@dataclass(frozen=True, slots=True)
class SuiteSummary:
    """What a test run showed.

    Attributes:
        run: the run.
        causes: why tests failed, most failures first, then the most urgent.
        rescued: tests that passed only when they were tried again, the last failing try of each.
    """

    __test__: ClassVar[bool] = False

    run: SuiteRun
    causes: tuple[Cause, ...] = ()
    rescued: tuple[Member, ...] = ()

    @property
    def members(self) -> tuple[Member, ...]:
        """All that failed, cause by cause."""
        return tuple(member for cause in self.causes for member in cause.members)


def summarize(
    run: SuiteRun, history: SuiteHistory, assertions: Assertions = NO_ASSERTIONS
) -> SuiteSummary:
    """What there is to say about a run, given what was there before it.

    Args:
        run: the run.
        history: of earlier runs; the run itself is left out where it is kept already.
        assertions: what failing tests assert on, where their source was read.
    """
    groups = root_causes([one.failure for one in run.failures], assertions)
    shared = {group.callee for group in groups if group.callee is not None and group.is_shared}
    earlier = [history.earlier(o.test, o.failure, before=run.id) for o in run.failures]
    causes = [
        _cause(
            run,
            group,
            [run.failures[index] for index in group.members],
            [earlier[index] for index in group.members],
            assertions.deeper(group.callee, shared) if group.callee is not None else (),
        )
        for group in groups
    ]
    causes.sort(key=lambda one: (-len(one.members), URGENCY.index(one.label.name), one.tests))
    failed = {one.test for one in run.failures}
    tried = {one.test: one for one in run.reruns if one.test not in failed}
    saved = [
        Member(one, rescued(test, run, history.earlier(test, one.failure, before=run.id)))
        for test, one in tried.items()
    ]
    return SuiteSummary(run, tuple(causes), tuple(saved))


def _cause(
    run: SuiteRun,
    group: RootCause,
    failing: Sequence[SuiteFailure],
    earlier: Sequence[Earlier],
    deeper: Sequence[Callee],
) -> Cause:
    pairs = zip(failing, earlier, strict=True)
    labelled = [Member(one, label_of(one, run, known)) for one, known in pairs]
    # Workers fail them in any order.
    members = tuple(sorted(labelled, key=lambda member: member.failing.test))
    label = cause_label(members)
    seen = {one.run.number for known in earlier for one in known.runs if one.is_same}
    times = max([len(seen), *(known.times for known in earlier)])
    since = min([run.started_at, *(known.first for known in earlier if known.first)])
    failure, callee, test = group.failure, group.callee, members[0].failing.test
    if callee is not None and group.is_shared:
        where, todo = callee.where, shared_next_step(callee, test, label.name, deeper)
    else:
        where, todo = where_of(failure), next_step(failure, test, label.name, callee)
    facts = failure, label, where, kind_of(failure), members, times + 1, since, todo
    return Cause(*facts, callee=callee, is_shared=group.is_shared)


def cause_label(members: Sequence[Member]) -> Label:
    """The label of a cause, from those of its tests: the most urgent one, and how many have it.

    Args:
        members: at least one.
    """
    counts = Counter(member.label.name for member in members)
    name = next(one for one in URGENCY if one in counts)
    if name == "broken" and counts["flaky"] >= counts["broken"]:
        name = "flaky"  # what varies for most of its tests has not yet done so for the others
    evidence = [member.label.evidence for member in members if member.label.name == name]
    said, often = Counter(evidence).most_common(1)[0]
    if len(members) == 1:
        return Label(name, said)
    others = [f"{counts[one]} {one}" for one in URGENCY if one in counts and one != name]
    if others:
        said = f"{counts[name]} of {len(members)} tests: {said} (the others: {', '.join(others)})"
    elif often < len(members):
        said = f"{often} of {len(members)} tests: {said}"
    return Label(name, said)


def kind_of(failure: Failure) -> str:
    """What kind of failure a test's is, beneath "a test failed" where something is known of that."""
    shown = underlying(failure)
    return shown.kind if shown is not None else failure.kind


def where_of(failure: Failure) -> str:
    """``path:line`` to look at: the project's own code nearest to the failure, else the test."""
    own = [one for one in failure.frames if one.in_project and not is_test_path(one.path)]
    if own and not (failure.path and failure.path == own[-1].path):
        return f"{own[-1].path}:{own[-1].line}" if own[-1].line else own[-1].path
    return f"{failure.path}:{failure.line}" if failure.path and failure.line else failure.path or ""


_NAMES = {
    "env-missing": (
        "variable",
        re.compile(r"^'([A-Za-z_]\w*)'$|\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"),
    ),
    "import-not-found": ("module", re.compile(r"No module named '?([\w.]+)")),
}
"""What a message calls that which is missing: a key, a name that only variables have, a module."""

_TODO = {
    "infrastructure": "Run it again once what could not be reached answers; nothing says that the code "
    "is wrong.",
    "flaky": "Do not look for it in this change: find what varies (order, time, randomness, shared state).",
}

_PLAIN = frozenset({"test-failure", "unknown", "runtime-error"})
"""Kinds of which there is no better advice than where to look."""


def differing(failures: Sequence[Failure]) -> tuple[str, ...]:
    """What failures say, a few that differ most: first one of each form.

    Args:
        failures: of one cause.
    """
    said = [f"{o.error_type}: {o.message}" if o.error_type else o.message for o in failures]
    forms = {normalize(text, "template"): text for text in reversed(said)}
    chosen = dict.fromkeys([*reversed(forms.values()), *said])
    return tuple(chosen)[:MESSAGES]


def next_step(failure: Failure, test: str, label: LabelName, callee: Callee | None = None) -> str:
    """What to do next about a cause, one sentence.

    Args:
        failure: the one that shows it best.
        test: node id of a test that it fails.
        label: of the cause.
        callee: the function on whose results all its tests assert, where that is known.
    """
    if label in _TODO:
        return _TODO[label]
    where, kind = where_of(failure), kind_of(failure)
    if kind in _PLAIN:
        alone = f"run it alone: pytest {shlex.quote(test)}"
        if callee is not None:
            where = f"{where}, which asserts on what {callee.name} returns ({callee.where})"
        return f"Look at {where}; {alone}" if where else alone.capitalize()
    known = {"place": where, "test": test, "file": failure.path or "", **_named(failure, kind)}
    filled = (advice.fill(step, known) for step in advice.of(kind).steps)
    return next((step for step in filled if step), f"Look at {where}.")


def _named(failure: Failure, kind: str) -> dict[str, str]:
    """What is missing, by the name that advice has for it."""
    name, regex = _NAMES.get(kind, ("", None))
    found = regex.search(failure.message) if regex else None
    return {name: found[found.lastindex or 0]} if found else {}


def shared_next_step(
    callee: Callee, test: str, label: LabelName, deeper: Sequence[Callee] = ()
) -> str:
    """The same about a cause whose tests have a function in common.

    Args:
        callee: the function.
        test: node id of a test that asserts on what it returns.
        label: of the cause.
        deeper: functions that it calls, of which the same is said.
    """
    first = f"Look at {callee.name} first, {callee.where}"
    if deeper:
        called = " and ".join(f"{one.name} ({one.where})" for one in deeper[:2])
        first = f"Look at {called} first: {callee.name} calls it, and its tests fail too"
        first = first if len(deeper) == 1 else first.replace("it, and its", "them, and their")
    return _TODO.get(label) or f"{first}; run one alone: pytest {shlex.quote(test)}"


def to_dict(summary: SuiteSummary) -> dict[str, Any]:
    """JSON-able form; its fields: ``docs/design/tests.md``."""
    run = summary.run
    return {
        "version": 1,
        "run": {
            **_fields(run, "id", "started_at", "duration_ms", "branch", "commit"),
            **_fields(run, "exit_code", "interrupted"),
            "counts": dict(run.counts),
        },
        "causes": [_cause_dict(cause) for cause in summary.causes],
        "rescued": [_member_dict(member) for member in summary.rescued],
    }


def _cause_dict(cause: Cause) -> dict[str, Any]:
    failure = cause.failure
    return {
        "label": cause.label.name,
        **_fields(cause, "evidence", "kind"),
        "pattern": failure.pattern_id,
        "signature": failure.signature,
        "where": cause.where,
        **_fields(failure, "error_type", "message"),
        "shared": cause.shared,
        "messages": list(cause.messages),
        "excerpt": failure.excerpt,
        **_fields(cause, "times", "since", "todo", "passed_at"),
        "changed": list(cause.changed),
        "tests": [_member_dict(member) for member in cause.members],
    }


def _member_dict(member: Member) -> dict[str, Any]:
    failing = member.failing
    return {
        **_fields(failing, "test", "phase", "outcome"),
        "label": member.label.name,
        "evidence": member.label.evidence,
        **_fields(failing.failure, "message", "path", "line"),
        **_fields(failing, "started_at", "duration_ms", "worker", "rerun"),
    }


def _fields(of: object, *names: str) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


# --- Whether a test run fails, given what its failures are --------------------------------------------

PASSED, FAILED = 0, 1
"""pytest's exit codes for a run whose tests all passed, and for one where some failed."""


def excused(
    summary: SuiteSummary, *, fail_on: Collection[str] = (), quarantine: bool = False
) -> tuple[Member, ...]:
    """The failures that do not fail the run, because somebody asked for that.

    Args:
        summary: of the run.
        fail_on: labels that fail the run; empty: all do.
        quarantine: flaky tests do not fail the run, whatever ``fail_on`` says.

    Raises:
        ValueError: ``fail_on`` holds something that is no label.
    """
    unknown = sorted(set(fail_on) - set(LABELS))
    if unknown:
        raise ValueError(f"found {unknown[0]!r} as a label, expected {', '.join(LABELS)}")
    return tuple(
        member
        for member in summary.members
        if (fail_on and member.label.name not in fail_on)
        or (quarantine and member.label.name == "flaky")
    )


def exit_code(
    summary: SuiteSummary,
    code: int,
    *,
    fail_on: Collection[str] = (),
    quarantine: bool = False,
) -> int:
    """The exit code of a run: pytest's own, unless all that failed was to be excused.

    Only "tests failed" (1) is ever changed, only to 0, and only where all tests had their turn: a
    run that was cut short has not shown that nothing else failed.

    Args:
        summary: of the run.
        code: pytest's exit code.
        fail_on, quarantine: as of `excused`.

    Raises:
        ValueError: ``fail_on`` holds something that is no label.
    """
    failed, forgiven = summary.members, excused(summary, fail_on=fail_on, quarantine=quarantine)
    was_whole = code == FAILED and not summary.run.interrupted
    return PASSED if was_whole and failed and len(forgiven) == len(failed) else code
