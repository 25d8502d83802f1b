"""The four worked examples of the closed loop, with real tools in real projects; agents are scripted.

The third and the fourth end as the order of the rules has it: retries are looked at before strategies.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.testing import ScriptedAgent
from support.strategy import write
from support.toolchain import need

RUFF = f"{sys.executable} -m ruff check ."
MYPY = f"{sys.executable} -m mypy --cache-dir=/dev/null client.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def attempts(project: Path, task: str) -> list[dict[str, Any]]:
    return [a.to_dict() for a in loki.Workspace(project).history(task).attempts()]


def test_1_a_lint_error_is_fixed_and_nothing_more_is_to_change(project: Path) -> None:
    agent = ScriptedAgent([{"button.py": "import os\nimport sys\n\nprint(sys.argv)\n"}])
    outcome = loki.run(
        "Add a click handler", agent=agent, checks=[RUFF], path=str(project), kind="refactor"
    )
    assert (outcome.status, outcome.attempts, outcome.files) == ("success", 2, ("button.py",))
    first, second = attempts(project, outcome.task_id)
    assert (first["pattern_matched"], first["strategy_used"]) == ("lint-error", "auto_fix")
    assert second["action"] == "nothing more to change"
    assert "the check passes now" in str(agent.briefings[1])
    assert "import os" not in (project / "button.py").read_text()
    loki.Workspace(project).journal(outcome.task_id).undo()
    assert not (project / "button.py").exists()


def test_2_a_type_error_is_fixed_with_the_type_in_view(project: Path) -> None:
    write(
        project,
        api_dot_py="class Session:\n    def __init__(self) -> None:\n        self.owner = 'me'\n",
        client_dot_py="from api import Session\n\n\ndef user(session: Session) -> str:\n    return ''\n",
    )

    def use(attribute: str) -> dict[str, str]:
        text = (project / "client.py").read_text()
        return {"client.py": text.replace("return ''", f"return session.{attribute}")
                .replace("session.user", f"session.{attribute}")}  # fmt: skip

    def second(briefing: loki.Briefing) -> dict[str, str]:
        assert "self.owner = 'me'" in str(briefing), "the type's definition is in the briefing"
        return use("owner")

    agent = ScriptedAgent([lambda _: use("user"), second])
    outcome = loki.run(
        "Return the user", agent=agent, checks=[MYPY], path=str(project), kind="refactor"
    )
    assert (outcome.status, outcome.attempts) == ("success", 2)
    first, _ = attempts(project, outcome.task_id)
    assert (first["pattern_matched"], first["strategy_used"]) == ("type-error", "context_expand")


def build_agent() -> ScriptedAgent:
    """Another wrong answer each time; what fails stays the same."""
    return ScriptedAgent([{"notes.txt": f"try {number}\n"} for number in range(9)])


def failing_build(project: Path) -> None:
    need("cc")
    write(project, app_dot_c="int total(int x);\nint main(void) { return total(1); }\n")


def test_3_the_same_build_error_without_another_strategy_is_for_a_person(project: Path) -> None:
    failing_build(project)
    (project / ".loki").mkdir()
    (project / ".loki/failure-patterns.yml").write_text(
        "version: 2\nextends: default\npatterns:\n"
        "  - {id: no-symbol, kind: build-error, description: a symbol is missing,\n"
        "     strategy: analyze_then_fix, alternatives: [],\n"
        "     signals: [{literal: undefined reference, w: 1.0}]}\n"
    )
    outcome = loki.run(
        "Fix the build",
        agent=build_agent(),
        checks=["cc app.c -o app"],
        path=str(project),
        max_attempts=3,
    )
    assert (outcome.status, outcome.attempts, outcome.exit_code) == ("escalated", 2, 3)
    assert outcome.reason == (
        "the same failure again, and no strategy is left (tried: analyze_then_fix)"
    )
    assert outcome.page is not None
    page = (project / ".loki" / outcome.page).read_text()
    assert "`analyze_then_fix` answered attempt 1; attempt 2 failed in the same way." in page
    assert "by hand from a clean tree, and read its first error" in page


def test_3_with_another_strategy_it_goes_on_until_retries_are_spent(project: Path) -> None:
    failing_build(project)
    outcome = loki.run(
        "Fix the build",
        agent=build_agent(),
        checks=["cc app.c -o app"],
        path=str(project),
        max_attempts=3,
    )
    assert (outcome.status, outcome.attempts, outcome.exit_code) == ("failed", 3, 4)
    answers = [a["strategy_used"] for a in attempts(project, outcome.task_id)]
    assert answers == ["analyze_then_fix", "context_expand", None]


def test_4_a_type_error_that_stays_ends_as_a_dead_letter(project: Path) -> None:
    write(project, client_dot_py="def user() -> int:\n    return 'me'\n")
    answers = [
        {"client.py": f"# {number}\ndef user() -> int:\n    return 'me'\n"} for number in range(3)
    ]
    outcome = loki.run(
        "Refactor the client",
        agent=ScriptedAgent(answers),
        checks=[MYPY],
        path=str(project),
        kind="refactor",
        max_attempts=3,
    )
    assert (outcome.status, outcome.attempts, outcome.pattern) == ("failed", 3, "type-error")
    assert outcome.trigger == "retry_budget_exhausted"
    used = [a["strategy_used"] for a in attempts(project, outcome.task_id)]
    assert used == ["context_expand", "analyze_then_fix", None]
    assert outcome.page == f"tasks/{outcome.task_id}/dead-letter-{outcome.task_id}.md"
    page = (project / ".loki" / outcome.page).read_text()
    assert "final_pattern: type-error" in page
    assert "strategies_exhausted" in page


def test_an_install_is_work_and_an_empty_answer_may_follow(project: Path) -> None:
    """What was installed is no file of the project; the check that passes now is still a success."""
    site, bin_ = project.parent / "site", project.parent / "bin"
    bin_.mkdir()
    interpreter = bin_ / "python3"
    interpreter.write_text(
        f'#!/bin/sh\nif [ "$2" = pip ]; then mkdir -p {site}; echo "x = 1" > {site}/nosuchthing.py; '
        f'exit 0; fi\nPYTHONPATH={site} exec {sys.executable} "$@"\n'
    )
    interpreter.chmod(0o755)
    write(
        project,
        app_dot_py="import nosuchthing\n",
        pyproject_dot_toml='[project]\nname = "x"\nversion = "1"\ndependencies = ["nosuchthing"]\n',
    )
    (project / ".loki").mkdir()
    (project / ".loki/config.toml").write_text('[execute]\nallow_commands = ["pip install *"]\n')
    agent = ScriptedAgent([{"notes.txt": "tried\n"}])
    outcome = loki.run(
        "Make it start", agent=agent, checks=[f"{interpreter} app.py"], path=str(project)
    )
    assert (outcome.status, outcome.attempts) == ("success", 2)
    assert "ran `pip install nosuchthing`; the check passes now" in str(agent.briefings[1])
