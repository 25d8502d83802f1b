"""``loki resume`` as a person meets it: after a run that needs them, on a terminal and without."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
from pathlib import Path

import pytest

from support.command import LOKI, loki
from support.project import QUICK, RIGHT, WRONG, make_project

AGENT = shlex.join(
    [
        "sh",
        "-c",
        'if grep -q "^turn the sign$"; then sed -i "s/a - b/a + b/" calc.py; '
        'else echo "# $LOKI_ATTEMPT" >> calc.py; fi',
    ]
)
RUN = ("run", "--task", "make add add", "--check", QUICK, "--agent-command", AGENT)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


def on_a_terminal(*arguments: str, cwd: Path, typed: str) -> tuple[int, str]:
    """Exit code, and what a person sees who has typed ahead, and nothing more (Ctrl-D)."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*LOKI, *arguments], cwd=cwd, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode() + b"\x04\x04")  # whoever asks once more gets no answer
        assert process.stdout is not None
        shown = process.stdout.read().decode()
    os.close(ours)
    return process.returncode, shown


def test_three_ways_to_go_on(project: Path) -> None:
    code, out, _ = loki(*RUN, cwd=project)
    assert code == 3
    (task,) = os.listdir(project / ".loki/tasks")
    assert f"1. Fix by hand and retry: loki resume {task}\n" in out
    assert f'2. Give context: loki resume {task} --context "…"\n' in out
    assert f"3. Abort: loki resume {task} --abort\n" in out
    assert f"\n  resume  loki resume {task}\n" in loki("show", "make", cwd=project)[1]


def test_context_is_enough_to_go_on(project: Path) -> None:
    loki(*RUN, cwd=project)
    code, out, err = loki("resume", "make", "--context", "turn the sign", cwd=project)
    assert code == 0, err
    assert "success after 4 attempts" in out
    _, shown, _ = loki("show", "make", cwd=project)
    assert ", after attempt 3: resume: turn the sign\n" in shown
    assert "  resume  " not in shown
    assert "add(a, b):\n    return a + b" in (project / "calc.py").read_text()


@pytest.mark.parametrize("way", ["-", "words.txt"])
def test_context_from_a_file(project: Path, way: str) -> None:
    loki(*RUN, cwd=project)
    (project.parent / "words.txt").write_text("turn the sign\n")
    name = way if way == "-" else str(project.parent / way)
    code, _, err = loki("resume", "make", "--context-file", name, cwd=project, data="turn the sign")
    assert code == 0, err


def test_mended_by_hand(project: Path) -> None:
    loki(*RUN, cwd=project)
    (project / "calc.py").write_text(RIGHT)
    code, out, _ = loki("resume", "make", "--json", cwd=project)
    assert (code, json.loads(out)["status"]) == (0, "success")
    code, _, err = loki("resume", "make", cwd=project)
    assert code == 2
    assert "nothing is left to resume" in err


def test_abort(project: Path) -> None:
    loki(*RUN, cwd=project)
    code, out, _ = loki("resume", "make", "--abort", cwd=project)
    assert (code, out.splitlines()[0]) == (0, "restored calc.py")
    assert (project / "calc.py").read_text() == WRONG
    _, out, _ = loki("show", "make", cwd=project)
    assert "failed: aborted by a person" in out


def test_abort_does_not_overwrite(project: Path) -> None:
    loki(*RUN, cwd=project)
    (project / "calc.py").write_text("mine\n")
    code, _, err = loki("resume", "make", "--abort", cwd=project)
    assert code == 1
    assert "--force" in err
    code, out, _ = loki("resume", "make", "--abort", "--force", "--json", cwd=project)
    assert (code, json.loads(out)["restored"]) == (0, ["calc.py"])


def test_a_masked_command_is_asked_for(project: Path) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    agent = shlex.join(["env", f"API_KEY={secret}", *shlex.split(AGENT)])
    run = [*RUN[:-1], agent]
    assert loki(*run, cwd=project)[0] == 3
    code, _, err = loki("resume", "make", "--context", "turn the sign", cwd=project)
    assert code == 2
    assert "--agent-command" in err
    assert secret not in err
    code, _, _ = loki(
        "resume", "make", "--context", "turn the sign", "--agent-command", agent, cwd=project
    )
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing-like-it",), "no task 'nothing-like-it'"),
        (("make", "--abort", "--context", "x"), "without a context"),
        (("make", "--context", "x", "--context-file", "-"), "expected one of them"),
        (("make", "--context-file", "/nowhere/at/all"), "No such file"),
        (("make", "--agent-command", "no-such-agent"), "unknown agent"),
    ],
)
def test_misuse_is_one_sentence(project: Path, arguments: tuple[str, ...], said: str) -> None:
    loki(*RUN, "--max-attempts", "1", cwd=project)
    code, _, err = loki("resume", *arguments, cwd=project)
    assert code == 2
    assert said in err


def test_asked_at_once_on_a_terminal(project: Path) -> None:
    code, shown = on_a_terminal(*RUN, "--ask", cwd=project, typed="2\nturn the sign\n")
    assert code == 0, shown
    assert "What should the agent know?" in shown
    assert "success after 4 attempts" in shown


def test_asked_and_given_up(project: Path) -> None:
    code, shown = on_a_terminal(*RUN, "--ask", cwd=project, typed="3\n")
    assert code == 0, shown
    assert "given up: make-add-add" in shown
    assert (project / "calc.py").read_text() == WRONG


def test_asked_and_left_open(project: Path) -> None:
    code, shown = on_a_terminal(*RUN, "--ask", cwd=project, typed="\n")
    assert code == 3, shown
    assert "You decide:" in shown


def test_without_a_terminal_nothing_is_asked(project: Path) -> None:
    code, out, _ = loki(*RUN, "--ask", cwd=project, data="2\nturn the sign\n")
    assert code == 3
    assert "You decide:" in out


def test_a_task_of_the_library_needs_an_agent_only_where_it_has_something_to_do(
    project: Path,
) -> None:
    from loki import run as run_loki

    outcome = run_loki(
        "make add add", agent=lambda _: {}, checks=[QUICK], path=str(project), max_attempts=1
    )
    assert outcome.status == "failed"
    code, out, _ = loki("resume", "make", cwd=project)
    assert code == 3
    assert "--agent-command" in out
    (project / "calc.py").write_text(RIGHT)
    code, out, err = loki("resume", "make", cwd=project)
    assert code == 0, err
