"""`loki submit`: what `loki run` would refuse is refused now, and nothing is queued then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from loki import Workspace
from loki.cli.app import app
from loki.jobs.queue.queue import queue_of


def submit(project: Path, *words: str, stdin: str | None = None) -> Result:
    said = ["submit", "--project", str(project), *words]
    result = CliRunner().invoke(app, said, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def pending(project: Path) -> list[dict[str, object]]:
    path = project / ".loki" / "queue" / "pending.json"
    found: list[dict[str, object]] = json.loads(path.read_text())["tasks"] if path.exists() else []
    return found


def test_a_task_with_everything_said(tmp_path: Path) -> None:
    said = (
        "--task",
        "Fix it",
        "--id",
        "fix",
        "--check",
        "true",
        "--check",
        "lint: true",
        "--after",
        "z",
    )
    more = (
        "--priority",
        "High",
        "--depends-on",
        "a",
        "--depends-on",
        "b",
        "--urgent",
        "--tag",
        "t",
    )
    who = ("--agent-command", "sh -c true", "--max-attempts", "2", "--max-time", "5m", "--reflect")
    what = ("--kind", "feature", "--complexity", "low", "--scope", "src/*", "--max-cost", "1.5")
    result = submit(tmp_path, *said, *more, *who, *what, "--json")
    assert result.exit_code == 0, result.output
    (kept,) = json.loads(result.stdout)
    assert pending(tmp_path) == [kept]
    expected = {
        "id": "fix",
        "title": "Fix it",
        "priority": "high",
        "dependencies": ["a", "b"],
        "kind": "feature",
        "complexity": "low",
        "checks": ["true", "lint: true"],
        "scope": ["src/*"],
        "agent_command": "sh -c true",
        "reflect": True,
        "max_attempts": 2,
        "max_time": "5m",
        "max_cost": 1.5,
        "urgent": True,
        "tags": ["t"],
        "after": "z",
        "sequence": 1,
    }
    assert {name: kept[name] for name in expected} == expected


def test_says_what_it_waits_for(tmp_path: Path) -> None:
    assert submit(tmp_path, "--task", "A", "--id", "a", "--check", "true").exit_code == 0
    told = submit(
        tmp_path, "--task", "B", "--check", "true", "--depends-on", "a", "--depends-on", "c"
    ).stdout
    assert "waits for a (pending), c (which nobody has submitted yet)" in told
    assert "2 tasks pending; work on them: loki work --project " in told


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "Expected --task or --json-file"),
        (("--task", "A", "--json-file", "-"), "one of them"),
        (("--task", " "), "a task needs a title"),
        (("--task", "A", "--kind", "bug"), "kind is 'bug': expected one of"),
        (("--task", "A", "--complexity", "huge"), "complexity is 'huge'"),
        (("--task", "A", "--priority", "soon"), "priority is 'soon': expected critical"),
        (("--task", "A", "--priority", "nan"), "priority is 'nan'"),
        (("--task", "A", "--check", "no-such-program -q"), "no such program"),
        (("--task", "A", "--check", "review: good"), "nobody can judge"),
        (("--task", "A", "--check", "true", "--agent", "nobody"), "unknown agent 'nobody'"),
        (("--task", "A", "--check", "true", "--agent-command", "no-such-program"), "no such program"),
        (("--task", "A", "--agent", "claude", "--agent-command", "true"), "not both"),
        (("--task", "A", "--check", "true", "--max-time", "5"), "max_time"),
        (("--task", "A", "--check", "true", "--max-cost", "-1"), "cost"),
        (("--task", "A", "--check", "true", "--agent-timeout", "x", "--agent-command", "true"), "timeout"),
        (("--task", "A", "--id", "../a"), "task id is '../a'"),
        (("--task", "A", "--id", "a", "--depends-on", "a", "--no-validate"), "a -> a"),
        (("--task", "A", "--check", "curl --password hunter2hunter2"), "holds a secret"),
        (("--task", "A", "--check", "curl --password 'hunter2hunter2'", "--no-validate"), "holds a secret"),
        (("--task", "A", "--agent-command", "a --token=\"hunter2hunter2\""), "holds a secret"),
        (("--task", "A", "--agent-command", "a 'b"), "quot"),
        (("--json-file", "/no/such/file"), "cannot read /no/such/file"),
    ],
)  # fmt: skip
def test_what_cannot_begin_is_not_queued(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    if "--check" not in words:
        words = (*words, "--check", "true")
    result = submit(tmp_path, *words)
    assert (result.exit_code, why in result.stderr) == (2, True), result.output
    assert "hunter2" not in result.output
    assert pending(tmp_path) == []


def test_what_somebody_judges_is_no_command(tmp_path: Path) -> None:
    words = ("--task", "A", "--check", "approval: it doesn't hurt", "--id", "a")
    assert submit(tmp_path, *words).exit_code == 0
    assert pending(tmp_path)[0]["checks"] == ["approval: it doesn't hurt"]


def test_unless_it_is_not_to_be_looked_at(tmp_path: Path) -> None:
    words = ("--task", "A", "--check", "no-such-program", "--agent", "nobody", "--no-validate")
    assert submit(tmp_path, *words).exit_code == 0
    assert len(pending(tmp_path)) == 1


def test_several_at_once_from_stdin_and_a_file(tmp_path: Path) -> None:
    many = [
        {"id": "b", "title": "B", "depends_on": ["a"], "checks": ["true"], "x": 1},
        {"task_id": "a", "title": "A", "checks": "true", "claim": {"worker": "w", "generation": 3}},
    ]
    assert submit(tmp_path, "--json-file", "-", stdin=json.dumps(many)).exit_code == 0
    kept = {one.get("id") or one["task_id"]: one for one in pending(tmp_path)}
    assert (kept["b"]["x"], kept["b"]["depends_on"]) == (1, ["a"])
    assert "claim" not in kept["a"]
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"title": "C", "checks": ["true"]}))
    assert submit(tmp_path, "--json-file", str(path)).exit_code == 0
    assert len(pending(tmp_path)) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"title": "A"', "stdin:1:"),
        ("[]", "holds no task"),
        ("[null]", "stdin: task 1: found None"),
        ('[{"id": "a", "title": "A"}, {"title": "B", "kind": "bug"}]', "task 2: kind is 'bug'"),
        ('[{"id": "a", "title": "A"}, {"id": "a", "title": "B"}]', "submitted twice"),
        ('[{"id": "a", "depends_on": "b"}, {"id": "b", "depends_on": "a"}]', "a -> b -> a"),
        ('[{"id": "a"}, {"id": "b", "checks": ["no-such-program"]}]', "task b: "),
        ("[" * 100_000, "stdin:1:1"),
    ],
)  # fmt: skip
def test_all_or_none(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "Makefile").write_text("test:\n\ttrue\n")
    result = submit(tmp_path, "--json-file", "-", stdin=text)
    assert (result.exit_code, why in result.stderr) == (2, True), result.output
    assert pending(tmp_path) == []


def test_a_wrong_kind_is_told_where_no_command_of_the_project_is_known_either(
    tmp_path: Path,
) -> None:
    result = submit(tmp_path, "--task", "A", "--kind", "bug")
    assert (result.exit_code, "kind is 'bug': expected one of" in result.stderr) == (2, True)


def test_the_same_submission_again_is_a_success(tmp_path: Path) -> None:
    words = ("--task", "A", "--id", "a", "--check", "true", "--max-cost", "1.5", "--priority", "7")
    for _ in range(2):
        result = submit(tmp_path, *words)
        assert (result.exit_code, "queued a: A" in result.output) == (0, True), result.output
    assert len(pending(tmp_path)) == 1
    other = submit(tmp_path, *words[:-1], "8")
    assert (other.exit_code, "another one" in other.stderr) == (2, True)
    queue_of(Workspace(tmp_path)).abandon("a", "no")
    again = submit(tmp_path, *words)
    assert (again.exit_code, "is in abandoned" in again.output) == (0, True)
    assert pending(tmp_path) == []
