"""A preset adds what a command lacks, and leaves alone what its user said."""

from __future__ import annotations

from typing import get_args

import pytest

from loki.agents.agent_report import FORMS
from loki.agents.preset import Preset, breaker_of, preset, preset_of, presets, program_of
from loki.base.error import UsageError
from loki.config import AgentConfig

CLAUDE = ("--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits")
CODEX = ("--json", "--skip-git-repo-check", "--sandbox", "workspace-write")


@pytest.mark.parametrize(
    ("name", "given", "completed"),
    [
        ("claude", (), ("claude", "--print", *CLAUDE)),
        ("claude", ("claude", "-p"), ("claude", "-p", *CLAUDE)),
        (
            "claude",
            ("A=b", "claude", "-p", "--model", "opus", "--permission-mode=plan"),
            ("A=b", "claude", "-p", "--model", "opus", "--permission-mode=plan", *CLAUDE[:3]),
        ),
        (
            "claude",
            ("claude", "-p", "--output-format", "json", "--", "text"),
            ("claude", "-p", "--output-format", "json", "--verbose", *CLAUDE[3:], "--", "text"),
        ),
        ("codex", (), ("codex", "exec", *CODEX)),
        ("codex", ("codex", "-m", "gpt-5", "e"), ("codex", "-m", "gpt-5", "e", *CODEX)),
        (
            "codex",
            ("codex", "exec", "-c", "sandbox_mode=read-only"),
            ("codex", "exec", "-c", "sandbox_mode=read-only", *CODEX[:2]),
        ),
        (
            "gemini",
            (),
            ("gemini", "--output-format", "stream-json", "--approval-mode", "auto_edit"),
        ),
        (
            "gemini",
            ("gemini", "-p", "-y", "-o", "json", "--prompt"),
            ("gemini", "-y", "-o", "json"),
        ),
        (
            "gemini",
            ("gemini", "-y", "-o", "json", "-p", "{briefing}"),
            ("gemini", "-y", "-o", "json", "-p", "{briefing}"),
        ),
        ("gemini", ("gemini", "-y", "-o", "json"), ("gemini", "-y", "-o", "json")),
    ],
)
def test_a_command_completed(name: str, given: tuple[str, ...], completed: tuple[str, ...]) -> None:
    assert preset(name).complete(given) == completed
    # What a task keeps is the whole command; it is completed again when the task goes on.
    assert preset(name).complete(completed) == completed


def test_aider_asks_nobody() -> None:
    words = preset("aider").complete()
    assert words[:3] == ("aider", "--message", "{briefing}")
    assert {"--yes-always", "--no-auto-commits", "--no-dirty-commits"} <= set(words)
    own = ("aider", "--message-file", "x", "--auto-commits")
    assert not {"--message", "--no-auto-commits"} & set(preset("aider").complete(own))


@pytest.mark.parametrize(
    ("command", "program", "known"),
    [
        (("claude", "-p"), "claude", "claude"),
        (("/usr/local/bin/claude",), "claude", "claude"),
        (("npx", "-y", "@anthropic-ai/claude-code@2.1.0", "-p"), "claude-code", "claude"),
        (("npx", "@openai/codex", "exec"), "codex", "codex"),
        (("npx", "@google/gemini-cli@latest"), "gemini-cli", "gemini"),
        (("A=b", "aider", "--message", "x"), "aider", "aider"),
        (("sh", "-c", "claude -p | tee log"), "sh", None),
        (("./agent.sh",), "agent.sh", None),
        (("claude-wrapper",), "claude-wrapper", None),
    ],
)
def test_a_program_is_known(command: tuple[str, ...], program: str, known: str | None) -> None:
    assert program_of(command) == program
    found = preset_of(command)
    assert (found.name if found else None) == known
    assert breaker_of(command) == (found.breaker if found else f"agent/{program}")


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("claude -p", False),
        ("claude -p --output-format text", False),
        ("claude -p --output-format json", True),
        ("claude -p --output-format=stream-json --verbose", True),
        ("codex exec", False),
        ("codex exec --json", True),
        ("gemini -o json", True),
        ("gemini", False),
        ("aider --message {briefing}", True),
    ],
)
def test_the_form_that_a_command_prints(command: str, form: bool) -> None:
    words = command.split()
    found = preset_of(words)
    assert found is not None
    assert found.prints_form(words) == form


@pytest.mark.parametrize("name", presets())
def test_each_preset_prints_its_form(name: str) -> None:
    known = preset(name)
    assert known.prints_form(known.complete())
    assert known.form in FORMS
    assert known.name == name


def test_the_configuration_knows_each_preset() -> None:
    said = AgentConfig.model_fields["preset"].annotation
    assert set(get_args(get_args(said)[0])) == set(presets())


def test_a_typing_error() -> None:
    with pytest.raises(UsageError, match=r"unknown preset 'cluade'.*did you mean 'claude'"):
        preset("cluade")


def test_secrets_of_another_cloud_only_where_it_is_used() -> None:
    known: Preset = preset("claude")
    assert "AWS_SECRET_ACCESS_KEY" not in known.passed({})
    assert "AWS_SECRET_ACCESS_KEY" in known.passed({"CLAUDE_CODE_USE_BEDROCK": "1"})
    assert "ANTHROPIC_API_KEY" in known.passed({})


@pytest.mark.parametrize(
    ("command", "model"),
    [
        ("codex exec -m gpt-5", "gpt-5"),
        ("codex exec --model=gpt-5", "gpt-5"),
        ("codex exec", ""),
    ],
)
def test_the_model_that_a_command_names(command: str, model: str) -> None:
    assert preset("codex").model(command.split()) == model
