"""What a report says: a summary's figures, put into words, tables and charts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from loki.base.text_format import amount, span
from loki.base.time_axis import Axis, axis
from loki.cli.report.document import (
    Bars,
    Block,
    Cell,
    Curve,
    Document,
    Facts,
    Link,
    Section,
    Stacks,
    Table,
    Text,
)
from loki.memory.attempt_metrics import (
    ENOUGH_USES,
    NO_PATTERN,
    RELIABLE,
    WEAK,
    Ending,
    StrategyTotals,
    Summary,
)

RESULTS = ("success", "failed", "unverified", "interrupted", "infrastructure")
MOST_ROWS = 20
"""Most rows of a table; chosen, not measured. What is left out is said."""

PAGE = re.compile(r"(tasks|escalations)/(?!.*\.\.)[^\x00-\x1f\\]+\.md")
"""Pages that a report may lead to, below ``.loki/``."""

LOW, HIGH = f"{WEAK * 100:.0f} %", f"{RELIABLE * 100:.0f} %"
FLAGS = {"weak": f"weak: under {LOW}", "reliable": f"reliable: over {HIGH}", "": ""}


def compose(summary: Summary, title: str, about: str, pages: str) -> Document:
    """The report on a summary.

    Args:
        summary: the figures.
        title: name of the report.
        about: which project, period and tasks.
        pages: where ``.loki`` is, relative to where the report will be.
    """
    if not summary.attempts and not summary.statuses:
        nothing = "No attempt was made here yet, or none in this period: see `loki run --help`."
        return Document(title, about, [Section("Overview", [Text(nothing)])])
    times = axis(summary.hours)
    sections = [
        Section("Overview", list(_overview(summary))),
        Section("Outcomes over time", list(_over_time(summary, times))),
        Section("By pattern", list(_patterns(summary))),
        Section("By strategy", list(_strategies(summary))),
        Section("Chains into failure", list(_chains(summary))),
        Section("Caught before anything was written", list(_catches(summary))),
        Section("Regressions", list(_regressions(summary))),
        Section("Dead letters and escalations", list(_endings(summary, pages))),
        Section("Slowest checks", list(_checks(summary))),
        Section("Infrastructure", list(_infrastructure(summary))),
        Section("Cost and tokens", list(_cost(summary, times))),
    ]
    return Document(title, about, sections)


def percent(share: float | None) -> str:
    """A share in words.

    Example:
        >>> percent(0.333), percent(None)
        ('33 %', '-')
    """
    return "-" if share is None else f"{share * 100:.0f} %"


def number(value: float | None) -> str:
    """A mean in words."""
    return "-" if value is None else f"{value:.1f}"


def _overview(summary: Summary) -> Iterator[Block]:
    ended, statuses = summary.ended, summary.statuses
    open_ = sum(statuses.values()) - ended
    still = f"{amount(open_, 'execution')} not ended" if open_ else ""
    idle = f"{summary.nothing_to_do:,} times nothing to do" if summary.nothing_to_do else ""
    mean_time = summary.mean_time_to_success_ms
    infrastructure = f"{summary.attempts['infrastructure']:,} of them infrastructure"
    yield Facts(
        [
            ("Tasks", summary.tasks, idle),
            ("Executions that ended", ended, still),
            ("Succeeded", percent(summary.success_rate), statuses["success"]),
            ("Asked a person", percent(summary.escalation_rate), statuses["escalated"]),
            ("Dead letters", percent(summary.dead_letter_rate), summary.dead_letter_count),
            ("Attempts", sum(summary.attempts.values()), infrastructure),
            ("Attempts to success", number(summary.mean_attempts_to_success), "mean"),
            ("Time to success", "-" if mean_time is None else span(mean_time), "mean, with waits"),
        ]
    )
    if statuses["unverified"]:
        count = amount(statuses["unverified"], "execution")
        yield Text(f"{count} ended unverified: no check said whether the work was done.")


def _over_time(summary: Summary, times: Axis) -> Iterator[Block]:
    series = []
    for result in RESULTS:
        hourly = {hour: float(counter[result]) for hour, counter in summary.hours.items()}
        series.append((result, times.spread(hourly)))
    yield Stacks(f"Attempts by {times.unit}, by how they ended", times.names, series)
    shown = [(name, values) for name, values in series if any(values)]
    rows: list[Sequence[Cell]] = [
        (time, *(round(values[i]) for _, values in shown))
        for i, time in enumerate(times.names)
        if any(values[i] for _, values in shown)
    ]
    yield from _table([times.unit.capitalize(), *(name for name, _ in shown)], rows[::-1])


def _patterns(summary: Summary) -> Iterator[Block]:
    found = sorted(summary.patterns.items(), key=lambda one: (-one[1].failures, one[0]))
    if not found:
        yield Text("No attempt failed.")
        return
    yield Text(
        "Success is of executions: the share of those that met the pattern, ended, and succeeded."
    )
    bars = [(_named(n), totals.failures, f"{totals.failures:,}") for n, totals in found[:12]]
    yield Bars("Failed attempts by pattern", bars)
    head = ("Pattern", "Failed attempts", "Executions", "Success", "Mean attempts")
    rows = [
        (_named(n), t.failures, t.executions, percent(t.success_rate), number(t.mean_attempts))
        for n, t in found
    ]
    yield from _table(head, rows)


def _named(pattern: str) -> str:
    return "(no pattern)" if pattern == NO_PATTERN else pattern


def _strategies(summary: Summary) -> Iterator[Block]:
    found = sorted(summary.strategies.items(), key=lambda one: (-one[1].uses, one[0]))
    if not found:
        yield Text("No strategy was used: nothing failed, or nothing was tried again.")
        return
    yield Text(
        "A use is a success where the failure that it answered was not seen again, and a later "
        "attempt showed that it is gone; uses of which nobody knows are left out. Of ten uses or "
        f"more, under {LOW} is weak and over {HIGH} reliable."
    )
    judged = [(name, totals, totals.success_rate) for name, totals in found]
    bars = [
        (name, rate, f"{percent(rate)} of {totals.cured + totals.not_cured:,}")
        for name, totals, rate in judged
        if rate is not None
    ]
    marks = ((WEAK, LOW), (RELIABLE, HIGH))
    yield Bars("Success of each strategy's uses", bars[:12], 1.0, marks)
    head = ("Strategy", "Verdict", "Uses", "Mended", "Not", "Success", "Tasks' success")
    rows = [_strategy_row(name, totals) for name, totals in found]
    yield from _table((*head, "Mean attempts"), rows, 2)


def _strategy_row(name: str, totals: StrategyTotals) -> tuple[Cell, ...]:
    few = "" if totals.cured + totals.not_cured >= ENOUGH_USES else "too few uses to tell"
    shares = percent(totals.success_rate), percent(totals.task_success_rate)
    counts = totals.uses, totals.cured, totals.not_cured
    return name, FLAGS[totals.flag] or few, *counts, *shares, number(totals.mean_attempts)


def _chains(summary: Summary) -> Iterator[Block]:
    found = summary.chains_into_failure
    if not found:
        yield Text("No execution failed after two strategies or more.")
        return
    yield Text(
        "Strategies that followed one another in an execution (the last five), and how often it then "
        "failed or needed a person."
    )
    rows = [
        (" → ".join(links), t.failures, t.executions, percent(t.failures / t.executions))
        for links, t in found
    ]
    yield from _table(("Chain", "Into failure", "Executions", "Share"), rows)


def _catches(summary: Summary) -> Iterator[Block]:
    runs, passed = summary.validation_runs, summary.validation_passed
    if not runs:
        yield Text("VALIDATE never ran: whoever edits by themselves is not validated.")
        return
    caught = f"{summary.caught:,} of {summary.failures:,} failed attempts"
    yield Facts(
        [
            ("Runs of VALIDATE", runs, ""),
            ("Passed", percent(passed / runs), passed),
            ("Failures caught", percent(summary.pre_validation_catch_rate), caught),
        ]
    )
    common = summary.catches.most_common(12)
    if common:
        yield Bars("What blocked, by gate", [(n, c, f"{c:,}") for n, c in common])
        yield from _table(("Gate", "Blocked"), common)


def _regressions(summary: Summary) -> Iterator[Block]:
    run, skipped = summary.regression_checks_run, summary.regression_checks_skipped
    if not run and not skipped:
        yield Text("The regression check never had a say.")
        return
    fixed, found = summary.regressions_auto_fixed, summary.regressions_detected
    yield Facts(
        [
            ("Checks run", run, ""),
            ("Skipped", skipped, "too simple a task, or not checked: loki show says why"),
            ("Regressions found", found, "tests that passed before"),
            ("Mended by a later attempt", fixed, ""),
        ]
    )


def _endings(summary: Summary, pages: str) -> Iterator[Block]:
    kinds = (
        ("dead letter", summary.dead_letter_count, summary.dead_letters),
        ("escalation", summary.statuses["escalated"], summary.escalations),
    )
    if not any(count for _, count, _ in kinds):
        yield Text("None.")
    for name, count, endings in kinds:
        if not count:
            continue
        newest = f"; the newest {len(endings[:MOST_ROWS])}" if count > MOST_ROWS else ""
        yield Text(f"{amount(count, name)}{newest}:")
        rows = [_ending_row(ending, pages) for ending in endings[:MOST_ROWS]]
        yield Table(("When", "Task", "Why"), rows, 3)


def _ending_row(ending: Ending, pages: str) -> tuple[Cell, ...]:
    task: Cell = ending.title
    if ending.page and PAGE.fullmatch(ending.page):
        task = Link(ending.title, f"{pages}/{ending.page}")
    return ending.at[:16].replace("T", " "), task, ending.reason


def _checks(summary: Summary) -> Iterator[Block]:
    found = sorted(summary.checks.items(), key=lambda one: (-one[1].mean_ms, one[0]))
    if not found:
        yield Text("No check ran.")
        return
    bars = [(name, totals.mean_ms, span(totals.mean_ms)) for name, totals in found[:10]]
    yield Bars("Mean time of a run", bars)
    rows: list[Sequence[Cell]] = []
    for name, one in found:
        failed = f"{one.failures:,} ({percent(one.failures / one.runs)})"
        times = map(span, (one.mean_ms, one.most_ms, one.total_ms))
        rows.append((name, one.runs, failed, *times))
    yield from _table(("Check", "Runs", "Failed", "Mean", "Longest", "In all"), rows)


def _infrastructure(summary: Summary) -> Iterator[Block]:
    count = sum(summary.infrastructure.values())
    waited = span(summary.waited_ms)
    if not count:
        yield Text(f"No attempt failed for its sake; {waited} were spent waiting before attempts.")
        return
    yield Text(
        f"{amount(count, 'attempt')} failed because of an agent, a service or a machine. They count for "
        f"nothing else in this report. {waited} were spent waiting before attempts."
    )
    rows = [(_named(name), many) for name, many in summary.infrastructure.most_common()]
    yield from _table(("Pattern", "Attempts"), rows)


def _cost(summary: Summary, times: Axis) -> Iterator[Block]:
    tokens = sum(agent.tokens for agent in summary.agents.values())
    cost = sum(agent.cost for agent in summary.agents.values())
    if not tokens and not cost:
        yield Text("No agent said what it took.")
        return
    won = summary.statuses["success"]
    yield Facts(
        [
            ("Tokens", tokens, f"{tokens / won:,.0f} for each success" if won else ""),
            ("Cost", f"{cost:,.2f}", f"{cost / won:,.2f} for each success" if won else ""),
        ]
    )
    if tokens and len(times.starts) > 1:
        hourly = {hour: float(count) for hour, count in summary.hourly_tokens.items()}
        yield Curve(f"Tokens by {times.unit}", times.names, times.spread(hourly))
    found = sorted(summary.agents.items(), key=lambda one: (-one[1].cost, -one[1].tokens, one[0]))
    rows: list[Sequence[Cell]] = [
        (name or "(nobody said who)", one.attempts, one.tokens, f"{one.cost:,.2f}")
        for name, one in found
    ]
    yield from _table(("Agent", "Attempts", "Tokens", "Cost"), rows)


def _table(
    head: Sequence[str], rows: Sequence[Sequence[Cell]], words: int = 1
) -> Iterator[Table | Text]:
    """A table, cut where it would be too long to read."""
    yield Table(head, rows[:MOST_ROWS], words)
    if len(rows) > MOST_ROWS:
        yield Text(f"{len(rows) - MOST_ROWS:,} more are left out here; --json has them.")


def pages_from(report: Path | None, folder: Path) -> str:
    """Where ``.loki`` is, relative to the report; to the working folder where it is printed."""
    start = report.resolve().parent if report else Path.cwd()
    return Path(os.path.relpath(folder.resolve(), start)).as_posix()
