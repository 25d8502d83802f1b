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
    from collections.abc import Mapping, Sequence


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
        leave_out: options with which it does not tell them.
        reports: globs of reports that the runner writes anyway, relative to the project.
    """

    tool: str
    format: str
    when: tuple[tuple[str, ...], ...] = ()
    environment: str = ""
    argument: str = ""
    append: tuple[str, ...] = ()
    insert: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
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
        selects: what in a command picks single tests of the files that it names: options, or parts of
            words.
        shared: names of files on which every test below their folder depends.
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
    selects: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
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
    words, kinds = plain_words(command), _kinds()
    found = (kinds[words[:n]] for n in range(len(words), 0, -1) if words[:n] in kinds)
    return next(found, None) or _script_kind(words)


def plain_words(command: Sequence[str]) -> tuple[str, ...]:
    """A command by the name of its program, wherever it lies and whatever its minor version.

    Paths that begin with a dot stay: those are the project's own.

    Example:
        >>> plain_words(["/srv/.venv/bin/python3.11", "-m", "pytest"]), plain_words(["./mvnw"])
        (('python3', '-m', 'pytest'), ('./mvnw',))
    """
    words = tuple(command)
    if not words or words[0].startswith("."):
        return words
    return (re.sub(r"(\d)(?:\.\d+)+$", r"\1", words[0].rpartition("/")[2]), *words[1:])


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
