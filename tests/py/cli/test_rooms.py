"""A command starts without the others: hooks, scripts and people wait for each start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from loki.cli.app import COMMANDS, EVERYDAY, PEOPLE, QUEUE, SET_UP, Guarded, app


def test_each_command_is_there_by_its_name() -> None:
    loki = get_command(app)
    assert isinstance(loki, Guarded)
    assert loki.name == "loki"
    assert list(loki.commands) == list(COMMANDS)
    assert [loki.get_command(None, name).name for name in COMMANDS] == list(COMMANDS)


def every_command() -> Iterator[tuple[str, Any]]:
    """Each command of each group, by its words."""
    loki: Any = get_command(app)
    for name in loki.commands:
        command = loki.get_command(None, name)
        inner = getattr(command, "commands", None)
        yield from (
            ((f"{name} {n}", one) for n, one in inner.items()) if inner else [(name, command)]
        )


TELL_NOTHING = {
    "mcp", "up", "hook install", "hook uninstall", "hook claude-code", "hook codex", "hook gemini",
}  # fmt: skip
"""Commands whose output no program reads: they serve, or change settings of a person."""


def test_each_command_that_tells_something_tells_it_as_json_too() -> None:
    without = {
        name
        for name, command in every_command()
        if not any("--json" in option.opts for option in command.params)
    }
    assert without == TELL_NOTHING


def test_a_command_that_goes_on_with_something_tells_no_default_of_its_own() -> None:
    commands = dict(every_command())
    for name in ("resume", "edit", "recur edit"):
        told = [str(getattr(option, "help", "")) for option in commands[name].params]
        defaults = {one.partition("[default: ")[2] for one in told} - {""}
        assert defaults == {"as it is]"}, name
    assert any("[default: bug_fix]" in str(option.help) for option in commands["run"].params)


def test_help_has_four_groups_the_commands_of_a_first_week_before_the_rest() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output.splitlines()
    groups = (EVERYDAY, QUEUE, PEOPLE, SET_UP)
    assert [line[:-1] for line in shown if line[:-1] in groups] == list(groups)
    assert sum(entry.group == EVERYDAY for entry in COMMANDS.values()) == 10
    listed = [line.split()[0] for line in shown if line.startswith("  ")]
    assert listed == [*COMMANDS, "--version", "--help"]
    assert all(any(line.endswith(one.summary) for line in shown) for one in COMMANDS.values())


def test_help_lists_all_and_a_slip_is_told_the_nearest() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    assert all(name in shown for name in COMMANDS)
    slip = CliRunner().invoke(app, ["expalin"])
    assert slip.exit_code == 2
    assert "explain" in slip.stderr
