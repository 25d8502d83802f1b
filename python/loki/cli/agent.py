"""Who works on a task, by what was said on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.base.time import argument_seconds

if TYPE_CHECKING:
    from loki.action.agent import Agent
    from loki.workspace import Workspace


def agent_said(
    workspace: Workspace,
    agent: str | None,
    agent_command: str | None,
    *,
    briefing: str | None = None,
    timeout: str | None = None,
    reflect: bool = False,
) -> Agent:
    """The agent that ``--agent`` or ``--agent-command`` says.

    Args:
        workspace: the project.
        agent: ``provider:model``, or a name of the configuration; None: not said.
        agent_command: a command; None: not said.
        briefing, timeout: ``--briefing`` and ``--agent-timeout``.
        reflect: ask it once more after each attempt that failed.

    Raises:
        UsageError: none or both are said, or it cannot work: no such program, no key.
    """
    from loki.action.words import unrunnable
    from loki.agents.command import CommandAgent

    if (agent is None) == (agent_command is None):
        raise UsageError(
            "who works? Expected --agent provider:model, like anthropic:claude-opus-4-5, or "
            '--agent-command with a program, like "claude -p"; one of them'
        )
    if briefing not in {None, "stdin", "argument"}:
        raise UsageError(f"--briefing is {briefing!r}: expected 'stdin' or 'argument'")
    limit = None if timeout is None else argument_seconds("--agent-timeout", timeout)
    if agent is not None:
        if briefing is not None:
            raise UsageError("--briefing is for agents that are commands: expected it without")
        return workspace.agent(agent, timeout=limit, reflect=reflect)
    assert agent_command is not None
    found = CommandAgent(
        agent_command,
        briefing=briefing,  # type: ignore[arg-type]
        timeout=limit or workspace.config.loop.agent_timeout,
        reflect=reflect,
    )
    if problem := unrunnable(found.command, workspace.root, may_come=False):
        raise UsageError(f"unknown agent: {problem}")
    return found
