"""`loki.analysis.history`: what it opens, and what it says where it cannot: with processes."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki import analysis


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a task that failed twice."""
    workspace = loki.Workspace(tmp_path)
    with workspace.task("try", checks=["false"], max_attempts=2) as task:
        task.run(lambda briefing: {"a.txt": str(briefing.attempt)})
    return tmp_path


def test_a_projects_attempts_failures_and_tasks_are_tables(project: Path) -> None:
    tables = analysis.history(project)
    assert tables.attempts["attempt"].to_pylist() == [1, 2]
    assert set(tables.attempts["result"].to_pylist()) == {"failed"}
    assert tables.failures["sighting"].to_pylist() == [1, 2]
    (task,) = tables.tasks.to_pylist()
    assert (task["status"], task["attempts"], task["failed_attempts"]) == ("failed", 2, 2)
    assert tables.dead_letters.num_rows == 1


def test_the_folder_itself_opens_too(project: Path) -> None:
    assert analysis.history(project / ".loki").attempts.num_rows == 2


def test_a_folder_inside_a_project_is_pointed_to_it(project: Path) -> None:
    (project / "notebooks").mkdir()
    with pytest.raises(loki.UsageError, match="did you mean history"):
        analysis.history(project / "notebooks")


def test_an_unknown_table_is_said_so(project: Path) -> None:
    with pytest.raises(loki.UsageError, match="no table 'atempts': expected one of attempts"):
        analysis.history(project)["atempts"]
