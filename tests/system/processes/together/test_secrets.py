"""No secret that a program prints is kept, shown or sent: whole runs, then every byte of them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from support.command import Ended, loki
from support.secrets import Labelled, secrets

SPLIT = 3
"""Runs, each with every so many-th secret: of a long output only the ends are kept."""

AGENT = """\
import pathlib, sys
briefing = sys.stdin.read()
with open({told!r}, "a") as file:
    file.write(briefing)
noise = open({noise!r}).read()
print(noise)
print(noise, file=sys.stderr)
path = pathlib.Path("answer.txt")
path.write_text(path.read_text() + "x")
"""


def make(root: Path, cases: list[Labelled], script: str) -> Path:
    project = root / "project"
    project.mkdir()
    (project / "answer.txt").write_text("no")
    noise = root / "noise.txt"  # what a service answers: no file of the project
    noise.write_text("\n".join(case.text for case in cases) + "\n")
    (project / "check.sh").write_text(script.replace("NOISE", shlex.quote(str(noise))))
    agent = AGENT.format(told=str(root / "told.txt"), noise=str(noise))
    (root / "agent.py").write_text(agent)
    return project


def run(project: Path, *more: str) -> Ended:
    agent = shlex.join([sys.executable, str(project.parent / "agent.py")])
    return loki(
        "run", "--task", "answer yes", "--check", "sh check.sh", "--agent-command", agent,
        "--kind", "bug_fix", "--complexity", "low", "--max-attempts", "3", *more, cwd=project,
    )  # fmt: skip


def leaks(project: Path, cases: list[Labelled], *shown: str) -> list[str]:
    """Where which secret stands: in what loki kept, and in what it said."""
    texts = {f"shown {i}": text for i, text in enumerate(shown)}
    texts["told the agent"] = (project.parent / "told.txt").read_text()
    for path in sorted((project / ".loki").rglob("*")):
        if path.is_file():
            texts[str(path.relative_to(project))] = path.read_bytes().decode("utf-8", "replace")
    assert len(texts) > 8
    return [
        f"{case.kind} in {name}: {part}"
        for name, text in texts.items()
        for case in cases
        for part in case.leaks(text)
    ]


@pytest.mark.parametrize("number", range(SPLIT))
def test_a_run_that_ends_as_a_dead_letter(tmp_path: Path, number: int) -> None:
    """The check prints secrets and fails, the agent prints them and tries: nothing has any."""
    cases = list(secrets()[number::SPLIT])
    script = (
        "echo 'check.sh:3: error: the answer is wrong'\n"
        "cat NOISE; cat NOISE >&2; cat answer.txt; exit 1\n"
    )
    project = make(tmp_path, cases, script)
    ran = run(project)
    assert ran.code in {3, 4, 5}, ran.err
    task = next((project / ".loki" / "tasks").iterdir()).name
    said = [
        loki(*words, cwd=project).out
        for words in (
            ["show", task], ["show", task, "--json"], ["history"], ["history", "--json"],
            ["report"], ["report", "--json"],
        )
    ]  # fmt: skip
    found = leaks(project, cases, ran.out, ran.err, *said)
    assert not found, "\n".join(found)


def test_a_secret_in_the_message_of_the_failure_itself(tmp_path: Path) -> None:
    """It names the failure, the sign, the dead letter and its page."""
    cases = [case for case in secrets() if "\n" not in case.text][::8]
    for i, case in enumerate(cases):
        (tmp_path / str(i)).mkdir()
        project = make(
            tmp_path / str(i),
            [case],
            'echo "app.py:1: ValueError: no login with $(cat NOISE)"\nexit 1\n',
        )
        ran = run(project)
        explained = loki("explain", "--json", str(tmp_path / str(i) / "noise.txt"), cwd=project)
        json.loads(explained.out)
        assert not leaks(project, [case], ran.out, ran.err, explained.out)
