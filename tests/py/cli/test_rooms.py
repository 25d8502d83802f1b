"""A command starts without the others: hooks, scripts and people wait for each start."""

from __future__ import annotations

from typer.main import get_command
from typer.testing import CliRunner

from loki.cli.app import COMMANDS, Guarded, app


def test_each_command_is_there_by_its_name() -> None:
    loki = get_command(app)
    assert isinstance(loki, Guarded)
    assert loki.name == "loki"
    assert list(loki.commands) == list(COMMANDS)
    assert [loki.get_command(None, name).name for name in COMMANDS] == list(COMMANDS)


def test_help_lists_all_and_a_slip_is_told_the_nearest() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    assert all(name in shown for name in COMMANDS)
    slip = CliRunner().invoke(app, ["expalin"])
    assert slip.exit_code == 2
    assert "explain" in slip.stderr
