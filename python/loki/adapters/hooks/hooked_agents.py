"""The agents whose hooks loki knows, and where each has its settings; light, loaded at every call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from loki.adapters.hooks.hook_message import Answer, HookMessage, text

TIMEOUT = 30
"""Seconds that an agent waits for a hook of loki's; loki gives up sooner. Chosen, not measured."""


class HookedAgent(NamedTuple):
    """An agent that has hooks.

    Attributes:
        name: as in ``loki hook NAME``.
        title: what people call it.
        program: its command.
        room: the module that reads its events and writes its answers.
        files: its settings, by scope, relative to the project; of ``user`` relative to `home`.
        home: the variable that says where a user's settings are, and the folder where it does not.
        more: what stands in each hook beside its command.
        comments: whether it reads comments in its settings.
        next: what a person has to do before it calls the hooks, by scope.
    """

    name: str
    title: str
    program: str
    room: str
    files: Mapping[str, str]
    home: tuple[str, str]
    more: Mapping[str, Any]
    comments: bool
    next: Mapping[str, str]

    @property
    def default(self) -> str:
        """The scope where nothing is said: for oneself, in this project, as far as it has one."""
        return next(iter(self.files))

    def module(self) -> ModuleType:
        """Its room."""
        import importlib

        return importlib.import_module(f"loki.adapters.hooks.{self.room}")

    def events(self) -> tuple[tuple[str, str | None], ...]:
        """The events that loki listens to, each with the tools that it is limited to."""
        return tuple((name, tools) for name, (tools, _) in self.module().EVENTS.items())

    def received(self, data: Mapping[str, Any]) -> HookMessage | None:
        """What one of its hooks was called with; None: nothing that loki listens to."""
        known = self.module().EVENTS.get(text(data, "hook_event_name"))
        heard: HookMessage | None = known[1](data) if known else None
        return heard

    def answer(self, how: str, to: HookMessage, said: str) -> Answer:
        """What it is told, in its own form.

        Args:
            how: ``nudge``, ``refuse``, ``stop``, or ``stopped``: at a call that is made all the same.
            to: what is answered.
            said: the text.
        """
        told: Answer = getattr(self.module(), how)(to, said)
        return told

    def path(self, scope: str, project: Path, environment: Mapping[str, str]) -> Path:
        """Its settings.

        Args:
            scope: one of `files`.
            project: the project's folder.
            environment: variables, of which `home` is one.
        """
        if scope != "user":
            return project / self.files[scope]
        variable, folder = self.home
        base = environment.get(variable)
        return (Path(base) if base else Path(os.path.expanduser(folder))) / self.files[scope]


_TRUST = (
    "In a folder that you do not trust, Gemini CLI ignores a project's hooks: "
    "start gemini there once, and say that you do."
)
_REVIEW = "Codex runs no hook before you trust it: start codex and type /hooks."

AGENTS: Mapping[str, HookedAgent] = {
    agent.name: agent
    for agent in (
        HookedAgent(
            "claude-code",
            "Claude Code",
            "claude",
            "claude_code",
            {
                "local": ".claude/settings.local.json",
                "project": ".claude/settings.json",
                "user": "settings.json",
            },
            ("CLAUDE_CONFIG_DIR", "~/.claude"),
            {"timeout": TIMEOUT},
            comments=False,
            next={},
        ),
        HookedAgent(
            "codex",
            "Codex",
            "codex",
            "codex",
            {"project": ".codex/hooks.json", "user": "hooks.json"},
            ("CODEX_HOME", "~/.codex"),
            {"timeout": TIMEOUT},
            comments=False,
            next={"project": _REVIEW, "user": _REVIEW},
        ),
        HookedAgent(
            "gemini",
            "Gemini CLI",
            "gemini",
            "gemini",
            {"project": ".gemini/settings.json", "user": "settings.json"},
            ("", "~/.gemini"),
            {"name": "loki", "timeout": TIMEOUT * 1000},
            comments=True,
            next={"project": _TRUST},
        ),
    )
}
"""By name."""
