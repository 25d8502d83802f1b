"""A change that VALIDATE refuses is not lost: the next attempt begins with it, and nothing is applied."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import loki
from loki import Workspace
from loki.action.loop.recorder import MARK
from loki.agents.command_agent import CommandAgent
from loki.agents.model_agent import ModelAgent
from loki.cli.app import app
from loki.testing import ScriptedAgent, ScriptedLLM
from support.working import in_copy

NAMES = ("one", "two", "three", "four", "five")
BROKEN = "def five():\n    return (5\n"

TITLE = "mend the five"


def good(name: str) -> str:
    return f"def {name}():\n    return {NAMES.index(name) + 1}\n"


ALL = {f"{name}.py": good(name) for name in NAMES}

FIRST = f"""\
for name, value in zip({NAMES!r}, range(1, 6)):
    open(f'{{name}}.py', 'w').write(f'def {{name}}():\\n    return {{value}}\\n')
open('five.py', 'w').write({BROKEN!r})
open('extra.py', 'w').write('EXTRA = 1\\n')
"""
MEND = "text = open('five.py').read(); open('five.py', 'w').write(text.replace('(5', '5'))"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Five files with a defect each, and a check that sees all of them."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"def {name}():\n    return 0\n")
    lines = [f"from {name} import {name}" for name in NAMES]
    lines += [f"assert {name}() == {value}" for value, name in enumerate(NAMES, 1)]
    (folder / "check.py").write_text("\n".join(lines) + "\n")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


CHECK = f"{sys.executable} -B check.py"


def texts(project: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in project.glob("*.py")}


def agent(tmp_path: Path, *scripts: str) -> str:
    """A command whose n-th call runs the n-th script, and keeps its briefing and what it found."""
    program = tmp_path / "agent.py"
    program.write_text(
        "import os, sys, pathlib, shutil\n"
        f"kept = pathlib.Path({str(tmp_path)!r})\n"
        "n = int(os.environ['LOKI_ATTEMPT']) - 1\n"
        "(kept / f'briefing-{n}').write_text(sys.stdin.read())\n"
        "shutil.copytree('.', kept / f'copy-{n}', dirs_exist_ok=True, ignore=lambda *_: ['.git'])\n"
        f"scripts = {scripts!r}\n"
        "exec(scripts[n])\n"
        "print('did it')\n"
    )
    return f"{sys.executable} {program}"


def words(command: str, *more: str) -> list[str]:
    given = ["--task", TITLE, "--check", CHECK, "--agent-command", command]
    return [sys.executable, "-m", "loki", "run", "--json", *given, *more]


def run(project: Path, command: str, **options: Any) -> loki.Outcome:
    return loki.run(
        TITLE, agent=CommandAgent(command), checks=[CHECK], path=str(project), **options
    )


def resume(project: Path, command: str, outcome: loki.Outcome) -> loki.Outcome:
    with Workspace(project).resume(outcome.task_id) as task:
        return task.run(CommandAgent(command))


def test_a_command_agent_goes_on_with_what_was_refused(project: Path, tmp_path: Path) -> None:
    before = texts(project)
    look = f"assert open({str(project / 'one.py')!r}).read().endswith('0\\n'), 'applied'\n"
    command = words(agent(tmp_path, FIRST, look + MEND))
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    outcome = json.loads(ran.stdout)
    assert (ran.returncode, outcome["attempts"]) == (0, 2), ran.stderr
    assert set(outcome["files_modified"]) == {*ALL, "extra.py"}
    assert (tmp_path / "copy-1/one.py").read_text().endswith("return 1\n")
    briefing = (tmp_path / "briefing-1").read_text()
    assert "Nothing of it was applied" in briefing
    assert "return (5" in briefing, "the proposed line"
    assert "return 0" not in briefing, "not the old one"
    assert not list(project.glob(".loki/tasks/*/refused.json"))
    Workspace(project).journal(outcome["task_id"]).undo()
    assert texts(project) == before


def test_it_may_begin_afresh(project: Path, tmp_path: Path) -> None:
    """What it writes now counts, also where it is as it was before; what it leaves alone does not."""
    again = FIRST.replace("extra", "other").replace(repr(BROKEN), repr(BROKEN.replace("(5", "5")))
    mark = f"import os; os.makedirs('.loki/signals', exist_ok=True); open({MARK!r}, 'w').close()\n"
    outcome = run(project, agent(tmp_path, FIRST, mark + again))
    assert (outcome.status, set(outcome.files)) == ("success", {*ALL, "other.py"})


def test_who_repeats_what_was_refused_is_told(
    project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert run(project, agent(tmp_path, FIRST, "pass", MEND)).status == "success"
    assert "the agent proposed the same change again" in caplog.text


def test_it_outlives_a_process_that_is_killed(project: Path, tmp_path: Path) -> None:
    wait = (
        f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.05)\n"
    )
    command = agent(tmp_path, FIRST, wait + MEND)
    with subprocess.Popen(
        words(command), cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stderr is not None
        assert any("attempt=2 asking the agent" in line for line in started.stderr)
        started.kill()
    assert started.returncode == -signal.SIGKILL
    assert texts(project)["one.py"].endswith("0\n")
    (tmp_path / "go").touch()
    assert run(project, command).status == "success"
    last = max(tmp_path.glob("briefing-*")).read_text()
    assert "Nothing of it was applied" in last
    assert "return (5" in last


def test_a_task_that_is_resumed_goes_on_with_it_but_not_over_what_somebody_changed(
    project: Path, tmp_path: Path
) -> None:
    command = agent(tmp_path, FIRST, MEND)
    outcome = run(project, command, max_attempts=1)
    assert (outcome.status, outcome.files) == ("failed", ())
    (project / "two.py").write_text("def two():\n    return 2  # mine\n")
    assert resume(project, command, outcome).status == "success"
    assert texts(project)["two.py"].endswith("# mine\n")
    assert "'two.py'" in (tmp_path / "briefing-1").read_text()


def test_undo_forgets_it(project: Path, tmp_path: Path) -> None:
    outcome = run(project, agent(tmp_path, FIRST), max_attempts=1)
    (kept,) = project.glob(".loki/tasks/*/refused.json")
    assert kept.stat().st_mode & 0o077 == 0
    undone = CliRunner().invoke(app, ["undo", outcome.task_id, "--project", str(project)])
    assert undone.exit_code == 0, undone.output
    assert not kept.exists()


# --- the library ----------------------------------------------------------------------------------


def test_in_a_loop_of_ones_own(project: Path) -> None:
    with Workspace(project).task("mend them", checks=[CHECK]) as task:
        for attempt in task.attempts():
            if attempt.number == 1:
                assert attempt.draft is None
                attempt.propose({**ALL, "five.py": BROKEN})
            else:
                assert attempt.draft is not None
                assert texts(project)["one.py"].endswith("0\n")
                attempt.propose({"five.py": good("five")})
    assert task.outcome is not None
    assert (task.outcome.status, task.outcome.attempts) == ("success", 2)


def test_in_a_loop_of_ones_own_it_may_begin_afresh(project: Path) -> None:
    with Workspace(project).task("mend them", checks=[CHECK]) as task:
        for attempt in task.attempts():
            if attempt.number == 1:
                attempt.propose({"five.py": BROKEN, "extra.py": "x = 1\n"})
            else:
                attempt.propose(ALL, afresh=True)
    assert task.outcome is not None
    assert (task.outcome.status, set(task.outcome.files)) == ("success", set(ALL))


def test_who_edits_the_project_goes_on_from_there(project: Path) -> None:
    with Workspace(project).task("mend them", checks=[CHECK]) as task:
        for attempt in task.attempts():
            if attempt.number == 1:
                attempt.propose({"five.py": BROKEN, "extra.py": "x = 1\n"})
            elif attempt.number == 2:
                (project / "one.py").write_text(good("one"))
                attempt.evaluate()
            else:
                assert attempt.draft is None
                attempt.propose(ALL)
    assert task.outcome is not None
    assert not (project / "extra.py").exists()
    assert task.outcome.status == "success"


def test_in_a_copy_as_workers_do(project: Path) -> None:
    """Interrupted after the first attempt; another copy goes on with it."""
    first = ScriptedAgent([{**ALL, "five.py": BROKEN}, KeyboardInterrupt()])
    outcome, after = in_copy(project, first, TITLE, kind="bug_fix", checks=[CHECK])
    assert outcome.status == "interrupted"
    assert after["one.py"].endswith(b"0\n")
    second = ScriptedAgent([{"five.py": good("five")}])
    outcome, after = in_copy(project, second, TITLE, kind="bug_fix", checks=[CHECK])
    assert (outcome.status, after["one.py"]) == ("success", good("one").encode())


def test_a_proposed_file_may_be_taken_back(project: Path) -> None:
    proposals: list[Any] = [{**ALL, "bad.py": "x = (\n"}, {"bad.py": None}]
    outcome = loki.run(
        "mend them", agent=ScriptedAgent(proposals), checks=[CHECK], path=str(project)
    )
    assert (outcome.status, set(outcome.files)) == ("success", set(ALL))


def test_what_may_not_stand_is_left_out(project: Path) -> None:
    proposals: list[Any] = [
        {**ALL, "five.py": BROKEN, "a\tb.py": "x = 1\n"},
        {"five.py": good("five")},
    ]
    scripted = ScriptedAgent(proposals)
    outcome = loki.run("mend them", agent=scripted, checks=[CHECK], path=str(project))
    assert (outcome.status, set(outcome.files)) == ("success", set(ALL))
    assert "Left out of it" in str(scripted.briefings[1])


def test_a_model_edits_the_file_as_it_proposed_it(project: Path) -> None:
    def edit(**said: str) -> dict[str, Any]:
        return {"action": "write", "content": None, "old": None, "new": None, **said}

    first = [edit(path=path, content=text) for path, text in {**ALL, "five.py": BROKEN}.items()]
    second = [edit(path="five.py", action="replace", old="(5", new="5")]
    model = ScriptedLLM([{"description": "d", "edits": edits} for edits in (first, second)])
    outcome = loki.run("mend them", agent=ModelAgent(model), checks=[CHECK], path=str(project))
    assert (outcome.status, outcome.attempts, set(outcome.files)) == ("success", 2, set(ALL))
    asked = str(model.requests[1].messages[0].text)
    assert "return (5" in asked
    assert "    return 1" in asked, "also of files that were not refused"


def test_a_secret_in_it_is_not_kept_on_disk(project: Path) -> None:
    secret = 'PASSWORD = "hunter2hunter2hunter2"  # old\n'
    proposals = [{**ALL, "five.py": BROKEN, "config.py": secret}]
    loki.run(
        "mend them",
        agent=ScriptedAgent(proposals),
        checks=[CHECK],
        path=str(project),
        max_attempts=1,
    )
    kept = [path.read_text() for path in project.glob(".loki/tasks/*/refused.json")]
    assert not any("hunter2" in text for text in kept)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"execution": 1, "change": 3, "told": 1}', "\x00"]
)
def test_a_damaged_record_is_begun_without(project: Path, tmp_path: Path, text: str) -> None:
    again = FIRST.replace("(5", "5")
    command = agent(tmp_path, FIRST, again)
    outcome = run(project, command, max_attempts=1)
    (kept,) = project.glob(".loki/tasks/*/refused.json")
    kept.write_text(text)
    assert resume(project, command, outcome).status == "success"
    assert "The last proposal was refused" not in (tmp_path / "briefing-1").read_text()
