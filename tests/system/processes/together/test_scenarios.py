"""The closed loop over a real project in four languages, with their real tools."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.agents.scripted import ScriptedAgent
from loki.memory.attempt import Attempt
from support.till import PYTHON, TILLS, Files, Till

every_language = pytest.mark.parametrize("till", TILLS, ids=lambda till: till.name, indirect=True)


@pytest.fixture(params=[PYTHON], ids=lambda till: till.name)
def till(request: pytest.FixtureRequest) -> Till:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def project(till: Till, tmp_path: Path) -> Path:
    return till.make(tmp_path / "project")


class Teller:
    """An agent that says what it is told to, and keeps the briefings that it was given."""

    name = "teller"

    def __init__(self, changes: Iterable[Files]) -> None:
        self._changes = list(changes)
        self.briefings: list[str] = []

    def propose(self, briefing: loki.Briefing) -> Any:
        self.briefings.append(str(briefing))
        return loki.Change.write(self._changes[min(len(self.briefings), len(self._changes)) - 1])


def run(project: Path, check: str, *changes: Files, **options: Any) -> tuple[loki.Outcome, Teller]:
    agent = Teller(changes)
    outcome = loki.run("mend the total", agent=agent, checks=[check], path=str(project), **options)
    return outcome, agent


def attempts_of(project: Path, outcome: loki.Outcome) -> list[Attempt]:
    return loki.Workspace(project).history(outcome.task_id).attempts()


@every_language
def test_a_failing_test_is_mended(till: Till, project: Path) -> None:
    outcome, agent = run(project, till.check, till.wrong[0], till.fixed)
    assert (outcome.status, outcome.attempts) == ("success", 2), outcome
    assert outcome.files == tuple(till.fixed)
    failed = attempts_of(project, outcome)[0]
    assert failed.failure is not None
    assert failed.failure["tests"], "it names the failing test"
    assert failed.checks[0].exit_code not in {0, None}
    assert failed.checks[0].output
    assert "total" in agent.briefings[0].lower()


@every_language
def test_what_does_not_parse_is_caught_before_it_is_written(till: Till, project: Path) -> None:
    outcome, agent = run(project, till.check, till.broken, till.fixed)
    assert outcome.status == "success", outcome
    first = attempts_of(project, outcome)[0]
    assert first.phase == "validate"
    assert first.validation is not None
    assert not first.validation["passed"]
    assert first.files_modified == ()
    assert first.pattern_matched == "syntax-error"
    (path,) = till.broken
    assert path in agent.briefings[1]


@every_language
def test_a_regression_in_a_file_that_imports_it_is_caught(till: Till, project: Path) -> None:
    if till.name == "rust":
        pytest.skip("imports are followed in Python, TypeScript, JavaScript and Go")
    outcome, agent = run(project, till.narrow, till.breaks, till.fixed)
    assert (outcome.status, outcome.attempts) == ("success", 2), outcome
    first, second = attempts_of(project, outcome)
    assert first.pattern_matched == "regression-detected"
    assert first.strategy_used == "context_expand"
    assert all(check.passed for check in first.checks), "the check itself is content"
    assert second.result == "success"
    assert "receipt" in agent.briefings[1]


def test_low_complexity_skips_the_regression_check(till: Till, project: Path) -> None:
    outcome, _ = run(project, till.narrow, till.breaks, complexity="low")
    assert (outcome.status, outcome.attempts) == ("success", 1), outcome


@pytest.mark.parametrize(("way", "complexity"), [("gone", "low"), ("skipped", "high")])
@every_language
def test_a_failing_test_that_is_removed_is_not_mended(
    till: Till, project: Path, way: str, complexity: str
) -> None:
    cheat: Files = getattr(till, way)
    honest = {**till.fixed, **{path: till.files[path] for path in cheat}}
    outcome, agent = run(project, till.check, cheat, honest, complexity=complexity)
    assert (outcome.status, outcome.attempts) == ("success", 2), outcome
    first = attempts_of(project, outcome)[0]
    assert first.result == "failed"
    assert "was failing and is now" in (first.error or "")
    assert "may not be removed" in agent.briefings[1]


UNBUILT: dict[str, Files] = {
    "go": {
        "money/tax_test.go": 'package money\n\nimport "testing"\n\nfunc TestTax(t *testing.T) {\n\tif Tax(1) != 2 {\n\t\tt.Error("no")\n\t}\n}\n'
    },
    "rust": {
        "tests/tax.rs": "use till::money::tax;\n\n#[test]\nfn taxes() {\n    assert_eq!(tax(1.0), 2.0);\n}\n"
    },
}
"""Tests of what is not there yet: the runner can build none of them, and tells none by name."""


@pytest.mark.parametrize(
    "till", [t for t in TILLS if t.name in UNBUILT], ids=lambda till: till.name, indirect=True
)
def test_a_test_that_does_not_build_is_not_mended_by_its_end(till: Till, project: Path) -> None:
    """Not in the run that removed it, and not in the next."""
    for path, text in {**till.fixed, **UNBUILT[till.name]}.items():
        (project / path).write_text(text or "")
    (path,) = UNBUILT[till.name]
    for execution in (1, 2):
        changes: Files = {path: None} if execution == 1 else {"NOTES.md": "all done\n"}
        outcome, _ = run(project, till.check, changes, max_attempts=1)
        assert outcome.status == "failed", outcome
        last = attempts_of(project, outcome)[-1]
        assert f"{path} was failing and is now gone" in (last.error or "")


def test_an_agent_that_goes_to_and_fro_is_stopped(till: Till, project: Path) -> None:
    """A-B-A-B: both failures come back, a sign binds, another strategy is tried, then a person asked."""
    a, b = till.wrong
    outcome, agent = run(project, till.check, a, b, a, b, a, b, max_attempts=9)
    assert outcome.status in {"escalated", "failed"}, outcome
    assert outcome.attempts <= 5
    assert "\n# Signs: binding" in agent.briefings[-1]
    answers = [attempt.strategy_used for attempt in attempts_of(project, outcome)]
    assert len(set(filter(None, answers))) > 1, "never the same strategy all the way"


def test_a_claim_without_a_change_is_no_success(till: Till, project: Path) -> None:
    outcome, _ = run(project, till.check, {})
    assert outcome.status != "success", outcome
    assert all(attempt.result == "failed" for attempt in attempts_of(project, outcome))


def test_what_lies_outside_of_the_project_is_not_written(
    till: Till, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = ScriptedAgent(
        [
            {"../outside.txt": "mine\n"},
            {".git/hooks/pre-commit": "#!/bin/sh\n"},
            {".loki/config.toml": "[loop]\nmax_retries = 99\n"},
            dict(till.fixed),
        ]
    )
    with caplog.at_level(logging.WARNING):
        outcome = loki.run(
            "mend the total", agent=agent, checks=[till.check], path=str(project), max_attempts=6
        )
    assert not (project.parent / "outside.txt").exists()
    assert not (project / ".git").exists()
    assert not (project / ".loki" / "config.toml").exists()
    first = attempts_of(project, outcome)[0]
    assert first.phase == "validate"
    assert "../outside.txt" in (first.error or "")
