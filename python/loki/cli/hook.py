"""Let a command-line agent hear from loki: Claude Code, Codex, Gemini CLI.

Their hooks call loki at each tool call. Where a failure comes back after a change, the agent is
told in its next request what led nowhere; where it comes back again and again, it is stopped; where
it says that it is done and no check has passed since its last change, it is sent back once. A
healthy session hears nothing.

`loki hook install claude-code` — from the next start of claude on

`loki hook status` — what is installed where, and does it work?

`loki hook uninstall claude-code` — the settings are what they were, to the byte

`loki hook AGENT` is what the agents call; docs/hooks.md says what it is told and answers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loki.base.error import UsageError
from loki.base.text_format import line
from loki.cli.common import fail, present
from loki.cli.options import Json, command_group, with_options

if TYPE_CHECKING:
    from loki.adapters.hooks.hook_installation import HookStatus, Plan
    from loki.adapters.hooks.hooked_agents import HookedAgent

app = command_group(__doc__)

NONE = "No agent has loki's hooks here. To begin: loki hook install claude-code"

Agent = Annotated[str, typer.Argument(help="claude-code, codex or gemini.", metavar="AGENT")]
Where = Annotated[Path, typer.Option("--path", help="The project's folder.")]


@dataclass(frozen=True)
class ScopeOptions:
    """Whose settings are meant."""

    user: Annotated[bool, typer.Option("--user", help="In all my projects.")] = False
    project: Annotated[
        bool, typer.Option("--project", help="In this project, for everybody who works on it.")
    ] = False
    local: Annotated[
        bool, typer.Option("--local", help="In this project, for me alone (Claude Code only).")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, change nothing.")
    ] = False
    path: Where = Path()

    @property
    def named(self) -> list[str]:
        """Those that are said."""
        return [name for name in ("user", "project", "local") if getattr(self, name)]


@app.command("install")
@with_options
def install(
    agent: Agent,
    where: ScopeOptions,
) -> None:
    """Put loki's hooks into an agent's settings; what others put there stays, and so do comments.

    It may be repeated: then nothing changes, or a command line that went stale is put right.

    Without --user, --project or --local: for me alone in this project, where the agent has such
    settings (Claude Code), else --project.

        loki hook install claude-code
        loki hook install claude-code --user
        loki hook install codex --dry-run
    """
    from loki.adapters.hooks.hook_installation import to_install

    chosen = _agent(agent)
    named = where.named
    if len(named) > 1:
        fail(f"found {' and '.join(f'--{one}' for one in named)}, expected one of them", 2)
    scope = named[0] if named else chosen.default
    plan = to_install(chosen, scope, where.path.resolve(), os.environ)
    if where.dry_run:
        _show(plan)
        return
    plan.carry_out()
    if not plan.changes:
        typer.echo(f"{chosen.title}: installed already, in {plan.path}")
        return
    typer.echo(f"{chosen.title}: installed in {plan.path}")
    if scope in chosen.next:
        typer.echo(chosen.next[scope])
    typer.echo(
        f"It counts from the next start of {chosen.program} on. Does it work? loki hook status"
    )


@app.command("uninstall")
@with_options
def uninstall(
    agent: Agent,
    where: ScopeOptions,
) -> None:
    """Take loki's hooks out of an agent's settings: they are what they were, to the byte.

    Where somebody else wrote the file meanwhile, loki's entries go and the rest stays. Without
    --user, --project or --local: out of all of the agent's settings.

        loki hook uninstall claude-code
    """
    from loki.adapters.hooks.hook_installation import to_remove

    chosen = _agent(agent)
    named = where.named
    plans = [
        to_remove(chosen, scope, where.path.resolve(), os.environ)
        for scope in named or chosen.files
    ]
    changing = [plan for plan in plans if plan.changes]
    for plan in changing:
        if where.dry_run:
            _show(plan)
            continue
        plan.carry_out()
        typer.echo(f"{chosen.title}: removed from {plan.path}")
    if not changing:
        typer.echo(f"{chosen.title}: not installed, nothing to remove")


@app.command("status")
def status(path: Where = Path(), json: Json = False) -> None:
    """Say in whose settings loki's hooks are, and whether their command lines work.

    Exit codes: 0, also where nothing is installed; 1 where something that is installed does not work.
    """
    from loki.adapters.hooks.hook_installation import hook_status

    found = hook_status(path.resolve(), os.environ)
    shown = [one for one in found if one.events or one.problem]
    present([_as_dict(one) for one in found], _tell(shown), json=json, nothing=NONE)
    if any(one.problem for one in found if one.events):
        raise typer.Exit(1)


def _listen(name: str, title: str) -> None:
    """Add an agent's command: for the help, and for who calls it with options."""

    def command() -> None:
        from loki.cli import hook_call

        hook_call.run(name)

    command.__doc__ = (
        f"What {title} calls: the event as JSON on stdin; the answer, or nothing, on stdout.\n\n"
        "The exit code is always 0: a problem of loki's own is a line on stderr, and the agent goes on."
    )
    app.command(name)(command)


_listen("claude-code", "Claude Code")
_listen("codex", "Codex")
_listen("gemini", "Gemini CLI")


def _tell(found: list[HookStatus]) -> Iterator[str]:
    for one in found:
        unseen = one.events and one.agent.next.get(one.scope)
        works = "works, once you trust it" if unseen else "works"
        says = f"does not work: {one.problem}" if one.problem else works
        yield f"{one.agent.title}, {one.scope}: {line(says)}"
        yield f"    {one.path}"
        if one.events:
            yield f"    {', '.join(one.events)}"
        if unseen:
            yield f"    {unseen} Whether you did, loki cannot see."


def _as_dict(one: HookStatus) -> dict[str, object]:
    return {
        "agent": one.agent.name,
        "scope": one.scope,
        "path": str(one.path),
        "installed": bool(one.events),
        "works": bool(one.events) and not one.problem,
        "events": list(one.events),
        "missing": list(one.missing),
        "commands": list(one.commands),
        "problem": one.problem,
        "unseen": one.agent.next.get(one.scope, "") if one.events else "",
    }


def _show(plan: Plan) -> None:
    typer.echo(plan.diff() or f"nothing would change in {plan.path}\n", nl=False)


def _agent(name: str) -> HookedAgent:
    from loki.adapters.hooks.hooked_agents import AGENTS

    names = {"claude": "claude-code", "gemini-cli": "gemini"}
    agent = AGENTS.get(names.get(name, name))
    if agent is None:
        raise UsageError(f"no agent {name!r} with hooks, expected one of {', '.join(AGENTS)}")
    return agent
