"""Nothing is a success without evidence, however it is claimed, and whatever the evidence is made to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loki
from support.project import make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


def test_a_claim_without_any_check_is_unverified(project: Path) -> None:
    with loki.Workspace(project).task("make it nicer", kind="refactor") as task:
        for attempt in task.attempts():
            attempt.report(ok=True)
    assert task.outcome is not None
    assert task.outcome.status == "unverified"


def test_an_agent_without_any_check_is_not_asked(project: Path) -> None:
    asked: list[Any] = []
    with (
        loki.Workspace(project).task("make it nicer", kind="refactor") as task,
        pytest.raises(loki.UsageError, match="check"),
    ):
        task.run(asked.append)
    assert not asked
