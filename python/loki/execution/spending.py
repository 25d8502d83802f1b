"""What agents took in the last hour, in all tasks of a project together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from loki.base.time import isoformat, moment
from loki.memory.call_log import LOG
from loki.memory.history import log_name

if TYPE_CHECKING:
    from loki.workspace import Workspace

HOUR = timedelta(hours=1)

EVERY = 60.0
"""Seconds for which a sum is good: the logs may be long. Chosen, not measured."""


def spending(workspace: Workspace) -> Callable[[], float]:
    """Tells US dollars of the last hour, read from the logs once a minute at most."""
    last: list[tuple[float, float]] = []

    def spent() -> float:
        at = workspace.clock.monotonic()
        if not last or at - last[0][0] >= EVERY:
            last[:] = [(at, spent_since(workspace, workspace.clock.now() - HOUR))]
        return last[0][1]

    return spent


def spent_since(workspace: Workspace, since: datetime) -> float:
    """US dollars that agents took since a moment.

    Calls to models are in the log of calls, and again in the attempts that they were for; programs
    that say what they took only there. So of each task the larger sum counts.
    """
    store = workspace.store
    calls: dict[str, float] = defaultdict(float)
    for call in store.scan(LOG):
        calls[str(call.get("task", ""))] += _cost(call, "at", since)
    total = calls.pop("", 0.0)
    for task in workspace.tasks():
        log = log_name(task)
        written = store.written_at(log)
        is_old = written is not None and written < since.timestamp()
        attempts = 0.0 if is_old else _sum(store.scan(log), since)
        total += max(attempts, calls.pop(task, 0.0))
    return total + sum(calls.values())


def _sum(records: Iterable[Mapping[str, Any]], since: datetime) -> float:
    return sum(_cost(record, "timestamp", since) for record in records)


def _cost(record: Mapping[str, Any], when: str, since: datetime) -> float:
    cost, at = record.get("cost"), str(record.get(when) or "")
    if not isinstance(cost, (int, float)) or not math.isfinite(cost) or cost <= 0:
        return 0.0
    # Ours are all written in one form; what others wrote may name a zone.
    is_ours = at.endswith("Z")
    then = None if is_ours else moment(at)
    said = isoformat(then) if then else at
    return float(cost) if said >= isoformat(since) else 0.0
