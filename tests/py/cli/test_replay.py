"""``loki replay``, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loki.cli.app import app

RED = "FAILED test_app.py::test_a - KeyError: 'x'\n1 failed in 0.1s"
CHECK = {"tool": "bash", "args": {"command": "pytest -q"}, "result": RED, "exit_code": 1}
KEY = "ghp_" + "a1B2" * 9


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    stuck = {"id": "stuck", "steps": [CHECK] * 8, "final": "All tests pass."}
    well = {
        "id": "well",
        "steps": [{**CHECK, "result": "3 passed", "exit_code": 0}],
        "final": "Done.",
    }
    shows = {**CHECK, "args": {"command": f"deploy --token {KEY}\x1b[2J"}, "result": "Error: no"}
    secret = {"id": "secret", "steps": [shows] * 3}
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in (stuck, well, secret)), "utf-8")
    return path


def replay(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["replay", *words])
    return done.exit_code, done.output


def test_it_says_what_and_where(runs: Path) -> None:
    code, said = replay(str(runs))
    assert code == 0
    assert "stuck, 8 calls" in said
    assert "step 2: nudge  same-call: pytest -q" in said
    assert "step 5: stop   same-call (2 calls later it ended): pytest -q" in said
    assert (
        "3 runs, 12 calls, 1 file: 4 nudges, 0 refusals, 1 stop; 1 would have heard nothing" in said
    )
    assert KEY not in said
    assert "\x1b[2J" not in said


def test_all_that_would_have_been_told(runs: Path) -> None:
    said = replay("--full", "--only", "stop", str(runs))[1]
    assert "Stop here: `pytest -q` failed the same way 6 times" in said
    assert "nudge  " not in said


def test_for_programs(runs: Path) -> None:
    lines = [json.loads(line) for line in replay("--json", str(runs))[1].splitlines()]
    assert [one["kind"] for one in lines] == ["nudge", "nudge", "nudge", "stop", "nudge"]
    assert lines[3]["left"] == 2
    assert {one["unit"] for one in lines} == {"step"}


def test_runs_are_converted(runs: Path, tmp_path: Path) -> None:
    assert "3 runs written" in replay("--convert", str(tmp_path / "out.jsonl.gz"), str(runs))[1]
    assert replay(str(tmp_path / "out.jsonl.gz"))[1].count("nudge") == replay(str(runs))[1].count(
        "nudge"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/none/of/it"], "found nothing"),
        (["--only", "shout", "."], "expected one of nudge, refuse, stop"),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    code, printed = replay(*words)
    assert code == 2
    assert said in printed
