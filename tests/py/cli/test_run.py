"""`loki run`: what it says at the end is what happened, and nothing that a terminal obeys."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import typer

from loki.base.log import log_event
from loki.base.time import SystemClock
from loki.cli.common import log_to_console
from loki.cli.run import report
from loki.memory.learning.candidate import Candidate, Candidates, Source
from loki.memory.task_record import Outcome
from loki.stores.file_store import FileStore


def test_names_of_files_and_reasons_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "a\x1b[2J\u202e\nstatus.py"
    with pytest.raises(typer.Exit):
        report(Outcome("t", "failed", 2, (evil,), None, evil, 10), Path())
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "changed: a [2J status.py\n" in told


def test_log_lines_and_warnings_move_none_either(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_console()
    log_event("t", "strategy auto_fix failed: \x1b[2J", warning=True)
    logging.getLogger("loki").warning("%s: skipped", "a\x1b[2J.jsonl")
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert r"strategy auto_fix failed: \x1b[2J" in told


def test_a_review_that_is_due_is_told_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> str:
        with pytest.raises(typer.Exit):
            report(Outcome("t", "success", 1, (), None, "fine", 10), tmp_path)
        return capsys.readouterr().out

    assert "review:" not in said()
    candidates = Candidates(FileStore(tmp_path / ".loki"))
    rule = candidates.propose(Candidate.rule("Never edit gen/.", [Source("t")], ""))
    assert (
        f"review:  1 candidate waits for you to decide: loki review --project {tmp_path}" in said()
    )
    assert rule is not None
    candidates.defer(rule.id, "ada", SystemClock().now())
    assert "review:" not in said(), "once a week"


def test_a_page_that_could_not_be_written_is_not_pointed_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> str:
        with pytest.raises(typer.Exit):
            report(Outcome("t", "failed", 2, page="tasks/t/dead-letter-t.md"), tmp_path)
        return capsys.readouterr().out

    assert "read:    no page: it could not be written" in said()
    FileStore(tmp_path / ".loki").write("tasks/t/dead-letter-t.md", "# t\n")
    assert f"read:    {tmp_path / '.loki' / 'tasks/t/dead-letter-t.md'}\n" in said()
