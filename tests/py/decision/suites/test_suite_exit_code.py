"""The exit code stays pytest's, unless all that failed was to be excused."""

from __future__ import annotations

import pytest

from loki.decision.suites.suite_summary import (
    Cause,
    Label,
    LabelName,
    Member,
    SuiteSummary,
    excused,
    exit_code,
)
from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
from loki.recognition.failure import Failure

WRONG = Failure.of("assert 1 == 2")


def summary(*labels: LabelName, interrupted: bool = False) -> SuiteSummary:
    members = tuple(
        Member(SuiteFailure(f"t{number}", "call", "failed", WRONG), Label(name, "why"))
        for number, name in enumerate(labels)
    )
    cause = Cause(WRONG, Label("new", "why"), "", "unknown", members, 1, "", "")
    return SuiteSummary(SuiteRun(id="r", interrupted=interrupted), (cause,) if labels else ())


@pytest.mark.parametrize(
    ("labels", "fail_on", "quarantine", "code"),
    [
        (["flaky"], [], False, 1),
        (["flaky"], [], True, 0),
        (["flaky", "broken"], [], True, 1),
        (["broken"], ["new"], False, 0),
        (["broken", "new"], ["new"], False, 1),
        (["broken", "flaky"], ["new", "flaky"], False, 1),
        (["broken", "flaky"], ["new", "flaky"], True, 0),
        ([], ["new"], True, 1),
    ],
)
def test_exit_code(
    labels: list[LabelName], fail_on: list[str], quarantine: bool, code: int
) -> None:
    """A table: what failed, what was asked for, what comes of it."""
    assert exit_code(summary(*labels), 1, fail_on=fail_on, quarantine=quarantine) == code


@pytest.mark.parametrize("code", [0, 2, 3, 4, 5, 77])
def test_other_codes_stay(code: int) -> None:
    """Interrupted, an internal error, a usage error: nothing is excused."""
    assert exit_code(summary("flaky"), code, quarantine=True) == code


def test_a_run_that_was_cut_short() -> None:
    """What did not run may have failed."""
    assert exit_code(summary("flaky", interrupted=True), 1, quarantine=True) == 1


def test_unknown_labels() -> None:
    """A label that there is none of is an error that names all."""
    with pytest.raises(ValueError, match="'nwe' as a label, expected new, recurring"):
        excused(summary("new"), fail_on=["nwe"])
