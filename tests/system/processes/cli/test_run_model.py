"""``loki run --agent``: a model by its name, from the command line, as a user with a key types it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from support import command
from support.llm_service import Broken, LLMService, Received, Said, broken
from support.project import QUICK, RIGHT, WRONG, make_project

RUN = ("run", "--task", "make add add", "--check", QUICK)
MODEL = "anthropic:claude-test"
EDIT = {"path": "calc.py", "action": "replace", "old": "a - b", "new": "a + b"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


def loki(*arguments: str, cwd: Path, **environment: str) -> command.Ended:
    """Exit code, stdout and stderr, in an environment without keys."""
    keys = [name for name in os.environ if name.startswith(("ANTHROPIC_", "OPENAI_"))]
    return command.loki(*arguments, cwd=cwd, environment={**dict.fromkeys(keys), **environment})


def test_run_and_resume_with_the_same_model(project: Path) -> None:
    """The task keeps which model it was; the key stays in the environment."""

    def answer(request: Received) -> Said:
        is_helped = "turn the sign" in request.text
        return Said(arguments={"description": "try", "edits": [EDIT] if is_helped else []})

    with LLMService(answer) as service:
        keys = {"ANTHROPIC_API_KEY": "sk-ant-secret", "ANTHROPIC_BASE_URL": service.url}
        code, _, err = loki(*RUN, "--agent", MODEL, "--max-attempts", "1", cwd=project, **keys)
        assert code in {3, 4}, err
        assert (project / "calc.py").read_text() == WRONG
        code, out, err = loki("resume", "make", "--context", "turn the sign", cwd=project, **keys)
        assert code == 0, err + out
    assert (project / "calc.py").read_text() == RIGHT
    assert {request.body["model"] for request in service.received} == {"claude-test"}
    kept = b"".join(p.read_bytes() for p in (project / ".loki").rglob("*") if p.is_file())
    assert b"sk-ant-secret" not in kept


def test_ctrl_c_ends_a_call_that_hangs(project: Path) -> None:
    """At once, and the same command goes on from there."""
    asked = threading.Event()

    def answer(_request: Received) -> Broken:
        asked.set()
        return broken("stalls")

    with LLMService(answer) as service:
        run = subprocess.Popen(
            [*command.LOKI, *RUN, "--agent", MODEL],
            cwd=project,
            env={**os.environ, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": service.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert asked.wait(60)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    assert b"Traceback" not in err, err.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--agent", MODEL), "set the environment variable ANTHROPIC_API_KEY"),
        (("--agent", "openai:gpt-test"), "set the environment variable OPENAI_API_KEY"),
        (("--agent", "opnai:gpt-test"), "unknown provider 'opnai'"),
        (("--agent", "fast"), "unknown agent 'fast'"),
        (("--agent", "openai:"), "expected a model of it, like 'openai:gpt-5'"),
        (("--agent", f"{MODEL},"), "say one before and after each comma"),
        ((), "who works?"),
        (("--agent", MODEL, "--agent-command", "true"), "one of them"),
        (("--agent", MODEL, "--briefing", "stdin"), "--briefing is for --agent-command"),
        (("--agent", MODEL, "--agent-timeout", "soon"), "--agent-timeout"),
    ],
)
def test_what_is_missing_is_said_before_anything_runs(
    project: Path, arguments: tuple[str, ...], said: str
) -> None:
    check = ("run", "--task", "make add add", "--check", "sh -c 'touch ran; exit 1'")
    code, out, err = loki(*check, *arguments, cwd=project)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
    assert not (project / "ran").exists()


def test_a_stage_of_a_pipeline_names_a_model(project: Path) -> None:
    stage = f"{{id: mend, agent: a, description: Make add add., checks: ['{QUICK}']}}"
    (project / "p.yml").write_text(f"version: 1\nname: p\nstages:\n  - {stage}\n")
    run = ("pipeline", "run", "p.yml", "--agent", f"a={MODEL}")
    code, _, err = loki(*run, cwd=project)
    assert (code, "ANTHROPIC_API_KEY" in err) == (2, True), err
    with LLMService([Said(arguments={"edits": [EDIT]})]) as service:
        keys = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": service.url}
        code, _, err = loki(*run, cwd=project, **keys)
    assert code == 0, err
    assert (project / "calc.py").read_text() == RIGHT
