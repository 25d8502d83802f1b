"""The built-in tool rules, and what they say besides how to read output."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from loki import _core
from loki.recognition import builtin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class ResultsRequest:
    """How to ask a test runner for results per test, and where it reports them.

    The report is the file that ``{file}`` stands for, else the files that ``reports`` names, else what
    the runner prints.

    Attributes:
        tool: the tool's name.
        format: of the report: junit, jest, go or libtest.
        when: leading words of the commands that can be asked; the tool's own where nothing is said.
        environment: a variable to set, whatever the command, or "".
        argument: what to set it to (or to append to what it holds).
        append: words to put at the end of the command.
        insert: words to put right behind the words of ``when``.
        reports: globs of reports that the runner writes anyway, relative to the project.
    """

    tool: str
    format: str
    when: tuple[tuple[str, ...], ...] = ()
    environment: str = ""
    argument: str = ""
    append: tuple[str, ...] = ()
    insert: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Narrowing:
    """How a test runner is told which files or folders to test.

    Attributes:
        tool: the tool's name.
        unit: what is named: file or folder.
        form: how a path is written; ``{path}`` is the path.
        files: globs of names, or of paths where they hold a slash: the files that hold tests.
        when: leading words of the commands that it is about.
        option: words before the first path.
        values: options whose value is a word of its own, so that this is not taken for a path.
        search: ``variable`` and ``folders`` of the project in which modules are looked for first, so
            that what runs in a copy does not load the original; empty where there is no need.
    """

    tool: str
    unit: str
    form: str
    files: tuple[str, ...]
    when: tuple[tuple[str, ...], ...] = ()
    option: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    search: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scripts:
    """How a tool runs the scripts of the project's manifest.

    Attributes:
        tool: the tool's name.
        run: leading words before a script's name.
        names: commands that run a script without naming it, to that script's name.
        separator: the word that must stand before arguments for the script, or "".
        flags: options that may stand before the script's name.
    """

    tool: str
    run: tuple[tuple[str, ...], ...]
    names: Mapping[tuple[str, ...], str]
    separator: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FixCommand:
    """A command that repairs what a tool's check complains of.

    Attributes:
        tool: the tool's name.
        when: leading words of the check that it answers.
        command: the words to run; the check's other words follow, unless ``{file}`` is in them: it
            is the failing file.
        drop: words of the check that do not follow, because they only have it look.
        otherwise: commands to run instead where this one does not help, as of another version.
        alone: words that follow where the check's own are not known.
    """

    tool: str
    when: tuple[str, ...]
    command: tuple[str, ...]
    drop: frozenset[str] = frozenset()
    otherwise: tuple[tuple[str, ...], ...] = ()
    alone: tuple[str, ...] = ("{file}",)

    def for_check(self, rest: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The commands for a check, of which ``rest`` stands behind `when`."""
        kept = [word for word in rest if word not in self.drop]
        for command in (self.command, *self.otherwise):
            yield command if "{file}" in command else (*command, *kept)


@cache
def rules() -> _core.SiteRules:
    """The built-in rules, ready to use."""
    return _core.SiteRules(builtin.tools_text())


def tools() -> tuple[str, ...]:
    """The names of the built-in tools."""
    return tuple(tool["tool"] for tool in builtin.tools())


def rules_with(tool: Mapping[str, Any]) -> _core.SiteRules:
    """The built-in rules with those of one more tool, or of another version of a built-in one."""
    known = {one["tool"]: one for one in builtin.tools()}
    known[tool["tool"]] = {key: entry for key, entry in tool.items() if key != "samples"}
    return _core.SiteRules(json.dumps({"tools": list(known.values())}))


@cache
def results_requests() -> tuple[ResultsRequest, ...]:
    """The test runners that give results per test, by tool.

    Example:
        >>> {r.tool: r.format for r in results_requests()}["vitest"]
        'jest'
    """
    return tuple(
        ResultsRequest(tool["tool"], **_with_words(tool, "results"))
        for tool in builtin.tools()
        if "results" in tool
    )


@cache
def narrowings() -> tuple[Narrowing, ...]:
    """The test runners that can be told what to test, by tool."""
    return tuple(
        Narrowing(tool["tool"], **_with_words(tool, "narrow"))
        for tool in builtin.tools()
        if "narrow" in tool
    )


@cache
def launchers() -> frozenset[tuple[str, ...]]:
    """Leading words after which another command follows.

    Example:
        >>> ("npx",) in launchers()
        True
    """
    return frozenset(
        tuple(words.split()) for tool in builtin.tools() for words in tool.get("launches", ())
    )


@cache
def script_runners() -> tuple[Scripts, ...]:
    """The tools that run scripts of the project's manifest."""
    return tuple(
        Scripts(
            tool["tool"],
            _words_of(tool["scripts"]["run"]),
            MappingProxyType(
                {tuple(k.split()): v for k, v in tool["scripts"].get("names", {}).items()}
            ),
            tool["scripts"].get("separator", ""),
            tuple(tool["scripts"].get("flags", ())),
        )
        for tool in builtin.tools()
        if "scripts" in tool
    )


def _with_words(tool: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An entry with its lists as tuples, and the commands that it is about."""
    entry = {name: tuple(v) if isinstance(v, list) else v for name, v in tool[key].items()}
    return {**entry, "when": _words_of(entry.get("when", tool.get("commands", ())))}


def _words_of(lines: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split()) for line in lines)


@cache
def fix_commands() -> Mapping[tuple[str, ...], FixCommand]:
    """Leading words of a check to the command that repairs what it complains of.

    Look up the longest prefix of a check's words that is a key.

    Example:
        >>> fix_commands()["ruff", "check"].command
        ('ruff', 'check', '--fix')
    """
    found = {}
    for tool in builtin.tools():
        for entry in tool.get("fix_commands", ()):
            for when in entry["when"]:
                words = tuple(when.split())
                otherwise = tuple(map(tuple, entry.get("otherwise", ())))
                drop = frozenset(entry.get("drop", ()))
                command, alone = tuple(entry["command"]), tuple(entry.get("alone", ("{file}",)))
                found[words] = FixCommand(tool["tool"], words, command, drop, otherwise, alone)
    return MappingProxyType(found)


def check_kind(command: Sequence[str]) -> str | None:
    """What kind of check a command is, by the tool that it starts; None where no tool knows it.

    Args:
        command: its words. Of several tools the one whose name is longest in words has its way.

    Example:
        >>> check_kind(["python", "-m", "pytest", "-q"])
        'test'
        >>> check_kind(["npm", "run", "lint:styles"])
        'lint'
    """
    words, kinds = tuple(command), _kinds()
    found = (kinds[words[:n]] for n in range(len(words), 0, -1) if words[:n] in kinds)
    return next(found, None) or _script_kind(words)


@cache
def _kinds() -> Mapping[tuple[str, ...], str]:
    """Leading words of a command to the kind of check that it is."""
    # Of a tool that does more than test, those are tests that it tells the results of.
    tests = {lead: "test" for request in results_requests() for lead in request.when}
    named = {
        tuple(known.split()): tool["check"]
        for tool in builtin.tools()
        if "check" in tool
        for known in tool.get("commands", ())
    }
    return MappingProxyType({**tests, **named})


def _script_kind(words: tuple[str, ...]) -> str | None:
    """The kind of a script that is called like one."""
    for runner in script_runners():
        name = script_name(words, runner).partition(":")[0]
        if name in {"lint", "type", "test", "build"}:
            return name
    return None


def script_name(words: Sequence[str], runner: Scripts) -> str:
    """Name of the script that a command runs; "" where it runs none.

    Args:
        words: the command's.
        runner: the tool that might run it.

    Example:
        >>> [script_name(("npm", "run", "-s", "lint"), runner) for runner in script_runners()][0:2]
        ['', 'lint']
    """
    command = tuple(words)
    for lead, name in runner.names.items():
        if command[: len(lead)] == lead:
            return name
    for lead in sorted(runner.run, key=len, reverse=True):
        if command[: len(lead)] == lead:
            rest = [word for word in command[len(lead) :] if word not in runner.flags]
            return rest[0] if rest else ""
    return ""


def program_name(program: str) -> str:
    """A program's name without its folder and its version.

    Example:
        >>> program_name("/usr/bin/clang-format-14"), program_name(".venv/bin/python3.11")
        ('clang-format', 'python')
    """
    name = program.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
    return re.sub(r"-?\d+(?:\.\d+)*$", "", name) or name


@cache
def wrappers() -> frozenset[tuple[str, ...]]:
    """Words that run a tool whose name follows, as the commands of tools show: ``python -m``."""
    return frozenset(
        words[:start]
        for tool in builtin.tools()
        for words in (tuple(command.split()) for command in tool.get("commands", ()))
        for start in range(1, len(words))
        if " ".join(words[start:]) in tool["commands"]
    )


def _starts(words: tuple[str, ...]) -> Iterator[int]:
    """Where a tool's name may stand: behind variables that are set, and behind a wrapper."""
    first = next((at for at, word in enumerate(words) if not _SETS.match(word)), len(words))
    if first < len(words):
        yield first
    known = wrappers()
    for start in range(first + 1, len(words)):
        wrapper = (program_name(words[first]), *words[first + 1 : start])
        if wrapper in known:
            yield start


def _beside(own: str, name: str, program: str) -> str:
    """The program to run: the check's own where it is the same, else one beside it, as it is named."""
    if program == name:
        return own
    folder, slash, _ = own.rpartition("/")
    return f"{folder}{slash}{program}" if slash and "/" not in program else program


_SETS = re.compile(r"[A-Za-z_]\w*=")


def fix_for(command: Sequence[str]) -> tuple[str, ...] | None:
    """The first command that repairs what a check complains of; None where none is known.

    Args:
        command: the check's words; see `fixes_for`.

    Example:
        >>> fix_for(["ruff", "check", "src"])
        ('ruff', 'check', '--fix', 'src')
        >>> fix_for(["black", "--check", "."])
        ('black', '.')
    """
    return next(iter(fixes_for(command)), None)


def fixes_for(command: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The commands that repair what a check complains of, best first, run as the check itself is run.

    Args:
        command: the check's words, as people write them: with variables set before them, a wrapper
            round the tool, a path to it, a version in its name. Its own options and files go to the
            fix command, unless that names the failing file (`{file}`, for the caller to fill in).

    Example:
        >>> fixes_for(["CI=1", "uv", "run", "ruff", "check", "src"])
        (('CI=1', 'uv', 'run', 'ruff', 'check', '--fix', 'src'),)
        >>> fixes_for([".venv/bin/python3.11", "-m", "black", "--check", "."])
        (('.venv/bin/python3.11', '-m', 'black', '.'),)
        >>> fixes_for(["rm", "black"])
        ()
    """
    words, known = tuple(command), fix_commands()
    for start in _starts(words):
        own, rest = words[start], words[start + 1 :]
        tool = (program_name(own), *rest)
        for count in range(len(tool), 0, -1):
            if fix := known.get(tool[:count]):
                return tuple(
                    (*words[:start], _beside(own, tool[0], found[0]), *found[1:])
                    for found in fix.for_check(tool[count:])
                )
    return ()


def fixes_of(tool: str) -> tuple[tuple[str, ...], ...]:
    """The commands that repair what a tool complains of, where its own command is not known.

    Example:
        >>> fixes_of("clippy")
        (('cargo', 'clippy', '--fix', '--allow-dirty', '--allow-staged'),)
    """
    return tuple(
        fix.command if "{file}" in fix.command else (*fix.command, *fix.alone)
        for fix in fix_commands().values()
        if fix.tool == tool
    )
