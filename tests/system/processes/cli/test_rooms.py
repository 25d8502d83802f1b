"""A command starts without the others: hooks, scripts and people wait for each start: with processes."""

from __future__ import annotations

import subprocess
import sys

from loki.cli.app import COMMANDS

CODE = """
import sys
from loki.cli import main
sys.argv = ["loki", *sys.argv[1:]]
try:
    main()
finally:
    print(*sorted(name for name in sys.modules if name.startswith(("loki.", "rich"))), file=sys.stderr)
"""


def loaded(*words: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=True
    )
    return set(ran.stderr.split())


def test_a_command_loads_no_other() -> None:
    loaded_by_breakers = loaded("breakers", "--help")
    homes = {f"loki.cli.{entry.where.partition(':')[0]}" for entry in COMMANDS.values()}
    assert loaded_by_breakers & homes == {"loki.cli.breakers"}
    assert "loki.workspace" not in loaded_by_breakers


def test_the_version_loads_none() -> None:
    homes = {f"loki.cli.{entry.where.partition(':')[0]}" for entry in COMMANDS.values()}
    assert not loaded("--version") & homes


def test_the_help_loads_none() -> None:
    """Nor what draws boxes: it is typed by people who look for a word."""
    homes = {f"loki.cli.{entry.where.partition(':')[0]}" for entry in COMMANDS.values()}
    assert not loaded("--help") & {*homes, "loki.cli.options", "rich"}
