"""How the people of a project are told: the channels of ``[notify]`` in its configuration."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loki.base.error import AgentError
from loki.people.notification import Channel, Notifier, Webhook

if TYPE_CHECKING:
    from loki.workspace import Workspace


def notifier(workspace: Workspace) -> Notifier:
    """Tells the people of a project, as its ``[notify]`` says; nobody where it says nothing.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> notifier(Workspace(tempfile.mkdtemp())).channels
        []
    """
    config = workspace.config.notify
    channels: list[Channel] = []
    if config.command is not None:
        channels.append(NotifyCommand(config.command, workspace.project, config.timeout))
    if config.webhook is not None:
        channels.append(Webhook(config.webhook, config.timeout))
    return Notifier(channels, config.kinds, str(workspace.project), workspace.clock)


@dataclass
class NotifyCommand:
    """Runs a program that reads the notification on its standard input; no shell reads its words.

    Args:
        command: the program and its arguments.
        root: the folder that it runs in.
        timeout: seconds, after which it and all that it started is ended.
    """

    command: str
    root: Path
    timeout: float

    @property
    def name(self) -> str:
        """The program alone: its arguments may hold secrets."""
        return f"the command {shlex.split(self.command)[0]!r}"

    def send(self, body: bytes) -> None:
        """Run it.

        Raises:
            AgentError: it did not end with 0, or not in time.
            UsageError: there is no such program.
        """
        from loki.action.processes import process

        words = shlex.split(self.command)
        done = process.run(words, cwd=self.root, timeout=self.timeout, stdin=body)
        if done.timed_out:
            raise AgentError(f"it took longer than {self.timeout:g} s")
        if not done.is_success:
            raise AgentError(f"it ended with exit code {done.exit_code}")
