"""The built-in tool rules, and what they say besides how to read output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from loki import _core
from loki.recognition import builtin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class ResultsRequest:
    """How to ask a test runner for results per test.

    Attributes:
        tool: the tool's name.
        format: what it writes: ``"junit"``.
        environment: the variable to set.
        argument: what to set it to (or to append to what it holds); ``{file}`` is the report.
    """

    tool: str
    format: str
    environment: str
    argument: str


@dataclass(frozen=True, slots=True)
class FixCommand:
    """A command that repairs what a tool's check complains of.

    Attributes:
        tool: the tool's name.
        when: leading words of the check that it answers.
        command: the words to run; ``{file}`` is the failing file.
    """

    tool: str
    when: tuple[str, ...]
    command: tuple[str, ...]


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
    """The test runners that can be asked for results per test, by tool.

    Example:
        >>> [request.tool for request in results_requests()]
        ['pytest']
    """
    return tuple(
        ResultsRequest(tool["tool"], **tool["results"])
        for tool in builtin.tools()
        if "results" in tool
    )


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
                found[words] = FixCommand(tool["tool"], words, tuple(entry["command"]))
    return MappingProxyType(found)


def check_kind(command: Sequence[str]) -> str | None:
    """What kind of check a command is, by the tool that it starts; None where no tool knows it.

    Args:
        command: its words. Of several tools the one whose name is longest in words has its way.

    Example:
        >>> check_kind(["python", "-m", "pytest", "-q"])
        'test'
    """
    words = tuple(command)
    kinds = {
        tuple(known.split()): tool["check"]
        for tool in builtin.tools()
        if "check" in tool
        for known in tool.get("commands", ())
    }
    return next((kinds[words[:n]] for n in range(len(words), 0, -1) if words[:n] in kinds), None)


def fix_for(command: Sequence[str]) -> tuple[str, ...] | None:
    """The command that repairs what a check complains of, for the same files; None where unknown.

    Args:
        command: the check's words; those after the tool's own name go to the fix command too, unless
            that names the failing file (`{file}`, for the caller to fill in).

    Example:
        >>> fix_for(["ruff", "check", "src"])
        ('ruff', 'check', '--fix', 'src')
    """
    words, known = tuple(command), fix_commands()
    for count in range(len(words), 0, -1):
        if words[:count] in known:
            command = known[words[:count]].command
            return command if "{file}" in command else (*command, *words[count:])
    return None
