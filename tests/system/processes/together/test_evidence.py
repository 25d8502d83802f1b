"""Nothing is a success without evidence, however it is claimed, and whatever the evidence is made to say: with processes."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.testing import ScriptedAgent
from support.project import CHECK, RIGHT, make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


def errors(project: Path) -> list[str | None]:
    workspace = loki.Workspace(project)
    (task,) = workspace.tasks()
    return [attempt.error for attempt in workspace.history(task).attempts()]


def test_a_claim_of_success_is_checked(project: Path) -> None:
    with loki.Workspace(project).task("make add add", checks=[CHECK], max_attempts=1) as task:
        for attempt in task.attempts():
            (project / "calc.py").write_text("def add(a, b):\n    return a - b - 7\n")
            attempt.report(ok=True, description="it works, I am sure")
    assert task.outcome is not None
    assert task.outcome.status == "failed"


def test_a_proposal_without_any_check_is_unverified(project: Path) -> None:
    with loki.Workspace(project).task("make it nicer", kind="refactor") as task:
        for attempt in task.attempts():
            attempt.propose({"calc.py": RIGHT})
    assert task.outcome is not None
    assert (task.outcome.status, task.outcome.files) == ("unverified", ("calc.py",))


@pytest.mark.parametrize(
    "change",
    [
        {"Makefile": f"check:\n\t{CHECK} || true\n"},
        {"Makefile": "check:\n\ttrue\n"},
        {"conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"},
        {"conftest.py": "import os\n\n\ndef pytest_configure():\n    os._exit(0)\n"},
        {"conftest.py": "collect_ignore = ['tests/test_calc.py']\n"},
        {"pytest.ini": "[pytest]\naddopts = -k 'not test_add'\npythonpath = .\n"},
    ],
)
def test_a_check_that_is_made_content_is_no_fix(project: Path, change: dict[str, str]) -> None:
    (project / "Makefile").write_text(f"check:\n\t{CHECK}\n")
    (project / "tests/test_other.py").write_text("def test_other():\n    assert True\n")
    outcome = loki.run(
        "make add add",
        agent=ScriptedAgent([change]),
        checks=["make check"],
        path=str(project),
        max_attempts=1,
    )
    assert outcome.status == "failed", outcome
    assert "test_add" in str(errors(project)[0])


def test_a_deleted_test_is_no_fix(project: Path) -> None:
    agent = ScriptedAgent(
        [
            {"tests/test_calc.py": "def test_other():\n    pass\n"},
            {
                "tests/test_calc.py": "import pytest\n\n\n@pytest.mark.skip\ndef test_add():\n    pass\n"
            },
        ]
    )
    outcome = loki.run(
        "make add add",
        agent=agent,
        checks=[CHECK],
        path=str(project),
        max_attempts=2,
        complexity="low",
    )
    assert outcome.status == "failed"
    first, second = map(str, errors(project))
    assert "is now gone" in first
    assert "is now skipped" in second
