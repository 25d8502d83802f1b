"""A command starts without the others: hooks, scripts and people wait for each start."""

from __future__ import annotations

import subprocess
import sys

from typer.main import get_command
from typer.testing import CliRunner

from loki.cli.app import app
from loki.cli.command_table import COMMANDS, Rooms

CODE = """
import sys
from loki.cli import main
sys.argv = ["loki", *sys.argv[1:]]
try:
    main()
finally:
    print(*sorted(name for name in sys.modules if name.startswith("loki.")), file=sys.stderr)
"""


def loaded(*words: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=True
    )
    return set(ran.stderr.split())


def test_a_command_loads_no_other() -> None:
    loaded_by_breakers = loaded("breakers", "--help")
    homes = {f"loki.cli.{where.partition(':')[0]}" for where in COMMANDS.values()}
    assert loaded_by_breakers & homes == {"loki.cli.breakers"}
    assert "loki.workspace" not in loaded_by_breakers


def test_the_version_loads_none() -> None:
    homes = {f"loki.cli.{where.partition(':')[0]}" for where in COMMANDS.values()}
    assert not loaded("--version") & homes


def test_each_command_is_there_by_its_name() -> None:
    rooms = Rooms()
    assert list(rooms) == list(COMMANDS)
    assert {command.name for command in rooms.values()} == set(COMMANDS)
    assert get_command(app).name == "loki"


def test_help_lists_all_and_a_slip_is_told_the_nearest() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    assert all(name in shown for name in COMMANDS)
    slip = CliRunner().invoke(app, ["expalin"])
    assert slip.exit_code == 2
    assert "explain" in slip.stderr
