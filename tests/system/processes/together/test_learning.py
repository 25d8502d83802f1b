"""From three tasks that nobody understood to a pattern that a person approved, by real runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import loki
from loki.base.yaml_text import parse
from loki.testing import ManualClock

CHECK = f"{sys.executable} check.py"
TOOL = """\
import pathlib, re, sys
value = int(pathlib.Path("part.py").read_text())
print("Frobnicator 7.1")
print(f"part.py:1: FROB-ERR flange {value} is misaligned against sprocket {value + 1}")
sys.exit(1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "check.py").write_text(TOOL)
    (tmp_path / "part.py").write_text("1")
    return tmp_path


def run(project: Path, number: int) -> loki.Outcome:
    workspace = loki.Workspace(project, clock=ManualClock())
    turns = iter(range(number * 10, 10**6))
    with workspace.task(f"align part {number}", checks=[CHECK], max_attempts=2) as task:
        return task.run(lambda _: {"part.py": str(next(turns))})


def page_of(project: Path, outcome: loki.Outcome) -> str:
    assert outcome.page is not None
    return (project / ".loki" / outcome.page).read_text()


def test_what_failed_three_times_in_a_new_way_can_be_learned(project: Path) -> None:
    first, second, third = (run(project, number) for number in (1, 2, 3))
    assert {first.status, second.status, third.status} == {"failed"}
    assert "## Smart suggestions" not in page_of(project, first)
    assert parse(page_of(project, second))[0]["similar_failures"] == 1
    page = page_of(project, third)
    assert "- `part.py` (modified)" in page
    assert "`part.py`, line 1 (named in 3 of 3)" in page
    assert "All name `part.py`." in page

    workspace = loki.Workspace(project)
    review = workspace.review()
    (candidate,) = review.agenda(workspace.clock.now()).candidates
    assert candidate.document in page
    tasks = [record.task_id for record in review.would_match(candidate)]
    assert tasks == [first.task_id, second.task_id, third.task_id]
    review.approve(candidate.id, "ada", workspace.clock.now())

    fourth = run(project, 4)
    assert fourth.pattern == candidate.name
    assert "## Pattern learning candidate" not in page_of(project, fourth)
    assert loki.Workspace(project).review().agenda(workspace.clock.now()).waiting == 0
