"""``loki review`` as a person and as a script meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from loki.memory.attempt import Attempt, History
from loki.memory.dead_letter import DeadLetter
from loki.memory.dead_letter_log import DeadLetterLog
from loki.memory.learning.candidate import Candidate, Candidates, Source
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet
from loki.stores.file_store import FileStore
from support.command import loki

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


def as_json(project: Path, *arguments: str) -> Any:
    code, out, err = loki("review", *arguments, "--json", cwd=project)
    assert code == 0, err
    return json.loads(out)


def test_the_list_tells_what_there_is_to_decide(project: Path) -> None:
    code, out, err = loki("review", cwd=project)
    assert (code, err) == (0, "")
    for part in (
        "2 candidates wait. There was no review yet. A review is due: once a week is usual.",
        f"pattern {ids(project)['pattern']} (1 of 2, since 2026-04-04)",
        "  from    task-3: FROB-ERR flange 3 misaligned: sprocket drift 3",
        "  matches task-1, task-2, task-3",
        "  adds to .loki/learned-patterns.yml:\n    - id: ",
        "      - word: 'misaligned: sprocket drift'",
        f"rule {ids(project)['rule']} (2 of 2, since 2026-04-04)",
        "  rule    Never edit gen/ by hand.",
        "  from    task-9: gen/ came back",
        "Decide with --approve ID, --reject ID --reason TEXT or --defer ID.",
    ):
        assert part in out


def test_nothing_to_decide(tmp_path: Path) -> None:
    assert loki("review", cwd=tmp_path) == (0, "Nothing to decide. There was no review yet.\n", "")
    assert not list(tmp_path.iterdir())


def test_approving_a_pattern_makes_it_known(project: Path) -> None:
    code, out, _ = loki("review", "--approve", ids(project)["pattern"], "--by", "ada", cwd=project)
    assert code == 0
    assert re.search(r"approved pattern-\w+: added [\w-]+ to .*learned-patterns\.yml", out)
    assert "1 more to decide." in out
    text = "src/new.py:7: FROB-ERR flange 77 misaligned: sprocket drift 5"
    code, out, _ = loki("patterns", "test", "--text", text, cwd=project)
    assert code == 0
    assert "sprocket" in out
    code, out, err = loki("patterns", "check", cwd=project)
    assert (code, err) == (0, "")
    assert "fine; 1 pattern, 2 signals, 3 examples checked" in out


def test_approving_a_rule_makes_it_lasting(project: Path) -> None:
    id_ = ids(project)["rule"]
    data = as_json(project, "--approve", id_, "--by", "ada")
    (decided,) = data["decided"]
    assert (decided["status"], decided["decided_by"]) == ("approved", "ada")
    assert (
        (project / f".loki/memory/learned/{id_}.md")
        .read_text()
        .endswith("\nNever edit gen/ by hand.\n")
    )


def test_rejecting_and_deferring_in_one_go(project: Path) -> None:
    known = ids(project)
    data = as_json(
        project, "--reject", known["pattern"], "--reason", "a loose cable", "--defer", "rule"
    )
    assert [(d["id"], d["status"], d["reason"]) for d in data["decided"]] == [
        (known["pattern"], "rejected", "a loose cable"),
        (known["rule"], "deferred", None),
    ]
    assert [c["id"] for c in data["candidates"]] == [known["rule"]]
    assert (data["waiting"], data["is_due"]) == (1, False)
    assert data["last_review"]


def test_the_fourth_deferral_is_pointed_out(project: Path) -> None:
    for _ in range(3):
        _, out, _ = loki("review", "--defer", "rule", cwd=project)
        assert "often" not in out
    _, out, _ = loki("review", "--defer", "rule", cwd=project)
    assert "put off 4 times, which is often: decide it next time" in out
    _, out, _ = loki("review", cwd=project)
    assert "put off 4 times: decide it this time" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--approve", "rule-ffffffff"], "no candidate 'rule-ffffffff': expected one of: "),
        (["--approve", "../../x\x1b[31m"], "no candidate '../../x"),
        (["--reject", "rule"], "--reject needs a --reason"),
        (["--reject", "rule", "--reason", " "], "--reject needs a --reason"),
    ],
)
def test_misuse_is_one_sentence(project: Path, arguments: list[str], message: str) -> None:
    code, out, err = loki("review", *arguments, cwd=project)
    assert (code, out) == (2, "")
    assert message in err
    assert len(ids(project)) == 2


def test_a_file_that_would_not_load_is_left_alone(project: Path) -> None:
    own = project / ".loki/failure-patterns.yml"
    own.write_text("# mine\nversion: 7\n")
    code, _, err = loki("review", "--approve", "pattern", cwd=project)
    assert code == 2
    assert "failure-patterns.yml:2:10: found 7" in err
    assert own.read_text() == "# mine\nversion: 7\n"
    assert len(ids(project)) == 2


def test_texts_that_nobody_checked_move_no_cursor(tmp_path: Path) -> None:
    rule = Candidate.rule("a\x1b[2Jb\u202ec", [Source("t\x1b]0;x\x07", "e\x1b[31m")], AT)
    Candidates(FileStore(tmp_path / ".loki")).propose(rule)
    code, out, _ = loki("review", cwd=tmp_path)
    assert code == 0
    assert "a\ufffd[2Jb\ufffdc" in out
    assert not set(out) & {"\x1b", "\x07", "\u202e"}


def test_the_help_teaches(tmp_path: Path) -> None:
    code, out, _ = loki("review", "--help", cwd=tmp_path)
    assert code == 0
    for part in ("--approve", "--reject", "--defer", "--reason", "failure-patterns.yml"):
        assert part in out
