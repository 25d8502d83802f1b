"""`loki pipeline` as its users meet it: real processes: with processes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from loki import Workspace
from loki.agents.command_agent import CommandAgent
from loki.cli.pipeline import RunOptions, _agents
from loki.execution.pipeline import Pipeline
from support import command
from support.stages import AFTER, BEFORE, PIPELINE, make

PLANNER = "sh -c 'cat > /dev/null; echo write three'"
CODER = "sh -c 'cat > /dev/null; echo three > answer.txt; echo wrote it'"
AGENTS = ("--agent", f"architect={PLANNER}", "--agent-command", CODER)


def loki(*arguments: str, cwd: Path) -> command.Ended:
    return command.loki("pipeline", *arguments, cwd=cwd)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project")


def test_run_and_show(project: Path) -> None:
    code, out, err = loki("run", "answer.yml", *AGENTS, cwd=project)
    assert code == 0, err
    assert "success after 2 attempts: every stage is done." in out
    assert "changed: answer.txt" in out
    assert "[pipeline] run=answer-1 stage=implement (2/4) try=1/3 status=running" in err
    assert (project / "answer.txt").read_text() == AFTER
    code, out, _ = loki("show", cwd=project)
    assert (code, out) == (0, "answer-1  success: every stage is done\n")
    for wanted in ("answer", "answer-1", "answer-"):
        code, out, _ = loki("show", wanted, cwd=project)
        lines = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
        assert lines["implement"][:5] == ["implement", "success", "1", "1", lines["implement"][4]]
        assert "output: .loki/pipelines/answer-1/outputs/plan.md" in out
        assert "its condition does not hold" in " ".join(out.split())
    code, out, _ = loki("show", "answer", "--json", cwd=project)
    assert json.loads(out)["stages"][0]["outputs"] == ["plan"]
    code, out, _ = loki("show", "--json", cwd=project)
    assert [data["run"] for data in json.loads(out)] == ["answer-1"]
    code, _, err = loki("show", "nothing", cwd=project)
    assert (code, err) == (2, "loki: no run 'nothing'; there are: answer-1\n")


def test_approve(tmp_path: Path) -> None:
    text = PIPELINE.replace(
        "agent: tech-lead\n", "agent: tech-lead\n    requires_approval: true\n", 1
    )
    project = make(tmp_path / "project", text)
    code, out, _ = loki("run", "answer.yml", *AGENTS, cwd=project)
    assert code == 3
    (line,) = [line for line in out.splitlines() if line.startswith("approve:")]
    (page,) = [line.split()[1] for line in out.splitlines() if line.startswith("read:")]
    assert "Decide whether stage `implement` may begin." in (project / page).read_text()
    assert (project / "answer.txt").read_text() == BEFORE
    code, out, err = loki("resume", "answer", cwd=project)
    assert (code, out) == (2, "")
    assert "waits for approval: expected --approve or --reject" in err
    words = shlex.split(line.removeprefix("approve:"))
    assert words[:3] == ["loki", "pipeline", "resume"], "the line can be copied"
    code, out, err = loki(*words[2:], "--by", "anna", "--json", cwd=project)
    assert code == 0, err
    assert json.loads(out)["status"] == "success"
    _, out, _ = loki("show", "answer", cwd=project)
    assert "approved by anna" in " ".join(out.split())


def test_names_of_agents_may_have_blanks_and_presets_are_theirs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    project = make(tmp_path / "project", PIPELINE.replace("tech-lead", "tech lead"))
    code, _, err = loki("run", "answer.yml", *AGENTS[:2], "--agent", f"tech lead={CODER}",
                        "--agent-command", "true", cwd=project)  # fmt: skip
    assert code == 0, err
    pipeline, workspace = Pipeline.load(project / "answer.yml"), Workspace(project)
    said = RunOptions(["tech lead=claude"], "claude")
    both = _agents(said, workspace, pipeline)
    commands = {name: one.command for name, one in both.items() if isinstance(one, CommandAgent)}
    assert commands["*"] == ("claude",)
    assert commands["tech lead"][:2] == ("claude", "--print")


def test_an_agent_without_a_name_works_for_all_others(tmp_path: Path) -> None:
    """Also where an approval is answered as everything else that waits is."""
    text = PIPELINE.replace(
        "agent: tech-lead\n", "agent: tech-lead\n    requires_approval: true\n", 1
    )
    project = make(tmp_path / "project", text)
    code, _, _ = loki("run", "answer.yml", "--agent", PLANNER, cwd=project)
    assert code == 3
    coder = "sh -c 'A=three; cat > /dev/null; echo $A > answer.txt'"
    done = command.loki("approve", "--resume", "--agent", coder, cwd=project)
    assert done.code == 0, done.err
    assert (project / "answer.txt").read_text() == AFTER


def test_reject(tmp_path: Path) -> None:
    text = PIPELINE.replace(
        "agent: tech-lead\n", "agent: tech-lead\n    requires_approval: true\n", 1
    )
    project = make(tmp_path / "project", text)
    loki("run", "answer.yml", *AGENTS, cwd=project)
    code, out, _ = loki("resume", "answer", "--reject", "--note", "no", "--by", "ben", cwd=project)
    assert code == 4
    assert "failed after 1 attempt: ben rejected stage implement: no." in out


def test_ctrl_c_and_the_same_command_again(project: Path) -> None:
    hanging = "sh -c 'echo asked > ../asked; exec sleep 600'"
    run = [*command.LOKI, "pipeline", "run", "answer.yml", "--agent", f"architect={PLANNER}"]
    work = subprocess.Popen(
        [*run, "--agent-command", hanging],
        cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert work.stderr is not None
    for line in work.stderr:
        if "task=answer-1.implement attempt=1 asking the agent" in line:
            break
    os.kill(work.pid, signal.SIGINT)
    out, _ = work.communicate(timeout=60)
    assert work.returncode == 130, out
    assert "interrupted after" in out
    assert "resume:  loki pipeline resume answer-1 --agent" in out
    code, out, err = loki("run", "answer.yml", *AGENTS, "--json", cwd=project)
    assert code == 0, err
    assert json.loads(out)["run"] == "answer-1"
