"""Honest work in the whole loop: claims decide nothing, are answered, and are kept for people."""

from __future__ import annotations

from pathlib import Path

import loki
from loki.base import yaml_text
from support.project import RIGHT, make_project


def test_without_a_check_a_claim_is_unverified(tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    with loki.Workspace(root).task("make add add") as task:
        for attempt in task.attempts():
            (root / "calc.py").write_text(RIGHT)
            attempt.report(ok=True, description="All tests pass.")
    assert task.outcome is not None
    assert task.outcome.status == "unverified"


def test_a_page_holds_the_newest_findings_only(tmp_path: Path) -> None:
    from loki.action.loop.recorder import FOLDER, MOST, episodic_document
    from loki.memory.attempt import Attempt
    from loki.stores.file_store import FileStore

    store = FileStore(tmp_path)
    for number in range(1, MOST + 20):
        found = {"id": "hedging", "quote": f"probably {number}\n---\n# x"}
        episodic_document(
            store,
            "t",
            "a # title",
            Attempt(number, "2026-01-01T00:00:00Z", "", "failed", findings=(found,)),
        )
    text = store.read(f"{FOLDER}rationalizations-t.md") or ""
    fields, body = yaml_text.parse(text)
    assert [one["attempt"] for one in fields["findings"]] == list(range(20, MOST + 20))
    assert body.count("\n## ") == MOST
