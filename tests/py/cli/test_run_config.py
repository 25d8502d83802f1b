"""`loki run --kind config_change` without a check: its criterion, that the file parses, needs no command."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.checks.check import Check
from loki.action.checks.check_runner import CheckRunner
from loki.base.error import UsageError
from loki.recognition.pattern import PatternSet


def test_what_a_command_wrote_is_parsed_too(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text("limit = = 2\n")
    changed: list[str] = []
    runner = CheckRunner(tmp_path, PatternSet.default(), changed=lambda: changed)
    check = Check.of("syntax: parses")
    assert runner.run_one(check).passed, "nothing is changed yet"
    changed.append("app.toml")
    failure = runner.run_one(check).failure
    assert failure is not None
    assert (failure.path, failure.line) == ("app.toml", 1)


def test_it_is_said_as_any_other() -> None:
    check = Check.of("syntax: parses")
    assert Check.of(check.shown) == check
    assert not check.is_judged
    with pytest.raises(UsageError):
        Check((), "test")
