"""Work that touches the test that failed, or what judges it, is seen by somebody before it counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.agent_protocol import ReviewRequest, Verdict
from loki.jobs.inbox import inbox
from loki.jobs.inbox.inbox import requests
from loki.jobs.inbox.request_kind import Said
from loki.testing import ScriptedAgent
from support.project import CHECK, QUICK, RIGHT, WRONG, make_project

TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
PATH = "tests/test_calc.py"
STRONG = "from calc import add\n\nassert add(2, 3) == 5, add(2, 3)\n"
WEAKER = "from calc import add\n\nassert add(2, 3) != 0\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "p")


def work(project: Path, *changes: Any, **options: Any) -> loki.Outcome:
    said: dict[str, Any] = {"checks": [QUICK], "id": "t", "complexity": "low", **options}
    with loki.Workspace(project).task("make add add", **said) as task:
        return task.run(ScriptedAgent(changes))


@pytest.mark.parametrize(
    "change",
    [
        {PATH: TEST.replace("== 5", "is not None")},
        {"tests/conftest.py": "import calc\n\ncalc.add = lambda a, b: a + b\n"},
    ],
)
def test_a_person_sees_it_first(project: Path, change: dict[str, str]) -> None:
    outcome = work(project, change, checks=[CHECK])
    assert (outcome.status, outcome.trigger) == ("escalated", "approval")
    assert outcome.awaiting == ("changed_tests",)
    page = (project / ".loki" / str(outcome.page)).read_text()
    assert "the work touches tests/" in page
    (one,) = requests(loki.Workspace(project))
    assert next(iter(change)) in one.question


def test_an_honest_change_is_nobodys_concern(project: Path) -> None:
    more = TEST + "\n\ndef test_zero():\n    assert add(0, 0) == 0\n"
    assert work(project, {"calc.py": RIGHT, PATH: more}, checks=[CHECK]).status == "success"


def test_a_persons_yes_is_of_exactly_this_change(project: Path) -> None:
    assert work(project, {"check.py": WEAKER, "calc.py": RIGHT}).awaiting == ("changed_tests",)
    workspace = loki.Workspace(project)
    (one,) = requests(workspace)
    inbox.approve(workspace, one, Said("ann"))
    with loki.Workspace(project).resume("t") as task:
        outcome = task.run(ScriptedAgent([]))
    assert (outcome.status, outcome.attempts) == ("success", 1)


def test_a_persons_no_is_told_to_the_agent(project: Path) -> None:
    work(project, {"check.py": WEAKER})
    workspace = loki.Workspace(project)
    (one,) = requests(workspace)
    inbox.reject(workspace, one, Said("ann", "mend add instead"))
    agent = ScriptedAgent([{"calc.py": RIGHT, "check.py": STRONG}])
    with loki.Workspace(project).resume("t") as task:
        outcome = task.run(agent)
    assert "mend add instead" in agent.briefings[0].text
    assert outcome.status == "success"


class Reviewer:
    """Says no to what the tests were made to say."""

    name = "strict"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def review(self, request: ReviewRequest) -> Verdict:
        self.asked.append(request.criterion.description)
        return Verdict("!= 0" not in request.diff, "the test asks for five")


def test_a_reviewer_is_asked_where_there_is_one(project: Path) -> None:
    reviewer = Reviewer()
    changes = [{"check.py": WEAKER}, {"check.py": STRONG, "calc.py": RIGHT}]
    outcome = work(project, *changes, reviewer=reviewer, complexity="medium")
    assert (outcome.status, outcome.attempts) == ("success", 2)
    assert len(reviewer.asked) == 1  # of the second change there is nothing to ask
    assert "check.py (what a check runs)" in reviewer.asked[0]


def test_edits_of_a_caller_who_works_by_himself_are_seen_too(project: Path) -> None:
    with loki.Workspace(project).task("make add add", checks=[QUICK], id="t") as task:
        for attempt in task.attempts():
            (project / "check.py").write_text(WEAKER)
            attempt.evaluate()
    assert task.outcome is not None
    assert task.outcome.awaiting == ("changed_tests",)


def test_what_an_earlier_run_saw_failing_counts(project: Path) -> None:
    assert work(project, {"calc.py": WRONG + "# tried\n"}, max_attempts=1).status == "failed"
    assert work(project, {"check.py": WEAKER}).awaiting == ("changed_tests",)


def test_a_project_may_want_nobody_to_look(project: Path) -> None:
    (project / ".loki").mkdir()
    (project / ".loki/config.toml").write_text("[review]\nchanged_tests = false\n")
    assert work(project, {"check.py": WEAKER}).status == "success"
