"""What the commands of a line do: look, change, check, ask, wait. Data in ``tool-call.yml`` says it.

Pure and total.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from loki.decision.shell_line import Simple
from loki.decision.tool_knowledge import Effect, knowledge


def effect_of(commands: Sequence[Simple], *, is_check: bool) -> Effect:
    """What a line does, by its commands."""
    if any(map(changes, commands)):
        return Effect.WRITE
    if not is_check and commands and all(map(looks, commands)):
        return Effect.READ
    return Effect.RUN


def looks(command: Simple) -> bool:
    """Whether it only looks, unless `changes` says that it changes something."""
    data = knowledge()
    return command.program in data.looks or command.first in data.looks_of.get(command.program, ())


def changes(command: Simple) -> bool:
    """Whether it changes the project, or what that stands on."""
    data = knowledge()
    if command.writes and not checks(command):
        return True
    if command.program in data.looks:
        return _any_of(data.unless.get(command.program, ()), command.arguments)
    if command.program in data.changes:
        return True
    if command.program in data.mends and not _any_of(data.mends_unless, command.arguments):
        return _any_of(data.mends[command.program], command.arguments or ("",))
    return command.first in data.changes_of.get(command.program, ())


def edits(command: Simple) -> bool:
    """Whether it writes into sources that checks read: `sed -i app.py`."""
    data = knowledge()
    last = command.arguments[-1] if command.arguments else ""
    if last.rpartition(".")[2].casefold() in data.prose or not changes(command):
        return False
    return command.program in data.edits or command.first in data.edits_of.get(command.program, ())


def asks(command: Simple) -> bool:
    """Whether its exit code 1 says no, and not that it failed."""
    data = knowledge()
    return command.program in data.asks or command.first in data.asks_of.get(command.program, ())


def waits(commands: Sequence[Simple], *, is_here: bool) -> bool:
    """Whether it waits for what others do: it sleeps, watches, or asks a server on this machine."""
    data = knowledge()
    if any(
        one.program in data.waits or _any_of(data.waits_of.get(one.program, ()), one.arguments)
        for one in commands
    ):
        return True
    fetches = any(one.program in data.fetchers for one in commands)
    return fetches and is_here


def checks(command: Simple) -> bool:
    """Whether it checks the project."""
    data = knowledge()
    if command.program in data.checks:
        return not _mends(command)
    if _any_of(data.checks_of.get(command.program, ()), (command.first, *command.arguments[:1])):
        return True
    if command.program in data.looks or command.program in data.changes:
        return False
    return bool(_name_words(command) & data.check_words) and command.program not in data.changes_of


def _name_words(command: Simple) -> frozenset[str]:
    """Of a script behind `npm run`, or a program of the project's own: `./run-tests.sh`, `sh test.sh`."""
    is_script = command.program in knowledge().interpreters and "." in command.first
    name = command.first.rpartition("/")[2] if is_script else command.program
    return frozenset(re.split(r"[^a-z0-9]+", name.casefold()))


def _mends(command: Simple) -> bool:
    """Whether a check changes what it finds, or something else of the project."""
    data = knowledge()
    if command.first in data.changes_of.get(command.program, ()):
        return True
    if command.program not in data.mends or _any_of(data.mends_unless, command.arguments):
        return False
    return _any_of(data.mends[command.program], command.arguments or ("",))


def runs_tests(command: Simple) -> bool:
    """Whether a check runs tests."""
    words = {command.program, command.first, *_name_words(command)}
    return bool(words & knowledge().test_words)


def _any_of(globs: Iterable[str], words: Iterable[str]) -> bool:
    return any(fnmatchcase(word, glob) for word in words for glob in globs)
