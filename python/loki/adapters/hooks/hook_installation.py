"""Puts loki's hooks into agents' settings, takes them out again, and says which are there.

What the settings look like afterwards is decided in `loki.adapters.hooks.hook_entry`; here are the files.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loki.adapters.hooks import hook_entry
from loki.adapters.hooks.hook_handler import PROBE
from loki.adapters.hooks.hooked_agents import AGENTS, HookedAgent
from loki.adapters.hooks.json_text import read
from loki.base.atomic_file import write_atomic
from loki.base.error import ConfigError, StoreError, UsageError

LARGEST = 4 << 20
"""Bytes of settings that are read; chosen, not measured."""

PATIENCE = 30.0
"""Seconds that a command line has to show that it works; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of an agent's settings.

    Attributes:
        agent: whose.
        scope: which of them.
        path: the file.
        before, after: its content; None: there is no file.
    """

    agent: HookedAgent
    scope: str
    path: Path
    before: str | None
    after: str | None

    @property
    def changes(self) -> bool:
        """Whether anything does."""
        return self.before != self.after

    def diff(self) -> str:
        """What changes, as a unified diff; "" where nothing does."""
        old, new = ((side or "").splitlines(keepends=True) for side in (self.before, self.after))
        lines = difflib.unified_diff(
            old,
            new,
            str(self.path) if self.before is not None else "/dev/null",
            str(self.path) if self.after is not None else "/dev/null",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def carry_out(self) -> None:
        """Write it, whole or not at all; a link is followed, permissions stay.

        Raises:
            StoreError: it cannot be written; the file is as it was.
        """
        if not self.changes:
            return
        target = Path(os.path.realpath(self.path))
        try:
            if self.after is None:
                target.unlink()
                with suppress(OSError):  # something else is in it
                    target.parent.rmdir()
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            mode = target.stat().st_mode & 0o7777 if self.before is not None else _new_mode()
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}") from error
        write_atomic(target, self.after.encode("utf-8", "surrogateescape"), mode)


def to_install(
    agent: HookedAgent, scope: str, project: Path, environment: Mapping[str, str]
) -> Plan:
    """What installing changes.

    Args:
        agent: whose hooks.
        scope: which of its settings.
        project: the project's folder.
        environment: variables, some of which say where a user's settings are.

    Raises:
        UsageError: the agent has no such settings.
        ConfigError: they cannot be read; with file and line.
    """
    path = _path(agent, scope, project, environment)
    wanted = hook_entry.Entry(
        command_line(agent.name, scope, environment),
        agent.module().EVENTS,
        agent.more,
        agent.comments,
    )
    before = _read(path)
    try:
        return Plan(agent, scope, path, before, hook_entry.installed(before, wanted))
    except ConfigError as error:
        raise _at(path, error) from error


def to_remove(
    agent: HookedAgent, scope: str, project: Path, environment: Mapping[str, str]
) -> Plan:
    """What uninstalling changes; arguments and errors as for `to_install`."""
    path = _path(agent, scope, project, environment)
    before = _read(path)
    if before is None:
        return Plan(agent, scope, path, None, None)
    try:
        after = hook_entry.removed(before, comments=agent.comments)
        return Plan(agent, scope, path, before, after)
    except ConfigError as error:
        raise _at(path, error) from error


def command_line(name: str, scope: str, environment: Mapping[str, str]) -> str:
    """The command line of a hook: it calls loki, and where that is gone it does nothing.

    Its exit code is 0 also where a loki of an older version refuses it: to agents 2 is a veto.

    Args:
        name: of the agent.
        scope: settings that others share have it by name, too.
        environment: variables; of them ``PATH``.
    """
    own = Path(sys.executable).parent / "loki"
    words = [str(own)] if own.exists() else [sys.executable, "-m", "loki"]
    program, said = shlex.quote(words[0]), shlex.join([*words, "hook", name])
    by_name = f"! command -v loki >/dev/null || loki hook {name} || true"
    if scope != "project":
        return f"test ! -x {program} || {said} || true"
    if _is_on_path(own, environment):
        return by_name
    return f"test -x {program} && {said} || {by_name}"


def _is_on_path(own: Path, environment: Mapping[str, str]) -> bool:
    """Whether ``loki`` calls this loki in any terminal: not for a virtual environment that is active."""
    found = shutil.which("loki", path=environment.get("PATH"))
    if found is None or os.path.realpath(found) != os.path.realpath(own):
        return False
    return sys.prefix == sys.base_prefix or Path(found).parent != own.parent


# --- what is there --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HookStatus:
    """What stands in one of an agent's settings.

    Attributes:
        agent: whose.
        scope: which of them.
        path: the file.
        events: events with loki's hooks; none: it is not installed there.
        missing: events that it listens to today, without one.
        commands: the command lines.
        problem: why it does not work, or "".
    """

    agent: HookedAgent
    scope: str
    path: Path
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    problem: str = ""


def hook_status(project: Path, environment: Mapping[str, str]) -> list[HookStatus]:
    """What stands in the settings of all agents, where there are any.

    Args:
        project: the project's folder.
        environment: variables, some of which say where a user's settings are.
    """
    return [
        _standing(agent, scope, path, project, environment)
        for agent in AGENTS.values()
        for scope in agent.files
        if (path := agent.path(scope, project, environment)).exists()
    ]


def _standing(
    agent: HookedAgent, scope: str, path: Path, project: Path, environment: Mapping[str, str]
) -> HookStatus:
    try:
        text = _read(path) or ""
        found = hook_entry.commands(text, comments=agent.comments)
        off = _switched_off(read(text, comments=agent.comments).value)
    except ConfigError as error:
        return HookStatus(agent, scope, path, problem=str(_at(path, error)))
    events = tuple(dict.fromkeys(event for event, _ in found))
    lines = tuple(dict.fromkeys(line for _, line in found))
    missing = tuple(event for event, _ in agent.module().EVENTS if event not in events)
    problem = off
    for line in lines:
        problem = problem or _problem(line, project, environment)
    if events and missing and not problem:
        problem = f"no hook for {', '.join(missing)}: install it again"
    return HookStatus(
        agent, scope, path, events, missing if events else (), lines, problem if events else ""
    )


def _switched_off(said: object) -> str:
    """Why no hook runs at all, or ""."""
    if not isinstance(said, dict):
        return ""
    if said.get("disableAllHooks") is True:
        return '"disableAllHooks" is true'
    config = said.get("hooksConfig")
    if isinstance(config, dict) and config.get("enabled") is False:
        return '"hooksConfig.enabled" is false'
    return ""


def _problem(line: str, project: Path, environment: Mapping[str, str]) -> str:
    """Why a command line does not work, or ""."""
    event = json.dumps({"hook_event_name": PROBE, "cwd": str(project)})
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            input=event,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=project,
            env=dict(environment),
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be run: {type(error).__name__}"
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return f"it ended with exit code {done.returncode}: {last}"
    return "" if '"loki"' in done.stdout else "it does not find loki any more: install it again"


# --- files ----------------------------------------------------------------------------------------


def _path(agent: HookedAgent, scope: str, project: Path, environment: Mapping[str, str]) -> Path:
    if scope not in agent.files:
        known = ", ".join(f"--{one}" for one in agent.files)
        raise UsageError(f"{agent.title} has no settings for --{scope}, expected one of {known}")
    if scope != "user" and not project.is_dir():
        raise UsageError(f"no such project: {project} is not a folder")
    return agent.path(scope, project, environment)


def _read(path: Path) -> str | None:
    """A file's text; None: there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    if len(data) > LARGEST:
        raise ConfigError(f"found more than {LARGEST >> 20} MB, expected settings", file=str(path))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError("found what is no UTF-8", file=str(path), line=line) from error


def _at(path: Path, error: ConfigError) -> ConfigError:
    if error.file:
        return error
    return ConfigError(error.reason, file=str(path), line=error.line, column=error.column)


def _new_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o644 & ~mask
