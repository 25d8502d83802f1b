"""What there is to say about a test run: its root causes, each with its label and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from loki.decision.test_label import Label, label_of
from loki.memory import advice
from loki.recognition.root_cause import root_causes

if TYPE_CHECKING:
    from loki.memory.test_history import TestHistory
    from loki.memory.test_run import TestFailure, TestRun
    from loki.recognition.failure import Failure


@dataclass(frozen=True, slots=True)
class Member:
    """A failing test of a cause: its failure and its own label."""

    failing: TestFailure
    label: Label


@dataclass(frozen=True, slots=True)
class Cause:
    """Why some tests failed.

    Attributes:
        failure: the one that shows it best.
        label: of the cause; its tests may have others.
        where: ``path:line`` that shows it, or "".
        kind: of the failure.
        members: the failures that it explains, in the order of the run.
        times: runs in which it was seen, this one included.
        since: when it was first seen, ISO 8601 UTC.
        todo: what to do next, one sentence.
    """

    failure: Failure
    label: Label
    where: str
    kind: str
    members: tuple[Member, ...]
    times: int
    since: str
    todo: str

    @property
    def evidence(self) -> str:
        """Why it has its label."""
        return self.label.evidence

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that it fails, each once."""
        return tuple(dict.fromkeys(member.failing.test for member in self.members))


@dataclass(frozen=True, slots=True)
class TestSummary:
    """What a test run showed.

    Attributes:
        run: the run.
        causes: why tests failed, most tests first.
        rescued: tests that passed only when they were tried again, each with its evidence.
    """

    __test__: ClassVar[bool] = False

    run: TestRun
    causes: tuple[Cause, ...] = ()
    rescued: tuple[Member, ...] = ()

    @property
    def labels(self) -> dict[str, list[Label]]:
        """The labels of each failing test."""
        found: dict[str, list[Label]] = {}
        for cause in self.causes:
            for member in cause.members:
                found.setdefault(member.failing.test, []).append(member.label)
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        raise NotImplementedError


def summarize(run: TestRun, history: TestHistory) -> TestSummary:
    """What there is to say about a run, given what was there before it.

    Args:
        run: the run.
        history: of earlier runs; the run itself is left out where it is in it already.
    """
    members = [
        Member(one, label_of(one.failure, history.earlier(one.test, one.failure)))
        for one in run.failures
    ]
    causes = []
    for group in root_causes([one.failure for one in run.failures]):
        chosen = tuple(members[index] for index in group.members)
        causes.append(
            Cause(
                group.failure,
                chosen[0].label,
                group.failure.place,
                group.failure.kind,
                chosen,
                1,
                run.started_at,
                advice.of(group.failure.kind).cause,
            )
        )
    return TestSummary(run, tuple(causes))
