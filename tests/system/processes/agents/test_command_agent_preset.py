"""An agent that loki knows: what it prints becomes a proposal or an error, and it gets its keys alone."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import loki
from loki.action.agent_protocol import Briefing, Question
from loki.agents.command_agent import CommandAgent, CommandReviewer
from loki.base.error import AgentError, LLMError
from support import replay
from support.project import CHECK, RIGHT, make_project

WRITE = "echo hello > note.txt"


@pytest.fixture(autouse=True)
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where stand-ins go; first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("a\n")
    return root


def briefing(root: Path) -> Briefing:
    return Briefing("Write a note", "task-1", 1, root)


def failing(agent: CommandAgent, root: Path) -> AgentError:
    with pytest.raises(AgentError) as error:
        agent.propose(briefing(root))
    return error.value


@pytest.mark.parametrize(
    ("name", "events", "model", "tokens", "cost"),
    [
        ("claude", replay.claude_events(), "claude-opus-5-5", 380, 0.002612),
        ("codex", replay.codex_events(), "gpt-5", 280, None),
        ("gemini", replay.gemini_events(), "gemini-2.5-pro", 290, None),
    ],
)
def test_a_proposal(
    bin_: Path, project: Path, name: str, events: replay.Events, model: str, tokens: int,
    cost: float | None,
) -> None:  # fmt: skip
    replay.program(bin_, name, replay.lines(events), WRITE)
    agent = CommandAgent((name, "-m", model), preset=name)
    proposal = agent.propose(briefing(project))
    assert proposal.change.paths == ("note.txt",)
    assert proposal.description == "I wrote the note."
    assert (proposal.agent, proposal.model) == (name, model)
    assert (proposal.tokens, proposal.cost) == (tokens, cost)
    assert '"type"' not in proposal.output, "what it said, not how it was sent"
    assert (bin_ / f"{name}.stdin").read_text() == "Write a note"


def test_aider(bin_: Path, project: Path) -> None:
    """It gets a repository that knows the files, and what it leaves for itself is no change."""
    script = (
        f"{WRITE}; git ls-files > {bin_}/known; mkdir .aider.tags; touch .aider.tags/x .aider.log"
    )
    replay.program(bin_, "aider", replay.AIDER.encode(), script)
    (project / ".aider.conf.yml").write_text("model: x\n")
    proposal = CommandAgent(preset="aider").propose(briefing(project))
    assert proposal.change.paths == ("note.txt",)
    assert (proposal.tokens, proposal.cost, proposal.model) == (1300, 0.004, "gpt-4o")
    assert (bin_ / "known").read_text().split() == [".aider.conf.yml", "a.txt"]
    arguments = (bin_ / "aider.arguments").read_text().splitlines()
    assert arguments[:2] == ["--message", "Write a note"]


def test_an_error_is_believed_though_it_ends_well(bin_: Path, project: Path) -> None:
    events = replay.claude_events(
        is_error=True, result="API Error: 529 Overloaded.", api_error_status=529
    )
    replay.program(bin_, "claude", replay.lines(events), WRITE)
    error = failing(CommandAgent(preset="claude"), project)
    assert isinstance(error, LLMError)
    assert (error.kind, error.status, error.retryable) == ("overloaded", 529, True)
    assert str(error) == "claude: API Error: 529 Overloaded. (overloaded)"


def test_a_document_of_errors_on_stderr(bin_: Path, project: Path) -> None:
    said = {"error": {"type": "Error", "message": "overloaded. Retry in 7s.", "code": 503}}
    script = f"cat >&2 <<'END'\nYOLO mode\n{json.dumps(said, indent=2)}\nEND"
    replay.program(bin_, "gemini", b"", script, "exit 247")
    error = failing(CommandAgent("gemini -o json", preset="gemini"), project)
    assert isinstance(error, LLMError)
    assert (error.kind, error.retry_after) == ("overloaded", 7)


def test_a_sentence_on_stderr_instead_of_events(bin_: Path, project: Path) -> None:
    """Gemini CLI without a key, and a program that says nothing that is known."""
    script = "echo 'a warning' >&2; echo 'Please set an Auth method in settings.json: GEMINI_API_KEY' >&2"
    replay.program(bin_, "gemini", b"", script, "exit 41")
    error = failing(CommandAgent(preset="gemini"), project)
    assert isinstance(error, LLMError)
    assert (error.kind, error.retryable) == ("authentication", False)
    assert "set an Auth method in settings.json: GEMINI_API_KEY (authentication)" in str(error)
    replay.program(bin_, "gemini", b"", "echo 'out of cheese' >&2", "exit 1")
    error = failing(CommandAgent(preset="gemini"), project)
    assert not isinstance(error, LLMError)
    assert "exit code 1; it said last: out of cheese" in str(error)


def test_what_waits_for_ever_is_ended(bin_: Path, project: Path) -> None:
    waiting = {
        "type": "error",
        "message": "Reconnecting... waiting for network (Connection failed)",
    }
    events: replay.Events = [*replay.codex_events()[:3], waiting, waiting, waiting]
    replay.program(bin_, "codex", replay.lines(events), "", "exec sleep 600")
    error = failing(CommandAgent(preset="codex"), project)
    assert isinstance(error, LLMError)
    assert (error.kind, error.retryable) == ("connection", True)


def test_two_waits_and_then_an_answer(bin_: Path, project: Path) -> None:
    waiting = {
        "type": "error",
        "message": "Reconnecting... waiting for network (Connection failed)",
    }
    said = {"type": "item.completed", "item": {"type": "agent_message", "text": "Again."}}
    events: replay.Events = [waiting, waiting, said, waiting, waiting, *replay.codex_events()]
    replay.program(bin_, "codex", replay.lines(events), WRITE)
    assert CommandAgent(preset="codex").propose(briefing(project)).change.paths == ("note.txt",)


def test_time_is_up_in_mid_stream(bin_: Path, project: Path) -> None:
    events = replay.lines(replay.claude_events()[:3])
    replay.program(bin_, "claude", events, WRITE, "trap '' TERM; sleep 600 & wait")
    error = failing(CommandAgent(preset="claude", timeout="1s"), project)
    assert error.retryable
    assert str(error).startswith("claude was not done after 1 s")


def test_a_signal(bin_: Path, project: Path) -> None:
    replay.program(bin_, "claude", replay.lines(replay.claude_events()[:2]), "", "kill -SEGV $$")
    error = failing(CommandAgent(preset="claude"), project)
    assert error.retryable
    assert str(error).startswith("claude was ended by signal 11")


def test_stopping_the_run_ends_it(bin_: Path, project: Path) -> None:
    replay.program(bin_, "claude", b"", f"touch {bin_}/started", "exec sleep 600")
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(AgentError) as error:
        CommandAgent(preset="claude").propose(Briefing("x", "t", 1, project, cancelled))
    assert not error.value.retryable
    assert str(error.value).startswith("claude was stopped")


def test_a_child_that_outlives_it(bin_: Path, project: Path) -> None:
    """It is ended with its parent, though it has left the session and holds the output open."""
    child = f"setsid sh -c 'echo $$ > {bin_}/child; sleep 600; touch {bin_}/late' &"
    wait = f"while ! test -s {bin_}/child; do :; done"
    replay.program(
        bin_, "claude", replay.lines(replay.claude_events()), f"{WRITE}\n{child}\n{wait}"
    )
    proposal = CommandAgent(preset="claude").propose(briefing(project))
    assert proposal.change.paths == ("note.txt",)
    with pytest.raises(ProcessLookupError):
        os.kill(int((bin_ / "child").read_text()), 0)


def test_a_hundred_megabytes(bin_: Path, project: Path) -> None:
    """They pass through; the result after them is read."""
    noise = "head -c 100000000 /dev/zero | tr '\\0' x; echo"
    replay.program(bin_, "claude", replay.lines(replay.claude_events()), f"{WRITE}\n{noise}")
    proposal = CommandAgent(preset="claude").propose(briefing(project))
    assert (proposal.description, proposal.cost) == ("I wrote the note.", 0.002612)
    assert len(proposal.output) < 1000


def test_text_instead_of_events(
    bin_: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It counts as text, and that is said once."""
    replay.program(bin_, "claude", b"I wrote it.\n{torn\n", WRITE)
    agent = CommandAgent(preset="claude")
    with caplog.at_level(logging.WARNING, "loki"):
        proposal = agent.propose(briefing(project))
        agent.propose(briefing(project))
    assert proposal.description == "I wrote it.\n{torn"
    assert (proposal.tokens, proposal.cost) == (None, None)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "[agent] claude did not print its last event (0 events, 1 lines that cannot be read)"
    ]


def test_what_it_does_is_shown(bin_: Path, project: Path, caplog: pytest.LogCaptureFixture) -> None:
    replay.program(bin_, "claude", replay.lines(replay.claude_events()))
    with caplog.at_level(logging.INFO, "loki"):
        CommandAgent(preset="claude").propose(briefing(project))
    assert [record.getMessage() for record in caplog.records] == [
        "[agent] claude: Write note.txt",
        "[agent] claude: I wrote the note.",
        f"[agent] claude: 380 tokens, $0.002612, session {replay.SESSION}",
    ]


def passed(bin_: Path, name: str) -> set[str]:
    return {
        line.partition("=")[0] for line in (bin_ / f"{name}.environment").read_text().splitlines()
    }


def test_it_gets_its_keys_alone(bin_: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "GITHUB_TOKEN", "DEPLOY_SECRET"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    for name in ("claude", "agent"):
        replay.program(bin_, name, replay.lines(replay.claude_events()))
    given = {"ANTHROPIC_API_KEY", "GITHUB_TOKEN", "DEPLOY_SECRET", "ANTHROPIC_BASE_URL"}

    CommandAgent(preset="claude").propose(briefing(project))
    assert passed(bin_, "claude") & given == {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}
    CommandAgent("claude -p").propose(briefing(project))
    assert passed(bin_, "claude") & given == {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}
    CommandAgent(preset="claude", pass_environment=["GITHUB_*"]).propose(briefing(project))
    assert passed(bin_, "claude") & given == given - {"DEPLOY_SECRET"}
    CommandAgent("agent").propose(briefing(project))
    assert passed(bin_, "agent") & given == given
    CommandAgent("agent", pass_environment=[]).propose(briefing(project))
    assert passed(bin_, "agent") & given == {"ANTHROPIC_BASE_URL"}


def test_its_own_retries_are_few_unless_its_user_says_otherwise(
    bin_: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay.program(bin_, "claude", replay.lines(replay.claude_events()))

    def retries() -> str:
        lines = (bin_ / "claude.environment").read_text().splitlines()
        return next((x for x in lines if x.startswith("CLAUDE_CODE_MAX_RETRIES=")), "")[24:]

    CommandAgent("claude -p").propose(briefing(project))
    assert retries() == ""
    CommandAgent(preset="claude").propose(briefing(project))
    assert retries() == "2"
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "7")
    CommandAgent(preset="claude").propose(briefing(project))
    assert retries() == "7"


def test_what_is_kept_with_a_task() -> None:
    agent = CommandAgent("claude --model opus", preset="claude", pass_environment=["GH_TOKEN"])
    again = CommandAgent.from_dict(json.loads(json.dumps(agent.to_dict())))
    assert again.to_dict() == agent.to_dict()
    assert (again.preset, again.pass_environment) == ("claude", ("GH_TOKEN",))
    # As it was kept before there were presets.
    old = {"name": "sh", "command": ["sh", "x"], "briefing": "stdin", "timeout": 5.0}
    assert CommandAgent.from_dict(old).pass_environment is None


def test_a_reviewer_says_it_in_its_last_message(bin_: Path, project: Path) -> None:
    printed = replay.claude_result(result='{"approved": true, "reason": "simple"}')
    replay.program(bin_, "claude", json.dumps(printed).encode())
    reviewer = CommandReviewer("claude -p --output-format json")
    said = reviewer._program.ask(Question("Is it simple?", "t", project, sees_project=True))
    assert said.text == '{"approved": true, "reason": "simple"}'


def test_the_whole_way(bin_: Path, tmp_path: Path) -> None:
    """`loki.run(agent="claude")`: the failing test passes; cost and tokens are in the record."""
    root = make_project(tmp_path / "small")
    fix = f"cat > calc.py <<'END'\n{RIGHT}END"
    replay.program(bin_, "claude", replay.lines(replay.claude_events()), fix)
    outcome = loki.run("make add add", agent="claude", checks=[CHECK], path=str(root))
    assert (outcome.status, outcome.files) == ("success", ("calc.py",))
    attempt = loki.Workspace(root).history(outcome.task_id).attempts()[0]
    assert (attempt.agent, attempt.model) == ("claude", "claude-opus-5-5")
    assert (attempt.tokens, attempt.cost) == (380, 0.002612)


def test_the_configuration_completes_a_command(bin_: Path, tmp_path: Path) -> None:
    root = make_project(tmp_path / "small")
    (root / ".loki").mkdir()
    (root / ".loki" / "config.toml").write_text(
        '[agents.writer]\npreset = "claude"\ncommand = "claude --model opus"\n'
        'pass_environment = ["GITHUB_TOKEN"]\ntimeout = "5m"\n'
    )
    replay.program(bin_, "claude", b"")
    agent = loki.Workspace(root).agent("writer")
    assert isinstance(agent, CommandAgent)
    assert agent.command[:4] == ("claude", "--model", "opus", "--print")
    assert (agent.name, agent.breaker, agent.timeout) == ("writer", "api/claude", 300)
    assert agent.pass_environment == ("GITHUB_TOKEN",)


def test_no_such_name(project: Path) -> None:
    with pytest.raises(loki.UsageError, match=r"unknown agent 'cluade'.*did you mean 'claude'"):
        loki.Workspace(project).agent("cluade")


def test_a_program_that_is_not_installed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    with pytest.raises(
        loki.UsageError, match=r"there is no such program .*; install it: npm install"
    ):
        loki.Workspace(project).agent("codex")
