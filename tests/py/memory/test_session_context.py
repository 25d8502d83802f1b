"""Ledgers and handoffs: as loki writes them, and as others do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from loki.memory import session_context
from loki.memory.attempt import Attempt
from loki.memory.session_context import (
    KEPT,
    Handoff,
    Ledger,
    SessionContext,
    TaskProgress,
    is_for,
    read,
)
from loki.stores.file_store import FileStore
from support.hostile import HOSTILE


def made(**fields: Any) -> Ledger:
    return session_context.ledger_of(
        "t1",
        "fix it",
        TaskProgress.of([Attempt(1, "2026-04-04T12:00:00Z", "a try", "failed", "E1")]),
        **fields,
    )


def test_hostile_texts_stay_data() -> None:
    text = session_context.render_ledger(
        Ledger("t1", HOSTILE, reason=HOSTILE, said=[HOSTILE], next_step=HOSTILE)
    )
    text += session_context.render_handoff(
        Handoff("t1", HOSTILE, "", HOSTILE, HOSTILE, [HOSTILE], HOSTILE, HOSTILE)
    )
    body = text.replace("---", "")
    parsed = MarkdownIt().parse(body)
    tokens = [token for token in parsed if token.type == "heading_open"]
    headings = [parsed[parsed.index(token) + 1].content for token in tokens]
    assert headings == ["Ledger", "Goal", "State", "What people said", "Next step", "Handoff"]
    assert not [token for token in parsed if token.type.startswith("html")]


def test_the_ledger_and_recent_handoffs_are_loaded(tmp_path: Path) -> None:
    session_context = SessionContext(FileStore(tmp_path), "t1")
    assert session_context.load() == ""
    for hour in range(3):
        session_context.keep(
            made(), Handoff("t1", "fix it", f"2026-04-04T1{hour}:00:00Z", f"why {hour}")
        )
    told = session_context.load()
    assert told.index("# Ledger") < told.index("why 1") < told.index("why 2")
    assert "why 0" not in told
    session_context.keep_ledger(made(state="success"))
    assert "# Ledger" not in session_context.load()


def test_old_handoffs_of_a_task_go(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for number in range(KEPT + 3):
        at = f"2026-04-{number + 1:02}T12:00:00Z"
        SessionContext(store, "t1").keep(made(), Handoff("t1", "fix it", at, "x"))
    names = store.keys(session_context.HANDOFFS)
    assert len(names) == KEPT
    assert "20260401" not in names[0]


@pytest.mark.parametrize(
    ("text", "task", "expected"),
    [
        ("# Plain\n\nno head", "", "# Plain\n\nno head"),
        ("---\ntask_id: t1\n---\n\nbody", "t1", "body"),
        ("---\ntask: 7\n---\nbody", "7", "body"),
        ("---\n- a list\n---\nbody", "", "---\n- a list\n---\nbody"),
        ("---\nbroken: [\n---\nbody", "", "---\nbroken: [\n---\nbody"),
        ("\ufeff# With a mark", "", "# With a mark"),
    ],
)
def test_what_others_wrote_is_read_in_any_form(text: str, task: str, expected: str) -> None:
    note = read("memory/handoffs/x.md", text)
    assert note is not None
    assert (note.task_id, note.text) == (task, expected)


def test_notes_of_other_tasks_are_not_for_this_one(tmp_path: Path) -> None:
    assert read("memory/ledgers/x.md", "  \n") is None
    general = read("memory/ledgers/notes.md", "for all")
    other = read("memory/ledgers/x.md", "---\ntask_id: t2\n---\nfor t2")
    assert general is not None
    assert other is not None
    assert is_for(general, "t1")
    assert not is_for(other, "t1")
    folder = tmp_path / "memory" / "ledgers"
    folder.mkdir(parents=True)
    (folder / "CONTINUITY.md").write_text("for all")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "torn.md").write_bytes(b"\xff\xfe not utf-8")
    assert "for all" in SessionContext(FileStore(tmp_path), "t1").load()


def test_a_long_page_is_cut(tmp_path: Path) -> None:
    folder = tmp_path / "memory" / "handoffs"
    folder.mkdir(parents=True)
    (folder / "x.md").write_text("word " * 100_000)
    assert len(SessionContext(FileStore(tmp_path), "t1").load()) < 2_000
