"""Command-line agents that loki knows: how each is started and read. The data: ``presets.yml``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import Literal

from pydantic import field_validator

from loki.action.processes.command_line import leading_assignments
from loki.base.error import ErrorKind, UsageError
from loki.base.text_format import did_you_mean
from loki.base.yaml_document import Strict, read_beside

LAUNCHERS = frozenset(
    {"sh", "bash", "dash", "zsh", "env", "python", "python3", "node", "npx", "uvx", "bunx", "pnpx"}
)
"""Programs behind which the agent's own name comes."""

Form = Literal["claude", "codex", "gemini", "aider"]
"""Forms of what they print, as `loki.agents.agent_report` reads them."""


class _Argument(Strict):
    add: tuple[str, ...]
    unless: tuple[str, ...]


class Says(Strict):
    """What a program says when it cannot go on.

    Attributes:
        kind: what that means.
        says: regular expression, letter case aside.
    """

    kind: ErrorKind
    says: str

    @field_validator("says")
    @classmethod
    def _compiles(cls, value: str) -> str:
        re.compile(value)
        return value

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled."""
        return re.compile(self.says, re.IGNORECASE)


class Preset(Strict):
    """A command-line agent that loki knows.

    Attributes:
        name: the preset's.
        programs: names of the program, the first one where no command is given.
        install: the command that installs it.
        drop: options that a user may type as they are known, and that the program refuses without
            a value.
        arguments: each is added where none of its ``unless`` is among the command's words.
        briefing: how it gets the briefing.
        form: of what it prints; ``form_if``: words of a command that make it print that.
        model_option: options that name the model.
        breaker: name of the circuit breaker that its calls pass.
        provider: of its models, as OpenTelemetry's GenAI conventions name it; "": any.
        environment: variables for it, where the user has set none.
        pass_environment: variables that it gets although they look like secrets.
        pass_if: more of them, where another variable is set.
        repository: it needs the copy to be a git repository.
        leaves: globs of paths that it leaves behind and that are no change.
        hopeless: expression for what it says, again and again, where it would wait for ever.
        own_limits: what it calls the end of a limit that its user set.
        status: expression whose group is the HTTP status in what it says.
        exit_codes: what some of its exit codes mean.
        errors: what it says when it cannot go on; the first that fits counts.
    """

    name: str = ""
    programs: tuple[str, ...]
    install: str
    drop: tuple[str, ...] = ()
    arguments: tuple[_Argument, ...]
    briefing: Literal["stdin", "argument"]
    form: Form
    form_if: tuple[str, ...]
    model_option: tuple[str, ...]
    breaker: str
    environment: Mapping[str, str] = {}
    pass_environment: tuple[str, ...] = ()
    pass_if: Mapping[str, tuple[str, ...]] = {}
    provider: str = ""
    repository: bool = False
    leaves: tuple[str, ...] = ()
    hopeless: str = ""
    own_limits: tuple[str, ...] = ()
    status: str = ""
    exit_codes: Mapping[int, ErrorKind] = {}
    errors: tuple[Says, ...] = ()

    def complete(self, command: Sequence[str] = ()) -> tuple[str, ...]:
        """A command with what it lacks: to ask nobody, edit files, and say what it did.

        Args:
            command: the user's own words, which stay; none: the program's name.

        Example:
            >>> preset("codex").complete(["codex", "exec", "-s", "read-only"])
            ('codex', 'exec', '-s', 'read-only', '--json', '--skip-git-repo-check')
        """
        words = tuple(self._with_values(tuple(command) or self.programs[:1]))
        said = set(_said(words))
        added: list[str] = []
        for argument in self.arguments:
            if not any(fnmatchcase(word, glob) for glob in argument.unless for word in said):
                added += argument.add
        end = words.index("--") if "--" in words else len(words)
        return (*words[:end], *added, *words[end:])

    def _with_values(self, words: Sequence[str]) -> Iterator[str]:
        for word, after in zip(words, (*words[1:], "-"), strict=True):
            if word not in self.drop or not after.startswith("-"):
                yield word

    def prints_form(self, command: Sequence[str]) -> bool:
        """Whether a command prints what `form` reads."""
        said = set(_said(command))
        return any(fnmatchcase(word, glob) for glob in self.form_if for word in said)

    def model(self, command: Sequence[str]) -> str:
        """The model that a command names, or "".

        Example:
            >>> preset("claude").model(["claude", "-p", "--model=opus"])
            'opus'
        """
        for option in self.model_option:
            for word in _said(command):
                if word.startswith(f"{option}="):
                    return word[len(option) + 1 :]
        return ""

    def passed(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Names of the secrets that it needs, by what is set."""
        more = (names for flag, names in self.pass_if.items() if environment.get(flag))
        return (*self.pass_environment, *(name for names in more for name in names))


class _Presets(Strict):
    version: int
    presets: Mapping[str, Preset]


@cache
def presets() -> Mapping[str, Preset]:
    """All of them, by name."""
    found = read_beside(__file__, "presets.yml", _Presets).presets
    return {name: one.model_copy(update={"name": name}) for name, one in found.items()}


def preset(name: str) -> Preset:
    """A preset by its name.

    Raises:
        UsageError: there is none of that name.
    """
    known = presets()
    if name not in known:
        raise UsageError(
            f"unknown preset {name!r}: expected one of {', '.join(known)}{did_you_mean(name, known)}"
        )
    return known[name]


def program_of(command: Sequence[str]) -> str:
    """The name of an agent's program, behind what launches it.

    Args:
        command: its words.

    Example:
        >>> program_of(["npx", "@openai/codex", "exec"]), program_of(["A=b", "bin/agent.sh"])
        ('codex', 'agent.sh')
    """
    words = leading_assignments(command)[1]
    program = os.path.basename(words[0])
    if program in LAUNCHERS:
        names = (word for word in words[1:] if not word.startswith("-") and "=" not in word)
        own = next(names, "")
        # What follows `-c` is a whole script.
        program = os.path.basename(own) if own and not own.split()[1:] else program
    return re.sub(r"(?<=.)@[^@]*$", "", program)


def preset_of(command: Sequence[str]) -> Preset | None:
    """The preset of the program that a command starts; None where loki knows none.

    Example:
        >>> preset_of(["npx", "@anthropic-ai/claude-code@2", "-p"]).name
        'claude'
    """
    program = program_of(command)
    return next((one for one in presets().values() if program in one.programs), None)


def breaker_of(command: Sequence[str]) -> str:
    """Name of the circuit breaker for a command: of the service that its program is known to call.

    Example:
        >>> breaker_of(["npx", "@openai/codex", "exec"]), breaker_of(["python", "tools/agent.py"])
        ('api/openai', 'agent/agent.py')
    """
    known = preset_of(command)
    return known.breaker if known else f"agent/{program_of(command)}"


def _said(command: Sequence[str]) -> Iterator[str]:
    """The words of a command that may be options, and each with its value: ``--a b`` as ``--a=b``."""
    words = leading_assignments(command)[1]
    end = words.index("--") if "--" in words else len(words)
    words = words[1:end]
    for word, after in zip(words, (*words[1:], ""), strict=False):
        yield word
        if word.startswith("-") and "=" in word:
            yield word.partition("=")[0]
        elif word.startswith("-"):
            yield f"{word}={after}"
