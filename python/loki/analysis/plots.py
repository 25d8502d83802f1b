"""Plots that answer one question each, of the tables that `loki.analysis.history` gives.

    from loki import analysis
    from loki.analysis import plots

    history = analysis.history(".")
    plots.where_attempts_go(history)                      # in Jupyter, that shows it
    plots.cost(history).savefig("cost.svg")

Each is a matplotlib figure of its own, without pyplot and its global state. What is counted, and how,
is `loki report`'s: the figures agree. Needs ``pip install 'loki-core[analysis]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.base.text_format import amount, span

try:
    from loki.analysis import aggregates
    from loki.analysis import plot_parts as parts
    from loki.analysis.plot_parts import INK, MOST_ROWS, ORANGE, SKY, STATES, Plot, blank, dress
except ImportError as error:
    if (error.name or "").partition(".")[0] not in {"matplotlib", "pyarrow"}:
        raise
    raise UsageError(
        "plots need pyarrow and matplotlib: pip install 'loki-core[analysis]'; the tables do "
        "without matplotlib"
    ) from error

if TYPE_CHECKING:
    from loki.analysis.tables import Tables

__all__ = [
    "breaker_timeline",
    "cost",
    "recurring_failures",
    "strategies_by_failure",
    "time_lost",
    "where_attempts_go",
]


NOTHING_YET = "no attempts yet"

_ROW = 0.28
"""Height of a row, in inches."""


def where_attempts_go(history: Tables) -> Plot:
    """How attempts end, and what the failed ones failed of.

    Args:
        history: a project's tables.

    Returns:
        Two rows of bars: attempts by result, and the failed ones by the pattern of their failure. Failures of
        infrastructure stand apart: they say nothing about the work.
    """
    question = "Where do attempts go?"
    found = aggregates.outcomes(history.attempts)
    total = found.results.total()
    if not total:
        return blank(question, NOTHING_YET)
    names = [name for name in parts.ordered(found.results) if found.results[name]]
    patterns = found.patterns.most_common()
    shown, rest = patterns[:MOST_ROWS], patterns[MOST_ROWS:]
    if rest:
        shown.append((f"{len(rest)} other patterns", sum(count for _, count in rest)))
    won = found.results["success"]
    answer = f"{won:,} of {amount(total, 'attempt')} succeeded ({won / total:.0%})"
    if found.patterns:
        answer += f"; most of the failed ones: {parts.cut(patterns[0][0], 44)}"
    figure = Plot(question, answer, 0.9 + _ROW * max(len(names), len(shown), 3))
    left, right = figure.subplots(1, 2)
    parts.bars(left, {name: found.results[name] for name in names}, list(map(parts.color, names)))
    dress(left, title="all attempts, by result", xlabel="attempts")
    parts.bars(right, dict(shown), ORANGE)
    dress(right, title="failed attempts, by pattern", xlabel="attempts")
    return figure


def strategies_by_failure(history: Tables) -> Plot:
    """Which strategy mends which kind of failure.

    A use has succeeded where the failure was gone and did not come back in its execution, as
    docs/design/history.md says.

    Args:
        history: a project's tables.

    Returns:
        A cell for each pattern and strategy: how many of the uses of known outcome succeeded.
    """
    question = "Which strategies work on which failures?"
    uses = aggregates.strategy_uses(history.strategies)
    if not uses:
        return blank(question, "no strategy was used yet")
    rows = parts.most_used([pattern for pattern, _ in uses], uses, 0)
    columns = parts.most_used([strategy for _, strategy in uses], uses, 1)
    cured = sum(cell.cured for cell in uses.values())
    known = cured + sum(cell.not_cured for cell in uses.values())
    total = sum(cell.uses for cell in uses.values())
    answer = f"{cured:,} of {known:,} uses of known outcome mended their failure"
    if total > known:
        answer += f"; of {total - known:,} nobody knows"
    left_out = len({pattern for pattern, _ in uses}) - len(rows)
    if left_out:
        answer += f"; {amount(left_out, 'rarer pattern')} left out"
    figure = Plot(question, answer, 1.2 + 0.36 * len(rows))
    axes = figure.subplots()
    for y, pattern in enumerate(rows):
        for x, strategy in enumerate(columns):
            parts.cell(axes, x, y, uses.get((pattern, strategy)))
    dress(
        axes,
        xlim=(-0.5, len(columns) - 0.5),
        ylim=(len(rows) - 0.5, -0.5),
        xlabel="strategy used in answer (mended / uses of known outcome)",
        ylabel="pattern of the failure",
    )
    axes.set_xticks(range(len(columns)), parts.labels(columns, 20))
    parts.name_rows(axes, rows, 30)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


def recurring_failures(history: Tables) -> Plot:
    """Which failures come back, and when they were seen.

    Args:
        history: a project's tables.

    Returns:
        A row for each failure that was seen more than once, in attempts, tool calls and tests; the larger a
        dot, the more often then.
    """
    question = "Which failures come back?"
    failures = history.failures
    if not failures.num_rows:
        return blank(question, NOTHING_YET if not history.attempts.num_rows else "no failures yet")
    found, more = aggregates.recurring(failures, MOST_ROWS)
    if not found:
        return blank(question, f"none: {amount(failures.num_rows, 'failure')}, each seen once")
    seen = sum(one.times for one in found)
    answer = f"{amount(len(found) + more, 'failure')} came back"
    answer += f"; the {len(found)} most frequent" if more else ""
    answer += f", in {seen:,} of {amount(failures.num_rows, 'sighting')}"
    answer += "; gray: infrastructure" if any(one.infrastructure for one in found) else ""
    figure = Plot(question, answer, 1.1 + 0.34 * len(found))
    axes = figure.subplots()
    parts.sightings(axes, found)
    dress(axes, ylim=(len(found) - 0.5, -0.7), xlabel="time (UTC)")
    axes.set_yticks(range(len(found)), [parts.name(one) for one in found])
    axes.tick_params(axis="y", length=0)
    counts = [
        f"{one.times:,} times" + (f" in {one.tasks:,} tasks" if one.tasks > 1 else "")
        for one in found
    ]
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(found)), parts.labels(counts))
    right.tick_params(length=0, labelcolor=INK, labelsize=9)
    right.spines["right"].set_visible(False)
    return figure


def time_lost(history: Tables) -> Plot:
    """How much time went into failing the same way again.

    An attempt repeats a failure where an earlier attempt of its execution had one with the same
    fingerprint. Time is from asking the agent to the end of the checks, and the wait before it.

    Args:
        history: a project's tables.

    Returns:
        A bar for each failure: the time of the first attempts that failed so, and of the repeats.
    """
    question = "How much time is lost to repeats of the same failure?"
    if not history.attempts.num_rows:
        return blank(question, NOTHING_YET)
    found = aggregates.time_lost(history.attempts)
    rows = sorted(
        found.signatures.items(), key=lambda row: (-row[1].again_ms, -row[1].first_ms, row[0])
    )
    again = [row for row in rows if row[1].again]
    if not again:
        return blank(question, f"none of the {span(found.total_ms)} that attempts took")
    share = f" ({found.again_ms / found.total_ms:.0%})" if found.total_ms else ""
    answer = f"{span(found.again_ms)} of {span(found.total_ms)}{share}, in {amount(found.again, 'repeat')}"
    shown = again[:MOST_ROWS]
    if len(again) > len(shown):
        answer += f"; the {len(shown)} costliest of {len(again):,} failures"
    unit, size = parts.unit(max(lost.first_ms + lost.again_ms for _, lost in shown))
    figure = Plot(question, answer, 1.2 + _ROW * max(len(shown), 2))
    axes = figure.subplots()
    places = range(len(shown))
    firsts = [lost.first_ms / size for _, lost in shown]
    repeats = [lost.again_ms / size for _, lost in shown]
    axes.barh(places, firsts, color=SKY, height=0.7, label="failed so for the first time")
    axes.barh(places, repeats, left=firsts, color=ORANGE, height=0.7, label="failed so again: lost")
    for y, (_, lost) in enumerate(shown):
        said = f" {span(lost.again_ms)} in {amount(lost.again, 'repeat')}"
        axes.text(firsts[y] + repeats[y], y, said, va="center", size=9, color=INK)
    dress(axes, ylim=(len(shown) - 0.4, -0.6), xlabel=f"time of the attempts, in {unit}")
    axes.set_xlim(0, (max(map(sum, zip(firsts, repeats, strict=True))) or 1.0) * 1.55)
    parts.name_rows(axes, [name for name, _ in shown])
    parts.legend(axes)
    return figure


def breaker_timeline(history: Tables) -> Plot:
    """When each circuit breaker was open.

    Args:
        history: a project's tables.

    Returns:
        A row for each breaker, from its first known change of state to the last thing that the history
        knows of.
    """
    question = "When were circuit breakers open?"
    until = aggregates.last_moment(history.transitions, history.attempts, history.calls)
    found = aggregates.stretches(history.transitions, until)
    if not found:
        return blank(question, "no breaker has changed its state yet")
    names = list(found)[:MOST_ROWS]
    opened = sum(one.state == "OPEN" for own in found.values() for one in own)
    answer = f"{amount(len(found), 'breaker')}, opened {amount(opened, 'time')}"
    if len(found) > len(names):
        answer += f"; the first {len(names)} are shown"
    figure = Plot(question, answer, 1.2 + 0.36 * len(names))
    axes = figure.subplots()
    begin = min(own[0].begin for own in found.values())
    end = max(own[-1].end for own in found.values())
    for y, name in enumerate(names):
        parts.stretches(axes, y, found[name], begin, end)
    for state, color in STATES.items():
        axes.bar([0.0], [0.0], color=color, label=state, width=0.0)
    dress(axes, ylim=(len(names) - 0.4, -0.6), xlabel="time (UTC)")
    parts.moments(axes, begin, end)
    parts.name_rows(axes, names, 32)
    parts.legend(axes)
    return figure


def cost(history: Tables) -> Plot:
    """What attempts cost over time, and what for.

    Args:
        history: a project's tables.

    Returns:
        Bars over time, their parts by the attempts' results: in US dollars, or in tokens
        where no attempt tells its cost.
    """
    question = "What do attempts cost, and what for?"
    found = aggregates.costs(history.attempts)
    if not found.attempts:
        return blank(question, NOTHING_YET)
    if not found.told:
        return blank(question, f"{amount(found.attempts, 'attempt')}, none of which tells its cost")
    spent = parts.money(found.total, found.unit)
    won = sum(found.by_result.get("success", ()))
    share = f", {won / found.total:.0%} of it for attempts that succeeded" if found.total else ""
    answer = f"{spent} for {amount(found.told, 'attempt')}{share}"
    if found.told < found.attempts:
        answer += f"; {found.attempts - found.told:,} do not tell"
    figure = Plot(question, answer, 2.8)
    axes = figure.subplots()
    places = range(len(found.period.starts))
    bottom = [0.0] * len(places)
    for name in parts.ordered(found.by_result):
        values = found.by_result[name]
        if any(values):
            axes.bar(
                places,
                values,
                bottom=bottom,
                width=0.85,
                color=parts.color(name),
                label=parts.plain(name),
            )
            bottom = [low + value for low, value in zip(bottom, values, strict=True)]
    unit = "US dollars" if found.unit == "USD" else "tokens"
    dress(axes, ylabel=f"{unit} per {found.period.unit}", xlabel=f"{found.period.unit} (UTC)")
    axes.set_xlim(-0.6, max(len(places), 5) - 0.4)
    axes.set_ylim(0, max(bottom, default=0.0) * 1.08 or 1.0)
    parts.times(axes, found.period)
    parts.legend(axes)
    return figure
