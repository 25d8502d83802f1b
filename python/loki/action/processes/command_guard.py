"""How commands of agents and checks run in a project: in a box, and what decides there is looked after.

A workspace says what holds for its folders (`loki.action.processes.command_guard_provider`); whoever runs
a command asks by the
folder that it is run for.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from loki.action.processes.command_guard_provider import registered
from loki.action.processes.protected_rules import RestoredRule, Rules, RuleSnapshot
from loki.action.processes.sandbox import (
    Purpose,
    Sandbox,
    Wall,
    expanded,
    has_own,
    make,
    tree_of,
    wall,
    writable,
)
from loki.base.error import StoreError, UsageError
from loki.base.manual_clock import clock_of
from loki.base.secret import mask_secrets
from loki.base.time import Clock, isoformat
from loki.settings import SandboxConfig

logger = logging.getLogger("loki")

_SHOWN = 200  # characters of a command in a message; chosen

AS_ROOT = (
    "loki runs as root, and nothing keeps what agents write and tests run from the rest of this machine: "
    "one `rm -rf` in a test is enough. Run it as another user, or in a container; or install bubblewrap "
    "(Landlock needs Linux 5.13), and leave [sandbox] mode on auto."
)

NO_WALL = (
    "[sandbox] mode is required, and this machine has none: expected Landlock (Linux 5.13 and later), or "
    "bubblewrap (bwrap) installed and allowed to make namespaces{network}"
)


@dataclass
class CommandGuard:
    """Boxes for commands, and the files that decide while they run.

    Args:
        rules: those files.
        clock: the time.
        tell: told of each file that was put back, beside the log.
        sandbox: what the configuration says of boxes.
        borrowed: folders of dependencies that copies of the project link to.
        is_copy: commands run in copies of the project, not in it.
    """

    rules: Rules
    clock: Clock = field(default_factory=lambda: clock_of(os.environ))
    tell: Callable[[RestoredRule], None] = lambda _: None
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    borrowed: Sequence[str] = ()
    is_copy: bool = False

    def __post_init__(self) -> None:
        """Look where the project lies, before anything runs in it."""
        self._project = tree_of(self.rules.project)

    @contextmanager
    def over(
        self,
        command: Sequence[str],
        tree: str | os.PathLike[str],
        purpose: Purpose = "check",
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Sandbox | None]:
        """Run a command inside ``with``: what it does to the rules is undone afterwards.

        Args:
            command: its words.
            tree: the folder that it works in.
            purpose: what it is run for.
            environment: variables that say where its tools keep what; None: this process's.

        Returns:
            The box that it is to run in; None: it runs in none.

        Raises:
            UsageError: a box is required, and there is none.
        """
        box = self.box(command, tree, purpose, environment)
        before = self.rules.look()
        try:
            yield box
        finally:
            self._settle(before, mask_secrets(shlex.join(command))[:_SHOWN], box)

    def box(
        self,
        command: Sequence[str],
        tree: str | os.PathLike[str],
        purpose: Purpose = "check",
        environment: Mapping[str, str] | None = None,
    ) -> Sandbox | None:
        """The box for a command; `over` says more."""
        if purpose == "agent" and has_own(command):
            return None
        network = self.sandbox.network or purpose == "agent"
        kind = self.sandbox_wall(network=network)
        if kind is None:
            return None
        known = os.environ if environment is None else environment
        root = os.path.realpath(tree)
        is_copy = self.is_copy or root != str(self.rules.project)
        borrowed = self.borrowed if is_copy and purpose != "agent" else ()
        trees = (root,) if is_copy else self._project
        write = writable(trees, borrowed, command, purpose, known)
        deny = self.rules.paths() if kind == "bwrap" else ()
        secret = self._paths(self.sandbox.secret)
        return Sandbox(kind, (*write, *self._declared), tuple(deny), secret, network)

    def sandbox_wall(self, *, network: bool = True) -> Wall | None:
        """What keeps commands in; None: nothing does.

        Raises:
            UsageError: a box is required, and there is none.
        """
        kind = None if self.sandbox.mode == "off" else wall(network=network)
        if kind is None and self.sandbox.mode == "required":
            raise UsageError(
                NO_WALL.format(network="" if network else "; network = false needs it")
            )
        if kind is None and os.getuid() == 0:
            _warn_once(AS_ROOT)
        elif kind is None and not network and self.sandbox.mode == "auto":
            _warn_once("[sandbox] network = false cannot be kept here: it needs bubblewrap")
        return kind

    @cached_property
    def _declared(self) -> tuple[str, ...]:
        """What the configuration lets them write; a folder that is not there is made."""
        found = self._paths(self.sandbox.write)
        for path in found:
            make(path)
        return found

    def _paths(self, said: Sequence[str]) -> tuple[str, ...]:
        found = (expanded(one, os.environ) for one in said)
        return tuple(os.path.realpath(self.rules.project / path) for path in found if path)

    def _settle(self, before: RuleSnapshot, command: str, box: Sandbox | None) -> None:
        keeps = box.keeps if box is not None else None
        try:
            found = self.rules.finish(before, command, isoformat(self.clock.now()), keeps)
        except (OSError, StoreError) as error:
            logger.warning(
                "While `%s` ran, what decides here was changed, and it could not be put back: %s. "
                "Look at .loki/config.toml, .git/config and .git/hooks before you go on.",
                command,
                error,
            )
            return
        asked = self.rules.asked(before) if found else {}
        for one in found:
            if asked.get(one.id):  # a person said that it is to stay as it is
                logger.info("%s was put back again, as `%s` ran", one.path, one.command)
                continue
            logger.warning("%s", restored_text(one))
            if one.id not in asked:
                self.tell(one)


def restored_text(one: RestoredRule) -> str:
    """What a person is told of a file that was put back."""
    did = "deleted" if not one.found else "changed" if one.restored else "written"
    kept = f" What it said then is in .loki/{one.kept}." if one.kept else ""
    ran = f"{one.path} was {did} while `{one.command}` ran, which must not: it"
    if not one.is_asked:
        return f"{ran} says what the task did. It is as it was.{kept}"
    return (
        f"{ran} decides how loki or git work. It is as it was.{kept} If that was you: "
        f"`loki approve {one.id}`"
    )


def command_guard_of(root: str | os.PathLike[str]) -> CommandGuard:
    """What looks after a folder: its workspace's, or one that knows no settings.

    Args:
        root: a project's folder, or a copy's.
    """
    project = Path(os.path.realpath(root))
    return registered(project) or CommandGuard(Rules(project, project / ".loki"))


_warned: set[str] = set()


def _warn_once(sentence: str) -> None:
    if sentence not in _warned:
        _warned.add(sentence)
        logger.warning("%s", sentence)
