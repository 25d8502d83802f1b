"""`loki pipeline` as its users meet it: real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import command
from support.stages import PIPELINE, make

PLANNER = "sh -c 'cat > /dev/null; echo write three'"
CODER = "sh -c 'cat > /dev/null; echo three > answer.txt; echo wrote it'"
AGENTS = ("--agent", f"architect={PLANNER}", "--agent-command", CODER)


def loki(*arguments: str, cwd: Path) -> command.Ended:
    return command.loki("pipeline", *arguments, cwd=cwd)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project")


def test_nothing_has_run_here_yet(project: Path) -> None:
    code, out, _ = loki("show", cwd=project)
    assert (code, out) == (0, "No pipeline has run here yet: see `loki pipeline run --help`.\n")


def test_check(project: Path) -> None:
    code, out, _ = loki("check", "answer.yml", cwd=project)
    assert (code, out) == (
        0,
        "answer.yml: fine; plan → implement → polish → verify; agents: architect, tech-lead, qa\n",
    )
    text = PIPELINE.replace("inputs: [plan]", "inputs: [plam]")
    (project / "answer.yml").write_text(text)
    code, out, _ = loki("check", "answer.yml", cwd=project)
    assert code == 2
    assert [line.split(": ", 1)[0] for line in out.splitlines()] == [
        "answer.yml:15:14", "answer.yml:22:14", "answer.yml"
    ]  # fmt: skip
    assert out.endswith("answer.yml: cannot be used: 2 problems\n")
    code, out, _ = loki("check", "answer.yml", "--json", cwd=project)
    assert len(json.loads(out)["problems"]) == 2
    code, _, err = loki("run", "answer.yml", cwd=project)
    assert (code, err.split(": ", 1)[0]) == (2, "loki")


def test_check_looks_at_the_project_too(project: Path) -> None:
    text = PIPELINE.replace("sh check.sh", "no-such-program").replace(
        "kind: bug_fix", "rollback: [make clean]"
    )
    (project / "answer.yml").write_text(text)
    code, out, _ = loki("check", "answer.yml", cwd=project)
    assert code == 2
    assert "stage implement: " in out
    assert "no-such-program" in out
    assert "`make clean`, which is not allowed here: add it to allow_commands" in out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "unknown agent 'architect'"),
        (("--agent", "architect"), "unknown agent: cannot run 'architect'"),
        (("--agent", "=architect"), "--agent is '=architect': expected a name, '='"),
        (("--agent", "claude", "--agent-command", "cat"), "is said more than once"),
        (("--agent", "claude", "--agent", "codex"), "is said more than once"),
        (("--agent", "architect=no-such-program"), "agent architect: cannot run 'no-such-program'"),
        (("--param", "question"), "--param is 'question': expected a name, '='"),
        ((*AGENTS, "--param", "q=1"), "unknown parameter 'q'"),
        ((*AGENTS, "--from", "verify"), "has not been run here yet"),
        ((*AGENTS, "--max-time", "3"), "max_time"),
    ],
)
def test_usage(project: Path, arguments: tuple[str, ...], reason: str) -> None:
    code, out, err = loki("run", "answer.yml", *arguments, cwd=project)
    assert (code, out) == (2, "")
    assert reason in err
    assert not (project / ".loki/pipelines").exists()


def test_help_teaches() -> None:
    for words in ([], ["run"], ["resume"], ["show"], ["check"]):
        code, out, _ = loki(*words, "--help", cwd=Path())
        assert code == 0
        assert "loki pipeline" in out
