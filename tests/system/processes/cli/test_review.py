"""``loki review`` as a person and as a script meets it: with processes."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from loki.memory.attempt import Attempt, History
from loki.memory.dead_letter import DeadLetter
from loki.memory.dead_letter_log import DeadLetterLog
from loki.memory.learning.candidate import Candidate, Candidates, Source
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet
from loki.stores.file_store import FileStore
from support.command import LOKI

AT = "2026-04-04T10:15:30.000Z"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a candidate for a pattern, drawn from dead letters, and one for a rule."""
    store = FileStore(tmp_path / ".loki")
    for n in (1, 2, 3):
        failure = Failure.of(f"FROB-ERR flange {n} misaligned: sprocket drift {n}", path="a.py")
        attempt = Attempt(1, AT, "x", "failed", error=failure.message, failure=failure.to_dict())
        History(store, f"task-{n}").append(attempt)
        letter = DeadLetter.of(
            f"task-{n}", "Do it", [attempt], failure, "unrecoverable_error", AT, {}
        )
        page = f"tasks/task-{n}/dead-letter-{n}.md"
        DeadLetterLog(store, PatternSet.default()).add(letter, [attempt], page)
    rule = Candidate.rule("Never edit gen/ by hand.", [Source("task-9", "gen/ came back")], AT)
    Candidates(store).propose(rule)
    return tmp_path


def ids(project: Path) -> dict[str, str]:
    found = Candidates(FileStore(project / ".loki")).open()
    return {candidate.kind: candidate.id for candidate in found}


def on_terminal(project: Path, answers: str) -> str:
    """What a person sees who gives these answers."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [*LOKI, "review", "--by", "ada"],
        cwd=project,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        close_fds=True,
    )
    os.close(theirs)
    os.write(ours, answers.encode())
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait(timeout=60) == 0, seen.decode()
    return seen.decode()


def test_a_person_is_asked_one_by_one(project: Path) -> None:
    seen = on_terminal(project, "x\na\nr\nthat folder is gone\n")
    assert "Say a, r, d, s or q." in seen
    assert "approved pattern-" in seen
    assert "rejected rule-" in seen
    assert ids(project) == {}
    assert (project / ".loki/learned-patterns.yml").exists()


def test_a_person_may_skip_defer_and_stop(project: Path) -> None:
    assert "put off once" in on_terminal(project, "s\nd\n")
    assert len(ids(project)) == 2
    seen = on_terminal(project, "q\n")
    assert "2 of 2" not in seen
    assert len(ids(project)) == 2


def test_a_person_goes_on_where_a_pattern_cannot_be_learned(project: Path) -> None:
    page = next((project / ".loki/memory/candidates").glob("candidate-pattern-*.md"))
    page.write_text(page.read_text().replace("id: misaligned-sprocket-drift", "id: lint-error"))
    seen = on_terminal(project, "a\nd\ns\n")
    assert "found another pattern 'lint-error'" in seen
    assert "deferred pattern-" in seen
    assert "2 of 2" in seen
