"""Labels follow from what a test did before, each with figures; the table is in docs/design/tests.md."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from loki.decision.suites.suite_summary import Label, label_of, rescued
from loki.memory.suites.suite_history import Outcome, Phase, SuiteFailure, SuitePastRuns, SuiteRun
from loki.recognition.failure import Failure, recognize

TEST = "tests/test_a.py::test_x"
WRONG = Failure.of("assert 1 == 2", error_type="AssertionError", path="tests/test_a.py", line=3)
OTHER = Failure.of("basket is closed", error_type="ValueError", path="app/basket.py", line=9)
MISSING = recognize("E   ModuleNotFoundError: No module named 'x'", command="pytest")
REFUSED = recognize("E   ConnectionRefusedError: [Errno 111] Connection refused", command="pytest")


@dataclass
class Told:
    """Runs of one test, each an outcome and the code that it ran on.

    Attributes:
        past: what is remembered of them.
        number: of runs so far.
    """

    past: SuitePastRuns
    number: int = 0

    def run(
        self,
        what: str | Failure,
        tree: str = "",
        *,
        commit: str = "",
        environment: str = "",
        phase: Phase = "call",
        outcome: Outcome = "failed",
    ) -> SuiteRun:
        """A run in which the test passed ("passed"), was rescued ("rescued"), or failed so."""
        self.number += 1
        failing = isinstance(what, Failure)
        one = [SuiteFailure(TEST, phase, outcome, what)] if isinstance(what, Failure) else []
        again = [SuiteFailure(TEST, "call", "rerun", WRONG, rerun=1)] if what == "rescued" else []
        return SuiteRun(
            id=f"r{self.number}",
            started_at=f"2026-04-{self.number:02}T10:15:30.000Z",
            commit=commit or f"{self.number:040}",
            tree=tree,
            environment=environment,
            passed=() if failing else (TEST,),
            failures=tuple(one),
            reruns=tuple(again),
        )

    def label(self, what: Failure, tree: str = "", **more: str) -> Label:
        """The label of a run that fails so, on top of what is remembered."""
        run = self.run(what, tree, **more)  # type: ignore[arg-type]
        return label_of(run.failures[0], run, self.past.earlier(TEST, what))


def after(*runs: tuple[str | Failure, str] | str | Failure) -> Told:
    """What is known after some runs: outcome, or outcome and tree."""
    told = Told(SuitePastRuns())
    for one in runs:
        what, tree = one if isinstance(one, tuple) else (one, "")
        told.past.add(told.run(what, tree))
    return told


def test_never_seen() -> None:
    """Nothing known: new."""
    assert after().label(WRONG) == Label("new", "this test was never seen before")


def test_passed_before() -> None:
    """It passed until now: new, and since when."""
    label = after("passed", "passed", "passed").label(WRONG)
    assert label.name == "new"
    assert label.evidence == "passed in the last 3 runs, 2026-04-03 10:15 UTC (commit 0000000)"


def test_another_failure_than_before() -> None:
    """A test that was broken fails otherwise: that is new, and says so."""
    label = after("passed", WRONG, WRONG).label(OTHER)
    assert label.name == "new"
    assert "failed in the last 2 runs, too, but with another failure" in label.evidence


def test_broken() -> None:
    """It fails so in every run since one that is known."""
    label = after("passed", WRONG, WRONG).label(WRONG)
    assert label.name == "broken"
    assert label.evidence == (
        "has failed in every one of 3 runs since 2026-04-02 10:15 UTC (commit 0000000); "
        "last passed 2026-04-01 10:15 UTC (commit 0000000)"
    )


def test_broken_from_the_start() -> None:
    """Nobody saw it pass."""
    label = after(WRONG).label(WRONG)
    assert label.name == "broken"
    assert "every one of 2 runs" in label.evidence
    assert "last passed" not in label.evidence


def test_broken_in_between_otherwise() -> None:
    """It has not passed since, though it failed otherwise for a while."""
    assert after("passed", WRONG, OTHER).label(WRONG).name == "broken"


def test_an_outage_in_between_changes_nothing() -> None:
    """A run that could not reach a service says nothing of a test."""
    assert after("passed", WRONG, REFUSED).label(WRONG).name == "broken"
    assert after("passed", REFUSED).label(WRONG).name == "new"


def test_recurring() -> None:
    """It was there, went away with a change, and is back."""
    label = after(("passed", "1"), (WRONG, "2"), ("passed", "3"), ("passed", "4")).label(WRONG, "5")
    assert label == Label(
        "recurring",
        "seen in 1 run before, last 2026-04-02 10:15 UTC; passed in 2 of 2 runs since",
    )


def test_gone_after_a_change_is_not_flaky() -> None:
    """One failure that went away after the code changed is no sign of chance."""
    assert after((WRONG, "1"), ("passed", "2")).label(WRONG, "3").name == "recurring"


def test_flaky_on_this_code() -> None:
    """It passed and failed on the very same code."""
    told = Told(SuitePastRuns())
    for what in ("passed", "passed", WRONG):
        told.past.add(told.run(what, "t", commit="c" * 40))
    assert told.label(WRONG, "t", commit="c" * 40) == Label(
        "flaky", "passed twice and failed twice on the very same code (commit ccccccc)"
    )


def test_other_interpreter_is_not_flaky() -> None:
    """The same code under another interpreter may fail for that."""
    told = Told(SuitePastRuns())
    told.past.add(told.run("passed", "t", commit="c", environment="3.12"))
    assert told.label(WRONG, "t", commit="c", environment="3.10").name == "new"


def test_known_flaky() -> None:
    """It failed so by chance before, on other code."""
    told = Told(SuitePastRuns())
    for what, commit in (("passed", "a"), (WRONG, "a"), ("passed", "a"), ("passed", "b")):
        told.past.add(told.run(what, "t" + commit, commit=commit))
    label = told.label(WRONG, "tz", commit="z")
    assert label.name == "flaky"
    assert label.evidence == (
        "failed this way in 1 earlier run; passed twice and failed once on unchanged code"
    )
    assert told.label(OTHER, "tz", commit="z").name == "new"


def test_rescued_before() -> None:
    """A try that was made again and passed is chance, too."""
    assert after("rescued", "passed", "passed").label(WRONG).name == "flaky"


def test_flaky_until_it_is_broken() -> None:
    """A test that failed one time in three fails five times in a row: that is no chance any more."""
    told = Told(SuitePastRuns())
    for what in ("passed", WRONG, "passed"):
        told.past.add(told.run(what, "t", commit="c"))
    names = []
    for number in range(6):
        names.append(told.label(WRONG, f"t{number}").name)
        told.past.add(told.run(WRONG, f"t{number}"))
    assert names[0] == "flaky"
    assert names[-1] == "broken"
    assert sorted(names, key=["flaky", "broken"].index) == names


def test_comes_and_goes_on_a_commit() -> None:
    """The state of the working tree is not known: only who repairs what he broke twice is flaky."""
    told = Told(SuitePastRuns())
    for what in ("passed", WRONG, "passed"):
        told.past.add(told.run(what, commit="c"))
    label = told.label(WRONG, commit="c")
    assert label == Label("flaky", "passed twice and failed twice in turn on commit c")
    shorter = Told(SuitePastRuns())
    shorter.past.add(shorter.run("passed", commit="c"))
    assert shorter.label(WRONG, commit="c").name == "new"


def test_what_the_machine_decides_is_not_flaky() -> None:
    """A module that is installed meanwhile: the same code passes, not by chance."""
    told = Told(SuitePastRuns())
    for what in ("passed", MISSING, "passed"):
        told.past.add(told.run(what, "t", commit="c"))
    assert told.label(MISSING, "t", commit="c").name == "recurring"
    assert told.label(WRONG, "t", commit="c", phase="collect").name == "new"


def test_of_a_file_nothing_is_known_until_it_fails() -> None:
    """That is not said of it as if it were a new test."""
    label = Told(SuitePastRuns()).label(MISSING, phase="collect")
    assert label == Label("new", "this file was never seen to fail before")


def test_infrastructure() -> None:
    """What loki recognizes as an outage, whatever was before."""
    label = after("passed", WRONG).label(REFUSED)
    assert label.name == "infrastructure"
    assert label.evidence.startswith("recognized as network-error with confidence 0.")
    assert label.evidence.endswith("the test passed in 1 of 2 runs before")


@pytest.mark.parametrize(
    "text",
    [
        "E   AssertionError: assert 'Connection refused' == 'ok'",
        "tests/test_a.py:3: in test_x\n    net.get()\n"
        "/usr/lib/python3.11/unittest/mock.py:1139: in __call__\n    raise effect\n"
        "E   ConnectionError: Connection refused",
        "    def fake():\n>       raise ConnectionError('Connection refused')\n"
        "E       ConnectionError: Connection refused\n\ntests/test_a.py:3: ConnectionError",
    ],
)
def test_a_made_up_outage_is_none(text: str) -> None:
    """The code was to deal with what a test makes up, and did not."""
    head = "============ FAILURES ============\n____________ test_x ____________\n"
    failure = recognize(f"{head}{text}\n", command="pytest")
    assert after("passed").label(failure).name == "new"


def test_rescued_now() -> None:
    """A test that passed only when tried again is flaky, with how often."""
    told = after("rescued", "passed")
    run = told.run("rescued")
    assert rescued(TEST, run, told.past.earlier(TEST, WRONG)) == Label(
        "flaky",
        "failed once in this run, then passed on the same code; "
        "needed more than one try in 1 of 2 runs before, too",
    )


def test_an_environment_has_a_past_of_its_own() -> None:
    """What fails with one interpreter only is broken there, however often others pass in between."""
    told = Told(SuitePastRuns())
    for _ in range(3):
        told.past.add(told.run(WRONG, "t", commit="c", environment="3.10"))
        told.past.add(told.run("passed", "t", commit="c", environment="3.12"))
    label = told.label(WRONG, "t", commit="c", environment="3.10")
    assert label.name == "broken"
    assert label.evidence.startswith("has failed in every one of 4 runs")
    assert told.label(WRONG, "t", commit="c", environment="3.13").name == "recurring"
