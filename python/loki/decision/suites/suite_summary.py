"""What there is to say about a test run: its root causes, each with its label and what to do.

Faces show this and decide nothing. The rules: ``docs/design/tests.md``.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from loki.decision.suites.suite_labels import Label, LabelName, label_of, rescued
from loki.memory import advice
from loki.recognition.root_cause import root_causes
from loki.recognition.shared_callees import NO_ASSERTIONS, Assertions, Callee
from loki.recognition.signature import normalize
from loki.recognition.underlying_kind import is_test_path, underlying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loki.memory.suites.suite_history import SuiteHistory
    from loki.memory.suites.suite_past_runs import Earlier
    from loki.memory.suites.suite_run import SuiteFailure, SuiteRun
    from loki.recognition.failure import Failure
    from loki.recognition.root_cause import RootCause

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
        changed: those files, of the project and no tests; `loki.decision.suites.suite_changes` knows them.
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
    causes.sort(
        key=lambda cause: (-len(cause.members), URGENCY.index(cause.label.name), cause.tests)
    )
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
    members = tuple(
        sorted(
            (Member(o, label_of(o, run, known)) for o, known in zip(failing, earlier, strict=True)),
            key=lambda member: member.failing.test,  # workers fail them in any order
        )
    )
    label = cause_label(members)
    seen = {one.run.number for known in earlier for one in known.runs if one.is_same}
    times = max([len(seen), *(known.times for known in earlier)])
    since = min([run.started_at, *(known.first for known in earlier if known.first)])
    failure, callee, test = group.failure, group.callee, members[0].failing.test
    if callee is not None and group.is_shared:
        where, todo = callee.where, shared_next_step(callee, test, label.name, deeper)
    else:
        where, todo = where_of(failure), next_step(failure, test, label.name, callee)
    return Cause(
        failure,
        label,
        where,
        kind_of(failure),
        members,
        times + 1,
        since,
        todo,
        callee=callee,
        is_shared=group.is_shared,
    )


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
            "id": run.id,
            "started_at": run.started_at,
            "duration_ms": run.duration_ms,
            "branch": run.branch,
            "commit": run.commit,
            "exit_code": run.exit_code,
            "interrupted": run.interrupted,
            "counts": dict(run.counts),
        },
        "causes": [_cause_dict(cause) for cause in summary.causes],
        "rescued": [_member_dict(member) for member in summary.rescued],
    }


def _cause_dict(cause: Cause) -> dict[str, Any]:
    failure = cause.failure
    return {
        "label": cause.label.name,
        "evidence": cause.evidence,
        "kind": cause.kind,
        "pattern": failure.pattern_id,
        "signature": failure.signature,
        "where": cause.where,
        "error_type": failure.error_type,
        "message": failure.message,
        "shared": cause.shared,
        "messages": list(cause.messages),
        "excerpt": failure.excerpt,
        "times": cause.times,
        "since": cause.since,
        "todo": cause.todo,
        "passed_at": cause.passed_at,
        "changed": list(cause.changed),
        "tests": [_member_dict(member) for member in cause.members],
    }


def _member_dict(member: Member) -> dict[str, Any]:
    failing = member.failing
    return {
        "test": failing.test,
        "phase": failing.phase,
        "outcome": failing.outcome,
        "label": member.label.name,
        "evidence": member.label.evidence,
        "message": failing.failure.message,
        "path": failing.failure.path,
        "line": failing.failure.line,
        "started_at": failing.started_at,
        "duration_ms": failing.duration_ms,
        "worker": failing.worker,
        "rerun": failing.rerun,
    }
