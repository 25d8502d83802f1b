"""``loki dead-letters`` as a person and as a script meets it: with processes."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import loki
from support.command import LOKI
from support.command import loki as call
from support.dead_letters import commit, give_up, letter, make_project, places, raw, write_letters


def shown(*arguments: str, cwd: Path) -> str:
    code, out, error = call("dead-letters", *arguments, cwd=cwd)
    assert code == 0, error
    return out


def answered(*arguments: str, cwd: Path) -> Any:
    return json.loads(shown(*arguments, "--json", cwd=cwd))


@pytest.fixture
def workspace(tmp_path: Path) -> loki.Workspace:
    return make_project(tmp_path)


def test_from_a_task_that_was_given_up_to_one_that_succeeds(tmp_path: Path) -> None:
    make_project(tmp_path)
    agent = f'{sys.executable} -c \'open("part.py", "a").write("# no\\n")\''
    run = (
        "run",
        "--task",
        "fit the part",
        "--check",
        f"{sys.executable} check.py",
        "--max-attempts",
        "2",
    )
    code, _, error = call(*run, "--agent-command", agent, cwd=tmp_path)
    assert code == 4, error
    listed = shown(cwd=tmp_path)
    (id_,) = re.findall(r"^(fit-the-part-\w+): stays: nothing has changed$", listed, re.MULTILINE)
    assert (
        "1 dead letter; 0 recovered and 0 abandoned so far. Last review: never, so a review is due."
        in listed
    )
    assert "ValueError: the part wrong = 9" in listed
    told = shown("show", "fit", cwd=tmp_path)
    assert "recover retry_with_simpler_approach" in told
    assert told.count("\nattempt ") == 2
    retried = shown("retry", "fit", "--approach", "make it right at once", cwd=tmp_path)
    assert f"{id_}: queued again: a new approach" in retried
    assert "next    loki work\n" in retried
    right = f'{sys.executable} -c \'open("part.py", "w").write("right = 1\\n")\''
    code, _, error = call("resume", id_, "--agent-command", right, cwd=tmp_path)
    assert code == 0, error
    assert places(loki.Workspace(tmp_path)) == {id_: "completed"}
    assert answered("list", cwd=tmp_path)["metadata"]["total_recovered"] == 1


def test_loki_work_reviews_before_it_works(workspace: loki.Workspace) -> None:
    commit(workspace.root, "begin", "2026-01-01T00:00:00Z")
    id_ = give_up(workspace, "fit the part").task_id
    (workspace.root / "note.txt").write_text("x")
    fixed = commit(workspace.root, f"Fix the caller, for {id_}", "2026-01-27T00:00:00Z")
    right = f"""{sys.executable} -c 'open("part.py", "w").write("right = 1")'"""
    code, _, error = call("work", "--agent-command", right, cwd=workspace.root)
    assert code == 0, error
    assert f"{id_}: queued again: what blocked it may be fixed by {fixed[:12]}" in error
    assert places(workspace) == {id_: "completed"}
    assert "right" in (workspace.root / "part.py").read_text()


def test_an_escalation_is_shown_and_answered_by_one_command(workspace: loki.Workspace) -> None:
    id_ = give_up(workspace, kind="security").task_id
    listed = shown(cwd=workspace.root)
    assert f"{id_}: needs a person: a security-critical task fails" in listed
    (page,) = re.findall(r"page    (\S+)", listed)
    assert "### Awaiting" in (workspace.root / page).read_text()
    shown("retry", id_, "--fixed-by", "5fd6e0c", cwd=workspace.root)
    text = (workspace.root / page).read_text()
    assert "### Awaiting" not in text
    assert "queued again, by " in text


def test_a_scripted_review(workspace: loki.Workspace) -> None:
    write_letters(workspace, [letter("a"), letter("b")])
    answer = """import sys; sys.stdin.read(); print('{"scope_gone": "the page was dropped"}')"""
    command = f'{sys.executable} -c "{answer}"'.replace('{"', '{\\"').replace('": "', '\\": \\"')
    command = command.replace('dropped"}', 'dropped\\"}')
    dry = answered("review", "--dry-run", "--scope-gone", "x", cwd=workspace.root)
    assert [one["decision"] for one in dry["reviewed"]] == ["abandon", "abandon"]
    assert places(workspace) == {"a": "dead-letter", "b": "dead-letter"}
    data = answered("review", "a", "--reviewer-command", command, cwd=workspace.root)
    (one,) = data["reviewed"]
    assert (one["task_id"], one["rule"]) == ("a", "scope_gone")
    assert places(workspace) == {"a": "abandoned", "b": "dead-letter"}
    assert answered("review", "--if-due", cwd=workspace.root)["reviewed"][0]["task_id"] == "b"
    assert "nothing to do" in shown("review", "--if-due", cwd=workspace.root)


def test_nothing_that_a_file_says_reaches_the_terminal(workspace: loki.Workspace) -> None:
    nasty = "\x1b[2J\x1b]0;x\x07\u202e\n\n# no"
    task = {"title": nasty, "description": nasty, "dependencies": [nasty], "priority": nasty}
    write_letters(
        workspace, [letter("a", error_summary=nasty, recovery_strategy=nasty, task_data=task)]
    )
    for arguments in ((), ("show", "a"), ("review",)):
        out = shown(*arguments, cwd=workspace.root)
        assert "\x1b" not in out
        assert "\u202e" not in out


def on_a_terminal(typed: list[str], cwd: Path) -> str:
    """What a person sees who types these lines."""
    ours, theirs = pty.openpty()
    command = [*LOKI, "dead-letters", "review"]
    work = subprocess.Popen(command, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, "".join(f"{line}\n" for line in typed).encode())
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert work.wait(60) == 0, seen.decode()
    return re.sub(r"\x1b\[[0-9;]*m", "", seen.decode()).replace("\r", "")


def test_on_a_terminal_each_is_asked_about(workspace: loki.Workspace) -> None:
    write_letters(workspace, [letter(name) for name in "abcde"])
    typed = [
        "d",
        "n",
        "ask the cache first",
        "x",
        "a",
        "",
        "a",
        "dropped",
        "",
        "s",
        "half",
        "",
        "k",
    ]
    seen = on_a_terminal(typed, workspace.root)
    assert "1 of 5" in seen
    assert "Go on: loki dead-letters retry a" in seen
    assert "Say n, s, f, a, d, k or q" in seen
    assert "nothing was said, so nothing was done" in seen
    assert {name: list_ for name, list_ in places(workspace).items() if name in "abcde"} == {
        "a": "pending",
        "b": "abandoned",
        "c": "dead-letter",
        "d": "dead-letter",
        "e": "dead-letter",
    }
    assert raw(workspace, "d")["simpler_task"].startswith("d-simpler-")
    known = json.loads((workspace.folder / "queue" / "dead-letter.json").read_text())["metadata"]
    assert known["last_reviewed"]


def test_on_a_terminal_one_can_stop(workspace: loki.Workspace) -> None:
    write_letters(workspace, [letter(name) for name in "abc"])
    seen = on_a_terminal(["k", "q"], workspace.root)
    assert "2 dead letters left for another time." in seen
    assert set(places(workspace).values()) == {"dead-letter"}
