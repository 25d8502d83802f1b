"""The log of runs that are over."""

from __future__ import annotations

from datetime import datetime

from loki.base.time import moment
from loki.memory.store import Store

LOG = "logs/closed-runs.jsonl"
"""A line for each run that was closed: its branch, when, why, and its signs."""


def ended_at(store: Store, branch: str | None) -> datetime | None:
    """When the last run on a branch that is over ended; None: none is known to have.

    Args:
        store: where memory is kept.
        branch: the git branch, or None.
    """
    ends = (moment(str(line.get("at"))) for line in store.scan(LOG) if line.get("branch") == branch)
    return max((end for end in ends if end is not None), default=None)
