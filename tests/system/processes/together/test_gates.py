"""Gates in a run: what they find is mended before a byte of the project changes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import loki
from loki.action.gates import syntax_check
from loki.agents.scripted import ScriptedAgent

CHECK = "grep -q done pkg/answer.py"
RIGHT = "from .helper import help\n\ndone = help\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "__init__.py").touch()
    (root / "pkg" / "helper.py").write_text("def help(): ...\n")
    (root / "pkg" / "answer.py").touch()
    return root


def run(root: Path, agent: ScriptedAgent, complexity: str = "medium") -> loki.Outcome:
    workspace = loki.Workspace(root)
    outcome = loki.run("answer", agent=agent, checks=[CHECK], path=str(root), complexity=complexity)
    assert workspace.tasks() == [outcome.task_id]
    return outcome


def test_what_a_change_does_outside_of_its_task_is_pointed_out(shop: Path) -> None:
    told: list[str] = []

    def agent(briefing: loki.Briefing) -> dict[str, str]:
        told.append(str(briefing))
        return {"pkg/answer.py": RIGHT, "billing.py": "TAX = 0.2\n"}

    outcome = loki.run("answer", agent=agent, checks=[CHECK], path=str(shop), scope=["pkg/"])
    assert outcome.status == "success"
    assert "It is about these files" in told[0]
    (attempt,) = loki.Workspace(shop).history(outcome.task_id).attempts()
    assert attempt.validation is not None
    (violation,) = attempt.validation["violations"]
    assert (violation["file"], violation["severity"]) == ("billing.py", "advisory")
    assert "scope creep" in violation["description"]


def test_a_broken_import_never_reaches_the_project(shop: Path) -> None:
    seen: list[str] = []

    def mend(briefing: loki.Briefing) -> dict[str, str | bytes | None]:
        seen.append((shop / "pkg" / "answer.py").read_text())
        seen.append(briefing.text)
        return {"pkg/answer.py": RIGHT}

    outcome = run(shop, ScriptedAgent([{"pkg/answer.py": RIGHT.replace("helper", "helpr")}, mend]))
    assert (outcome.status, outcome.attempts) == ("success", 2)
    before, briefing = seen
    assert before == ""
    assert "cannot find '.helpr'" in briefing
    assert "did you mean pkg/helper.py?" in briefing
    first, second = loki.Workspace(shop).history(outcome.task_id).attempts()
    assert first.validation is not None
    assert second.validation is not None
    assert first.pattern_matched == "import-not-found"
    assert first.validation["gates"] == [
        "change_check", "syntax_check", "import_check", "schema_check", "self_review",
    ]  # fmt: skip
    assert set(first.validation["durations_ms"]) == set(first.validation["gates"])
    assert (first.validation["passed"], second.validation["passed"]) == (False, True)


def test_low_complexity_does_not_look_at_imports(shop: Path) -> None:
    text = RIGHT.replace("helper", "helpr")
    outcome = run(shop, ScriptedAgent([{"pkg/answer.py": text}]), complexity="low")
    assert (outcome.status, outcome.attempts) == ("success", 1)


def test_a_projects_own_file_has_its_way(shop: Path) -> None:
    (shop / ".loki").mkdir()
    (shop / ".loki" / "verification-gates.yml").write_text(
        "version: 1\nextends: global\ngates: {import_check: {severity: advisory}}\n"
    )
    outcome = run(shop, ScriptedAgent([{"pkg/answer.py": RIGHT.replace("helper", "helpr")}]))
    assert (outcome.status, outcome.attempts) == ("success", 1)
    (attempt,) = loki.Workspace(shop).history(outcome.task_id).attempts()
    assert attempt.validation is not None
    assert "cannot find '.helpr'" in attempt.validation["violations"][0]["description"]


def test_what_could_not_be_looked_at_is_said_once_a_run_and_kept_in_each_attempt(
    shop: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(syntax_check, "parse", lambda _grammar, _content: None)
    monkeypatch.setattr(syntax_check, "find_program", lambda _name, _root: None)
    agent = ScriptedAgent(
        [{"a.rs": "fn a() {}\n"}, {"b.rs": "fn b() {}\n", "pkg/answer.py": RIGHT}]
    )
    with caplog.at_level(logging.WARNING, "loki"):
        outcome = run(shop, agent)
    told = [r.getMessage() for r in caplog.records if "Rust is not checked" in r.getMessage()]
    assert len(told) == 1
    assert "pip install 'loki-core[gates]'" in told[0]
    attempts = loki.Workspace(shop).history(outcome.task_id).attempts()
    kept = [a.validation["warnings"] for a in attempts if a.validation]
    assert [len(warnings) for warnings in kept] == [1, 1]
