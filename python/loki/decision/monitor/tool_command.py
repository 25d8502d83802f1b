"""What the commands of a line do: look, change, check, ask, wait. Data in ``tool-call.yml`` says it.

Pure and total.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from loki.decision.monitor.shell_line import Simple
from loki.decision.monitor.tool_knowledge import Effect, knowledge

REMEMBERED = 512
"""Commands of which it is known what they do, the newest: each is asked several times. Chosen."""


def effect_of(commands: Sequence[Simple], *, is_check: bool) -> Effect:
    """What a line does, by its commands."""
    if any(map(changes, commands)):
        return Effect.WRITE
    if not is_check and commands and all(map(looks, commands)):
        return Effect.READ
    return Effect.RUN


@lru_cache(REMEMBERED)
def looks(command: Simple) -> bool:
    """Whether it only looks, unless `changes` says that it changes something."""
    data = knowledge()
    is_checker = command.program in data.checks or command.program in data.checks_of
    if command.program in data.looks or (is_checker and _tells(command)):
        return True
    return command.first in data.looks_of.get(command.program, ())


@lru_cache(REMEMBERED)
def changes(command: Simple) -> bool:
    """Whether it changes the project, or what that stands on."""
    data = knowledge()
    if command.writes and not checks(command):
        return True
    if command.program in data.looks:
        return _any_of(data.unless.get(command.program, ()), command.arguments)
    return not _tells(command) and (command.program in data.changes or _mends(command))


def edits(command: Simple) -> bool:
    """Whether it writes into sources that checks read: `sed -i app.py`, `cat > app.py`."""
    data = knowledge()
    if written(command):
        return True
    last = command.arguments[-1] if command.arguments else ""
    if last.rpartition(".")[2].casefold() in data.prose or not changes(command):
        return False
    return command.program in data.edits or command.first in data.edits_of.get(command.program, ())


def written(command: Simple) -> str:
    """The file of code that its output goes into, or ""."""
    last = command.first if command.program == "tee" else command.target
    return last if _is_code(last) and not checks(command) else ""


def edited(command: Simple) -> str:
    """The file of code that it changes, or "": `cat > app.py`, `sed -i s/a/b/ app.py`."""
    if target := written(command):
        return target
    if not changes(command):
        return ""
    return next((word for word in reversed(command.arguments) if _is_code(word)), "")


def takes_back(command: Simple) -> bool:
    """Whether it takes a change back: `git checkout app.py`, `git stash`, `git reset --hard`."""
    words = command.arguments
    if command.program == "git" and command.first == "checkout":
        return "--" in words or any(_is_file(word) for word in words[1:])
    if command.program == "git" and command.first == "reset":
        return "--hard" in words
    return stashes(command) or _is_one(command, knowledge().takes_back, knowledge().takes_back_of)


def stashes(command: Simple) -> bool:
    """Whether it puts changes away for a while: `git stash`, and not `git stash list`."""
    return _is_stash(command) and (_stash_word(command) in {"", "push", "save"})


def puts_back(command: Simple) -> bool:
    """Whether it ends that: what was put away is there again, or is thrown away."""
    return _is_stash(command) and _stash_word(command) in {
        "pop",
        "apply",
        "drop",
        "clear",
        "branch",
    }


def _is_stash(command: Simple) -> bool:
    return command.program == "git" and command.first == "stash"


def _stash_word(command: Simple) -> str:
    after = command.arguments[command.arguments.index("stash") + 1 :]
    return next((word for word in after if not word.startswith("-")), "")


def _is_file(word: str) -> bool:
    """Whether a word names a file, and no branch, as far as its form tells."""
    return word == "." or re.search(r"[^/.]\.[A-Za-z]\w{0,9}$", word) is not None


def tries(command: Simple) -> bool:
    """Whether it changes something in a way that could mend a failure."""
    data = knowledge()
    return (
        changes(command)
        and not takes_back(command)
        and not _is_one(command, data.no_try, data.no_try_of)
    )


def runs(command: Simple) -> bool:
    """Whether it runs something: it neither only looks nor only changes."""
    return checks(command) or not (looks(command) or changes(command))


_WORDS = 4  # of a sentence; chosen


def talks(command: Simple) -> bool:
    """Whether it only prints words: `printf "Please choose"`; no variable is among them."""
    words = " ".join(command.arguments)
    return (
        command.program in {"echo", "printf"} and len(words.split()) >= _WORDS and "$" not in words
    )


def _is_one(
    command: Simple, programs: Collection[str], words: Mapping[str, Collection[str]]
) -> bool:
    return command.program in programs or command.first in words.get(command.program, ())


def _is_code(word: str) -> bool:
    """Whether a word names a file of code."""
    stem, dot, ending = word.rpartition(".")
    return bool(dot and stem) and ending.casefold() in knowledge().sources and "\n" not in word


def asks(command: Simple) -> bool:
    """Whether its exit code 1 says no, and not that it failed."""
    data = knowledge()
    return command.program in data.asks or command.first in data.asks_of.get(command.program, ())


def waits(commands: Sequence[Simple], *, is_up: bool) -> bool:
    """Whether it waits for what others do: it sleeps, watches, or asks a server whether it is up."""
    data = knowledge()
    if any(
        one.program in data.waits or _any_of(data.waits_of.get(one.program, ()), one.arguments)
        for one in commands
    ):
        return True
    fetches = any(one.program in data.fetchers for one in commands)
    return fetches and is_up


@lru_cache(REMEMBERED)
def checks(command: Simple) -> bool:
    """Whether it checks the project."""
    data = knowledge()
    if _tells(command) or _mends(command):
        return False
    if command.program in data.checks:
        return True
    if _any_of(data.checks_of.get(command.program, ()), (command.first, *command.arguments[:1])):
        return True
    if command.program in data.looks or command.program in data.changes:
        return False
    return bool(_name_words(command) & data.check_words) and command.program not in data.changes_of


@lru_cache(REMEMBERED)
def _tells(command: Simple) -> bool:
    """Whether it only tells of itself, or of what it would do: `pytest --version`."""
    data, words = knowledge(), command.arguments
    return _any_of(data.tells, words) or (len(words) == 1 and words[0] in data.tells_alone)


def _name_words(command: Simple) -> frozenset[str]:
    """Of a script behind `npm run`, or a program of the project's own: `./run-tests.sh`, `sh test.sh`."""
    is_script = command.program in knowledge().interpreters and "." in command.first
    name = command.first.rpartition("/")[2] if is_script else command.program
    return _words(name)


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z0-9]+", name.casefold()))


@lru_cache(REMEMBERED)
def _mends(command: Simple) -> bool:
    """Whether it changes what it finds, or something else of the project."""
    data, program = knowledge(), command.program
    if command.first in data.changes_of.get(program, ()):
        return True
    if _any_of(data.mends_unless, command.arguments):
        return False
    if program in data.mends and _any_of(data.mends[program], command.arguments or ("",)):
        return True
    if command.first in data.mends_of.get(program, ()):
        return True
    if program in data.looks or (program in data.checks and program not in data.targets):
        return False
    words = _words(command.first) if program in data.targets else _name_words(command)
    return bool(words & data.mend_words) or bool(
        words & data.mend_words_alone and not words & data.check_words
    )


def runs_tests(command: Simple) -> bool:
    """Whether a check runs tests."""
    data = knowledge()
    words = {command.program, command.first, *_name_words(command)}
    if command.program not in data.builders:
        return bool(words & data.test_words)
    words = {one for word in command.arguments for one in _words(word)}
    return bool(words & (data.test_words | data.test_targets))


def _any_of(globs: Iterable[str], words: Iterable[str]) -> bool:
    return any(fnmatchcase(word, glob) for word in words for glob in globs)
