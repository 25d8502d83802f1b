"""``analyze_then_fix``: the lines round each place of an error, and what was expected against what came."""

from __future__ import annotations

from loki.action.loop.loop_events import StrategyResult
from loki.action.strategies.context_expand import around, fitted, locations, merged
from loki.action.strategies.expected_actual import differences
from loki.action.strategies.strategy_context import StrategyContext

REACH = 50
"""Lines before and after a place that are looked at, as the closed-loop document has it; the nearest
ones are shown, as many as there is room for."""

MAX_PLACES = 6
"""Places that are shown; chosen, not measured."""


def analyze_then_fix(situation: StrategyContext) -> StrategyResult:
    """Gather what an analysis needs; an error without a place is still worth one."""
    project = situation.project
    found = differences(situation.failure.excerpt) or differences(situation.output)
    compared = "\n".join(map(str, found))
    places = locations(situation)
    passages = merged(around(path, project.lines(path), line, REACH) for path, line in places)
    context = fitted([compared], passages[:MAX_PLACES])
    read = ", ".join(dict.fromkeys(passage.path for passage in passages[:MAX_PLACES]))
    return StrategyResult("analyze_then_fix", f"read {read}" if read else "", context)
