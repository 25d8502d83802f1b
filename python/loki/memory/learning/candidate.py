"""Candidates: what loki would like to learn, until a person says yes or no.

A candidate is a page in ``memory/candidates/``. What people decide goes to a log beside the pages,
and the first final decision in the log counts: two reviews at once cannot both decide, whatever
the store. Pages are rendered from both.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from loki.base.error import UsageError
from loki.base.secret import masked
from loki.base.time import isoformat, moment
from loki.memory.learning.candidate_page import (
    APPROVED,
    DEFERRED,
    FINAL,
    FOLDER,
    LEARNED,
    PROPOSED,
    REJECTED,
    Candidate,
    Source,
    read,
    render,
    render_learned,
    words,
)
from loki.memory.store import Store

__all__ = ["APPROVED", "DEFERRED", "PROPOSED", "REJECTED", "Candidate", "Candidates", "Source"]

DECISIONS = f"{FOLDER}decisions.jsonl"

ALIKE = 0.5
"""A rejected pattern is proposed again where less than this share of its signals' words is left."""

logger = logging.getLogger("loki")


class Candidates:
    """The candidates of a workspace, joined with a store.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def propose(self, candidate: Candidate) -> Candidate | None:
        """Keep a candidate; one that is open already gets the new sources and the newer content.

        Returns:
            The candidate as it stands now; None where a person has decided on it, or, of patterns,
            on one from some of the same tasks that has half of its signals' words.
        """
        for known in self.all():
            if not _same(known, candidate):
                continue
            if not known.is_open:
                return None
            candidate = replace(
                known,
                content=candidate.content,
                sources=tuple(dict.fromkeys((*known.sources, *candidate.sources))),
                body=candidate.body,
            )
            break
        self._write(candidate)
        return candidate

    def all(self) -> list[Candidate]:
        """Every candidate, longest waiting first; a page that cannot be read is skipped."""
        decisions = self._store.records(DECISIONS)
        found = []
        for name in self._store.names(f"{FOLDER}candidate-"):
            text = self._store.get(name)
            try:
                candidate = _decided(read(text or ""), decisions)
            except ValueError as error:
                logger.warning("%s: skipped: %s", name, error)
                continue
            if candidate.document == name:
                found.append(candidate)
        return sorted(found, key=lambda one: (one.waits_since, one.id))

    def open(self) -> list[Candidate]:
        """Those that nobody has approved or rejected, longest waiting first."""
        return [candidate for candidate in self.all() if candidate.is_open]

    def get(self, id_: str) -> Candidate:
        """The candidate whose id is, or alone begins with, what was asked for.

        Raises:
            UsageError: there is none, or several.
        """
        known = {candidate.id: candidate for candidate in self.all()}
        matching = [id_] if id_ in known else [one for one in known if id_ and one.startswith(id_)]
        if len(matching) == 1:
            return known[matching[0]]
        if matching:
            raise UsageError(f"{id_!r} begins several candidates: {', '.join(matching)}")
        there = ", ".join(one for one, c in known.items() if c.is_open) or "none is open"
        raise UsageError(f"no candidate {id_!r}: expected one of: {there}")

    def approve(self, id_: str, by: str, now: datetime) -> Candidate:
        """Note that a person wants it learned; a rule stands in ``memory/learned/`` after this.

        A pattern is added to the pattern file by `loki.memory.learning.weekly_review.Review`, which calls
        this.

        Args:
            id_: its id, or how that begins.
            by: who decided.
            now: the time.

        Raises:
            UsageError: there is no such candidate, or it was rejected.
        """
        candidate = self.get(id_)
        if candidate.status != APPROVED:  # else a crash may have come before the pages: write them
            candidate = self._decide(candidate, APPROVED, by, now)
        if candidate.kind == "rule":
            self._store.put(f"{LEARNED}{candidate.id}.md", render_learned(candidate))
        self._write(candidate)
        return candidate

    def reject(self, id_: str, reason: str, by: str, now: datetime) -> Candidate:
        """Note that a person does not want it learned, and why.

        Raises:
            UsageError: there is no such candidate, no reason, or it was decided on.
        """
        if not reason.strip():
            raise UsageError("a rejection needs a reason: it tells the next reader why")
        return self._write(self._decide(self.get(id_), REJECTED, by, now, reason.strip()))

    def defer(self, id_: str, by: str, now: datetime) -> Candidate:
        """Put it off to a later review.

        Raises:
            UsageError: there is no such candidate, or it was decided on.
        """
        return self._write(self._decide(self.get(id_), DEFERRED, by, now))

    def last_review(self) -> str | None:
        """When a person last decided on anything, ISO 8601 UTC."""
        times = [str(record.get("at")) for record in self._store.records(DECISIONS)]
        return max(filter(moment, times), default=None)

    def _decide(
        self, candidate: Candidate, verdict: str, by: str, now: datetime, reason: str = ""
    ) -> Candidate:
        _refuse_decided(candidate)
        record = {"id": candidate.id, "verdict": verdict, "by": by, "at": isoformat(now)}
        record = masked({**record, "reason": reason})
        self._store.append(DECISIONS, record)
        final = next(
            (
                known
                for known in self._store.records(DECISIONS)
                if known.get("id") == candidate.id and known.get("verdict") in FINAL
            ),
            record,
        )
        decided = self.get(candidate.id)
        if final != record:  # somebody else was quicker
            _refuse_decided(decided)
        return decided

    def _write(self, candidate: Candidate) -> Candidate:
        content, sources = masked(candidate.content), candidate.sources
        clean = tuple(Source.of(masked(source.to_dict())) for source in sources)
        self._store.put(
            candidate.document, render(replace(candidate, content=content, sources=clean))
        )
        return candidate


def _refuse_decided(candidate: Candidate) -> None:
    if not candidate.is_open:
        why = f": {candidate.reason}" if candidate.reason else ""
        raise UsageError(
            f"{candidate.id} was {candidate.status} by {candidate.decided_by} "
            f"at {candidate.decided_at}{why}"
        )


def _decided(candidate: Candidate, decisions: Iterable[Mapping[str, Any]]) -> Candidate:
    """The candidate with what a log says of it; nothing counts after the first final decision."""
    for decision in decisions:
        if decision.get("id") != candidate.id or not candidate.is_open:
            continue
        verdict = str(decision.get("verdict"))
        candidate = replace(
            candidate,
            status=verdict,
            reason=str(decision.get("reason") or ""),
            decided_at=str(decision.get("at")),
            decided_by=str(decision.get("by")),
            deferrals=candidate.deferrals + (verdict == DEFERRED),
        )
    return candidate


def _same(known: Candidate, new: Candidate) -> bool:
    if known.id == new.id:
        return True
    if known.kind != "pattern" or new.kind != "pattern":
        return False
    # Words alone do not tell: other failures may be told in much the same words.
    if not {one.task for one in known.sources} & {one.task for one in new.sources}:
        return False
    old, young = words(known.content), words(new.content)
    return len(old & young) >= ALIKE * len(old | young) > 0
