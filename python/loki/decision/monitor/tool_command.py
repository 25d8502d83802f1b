"""What the commands of a line do: look, change, check, ask, wait. Data in ``tool-call.yml`` says it.

Words are compared and nothing is run. Pure, total, and linear in the text.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from loki.base.yaml_text import load_file

# --- A command line as a shell reads it ---------------------------------------------------------------

LONGEST = 10_000
"""Characters of a line that are looked at; chosen, not measured."""

DEEPEST = 3
"""Shells within shells that are looked into; chosen, not measured."""

SCRIPT = "run-script:"
"""Stands before the name of a project's own script."""

_SIGNS = "();<>|&\n"
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_QUIET = ("/dev/null", "/dev/stderr", "/dev/stdout")


@dataclass(frozen=True, slots=True)
class Simple:
    """One command of a line.

    Attributes:
        program: its name, without folders.
        arguments: its words.
        target: the file that its output goes into, or "".
        is_hidden: the line's exit code may be another command's, as that of `pytest | tail` is tail's.
    """

    program: str
    arguments: tuple[str, ...]
    target: str = ""
    is_hidden: bool = False

    @property
    def writes(self) -> bool:
        """Whether its output goes into a file."""
        return bool(self.target)

    @property
    def first(self) -> str:
        """Its first argument that is no option; "" where there is none."""
        return next((word for word in self.arguments if not word.startswith("-")), "")


@dataclass(frozen=True, slots=True)
class Words:
    """Words that are read past; see ``tool-call.yml``."""

    wrappers: frozenset[str] = frozenset()
    runners: frozenset[tuple[str, ...]] = frozenset()
    scripts: frozenset[tuple[str, ...]] = frozenset()
    shells: frozenset[str] = frozenset()
    interpreters: frozenset[str] = frozenset()
    joined: frozenset[tuple[str, ...]] = frozenset()
    containers: frozenset[tuple[str, ...]] = frozenset()
    container_values: frozenset[str] = frozenset()


def simple_commands(line: str, words: Words, deepest: int = DEEPEST) -> list[Simple]:
    """The commands of a line, in their order.

    Args:
        line: as typed; of a very long one the beginning is read.
        words: that are read past.
        deepest: shells within shells that are looked into.

    Example:
        >>> words = Words(frozenset({"sudo"}), frozenset({("uv", "run")}))
        >>> [c.program for c in simple_commands("cd x && sudo uv run pytest -q > out.txt", words)]
        ['cd', 'pytest']
    """
    found: list[Simple] = []
    for command, target, is_hidden in _placed(_without_documents(line[:LONGEST])):
        rest, runs_shell = _unwrapped(command, words)
        if not rest:
            continue
        script = _script(rest) if runs_shell and deepest else None
        if script is not None:
            inner = simple_commands(script, words, deepest - 1)
            found += (replace(one, is_hidden=one.is_hidden or is_hidden) for one in inner)
            continue
        program, arguments = _program(rest, words)
        found.append(Simple(program, tuple(arguments), target, is_hidden))
    return found


def _placed(line: str) -> list[tuple[list[str], str, bool]]:
    """(words, the file that its output goes into, exit code is hidden) of each command."""
    hiding = {";", "||", "&", "\n"} | (set() if "pipefail" in line else {"|", "|&"})
    placed, something_follows, is_hidden = [], False, False
    for command, target, sign in reversed(list(_split(line))):
        is_hidden = is_hidden or (something_follows and sign in hiding)
        something_follows = something_follows or bool(command)
        placed.append((command, target, is_hidden))
    return placed[::-1]


def _split(line: str) -> Iterator[tuple[list[str], str, str]]:
    """(words, the file that its output goes into, sign after it) of each command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_SIGNS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        parts = list(lexer)
    except ValueError:  # a quote that nobody closed: as far as blanks tell
        parts = line.split()
    command: list[str] = []
    writes, sign = "", ""
    for word in parts:
        if word and set(word) <= set(_SIGNS):
            if word.startswith((">", "<")) or word.endswith(">"):
                if command and command[-1].isdigit():
                    command.pop()  # 2>
                sign = word
            elif word == ">&" or (sign and word == "&"):
                sign = "&"
            else:
                yield command, writes, word
                command, writes, sign = [], "", ""
        elif sign:
            is_file = ">" in sign and not word.isdigit() and word not in _QUIET and word != "-"
            writes, sign = word if is_file else writes, ""
        else:
            command.append(word)
    yield command, writes, ""


_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n")
# SWE-agent's commands that edit have their text behind them, up to a word of theirs.
_EDIT = re.compile(r"(?m)^((?:edit|insert|append)\b[^\n]*)\n(?:.*\n)*?end_of_\w+[ \t]*$")


def _without_documents(line: str) -> str:
    """A line without the here-documents in it."""
    if "end_of_" in line:
        line = _EDIT.sub(r"\1", line)
    kept, at = [], 0
    while (found := _DOCUMENT.search(line, at)) is not None:
        kept.append(line[at : found.start()] + line[found.end(2) + len(found[1]) : found.end()])
        end = re.compile(rf"^\s*{re.escape(found[2])}\s*$", re.MULTILINE).search(line, found.end())
        at = end.end() if end else len(line)
    return "".join((*kept, line[at:]))


def _unwrapped(command: Sequence[str], words: Words) -> tuple[list[str], bool]:
    """A command without what is put before it."""
    rest = list(command)
    while rest:
        if _ASSIGNED.match(rest[0]) or rest[0] in {"{", "!", "do", "then", "else", "if", "while"}:
            rest = rest[1:]
        elif rest[0] == "command" and rest[1:2] in (["-v"], ["-V"]):
            return ["which", *rest[2:]], False
        elif _name(rest[0]) in words.wrappers and len(rest) > 1:
            rest = rest[1:]
            while rest and re.fullmatch(r"-.*|[\d.]+[smhd]?", rest[0]):
                rest = rest[1:]
        elif rest[2:] and (_name(rest[0]), rest[1]) in words.runners:
            rest = [word for word in rest[2:] if word != "--"]
        elif rest[2:] and (_name(rest[0]), rest[1]) in words.scripts:
            # A script's name is none of a program: `npm run test` is not the shell's `test`.
            return [f"{SCRIPT}{rest[2]}", *rest[3:]], False
        elif inner := _inside(rest, words):
            rest = inner
        else:
            break
    return rest, bool(rest) and _name(rest[0]) in words.shells


def _inside(command: Sequence[str], words: Words) -> list[str]:
    """The command that is run in a container; [] where that is not said."""
    program, rest = _joined(_name(command[0]), command[1:], words)
    rest = _without_options(rest, words)
    if (program, *rest[:1]) not in words.containers:
        return []
    options = rest[1 : len(rest) - len(_without_options(rest[1:], words))]
    if {"-d", "--detach"} & set(options):  # it goes on by itself
        return []
    inner = _without_options(rest[1:], words)[1:]  # without the container's name
    if "--" in inner:
        after = _without_options(inner, words)
        return after if len(after) < len(inner) else inner
    return [] if inner[:1] and inner[0].startswith("-") else inner


def _joined(program: str, rest: Sequence[str], words: Words) -> tuple[str, list[str]]:
    """A program and its words; one whose first word names another program is that."""
    plain = _without_options(rest, words) if (program,) in {one[:1] for one in words.joined} else []
    if plain and (program, plain[0]) in words.joined:
        return f"{program}-{plain[0]}", _without_options(plain[1:], words)
    return program, list(rest)


def _without_options(rest: Sequence[str], words: Words) -> list[str]:
    """Words without the options at their beginning, some of which have a word of their own."""
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        if rest[at] == "--":
            return list(rest[at + 1 :])
        at += 2 if rest[at] in words.container_values else 1
    return list(rest[at:])


def _script(command: Sequence[str]) -> str | None:
    """What a shell is given to run: the word after its ``-c``."""
    for option, script in pairwise(command[1:]):
        if re.fullmatch(r"-[a-z]*c[a-z]*", option):
            return script
    return None


def _program(command: Sequence[str], words: Words) -> tuple[str, list[str]]:
    """(program, arguments): behind an interpreter's ``-m`` it is the module."""
    name, arguments = _name(command[0]), list(command[1:])
    if re.sub(r"[\d.]+$", "", name) in words.interpreters or name in words.interpreters:
        if "-m" in arguments[:-1]:
            at = arguments.index("-m")
            return arguments[at + 1], arguments[at + 2 :]
        if arguments and _name(arguments[0]) == "manage.py":
            return "manage.py", arguments[1:]
    return _joined(name, arguments, words)


def _name(word: str) -> str:
    return posixpath.basename(word) or word


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
class Knowledge(Words):
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


def _split_each(said: Sequence[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(one.split()) for one in said)


def _compiled(said: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, said))


_FORMS: Mapping[Any, Callable[[Any], Any]] = {
    frozenset[int]: frozenset,
    frozenset[str]: frozenset,
    frozenset[tuple[str, ...]]: _split_each,
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
