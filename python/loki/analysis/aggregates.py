"""What plots show, added up from tables: plain figures, by the definitions of `loki report`.

docs/design/history.md says what an execution is, which attempts count, and when a strategy succeeded;
here nothing is defined anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis.arrow import EPOCH
from loki.base.time import isoformat
from loki.base.time_axis import YEARS, Axis, axis
from loki.memory.attempt_metrics import NO_PATTERN, repeats

INFRASTRUCTURE = "infrastructure"
"""Result of an attempt that infrastructure failed, as in `loki.memory.attempt_metrics`."""

DIVISIONS = 60
"""Of the time in which failures came back; chosen, not measured: more dots cannot be told apart."""

_HOUR_MS = 3_600_000


def results(attempts: pa.Table) -> pa.ChunkedArray:
    """The result of each attempt; ``infrastructure`` where that failed it."""
    said = pc.fill_null(texts(attempts["result"]), "unknown")
    return pc.if_else(pc.fill_null(attempts["infrastructure"], False), INFRASTRUCTURE, said)


def texts(column: Any) -> Any:
    """A column of categories as texts."""
    return pc.cast(column, pa.string())


# --- Where attempts go ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcomes:
    """How attempts ended.

    Attributes:
        results: attempts by result, infrastructure's failures by that name.
        patterns: the failed ones by pattern; ``none`` for those that matched none.
    """

    results: Counter[str]
    patterns: Counter[str]


def outcomes(attempts: pa.Table) -> Outcomes:
    """How the attempts of a table ended."""
    ended = results(attempts)
    patterns = pc.fill_null(texts(attempts["pattern_matched"]), NO_PATTERN)
    return Outcomes(_counted(ended), _counted(patterns.filter(pc.equal(ended, "failed"))))


def _counted(values: Any) -> Counter[str]:
    found = pc.value_counts(values)
    return Counter({str(one["values"]): int(one["counts"]) for one in found.to_pylist()})


# --- Strategies ----------------------------------------------------------------------------------------


@dataclass
class Uses:
    """What became of a strategy's uses on one pattern: all, and those of known outcome."""

    uses: int = 0
    cured: int = 0
    not_cured: int = 0

    @property
    def rate(self) -> float | None:
        """Share of the uses of known outcome that mended their failure."""
        known = self.cured + self.not_cured
        return self.cured / known if known else None


def strategy_uses(strategies: pa.Table) -> dict[tuple[str, str], Uses]:
    """What became of each (pattern, strategy).

    Args:
        strategies: the table.
    """
    texts_of = (texts(strategies[name]) for name in ("pattern", "strategy"))
    counted = pa.table([*texts_of, strategies["mended"]], ("pattern", "strategy", "mended"))
    found: dict[tuple[str, str], Uses] = {}
    names = counted.column_names
    for row in counted.group_by(names).aggregate([([], "count_all")]).to_pylist():
        cell = found.setdefault((row["pattern"] or NO_PATTERN, row["strategy"]), Uses())
        cell.uses += row["count_all"]
        cell.cured += row["count_all"] if row["mended"] is True else 0
        cell.not_cured += row["count_all"] if row["mended"] is False else 0
    return found


# --- Failures that come back ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Recurring:
    """A failure that was seen more than once.

    Attributes:
        message: of its first sighting; where: its first failing test, else its file, or "".
        times: how often it was seen; tasks: in how many tasks.
        seen: when, and how often then: sightings of a sixtieth of the whole time are one.
        infrastructure: infrastructure failed each time, not the work.
    """

    message: str
    where: str
    times: int
    tasks: int
    seen: tuple[tuple[datetime, int], ...]
    infrastructure: bool


def recurring(failures: pa.Table, most: int) -> tuple[list[Recurring], int]:
    """The failures that came back most often.

    Args:
        failures: the table, by time.
        most: how many of them to describe.

    Returns:
        The failures, most often first, and how many more came back.
    """
    prints = texts(failures["fingerprint"])
    times = [(n, one) for one, n in _counted(prints.drop_null()).items() if n > 1]
    times.sort(key=lambda one: (-one[0], one[1]))
    rows: dict[str, list[dict[str, Any]]] = {one: [] for _, one in times[:most]}
    kept = failures.filter(pc.is_in(prints, pa.array(list(rows), pa.string())))
    own = ("fingerprint", "message", "tests", "path", "task", "infrastructure", "timestamp")
    for row in kept.select(own).to_pylist():
        rows[row["fingerprint"]].append(row)
    moments = [row["timestamp"] for own in rows.values() for row in own]
    known = [at for at in moments if at is not None and at.year in YEARS]
    begin, end = min(known, default=EPOCH), max(known, default=EPOCH)
    step = max((end - begin) / DIVISIONS, timedelta(seconds=1))
    shown = [_recurring(rows[one], begin, step) for _, one in times[:most]]
    return shown, max(0, len(times) - most)


def _recurring(rows: Sequence[Mapping[str, Any]], begin: datetime, step: timedelta) -> Recurring:
    first = rows[0]
    known = [row["timestamp"] for row in rows if row["timestamp"] is not None]
    near = Counter((at - begin) // step for at in known if at.year in YEARS)
    return Recurring(
        first["message"] or "",
        (first["tests"] or [first["path"]])[0] or "",
        len(rows),
        len({row["task"] for row in rows if row["task"]}),
        tuple((begin + step * (place + 0.5), count) for place, count in sorted(near.items())),
        all(row["infrastructure"] for row in rows),
    )


def _hours(timestamps: Any) -> list[str]:
    """The hour of each moment, as `axis` takes it; "" for none."""
    moments = pc.cast(timestamps, pa.int64()).to_pylist()
    return ["" if at is None else _hour(at // _HOUR_MS) for at in moments]


@cache
def _hour(number: int) -> str:
    try:
        return isoformat(EPOCH + timedelta(hours=number))[:13]
    except OverflowError:
        return ""


# --- Time --------------------------------------------------------------------------------------------


@dataclass
class LostTime:
    """Milliseconds that attempts with one signature took, waits before them included.

    Attributes:
        first_ms: of attempts that failed so for the first time in their execution.
        again_ms: of those that failed so again.
        again: how many these were.
    """

    first_ms: int = 0
    again_ms: int = 0
    again: int = 0


@dataclass
class Time:
    """Where time went.

    Attributes:
        total_ms: of all attempts, waits included.
        again_ms, again: of those that failed again as before, and how many they were.
        signatures: by signature of the failure.
    """

    total_ms: int = 0
    again_ms: int = 0
    again: int = 0
    signatures: dict[str, LostTime] = field(default_factory=dict)


def time_lost(attempts: pa.Table) -> Time:
    """What attempts took that failed the same way again within their execution."""
    fails = pc.equal(results(attempts), "failed")
    prints = pc.if_else(fails, texts(attempts["fingerprint"]), pa.scalar(None, pa.string()))
    took = pc.add(pc.fill_null(attempts["duration_ms"], 0), pc.fill_null(attempts["delay_ms"], 0))
    executions = zip(
        texts(attempts["task"]).to_pylist(), attempts["execution"].to_pylist(), strict=True
    )
    again = repeats(zip(executions, prints.to_pylist(), strict=True))
    signatures = pc.if_else(fails, texts(attempts["signature"]), pa.scalar(None, pa.string()))
    found = Time(total_ms=int(pc.sum(took).as_py() or 0))
    rows = zip(signatures.to_pylist(), took.to_pylist(), again, strict=True)
    for signature, milliseconds, is_again in rows:
        if signature is None:
            continue
        lost = found.signatures.setdefault(signature, LostTime())
        if is_again:
            lost.again += 1
            lost.again_ms += milliseconds
            found.again += 1
            found.again_ms += milliseconds
        else:
            lost.first_ms += milliseconds
    return found


# --- Breakers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stretch:
    """A breaker's state from one moment to another."""

    begin: datetime
    end: datetime
    state: str


def stretches(transitions: pa.Table, until: datetime | None) -> dict[str, list[Stretch]]:
    """What state each breaker was in, from its first known change on.

    Args:
        transitions: the table, by time.
        until: where the last stretch of each ends, if that is later than its last change.

    Returns:
        By name of the breaker; those that changed first come first.
    """
    changes: dict[str, list[tuple[datetime, str]]] = {}
    for row in transitions.select(("timestamp", "breaker", "after")).to_pylist():
        if row["timestamp"] is not None and row["breaker"] is not None:
            change = row["timestamp"], row["after"] or "unknown"
            changes.setdefault(row["breaker"], []).append(change)
    latest = max((own[-1][0] for own in changes.values()), default=None)
    found = {}
    for name, own in changes.items():
        ends = [*(at for at, _ in own[1:]), max(filter(None, (latest, until)))]
        both = zip(own, ends, strict=True)
        found[name] = [Stretch(at, max(at, end), state) for (at, state), end in both]
    return found


def last_moment(*tables: pa.Table) -> datetime | None:
    """The latest time stamp in any of the tables."""
    moments = [pc.max(table["timestamp"]).as_py() for table in tables]
    return max(filter(None, moments), default=None)


# --- Cost ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """What attempts cost, over time.

    Attributes:
        unit: ``USD``, or ``tokens`` where no cost is known.
        period: the time axis.
        by_result: by result of the attempts, in each division.
        total: over all; told: how many attempts say what they cost; attempts: of so many.
    """

    unit: str
    period: Axis
    by_result: dict[str, tuple[float, ...]]
    total: float
    told: int
    attempts: int


def costs(attempts: pa.Table) -> Costs:
    """What the attempts of a table cost: in dollars, or in tokens where nobody said more."""
    unit = "USD" if _total(attempts["cost"]) else "tokens"
    values = pc.cast(attempts["cost" if unit == "USD" else "tokens"], pa.float64())
    hours = _hours(attempts["timestamp"])
    hourly: dict[str, dict[str, float]] = {}
    ended = results(attempts).to_pylist()
    for result, hour, value in zip(ended, hours, values.to_pylist(), strict=True):
        own = hourly.setdefault(result, {})
        own[hour] = own.get(hour, 0.0) + (value or 0.0)
    period = axis(set(hours))
    return Costs(
        unit,
        period,
        {result: period.spread(own) for result, own in hourly.items()},
        _total(values),
        len(values) - values.null_count,
        len(values),
    )


def _total(values: Any) -> float:
    return float(pc.sum(values).as_py() or 0.0)
