"""The command line as its users meet it: real checks, read line by line, and stopped as a process."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from support.command import LOKI, loki
from support.project import CHECK, QUICK, RIGHT, WRONG, make_project

AGENT = shlex.join(
    ["sh", "-c", "cat > /dev/null; sed -i 's/a - b/a + b/' calc.py; echo turned the sign"]
)
TASK = ("run", "--task", "make add add", "--check", QUICK)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc", git=True)


def as_json(text: str) -> Any:
    return json.loads(text)


def test_run_show_undo(project: Path) -> None:
    code, out, err = loki(*TASK[:-1], CHECK, "--agent-command", AGENT, cwd=project)
    assert code == 0, err
    assert "success after 1 attempt: every check passes." in out
    assert "restore: loki undo make-add-add-" in out
    assert "[closed-loop] task=make-add-add-" in err
    assert "status=success total_attempts=1" in err
    assert (project / "calc.py").read_text() == RIGHT

    code, out, _ = loki("show", "make", cwd=project)
    assert code == 0
    for part in (
        "make add add",
        "attempt 1  success",
        "turned the sign",
        "files   calc.py",
        "page: .loki",
    ):
        assert part in out
    code, out, _ = loki("show", cwd=project)
    assert (code, out.split()[1]) == (0, "success")

    code, out, _ = loki("undo", "make", cwd=project)
    assert (code, out) == (0, "restored calc.py\n")
    assert (project / "calc.py").read_text() == WRONG
    code, out, _ = loki("undo", "make", cwd=project)
    assert (code, out.split(":")[0]) == (0, "Nothing to restore")
    status = subprocess.run(
        ["git", "status", "--short"], cwd=project, capture_output=True, check=True
    )
    assert status.stdout == b"", "loki leaves nothing for git to see"


def test_undo_leaves_what_somebody_changed_since(project: Path) -> None:
    loki(*TASK, "--agent-command", AGENT, cwd=project)
    (project / "calc.py").write_text("# mine\n" + RIGHT)
    code, out, err = loki("undo", "make", cwd=project)
    assert code == 1
    assert "calc.py" in err
    assert "--force overwrites" in err
    assert (project / "calc.py").read_text().startswith("# mine")
    code, out, _ = loki("undo", "make", "--force", "--json", cwd=project)
    assert code == 0
    assert as_json(out)["restored"] == ["calc.py"]
    assert (project / "calc.py").read_text() == WRONG


@pytest.mark.parametrize(
    ("command", "code", "status"),
    [
        (AGENT, 0, "success"),
        ("sh -c 'echo \"# $LOKI_ATTEMPT\" >> calc.py'", 4, "failed"),
        ("sh -c 'echo x > $LOKI_TEST_PROJECT/calc.py'", 3, "escalated"),
    ],
)
def test_exit_codes_and_json(
    project: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int, status: str
) -> None:
    monkeypatch.setenv("LOKI_TEST_PROJECT", str(project))
    arguments = (*TASK, "--agent-command", command, "--max-attempts", "2", "--json")
    came, out, _ = loki(*arguments, cwd=project)
    assert (came, as_json(out)["status"]) == (code, status)


def test_a_command_given_as_an_agent_is_told_its_place(project: Path) -> None:
    code, _, err = loki(*TASK, "--agent", "sh agent.sh", cwd=project)
    assert (code, err.count("\n")) == (2, 1)
    assert "; a command is said by --agent-command, or as [agents.NAME]" in err


def test_a_spent_time_budget_is_5(project: Path) -> None:
    code, _, _ = loki(*TASK, "--agent-command", AGENT, "--max-time", "1ms", cwd=project)
    assert code == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--project", "/nowhere/at/all"), "no such project"),
        (("--agent-command", "./no-such-agent"), "unknown agent: cannot run './no-such-agent'"),
        (("--agent-command", "no-such-agent --print"), "unknown agent: cannot run 'no-such-agent'"),
        (("--check", "no-such-check"), "cannot run 'no-such-check'"),
        (("--check", "true && false"), "needs a shell"),
        (("--kind", "wish"), "expected one of bug_fix"),
        (("--max-time", "5"), "'5' has no unit: expected 5s for seconds"),
        (("--agent-timeout", "soon"), "is no duration"),
        (("--briefing", "telepathy"), "expected 'stdin' or 'argument'"),
        (("--task", "  "), "needs a title"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(
    project: Path, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = loki(*TASK, "--agent-command", AGENT, *arguments, cwd=project)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert err.startswith("loki: ")


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("failure-patterns.yml", "version: 2\npatterns: [\n", "failure-patterns.yml:3:1"),
        ("failure-patterns.yml", "version: 2\npattern: []\n", "failure-patterns.yml:2:1"),
        ("config.toml", "[loop]\nmax_retry = 1\n", "config.toml:2:1"),
        ("config.toml", "[loop]\nbackoff = 5\n", "config.toml:2:1"),
        ("config.toml", "[loop\n", "config.toml:1:6"),
    ],
)
def test_a_broken_file_is_named_with_its_line(
    project: Path, name: str, text: str, where: str
) -> None:
    (project / ".loki").mkdir()
    (project / ".loki" / name).write_text(text)
    code, _, err = loki("explain", cwd=project, data=b"error: x\n")
    assert code == 2
    assert where in err
    assert "expected" in err


@pytest.mark.parametrize("command", ["show", "undo"])
def test_an_unknown_task_lists_those_that_are_there(project: Path, command: str) -> None:
    code, _, err = loki(command, "nothing", cwd=project)
    assert (code, err) == (2, "loki: no task 'nothing'; there are no tasks here yet\n")
    loki(*TASK, "--agent-command", AGENT, cwd=project)
    code, _, err = loki(command, "nothing", cwd=project)
    assert code == 2
    assert "there are: make-add-add-" in err


def test_explain(project: Path) -> None:
    output = subprocess.run(
        shlex.split(CHECK), cwd=project, capture_output=True, check=False
    ).stdout
    code, out, _ = loki("explain", cwd=project, data=output)
    assert code == 0
    for part in (
        "assert -1 == 5",
        "at     tests/test_calc.py:5",
        "test-failure",
        "analyze_then_fix",
        "| E ",
    ):
        assert part in out
    assert "seen" not in out
    wrong = shlex.join(["sh", "-c", "echo '# no' >> calc.py"])
    loki(*TASK[:-1], CHECK, "--agent-command", wrong, "--max-attempts", "1", cwd=project)
    (project / "build.log").write_bytes(output)
    code, out, _ = loki("explain", "build.log", cwd=project)
    assert "seen   once here, last in make-add-add-" in out
    code, out, _ = loki("explain", "build.log", "--json", cwd=project)
    data = as_json(out)
    assert data["tests"] == ["tests/test_calc.py::test_add"]
    assert data["next"]["strategy"] == "analyze_then_fix"
    assert data["seen_before"][0]["attempt"] == 1


def test_a_reader_that_goes_away_is_no_error(project: Path) -> None:
    loki(*TASK, "--agent-command", AGENT, cwd=project)
    script = f"{shlex.join([*LOKI, 'show', 'make'])} | head -n 1"
    done = subprocess.run(["sh", "-c", script], cwd=project, capture_output=True, check=True)
    assert done.stderr == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_in_the_middle_nothing_is_left_and_it_goes_on(project: Path, number: int) -> None:
    """Ctrl-C records the attempt; even kill -9 leaves no child and whole files."""
    fifo = project.parent / "alive"
    os.mkfifo(fifo)
    stuck = shlex.join(
        ["sh", "-c", f"exec 9>{fifo}; echo begun >&9; echo half > calc.py; exec sleep 1000"]
    )
    work = subprocess.Popen(
        [*LOKI, *TASK, "--agent-command", stuck],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    with fifo.open("rb") as alive:
        assert alive.readline() == b"begun\n"
        work.send_signal(number)
        # The agent holds the other end: end of file comes when it is gone.
        ended = threading.Thread(target=alive.read, daemon=True)
        ended.start()
        ended.join(60)
        assert not ended.is_alive(), "the agent outlived loki"
    out, _ = work.communicate(timeout=60)
    assert b"Traceback" not in out
    assert (project / "calc.py").read_text() == WRONG
    if number != signal.SIGKILL:
        assert work.returncode == 130
        record = as_json(loki("show", "make", "--json", cwd=project)[1])
        assert [a["result"] for a in record["attempts"]] == ["interrupted"]
    code, _, err = loki(*TASK, "--agent-command", AGENT, cwd=project)
    assert code == 0, err


def test_help_teaches(project: Path) -> None:
    code, out, _ = loki("--help", cwd=project)
    assert code == 0
    for part in ("run", "explain", "show", "undo", "demo", "Exit codes"):
        assert part in out
    assert loki("--version", cwd=project)[1].startswith("loki 0.")
    assert "scratch copy" in loki("run", "--help", cwd=project)[1]
