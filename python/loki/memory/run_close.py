"""How a run ends: what led nowhere becomes a candidate for a lasting rule, and the signs are gone.

A run is all work on one git branch until it is closed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from loki.base import codec
from loki.base.time import isoformat, moment
from loki.memory.learning.candidate import Candidate, Candidates, Source
from loki.memory.quote import one_line, quoted
from loki.memory.sign import SIGNS, Run, Sighting, folder_of
from loki.memory.store import Store

# --- The log of runs that are over --------------------------------------------------------------------

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


# --- Closing a run ------------------------------------------------------------------------------------

OWN_LOOP = "(a loop of its own)"
"""Source of a sign that no task of loki's is known for."""

TRIES = 5
"""How often a run is read again that somebody adds to while it is closed. Chosen, not measured."""

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Closed:
    """A run that was closed.

    Attributes:
        branch: its git branch, or None.
        reason: closed, merged or deleted.
        signs: how many it had.
        candidates: rules that a person may approve now.
        at: when, ISO 8601 UTC.
    """

    branch: str | None
    reason: str
    signs: int
    candidates: tuple[Candidate, ...]
    at: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        candidates = [{"id": one.id, "rule": one.name} for one in self.candidates]
        return {**codec.fields_of(self), "candidates": candidates}


def close(
    store: Store,
    branch: str | None,
    *,
    succeeded: Callable[[str], bool],
    now: datetime,
    reason: str = "closed",
) -> Closed | None:
    """Close a run: propose lasting rules, note it in the log, and remove its signs.

    Args:
        store: where memory is kept.
        branch: the run's branch, or None.
        succeeded: whether a task has succeeded; of its signs nothing is to be learned.
        now: the time of day.
        reason: closed, merged or deleted.

    Returns:
        What was closed; None where there was nothing. Closing again after a crash proposes the same.
    """
    folder = folder_of(branch)
    closed = None
    for _ in range(TRIES):
        text = store.read(folder + SIGNS)
        if text is None:
            break
        closed = _closed(store, branch, text, succeeded, now, reason)
        if _removed(store, folder + SIGNS, text):
            break
    for name in store.keys(folder):  # the page, and what was damaged
        if name != folder + SIGNS:
            store.update(name, lambda _text: None)
    if closed is not None:
        store.append(LOG, closed.to_dict())
    return closed


def _closed(
    store: Store,
    branch: str | None,
    text: str,
    succeeded: Callable[[str], bool],
    now: datetime,
    reason: str,
) -> Closed:
    at = isoformat(now)
    name = folder_of(branch) + SIGNS

    def left_out(why: str) -> None:
        logger.warning("%s is damaged, and nothing is learned of that: %s", name, why)
        store.set_aside(name)

    run = Run.parse(text, branch, left_out=left_out)
    signs = run.seen.signs if run is not None else ()
    proposed = [candidate_of(sign, succeeded, at) for sign in signs]
    kept = [Candidates(store).propose(one) for one in proposed if one is not None]
    return Closed(branch, reason, len(signs), tuple(one for one in kept if one is not None), at)


def _removed(store: Store, document: str, text: str) -> bool:
    """Remove a document, unless somebody has changed it meanwhile."""
    found: list[bool] = []

    def change(now: str | None) -> str | None:
        found[:] = [now in {text, None}]
        return None if found[0] else now

    store.update(document, change)
    return found[0]


def candidate_of(sign: Sighting, succeeded: Callable[[str], bool], at: str) -> Candidate | None:
    """The lasting rule that a sign suggests; None where all its tasks have succeeded.

    Args:
        sign: a sign.
        succeeded: whether a task has succeeded.
        at: the time, ISO 8601 UTC.
    """
    error = str(sign.failure)
    tasks = [task for task in sign.tasks if not succeeded(task)]
    if sign.tasks and not tasks:
        return None
    approaches = "; ".join(quoted(a.text, 150) for a in reversed(sign.approaches))
    led = f" These led nowhere: {approaches}." if approaches else ""
    where = f" (in {quoted(sign.failure.tests[0], 100)})" if sign.failure.tests else ""
    text = f"Against the failure {quoted(error)}{where}:{led} Go about it another way."
    sources = [Source(task, one_line(error), at) for task in tasks or [OWN_LOOP]]
    why = (
        f"The failure came {sign.count} times in a run that is closed now, and what led to it was "
        "not mended. As a rule it would be told to every later attempt, of whatever task."
    )
    return Candidate.rule(text, sources, at, key=sign.failure.fingerprint, body=why)
