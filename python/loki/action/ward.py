"""How commands of agents and checks run in a project: what decides there is looked after.

A workspace says what holds for its folders (`loki.action.provider`); whoever runs a command asks by the
folder that it is run for. Under test: ``tests/py/together/test_rules.py``, by whole runs.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loki.action.provider import provider_of
from loki.action.rules import Look, PutBack, Rules
from loki.base.error import StoreError
from loki.base.manual_clock import clock_of
from loki.base.secret import mask_secrets
from loki.base.time import Clock, isoformat

logger = logging.getLogger("loki")

_SHOWN = 200  # characters of a command in a message; chosen


@dataclass
class Ward:
    """Looks after the files that decide while commands run.

    Args:
        rules: those files.
        clock: the time.
        tell: told of each file that was put back, beside the log.
    """

    rules: Rules
    clock: Clock = field(default_factory=lambda: clock_of(os.environ))
    tell: Callable[[PutBack], None] = lambda _: None

    @contextmanager
    def over(self, command: Sequence[str]) -> Iterator[None]:
        """Run a command inside ``with``: what it does to the rules is undone afterwards.

        Args:
            command: its words, as they are told.
        """
        before = self.rules.look()
        try:
            yield
        finally:
            self._settle(before, mask_secrets(shlex.join(command))[:_SHOWN])

    def _settle(self, before: Look, command: str) -> None:
        try:
            found = self.rules.settle(before, command, isoformat(self.clock.now()))
        except (OSError, StoreError) as error:
            logger.warning(
                "While `%s` ran, what decides here was changed, and it could not be put back: %s. "
                "Look at .loki/config.toml, .git/config and .git/hooks before you go on.",
                command,
                error,
            )
            return
        for one in found:
            logger.warning("%s", told(one))
            self.tell(one)


def told(one: PutBack) -> str:
    """What a person is told of a file that was put back."""
    did = "deleted" if not one.found else "changed" if one.restored else "written"
    kept = f" What it said then is in .loki/{one.kept}." if one.kept else ""
    return (
        f"{one.path} was {did} while `{one.command}` ran, which must not: it decides how loki or git "
        f"work. It is as it was.{kept} If that was you: `loki approve {one.id}`"
    )


def ward_of(root: str | os.PathLike[str]) -> Ward:
    """What looks after a folder: its workspace's, or one that knows no settings.

    Args:
        root: a project's folder, or a copy's.
    """
    project = Path(os.path.realpath(root))
    provider = provider_of(project)
    if provider is not None:
        return provider.ward
    return Ward(Rules(project, project / ".loki"))
