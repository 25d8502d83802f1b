"""The real claude, codex and gemini with loki's hooks, against a service on this machine.

A script plays the model; what it is sent next, on the wire, says what the agent was told.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from loki.adapters.hooks.hooked_agents import AGENTS
from support import agents
from support.llm_service import LLMService, Received, Reply, Said

NAMES = ("claude", "codex", "gemini")
HOOKED = {"claude": "claude-code", "codex": "codex", "gemini": "gemini"}
CLAIM = "All done, the tests pass now."
BACK = "This failure came back"
ENOUGH = "Stop here"

Step = tuple[str, str]
"""``run`` and a command, ``begin`` and one in the background, ``write`` and a file, or ``say`` and a text."""

CHECK: Step = ("run", "make test")


class Session:
    """A project with a failing check, and one of the agents in it."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.root = name, root
        self.programs = agents.need_agent(name)
        self.project = root / "project"
        self.project.mkdir(parents=True)
        (self.project / "Makefile").write_text("test:\n\t@python3 calc.py\n")
        (self.project / "calc.py").write_text("raise ValueError('no such column')\n")
        subprocess.run(["git", "init", "-q"], cwd=self.project, check=True)
        # Agents tell their models which files are there, and which are new: the same with and without.
        (self.project / Path(AGENTS[HOOKED[name]].files["project"]).parent).mkdir()
        (self.project / ".git" / "info" / "exclude").write_text(".claude\n.codex\n.gemini\n")

    def install(self) -> None:
        words = ["hook", "install", HOOKED[self.name], "--project", "--path", str(self.project)]
        subprocess.run([sys.executable, "-m", "loki", *words], check=True, capture_output=True)

    def play(self, steps: Sequence[Step]) -> list[Received]:
        """Let the agent work as a script says; the requests that its model was sent."""
        played = iter(enumerate(steps))

        def reply(request: Received) -> Reply:
            if f'"{agents.TOOLS[self.name]}"' not in request.text:
                return Said("ok")  # for a title, for instance
            at, step = next(played, (len(steps), ("say", "I stop here.")))
            return self._said(at, step)

        with LLMService(reply) as service:
            self._run(service.url)
            return [one for one in service.received if f'"{agents.TOOLS[self.name]}"' in one.text]

    def _said(self, at: int, step: Step) -> Said:
        kind, what = step
        if kind == "say":
            return Said(what, number=at + 1)
        tool, arguments = self._call(kind, what)
        return Said(arguments=arguments, tool=tool, number=at + 1)

    def _call(self, kind: str, what: str) -> tuple[str, dict[str, Any]]:
        path = str(self.project / what)
        if self.name == "codex":
            patch = f"apply_patch <<'E'\n*** Begin Patch\n*** Add File: {what}\n+x = 1\n*** End Patch\nE"
            return "exec_command", {"cmd": what if kind == "run" else patch}
        shell, write = {"claude": ("Bash", "Write"), "gemini": ("run_shell_command", "write_file")}[
            self.name
        ]
        if kind == "run":
            return shell, {"command": what, "description": "it"}
        if kind == "begin":
            return shell, {"command": what, "description": "it", "run_in_background": True}
        return write, {"file_path": path, "content": "x = 1\n"}

    def _run(self, url: str) -> None:
        words = list(agents.command(self.name, url))
        environment = {**os.environ, **agents.environment(self.name, url, self.root / "home")}
        environment["PATH"] = f"{self.programs}:{environment['PATH']}"
        environment.pop("LOKI_TASK", None)
        if self.name == "claude":
            environment["IS_SANDBOX"] = "1"
            words += ["--dangerously-skip-permissions", "-p", "Fix it"]
        elif self.name == "codex":
            words += [
                "--dangerously-bypass-approvals-and-sandbox",
                "--dangerously-bypass-hook-trust",
            ]
            words += ["--skip-git-repo-check", "--trust", "Fix it"]
        else:
            environment["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
            words += ["--yolo", "-p", "Fix it"]
        subprocess.run(
            words,
            cwd=self.project,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    made = Session(request.param, tmp_path)
    made.install()
    return made


BY_NAME = pytest.mark.parametrize("session", NAMES, indirect=True)


def told(request: Received) -> str:
    """What a request says besides its tools and instructions."""
    body = request.body
    return json.dumps(body.get("messages") or body.get("input") or body.get("contents"))


@BY_NAME
def test_a_failure_that_comes_back_is_told_and_then_stopped(session: Session) -> None:
    steps: list[Step] = []
    for which in range(13):
        mend = f"echo \"x = {which}; raise ValueError('no such column')\" > calc.py"
        steps += [CHECK, ("run", mend)]
    requests = session.play([*steps, ("run", "touch went-on"), ("say", "I give up.")])
    says = [told(one) for one in requests]
    assert "no such column" in says[1], "the failing check ran"
    assert not any(BACK in one for one in says[:5]), "twice is no reason to speak"
    assert says[5].count(BACK) == 1
    assert "Seen 3 times" in says[5]
    assert "Seen 4 times" in says[7]
    assert "x = 12" not in (session.project / "calc.py").read_text(), "it was stopped"
    assert not (session.project / "went-on").exists()
    if session.name == "claude":  # it reads why, and the next call ends it
        assert len(says) == 24
        assert ENOUGH in says[-1]
    elif session.name == "gemini":  # ended at once
        assert len(says) == 23
    else:  # every further call of the turn is refused
        assert ENOUGH in says[23]
        assert "blocked by PreToolUse hook" in says[-1]


@BY_NAME
def test_a_claim_without_a_check_is_sent_back_once(session: Session) -> None:
    requests = session.play(
        [("write", "fix.py"), ("say", CLAIM), ("say", CLAIM), ("say", "again?")]
    )
    assert len(requests) == 3
    last = told(requests[-1])
    assert last.count(CLAIM) >= 1
    assert "no tests were run: run the project's tests" in last, last[-1500:]


def test_a_check_in_the_background_of_claude_is_waited_for(tmp_path: Path) -> None:
    session = Session("claude", tmp_path)
    session.install()
    steps: list[Step] = [
        ("write", "fix.py"),
        ("begin", "until test -e go; do sleep 0.1; done; make test"),
        ("say", CLAIM),
        ("run", "touch go"),
        ("say", "I wait for the tests."),
        ("say", "They fail."),
    ]
    says = [told(one) for one in session.play(steps)]
    assert "still runs in the background" in says[3]
    log = session.project / ".loki" / "logs" / "tool-calls.jsonl"
    assert "no such column" in log.read_text(), "what it printed was heard of once it had ended"


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_sessions_requests_are_what_they_are_without_loki(
    name: str, tmp_path: Path
) -> None:
    """A check that fails once, is mended, passes, and a claim: loki adds nothing on the wire."""
    mend = ("run", "echo 'print(1)' > calc.py")
    steps: list[Step] = [CHECK, mend, CHECK, ("run", "grep nothing Makefile"), ("say", CLAIM)]
    said = []
    for which in ("without", "with"):
        session = Session(name, tmp_path / which)
        if which == "with":
            session.install()
        said.append([_plain(told(one), session) for one in session.play(steps)])
    assert len(said[0]) == 5
    for without, with_loki in zip(*said, strict=True):
        at = next((n for n, (a, b) in enumerate(zip(without, with_loki)) if a != b), 0)  # noqa: B905
        assert with_loki == without, f"{with_loki[at:][:200]} instead of {without[at:][:200]}"
    assert (session.project / ".loki" / "state" / "sessions").is_dir(), "it listened"


def _plain(text: str, session: Session) -> str:
    """A text without what differs from one run to the next."""
    text = text.replace(str(session.root), "ROOT").replace(
        str(session.root).replace("/", "-"), "ROOT"
    )
    text = re.sub(r"(?<![0-9a-f])(?:[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{6})(?![0-9a-f])", "ID", text)
    return re.sub(r"\d+", "#", text)
