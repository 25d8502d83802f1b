"""Files of ``.loki/`` that a person or another program broke: every face speaks plainly, nothing is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import loki
from fuzz.state import project as fuzzed
from fuzz.state.trial import Trials
from loki import analysis
from loki.cli.app import app
from support.project import QUICK, RIGHT, make_project

LOOKS, ACTS = 220, 20
"""Of faces that only look, and of those that go on; `make fuzz-state` has tens of thousands."""

SLOW = ("up", "tests", "drain", "stop")
"""Acts that wait for a while, and are left to it."""


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    here = Path.cwd()
    root = tmp_path_factory.mktemp("worked") / "project"
    fuzzed.make(root, quick=True)
    yield root
    os.chdir(here)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_damaged_states_through_all_faces(worked: Path, tmp_path: Path) -> None:
    trials = Trials(worked, tmp_path / "place", leave=SLOW)
    for seed, share, inputs in ((1, 0.0, LOOKS), (2, 1.0, ACTS)):
        trials.share = share
        found = trials.run(seed, inputs)
        assert [f"{one.what}: {one.face}, {one.path}: {one.told}" for one in found] == []


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = make_project(tmp_path / "project")
    monkeypatch.chdir(project)
    return project


def says(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def change(path: Path, how: Callable[[Any], None]) -> None:
    data = json.loads(path.read_text())
    how(data)
    path.write_text(json.dumps(data))


def failed(project: Path) -> str:
    outcome = loki.run(
        "mend it",
        path=str(project),
        agent=lambda _: {"a.py": "x = 1\n"},
        checks=[QUICK],
        max_attempts=1,
    )
    assert outcome.status == "failed"
    return outcome.task_id


@pytest.mark.parametrize("targets", [["a.py", 1.5], 7, None, {"a.py": 1}, [["a.py"]]])
def test_a_baseline_with_something_else_among_its_texts(project: Path, targets: object) -> None:
    task = failed(project)
    path = project / ".loki" / "tasks" / task / "baseline.json"
    change(path, lambda data: data.update(targets=targets))
    damaged = path.read_bytes()
    with loki.Workspace(project).resume(task) as again:
        assert again.run(lambda _: {"calc.py": RIGHT}).status == "success"
    aside = project / ".loki" / "set-aside" / "tasks" / task
    assert [one.read_bytes() for one in aside.iterdir()] == [damaged]


@pytest.mark.parametrize("said", [5, [5], [{"at": 5}], [{"at": "x"}], {"at": 1}, [None], [[]]])
def test_interventions_of_another_form(project: Path, said: object) -> None:
    task = failed(project)
    change(
        project / ".loki" / "tasks" / task / "task.json",
        lambda data: data.update(interventions=said),
    )
    with loki.Workspace(project).resume(task) as again:
        assert again.run(lambda _: {"calc.py": RIGHT}).status == "success"
    assert says("show", task)[0] == 0


@pytest.mark.parametrize("name", ["checks", "budget", "max_retries", "scope"])
def test_a_task_whose_aim_is_damaged_is_not_gone_on_with(project: Path, name: str) -> None:
    """Fewer checks, or a budget that is gone, would be another task."""
    task = failed(project)
    change(
        project / ".loki" / "tasks" / task / "task.json", lambda data: data.update({name: [["x"]]})
    )
    with pytest.raises(loki.UsageError, match=f"is damaged \\({name}"):
        loki.Workspace(project).resume(task)


def test_a_pipeline_s_record_without_its_run(project: Path) -> None:
    folder = project / ".loki" / "pipelines" / "answer-1"
    folder.mkdir(parents=True)
    (folder / "pipeline.json").write_text('{"status": "success", "stages": [{}]}')
    for words in (["status"], ["pipeline", "show"], ["pipeline", "show", "answer"]):
        code, said = says(*words)
        assert (code in {0, 2}, "Traceback" in said) == (True, False)


def test_half_a_character_in_a_path(project: Path) -> None:
    task = failed(project)
    log = project / ".loki" / "tasks" / task / "attempts.jsonl"
    first, *rest = log.read_text().splitlines()
    data = json.loads(first)
    data["files_modified"] = ["\ud800.py"]
    log.write_text("\n".join([json.dumps(data), *rest]) + "\n")
    for words in (
        ["report"],
        ["report", "-o", "r.md"],
        ["report", "-o", "r.html"],
        ["history"],
        ["show", task],
    ):
        code, said = says(*words)
        assert code == 0, said
    assert says("report", "--json")[0] == 0


@pytest.mark.parametrize("approval", ["x", 5, {"digest": 5, "criteria": [5]}, {"about": []}])
def test_an_approval_of_another_form(project: Path, approval: object) -> None:
    task = failed(project)
    path = project / ".loki" / "tasks" / task / "task.json"
    change(path, lambda data: data.update(approval=approval))
    change(path, lambda data: data["outcome"].update(trigger="approval", status="escalated"))
    for words in (["status"], ["approve"], ["reject"]):
        assert "Traceback" not in says(*words)[1]


@pytest.mark.parametrize("name", ["judged.json", "before.json", "refused.json", "withheld.json"])
@pytest.mark.parametrize(
    "text", ["{", "[]", '{"failed": 5, "tests": {"x": 5}, "change": {"edits": 5}}']
)
def test_what_is_kept_beside_a_task_is_damaged(project: Path, name: str, text: str) -> None:
    task = failed(project)
    path = project / ".loki" / "tasks" / task / name
    path.write_text(text)
    with loki.Workspace(project).resume(task) as again:
        assert again.run(lambda _: {"calc.py": RIGHT}).status == "success"
    aside = project / ".loki" / "set-aside" / "tasks" / task
    kept = [path] if path.exists() else []
    kept += [one for one in aside.iterdir() if one.name.startswith(name)] if aside.exists() else []
    assert text in {one.read_text() for one in kept}


def test_a_landing_that_names_no_task(project: Path) -> None:
    failed(project)
    (project / ".loki" / "landing.json").write_text("[" * 9_000)
    says("submit", "--task", "t", "--id", "t", "--check", "true", "--agent-command", "true")
    assert "Traceback" not in says("work")[1]
    (kept,) = (project / ".loki" / "set-aside").glob("landing.json-*")
    assert kept.read_text() == "[" * 9_000
    assert not (project / ".loki" / "landing.json").exists()


@pytest.mark.parametrize("after", [["OPEN"], {"a": 1}, None, 5])
def test_a_transition_of_a_breaker_to_something_else(project: Path, after: object) -> None:
    at = "2026-04-04T12:00:00Z"
    files: dict[str, dict[str, Any]] = {
        "logs/breaker-transitions.jsonl": {"at": at, "breaker": "b", "after": after},
        "state/circuit-breakers.json": {"b": {"state": after, "last_state_change": at}},
    }
    for name, data in files.items():
        path = project / ".loki" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data) + "\n")
    assert analysis.history(project)["transitions"].num_rows == 0


@pytest.mark.parametrize("name", ["gates", "violations", "warnings"])
@pytest.mark.parametrize("value", [1.5, "x", {"a": 1}, True])
def test_a_validation_of_another_form(project: Path, name: str, value: object) -> None:
    task = failed(project)
    log = project / ".loki" / "tasks" / task / "attempts.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    records[0]["validation"] = {
        "passed": True,
        "gates": [],
        "violations": [],
        "warnings": [],
        name: value,
    }
    log.write_text("".join(json.dumps(one) + "\n" for one in records))
    for words in (["show", task], ["history"], ["report"]):
        assert says(*words)[0] == 0
