"""Strategies: what loki does itself between a failure and the next attempt.

Each is a function from `StrategyContext` to `StrategyResult`. One that
cannot do its work raises `StrategyNotApplicable`; whatever one raises is told, and the next is tried.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from loki.action.loop.loop_events import StrategyResult
from loki.action.strategies.analyze_then_fix import analyze_then_fix
from loki.action.strategies.auto_fix import auto_fix
from loki.action.strategies.context_expand import context_expand
from loki.action.strategies.dependency_check import dependency_check
from loki.action.strategies.strategy_context import StrategyContext, StrategyNotApplicable
from loki.base.error import LokiError

__all__ = ["STRATEGIES", "Strategy", "StrategyContext", "StrategyNotApplicable", "carry_out"]

logger = logging.getLogger("loki")

Strategy = Callable[[StrategyContext], StrategyResult]

STRATEGIES: Mapping[str, Strategy] = {
    "auto_fix": auto_fix,
    "context_expand": context_expand,
    "analyze_then_fix": analyze_then_fix,
    "dependency_check": dependency_check,
}
"""What loki carries out itself; to wait and to ask a person are the loop's."""


def carry_out(
    name: str, situation: StrategyContext, strategies: Mapping[str, Strategy] = STRATEGIES
) -> StrategyResult:
    """Carry out a strategy; what it raises is told in the answer, never raised.

    Args:
        name: auto_fix, context_expand, analyze_then_fix or dependency_check.
        situation: what to work on.
        strategies: those that there are.
    """
    strategy = strategies.get(name)
    if strategy is None:
        return StrategyResult(
            name, error=f"no such strategy: expected one of {', '.join(strategies)}"
        )
    try:
        return strategy(situation)
    except (StrategyNotApplicable, LokiError, OSError) as error:
        return StrategyResult(name, error=str(error))
    except Exception as error:
        # A defect of loki's own must not end a run that another strategy may save.
        logger.exception("strategy %s is broken", name)
        return StrategyResult(name, error=f"{type(error).__name__}: {error}")
