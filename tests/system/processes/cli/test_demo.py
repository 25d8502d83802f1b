"""The demo shows what it promises, by way of the loop that everybody else uses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import loki


@pytest.fixture(scope="module")
def demo(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[str, list[dict[str, object]]], str]:
    folder = tmp_path_factory.mktemp("demo") / "till"
    code, out, err = loki("demo", "--json", "--directory", str(folder))
    assert code == 0, err
    return folder, json.loads(out), err


def test_every_task_ends_as_it_should(
    demo: tuple[Path, dict[str, list[dict[str, object]]], str],
) -> None:
    _, data, _ = demo
    assert [(task["status"], task["attempts"]) for task in data["tasks"]] == [
        ("success", 2),
        ("success", 3),
        ("success", 2),
        ("success", 2),
        ("escalated", 1),
        ("failed", 2),
    ]


def test_one_sees_what_it_promises(
    demo: tuple[Path, dict[str, list[dict[str, object]]], str],
) -> None:
    folder, _, log = demo
    for part in (
        "pattern=type-error strategy=context_expand result=failed",
        "sign seen=2",
        "strategy=auto_fix",
        "validation=failed",
        "status=escalated",
        "dead_letter reason=retry_budget_exhausted",
    ):
        assert part in log
    kept = folder / ".loki"
    assert list(kept.glob("escalations/*.md"))
    assert list(kept.glob("tasks/*/dead-letter-*.md"))
    assert list(kept.glob("run/*/anti-repeat.md"))
    assert not (folder.parent / "till-notes.txt").exists()


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    code, _, err = loki("demo", "--directory", str(tmp_path))
    assert code == 2
    assert "expected a new or an empty folder" in err
