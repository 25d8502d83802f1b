"""``loki history`` and ``loki show``: what was tried, told line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loki.base.text_format import span
from loki.cli.app import app
from loki.cli.common import since_moment
from loki.memory import task_record
from loki.memory.attempt import Attempt, CheckRecord, History
from loki.memory.sign import Signs
from loki.recognition.failure import Failure
from loki.stores.file_store import FileStore
from support.cli_history import loki
from support.history import NOON
from support.hostile import make_hostile
from support.task import task_of


def wrong(*words: str) -> str:
    """What it says about a mistake."""
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 2, done.output
    return done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two tasks, one after the other, and one between them."""
    store = FileStore(tmp_path / ".loki")
    says: dict[str, Any] = {"pattern_matched": "type-error", "strategy_used": "context_expand"}
    failed = {"result": "failed", "error": "no 'user' here", **says}
    rows: list[tuple[str, int, str, dict[str, Any]]] = [
        ("alpha", 1, "2026-04-04T10:00", {**failed, "tokens": 1200, "cost": 0.5, "branch": "main"}),
        ("beta", 1, "2026-04-04T10:01", {"result": "failed", "error": "odd", "branch": "fix/x"}),
        ("alpha", 2, "2026-04-04T10:02", {"result": "success", "branch": "main"}),
        ("beta", 2, "2026-04-05T10:00", {**failed, "infrastructure": True}),
        ("beta", 3, "2026-04-05T10:01", {"result": "interrupted"}),
    ]
    for task, number, at, fields in rows:
        plain = {"action": f"did {task} {number}", "duration_ms": 1500, **fields}
        History(store, task).append(Attempt(number, f"{at}:00.000Z", **plain))
    for task in ("alpha", "beta"):
        task_record.save(
            store, task_of({"id": task, "title": task, "execution": 1, "outcome": None})
        )
    return tmp_path


def listed(project: Path, *words: str) -> list[str]:
    """Tasks and numbers of the attempts that are listed."""
    out = loki("history", "--project", str(project), "--json", *words)
    found = [json.loads(line) for line in out.splitlines()]
    return [f"{row['task']} {row['attempt']}" for row in found]


def test_a_line_an_attempt_the_newest_last_and_a_total(project: Path) -> None:
    *lines, total = loki("history", "--project", str(project)).splitlines()
    assert [line.split()[2:5] for line in lines] == [
        ["alpha", "1", "failed"],
        ["beta", "1", "failed"],
        ["alpha", "2", "success"],
        ["beta", "2", "infrastructure"],
        ["beta", "3", "interrupted"],
    ]
    assert "1.5 s  type-error -> context_expand" in lines[0]
    assert lines[0].endswith("no 'user' here")
    assert lines[2].endswith("did alpha 2")
    assert total == (
        "5 attempts in 2 tasks: 1 success, 2 failed, 1 interrupted, 1 infrastructure; 7.5 s; "
        "1,200 tokens; cost 0.50"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--task", "al"), ["alpha 1", "alpha 2"]),
        (("--pattern", "type-error"), ["alpha 1", "beta 2"]),
        (("--pattern", "none"), ["beta 1"]),
        (("--strategy", "context_expand"), ["alpha 1", "beta 2"]),
        (("--strategy", "none"), ["beta 1"]),
        (("--result", "success"), ["alpha 2"]),
        (("--result", "failed"), ["alpha 1", "beta 1"]),
        (("--result", "infrastructure"), ["beta 2"]),
        (("--branch", "fix/x"), ["beta 1"]),
        (("--branch", "none"), ["beta 2", "beta 3"]),
        (("--since", "2026-04-05"), ["beta 2", "beta 3"]),
        (("--since", "2026-04-04T10:01:00Z"), ["beta 1", "alpha 2", "beta 2", "beta 3"]),
        (("--last", "2"), ["beta 2", "beta 3"]),
        (("--last", "2", "--result", "failed"), ["alpha 1", "beta 1"]),
        (("--since", "1m"), []),
    ],
)
def test_filters(project: Path, words: tuple[str, ...], expected: list[str]) -> None:
    assert listed(project, *words) == expected


def test_json_lines_have_the_figures_of_each_attempt(project: Path) -> None:
    first, *_ = loki("history", "--project", str(project), "--json").splitlines()
    row = json.loads(first)
    for name, value in {
        "task": "alpha",
        "attempt": 1,
        "result": "failed",
        "success": False,
        "pattern_matched": "type-error",
        "strategy_used": "context_expand",
        "duration_ms": 1500,
        "validation_passed": None,
        "validation_gates_run": 0,
        "validation_violations": 0,
        "tokens": 1200,
        "branch": "main",
    }.items():
        assert row[name] == value, name


def test_what_is_not_shown_is_counted(project: Path) -> None:
    *lines, total = loki("history", "--project", str(project), "--last", "1").splitlines()
    assert len(lines) == 1
    assert total.startswith("5 attempts in 2 tasks (the newest 1 are shown): 1 success")


def test_nothing_to_list_says_where_to_look(tmp_path: Path) -> None:
    assert "see `loki history --help`" in loki("history", "--project", str(tmp_path))
    assert loki("history", "--project", str(tmp_path), "--json") == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--result", "good"), "--result is 'good': expected one of success, failed"),
        (("--since", "tuesday"), "--since: 'tuesday' is no duration"),
        (("--since", "5"), "has no unit"),
        (("--task", "gamma"), "no task 'gamma'; there are: alpha, beta"),
        (("--last", "0"), "greater than or equal to 1"),
    ],
)
def test_a_mistake_is_told(project: Path, words: tuple[str, ...], said: str) -> None:
    assert said in " ".join(wrong("history", "--project", str(project), *words).split())


def test_times_back_and_dates() -> None:
    assert since_moment("--since", "2d", NOON).isoformat() == "2026-04-02T12:00:00+00:00"
    assert since_moment("--since", "2026-04-01T10:00:00+02:00", NOON).hour == 10


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(0, "0.0 s"), (59_999, "60.0 s"), (60_000, "1m"), (3_600_000, "1h"), (90_061_000, "1d 1h")],
)
def test_spans(milliseconds: int, said: str) -> None:
    assert span(milliseconds) == said


# --- loki show --------------------------------------------------------------------------------------


def test_show_tells_everything_of_an_attempt(tmp_path: Path) -> None:
    store = FileStore(tmp_path / ".loki")
    failure = Failure.of(
        "Property 'user' does not exist on type 'Session'", error_code="TS2339", path="a.ts"
    )
    made = Attempt(
        1,
        "2026-04-04T10:00:00.000Z",
        "added a null check",
        "failed",
        error=failure.message,
        strategy_used="context_expand",
        duration_ms=61_000,
        files_modified=("a.ts",),
        signature=failure.signature,
        confidence=0.85,
        decision={"action": "fix", "rule": 6, "reason": "type-error at confidence 0.85"},
        checks=(
            CheckRecord("tsc", "type", "tsc", False, 2, 900, "a.ts(1,5): error\n\x1b[31mred\x1b[0m"),
            CheckRecord("jest", "test", "jest", False, None, 60_000, ""),
        ),
        validation={
            "passed": True,
            "gates": ["syntax_check", "self_review"],
            "violations": [
                "a.ts:3: unfinished code [self_review]",
                {"gate": "self_review", "severity": "advisory", "file": "a.ts", "line": 4,
                 "column": None, "description": "left a print", "suggested_fix": "remove it"},
            ],
            "warnings": ["schema_check: no schema for a.ts"],
        },
        regression={"ran": True, "skipped": False, "regressions": 2, "fixed": False},
        commands=({"command": "npm i", "exit_code": 0, "stdout": "added 1", "stderr": ""},),
        agent="claude",
        model="large",
        tokens=1234,
        cost=0.05,
        delay_ms=5000,
        branch="main",
        commit="a" * 40,
    )  # fmt: skip
    History(store, "fix").append(made)
    History(store, "fix").append(Attempt(2, "2026-04-04T11:00:00.000Z", "typed it", "success"))
    History(store, "fix").write_page(status="success", title="Fix it", updated_at="x")
    store.append("tasks/fix/reflections.jsonl", {"attempt": 1, "likely_why": "Session has no user"})
    signs = Signs(store, "main")
    for _ in range(2):
        signs.observe(failure, "added a null check", "fix")
    outcome = {"status": "success", "reason": "every check passes", "files_modified": ["a.ts"]}
    record = {
        "id": "fix",
        "title": "Fix it",
        "kind": "bug_fix",
        "complexity": "low",
        "outcome": outcome,
    }
    task_record.save(
        store, task_of({**record, "execution": 1, "checks": [{"kind": "type", "command": ["tsc"]}]})
    )
    out = loki("show", "fix", "--project", str(tmp_path), "--output")
    for part in (
        "  diff    git diff aaaaaaaaaaaa -- a.ts",
        "  took    1,234 tokens, cost 0.05",
        "attempt 1  failed  2026-04-04T10:00:00.000Z  1m 1s",
        "  waited  5.0 s before it",
        "  agent   claude large: 1,234 tokens, cost 0.05",
        "  gates   passed: syntax_check, self_review",
        "          a.ts:3: unfinished code [self_review]",
        "          a.ts:4: left a print [self_review, advisory]; remove it",
        "          warning: schema_check: no schema for a.ts",
        "  command npm i: exit code 0\n        | added 1",
        "  check   tsc: failed after 0.9 s, exit code 2\n        | a.ts(1,5): error\n        | red\n",
        "  check   jest: failed after 1m, stopped before it ended",
        "  regress 2 regressions",
        f"  kind    {failure.signature}, confidence 0.85",
        "  note    likely why: Session has no user",
        "  then    context_expand: type-error at confidence 0.85",
        "sign: seen 2 times: Property 'user'",
        "anti-repeat.md",
        "attempts-fix.md",
    ):
        assert part in out, part
    assert "|" not in loki("show", "fix", "--project", str(tmp_path)), "output on demand only"
    only = loki("show", "fix", "--project", str(tmp_path), "--attempt", "2")
    assert ("attempt 2" in only, "attempt 1" in only) == (True, False)
    assert "no attempt 7 of this task; it has 2 attempts" in wrong(
        "show", "fix", "--project", str(tmp_path), "--attempt", "7"
    )
    data = json.loads(loki("show", "fix", "--project", str(tmp_path), "--json"))
    assert data["attempts"][0]["checks"][0]["duration_ms"] == 900
    assert data["reflections"] == [{"attempt": 1, "likely_why": "Session has no user"}]


@pytest.mark.parametrize("words", [("history",), ("show", "evil", "--output"), ("show",)])
def test_nothing_that_a_terminal_obeys_gets_through(tmp_path: Path, words: tuple[str, ...]) -> None:
    make_hostile(tmp_path)
    out = loki(*words, "--project", str(tmp_path))
    assert all(c.isprintable() or c == "\n" for c in out), ascii(out)
    assert "script" in out
