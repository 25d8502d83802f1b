"""Who works on a task, by what was said on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loki.base.error import UsageError
from loki.base.time import argument_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loki.action.agent_protocol import Agent
    from loki.workspace import Workspace

AgentName = Annotated[
    str | None,
    typer.Option(
        "--agent",
        help="Who works: claude, codex, gemini or aider, started so that it asks nobody and edits the "
        "files of a scratch copy; a model, like anthropic:claude-opus-4-5 or openai:gpt-5 (its key is "
        "read from ANTHROPIC_API_KEY or OPENAI_API_KEY); or NAME of [agents.NAME] in "
        ".loki/config.toml. Several with commas, like 'claude, codex': the next one is asked where "
        "the one before cannot be.",
    ),
]
AgentCommand = Annotated[
    str | None,
    typer.Option(
        "--agent-command",
        help="Or: any program that reads the briefing on stdin and edits the files in the folder that "
        "it is started in, a scratch copy of the project. It is run as you say it.",
    ),
]
PassEnvironment = Annotated[
    list[str] | None,
    typer.Option(
        "--pass-env",
        help="A variable, or a glob, that a program gets although it looks like a secret; repeat it "
        "for more. [default: the keys that claude, codex, gemini or aider needs; all of them for "
        "other programs]",
    ),
]


def agent_said(
    workspace: Workspace,
    agent: str | None,
    agent_command: str | None,
    *,
    briefing: str | None = None,
    timeout: str | None = None,
    reflect: bool = False,
    pass_environment: Sequence[str] | None = None,
) -> Agent:
    """The agent that ``--agent`` or ``--agent-command`` says.

    Args:
        workspace: the project.
        agent: ``provider:model``, a preset, or a name of the configuration; None: not said.
        agent_command: a command; None: not said.
        briefing, timeout: ``--briefing`` and ``--agent-timeout``.
        reflect: ask it once more after each attempt that failed.
        pass_environment: ``--pass-env``.

    Raises:
        UsageError: none or both are said, or it cannot work: no such program, no key.
    """
    from loki.execution import resolve

    if (agent is None) == (agent_command is None):
        raise UsageError(
            "who works? Expected --agent with a program that loki knows (claude, codex, gemini, aider) "
            "or provider:model, like anthropic:claude-opus-4-5, or --agent-command with any program; "
            "one of them"
        )
    if briefing not in {None, "stdin", "argument"}:
        raise UsageError(f"--briefing is {briefing!r}: expected 'stdin' or 'argument'")
    limit = None if timeout is None else argument_seconds("--agent-timeout", timeout)
    if agent is not None:
        if briefing is not None:
            raise UsageError("--briefing is for --agent-command: expected --agent without it")
        more = pass_environment or ()
        return resolve.named_agent(workspace, agent, limit, reflect=reflect, pass_environment=more)
    assert agent_command is not None
    return resolve.program(
        workspace,
        agent_command,
        limit,
        briefing=briefing,  # type: ignore[arg-type]
        reflect=reflect,
        pass_environment=pass_environment,
    )
