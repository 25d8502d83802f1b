"""What the commands of a line do: look, change, check, ask, wait. Data in ``tool-call.yml`` says it.

Words are compared and nothing is run. Pure, total, and linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from loki.base.yaml_text import load_file
from loki.recognition.shell_line import Simple

# --- What tools and programs do, as ``tool-call.yml`` says --------------------------------------------

T = TypeVar("T")

FILE = Path(__file__).with_name("tool-call.yml")


class Effect(str, Enum):
    """What a call of a tool does."""

    READ = "read"
    """It looks at something."""

    WRITE = "write"
    """It changes the project, or what the project stands on."""

    RUN = "run"
    """It runs something: a check, or a program."""

    OTHER = "other"
    """Something else, or nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What the file says; it says itself what each field means."""

    tools: Mapping[str, Effect]
    parts: Mapping[str, Effect]
    check_parts: frozenset[str]
    command_arguments: frozenset[str]
    path_arguments: frozenset[str]
    silent_arguments: frozenset[str]
    prose: frozenset[str]
    prose_names: frozenset[str]
    sources: frozenset[str]
    tells: Sequence[str]
    tells_alone: frozenset[str]
    looks: frozenset[str]
    looks_of: Mapping[str, Sequence[str]]
    asks: frozenset[str]
    asks_of: Mapping[str, Sequence[str]]
    waits: frozenset[str]
    edits: frozenset[str]
    edits_of: Mapping[str, Sequence[str]]
    waits_of: Mapping[str, Sequence[str]]
    waits_at: re.Pattern[str]
    unless: Mapping[str, Sequence[str]]
    checks: frozenset[str]
    checks_of: Mapping[str, Sequence[str]]
    check_words: frozenset[str]
    test_words: frozenset[str]
    builders: frozenset[str]
    test_targets: frozenset[str]
    mends: Mapping[str, Sequence[str]]
    mends_of: Mapping[str, Sequence[str]]
    mends_unless: Sequence[str]
    mend_words: frozenset[str]
    mend_words_alone: frozenset[str]
    targets: frozenset[str]
    changes: frozenset[str]
    changes_of: Mapping[str, Sequence[str]]
    fetchers: frozenset[str]
    steering: frozenset[str]
    editors: frozenset[str]
    waiting_parts: frozenset[str]
    waiting_tools: frozenset[str]
    blind_parts: frozenset[str]
    editor_looks: frozenset[str]
    takes_back_tools: frozenset[str]
    takes_back: frozenset[str]
    takes_back_of: Mapping[str, Sequence[str]]
    no_try: frozenset[str]
    no_try_of: Mapping[str, Sequence[str]]
    old_arguments: frozenset[str]
    new_arguments: frozenset[str]
    interpreters: frozenset[str]
    not_yet: re.Pattern[str]
    probe: re.Pattern[str]
    scratch: re.Pattern[str]
    unread: re.Pattern[str]


@cache
def knowledge() -> Knowledge:
    """What the file says, read once."""
    return typed(Knowledge, load_file(FILE))


def typed(cls: type[T], data: Mapping[str, Any], **more: Any) -> T:
    """What a file of ours says, each field as its annotation has it.

    Args:
        cls: a dataclass, whose fields are keys of the file.
        data: what the file says.
        more: fields that are not read so.
    """
    fields = {}
    for name, kind in get_type_hints(cls).items():
        if name not in more:
            fields[name] = _FORMS[kind](data[name]) if kind in _FORMS else data[name]
    return cls(**fields, **more)


def _by_word(said: Mapping[str, Sequence[str]]) -> dict[str, Effect]:
    return {word: Effect(effect) for effect, words in said.items() for word in words}


def _compiled(said: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, said))


_FORMS: Mapping[Any, Callable[[Any], Any]] = {
    frozenset[int]: frozenset,
    frozenset[str]: frozenset,
    tuple[str, ...]: tuple,
    re.Pattern[str]: re.compile,
    tuple[re.Pattern[str], ...]: _compiled,
    Mapping[str, Effect]: _by_word,
}
"""How what YAML says becomes a field of that type; other fields take it as it is."""


# --- What the commands of a line do -------------------------------------------------------------------

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
    return _is_one(command, data.looks, data.looks_of) or (is_checker and _tells(command))


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
    return _is_one(command, data.edits, data.edits_of)


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
    return _stash_word(command) in {"", "push", "save"}


def puts_back(command: Simple) -> bool:
    """Whether it ends that: what was put away is there again, or is thrown away."""
    return _stash_word(command) in {"pop", "apply", "drop", "clear", "branch"}


def _stash_word(command: Simple) -> str | None:
    """What `git stash` is to do, "" where that is not said; None: it is none."""
    if command.program != "git" or command.first != "stash":
        return None
    after = command.arguments[command.arguments.index("stash") + 1 :]
    return next((word for word in after if not word.startswith("-")), "")


def _is_file(word: str) -> bool:
    """Whether a word names a file, and no branch, as far as its form tells."""
    return word == "." or re.search(r"[^/.]\.[A-Za-z]\w{0,9}$", word) is not None


def tries(command: Simple) -> bool:
    """Whether it changes something in a way that could mend a failure."""
    if not changes(command) or takes_back(command):
        return False
    return not _is_one(command, knowledge().no_try, knowledge().no_try_of)


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
    """Whether it is one of these programs, or one that has one of these words first."""
    return command.program in programs or command.first in words.get(command.program, ())


def _is_code(word: str) -> bool:
    """Whether a word names a file of code."""
    stem, dot, ending = word.rpartition(".")
    return bool(dot and stem) and ending.casefold() in knowledge().sources and "\n" not in word


def asks(command: Simple) -> bool:
    """Whether its exit code 1 says no, and not that it failed."""
    return _is_one(command, knowledge().asks, knowledge().asks_of)


def waits(commands: Sequence[Simple], *, is_up: bool) -> bool:
    """Whether it waits for what others do: it sleeps, watches, or asks a server whether it is up."""
    data = knowledge()
    return any(
        one.program in data.waits
        or _any_of(data.waits_of.get(one.program, ()), one.arguments)
        or (is_up and one.program in data.fetchers)
        for one in commands
    )


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
    return _words(command.first.rpartition("/")[2] if is_script else command.program)


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
    if _any_of(data.mends.get(program, ()), command.arguments or ("",)):
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
