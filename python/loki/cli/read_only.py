"""What a triage agent may ask of ``loki``: commands that read; all others are refused and recorded."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from loki.base.error import LokiError
from loki.base.time import isoformat
from loki.cli.command_table import CommandGroup
from loki.cli.common import errors_as_sentences, fail

READING = frozenset(
    {
        ("history",),
        ("show",),
        ("status",),
        ("inbox",),
        ("breakers",),
        ("breakers", "list"),
        ("breakers", "show"),
        ("dead-letters",),
        ("dead-letters", "list"),
        ("dead-letters", "show"),
        ("patterns",),
        ("patterns", "check"),
        ("patterns", "test"),
        ("queue",),
        ("queue", "list"),
        ("queue", "show"),
        ("recur",),
        ("recur", "history"),
        ("recur", "list"),
        ("recur", "show"),
        ("signals",),
        ("signals", "list"),
    }
)
"""Commands that change nothing. A list of what may be done: what is not in it, and every command that
is new, is refused. ``explain`` and ``report`` run programs or write files where they are told to."""

LONGEST = 500
"""Characters of a refused command that are recorded; chosen, not measured."""


class Guarded(TyperGroup):
    """The ``loki`` command, which only reads where a triage agent calls it."""

    def __init__(self, **said: Any) -> None:
        super().__init__(**{**said, "commands": None})
        self.commands = CommandGroup()

    def list_commands(self, _ctx: Any) -> list[str]:
        """Names of all commands, none of which is loaded for it."""
        return list(self.commands)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is called."""
        with errors_as_sentences():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is called."""
        name, command, rest = super().resolve_command(ctx, args)
        triage = os.environ.get("LOKI_TRIAGE", "")
        if changes_nothing() and command is not None and not is_reading(name or "", command, rest):
            said = shlex.join(["loki", *args])
            _record(triage, os.environ, said)
            fail(
                f"refused: `loki {name}` may change something so, and a triage only reads ({triage}): "
                "say in your verdict what is to be done",
                2,
            )
        return name, command, rest


def is_reading(name: str, command: object, rest: Sequence[str]) -> bool:
    """Whether a call changes nothing, whatever its options mean.

    Args:
        name: of the first command.
        command: it.
        rest: the words after it; of a group each that names one of its commands has to read.
    """
    if not isinstance(command, TyperGroup):
        return (name,) in READING
    called = [word for word in rest if word in command.commands]
    return all((name, word) in READING for word in called) and (bool(called) or (name,) in READING)


def changes_nothing() -> bool:
    """Whether a triage agent calls: commands that read then do not tidy up on their way either."""
    return bool(os.environ.get("LOKI_TRIAGE"))


def _record(triage: str, environment: Mapping[str, str], said: str) -> None:
    """Keep with a triage what its agent tried; where that cannot be, it is refused all the same."""
    from loki.base.manual_clock import clock_of
    from loki.base.secret import mask_secrets
    from loki.jobs.triage.triage_policy import parts_of
    from loki.jobs.triage.triage_runner import refused_commands_log
    from loki.stores import open_store

    parts = parts_of(triage)
    folder = Path(environment.get("LOKI_TRIAGE_PROJECT", ".")) / ".loki"
    if parts is None or not (folder / "recurring" / parts[0]).is_dir():
        return
    try:
        at = isoformat(clock_of(environment).now())
        record: dict[str, Any] = {"at": at, "what": mask_secrets(said)[:LONGEST]}
        open_store(folder).append(refused_commands_log(*parts), record, durable=False)
    except LokiError as error:
        typer.echo(f"loki: could not record it: {error}", err=True)
