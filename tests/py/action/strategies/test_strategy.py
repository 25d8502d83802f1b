"""What strategies have in common: one that fails is told, and the next one is tried."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from loki.action.loop.loop_events import StrategyResult
from loki.action.strategies.strategy import STRATEGIES, carry_out
from loki.action.strategies.strategy_context import StrategyContext
from loki.recognition.definition_schema import STRATEGIES as KNOWN
from support.strategy import situation


def test_every_strategy_is_carried_out_by_loki_or_the_loop() -> None:
    assert set(STRATEGIES) == set(KNOWN) - {"retry_with_backoff", "escalate"}


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("by zero"), KeyError("x"), RecursionError(), OSError("disk")]
)
def test_whatever_a_strategy_raises_is_told(
    tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_situation: StrategyContext) -> StrategyResult:
        raise error

    with caplog.at_level(logging.ERROR):
        helped = carry_out("auto_fix", situation(tmp_path, output="x"), {"auto_fix": broken})
    assert helped.error
    assert str(error) in helped.error
    is_defect = not isinstance(error, OSError)
    assert ("strategy auto_fix is broken" in caplog.text) is is_defect


def test_a_strategy_that_is_interrupted_is_not_told(tmp_path: Path) -> None:
    def interrupted(_situation: StrategyContext) -> StrategyResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out("auto_fix", situation(tmp_path, output="x"), {"auto_fix": interrupted})


def test_an_unknown_strategy_is_told(tmp_path: Path) -> None:
    assert "expected one of auto_fix" in carry_out("hope", situation(tmp_path, output="x")).error
