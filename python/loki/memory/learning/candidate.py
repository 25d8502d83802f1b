"""Candidates: what loki would like to learn, until a person says yes or no.

A candidate is a page in ``memory/candidates/``. What people decide goes to a log beside the pages,
and the first final decision in the log counts: two reviews at once cannot both decide, whatever
the store. Pages are rendered from both.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from loki.base import codec, yaml_text
from loki.base.error import UsageError
from loki.base.markup import bullets, code, fence, inline
from loki.base.secret import masked
from loki.base.time import isoformat, moment
from loki.base.yaml_text import dump, entity
from loki.memory.store import Store

# --- A candidate and its page -------------------------------------------------------------------------

FOLDER = "memory/candidates/"
LEARNED = "memory/learned/"

SOURCES = "## Sources\n\n"
"""What the page shows of the front matter begins here; above it stands why it is proposed."""

KINDS = ("pattern", "rule")
PROPOSED, APPROVED, REJECTED, DEFERRED = "proposed", "approved", "rejected", "deferred"
FINAL = frozenset({APPROVED, REJECTED})


@dataclass(frozen=True, slots=True)
class Source:
    """A task that a candidate comes from.

    Attributes:
        task: its id.
        error: what it failed with, or "".
        at: when, ISO 8601 UTC, or "".
    """

    task: str
    error: str = ""
    at: str = ""

    @classmethod
    def of(cls, data: Any) -> Source:
        """What a page says of it; a bare text is the id of a task."""
        if not isinstance(data, Mapping):
            return cls(str(data))
        return cls(*(str(data.get(name) or "") for name in ("task", "error", "at")))


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something to learn.

    Attributes:
        kind: pattern or rule.
        key: 8 hex digits; with the kind it names the candidate.
        content: of a rule its text; of a pattern what would be added to the pattern file.
        sources: the tasks that it comes from.
        created_at: when it was first proposed, ISO 8601 UTC.
        body: Markdown that says why it is proposed.
        status: proposed, approved, rejected or deferred.
        reason: why it was rejected, or "".
        decided_at: when it was decided on last, or ""; decided_by: who did.
        deferrals: how often it was put off.
    """

    kind: str
    key: str
    content: Any
    sources: tuple[Source, ...]
    created_at: str
    body: str = ""
    status: str = PROPOSED
    reason: str = ""
    decided_at: str = ""
    decided_by: str = ""
    deferrals: int = 0

    @staticmethod
    def rule(
        text: str, sources: Iterable[Source], created_at: str, *, key: str = "", body: str = ""
    ) -> Candidate:
        """A candidate for a lasting rule.

        Args:
            text: the rule, as later briefings are to say it.
            sources: the tasks that it comes from.
            created_at: ISO 8601 UTC.
            key: what makes two rules the same one, such as a fingerprint; the text by default.
            body: Markdown that says why it is proposed.

        Example:
            >>> Candidate.rule("Never edit gen/.", [Source("t")], "2026-04-04T10:15:30.000Z").id
            'rule-bef7d1d1'
        """
        return Candidate("rule", digest(key or text), text, tuple(sources), created_at, body)

    @staticmethod
    def pattern(
        entry: Mapping[str, Any], sources: Iterable[Source], created_at: str, *, body: str = ""
    ) -> Candidate:
        """A candidate for a pattern: ``entry`` as it would stand in a pattern file."""
        key = digest(dump(entry.get("signals")))
        return Candidate("pattern", key, dict(entry), tuple(sources), created_at, body)

    @property
    def id(self) -> str:
        """``pattern-<key>`` or ``rule-<key>``."""
        return f"{self.kind}-{self.key}"

    @property
    def document(self) -> str:
        """Its page, relative to ``.loki/``."""
        return f"{FOLDER}candidate-{self.id}.md"

    @property
    def name(self) -> str:
        """What people call it: a pattern's id, a rule's text."""
        return str(self.content["id"] if self.kind == "pattern" else self.content)

    @property
    def is_open(self) -> bool:
        """Nobody has approved or rejected it."""
        return self.status not in FINAL

    @property
    def waits_since(self) -> str:
        """When somebody last looked at it: its deferral, else its creation."""
        return self.decided_at or self.created_at


def digest(text: str) -> str:
    """8 hex digits that stay the same for the same text."""
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]


def render_candidate(candidate: Candidate) -> str:
    """The page of a candidate."""
    fields = {
        **entity("memory.candidates", f"candidate-{candidate.id}", f"candidate-{candidate.kind}"),
        "id": candidate.id,
        "kind": candidate.kind,
        "status": candidate.status,
        "created_at": candidate.created_at,
        "deferrals": candidate.deferrals,
        "reason": candidate.reason or None,
        "decided_at": candidate.decided_at or None,
        "decided_by": candidate.decided_by or None,
        candidate.kind: candidate.content,
        "sources": codec.write(candidate.sources),
    }
    told = [f"{code(s.task)}: {inline(s.error) or 'no error kept'}" for s in candidate.sources]
    parts = [
        f"# Candidate {candidate.kind}: {inline(candidate.name)}",
        candidate.body.strip(),
        SOURCES + bullets(told),
    ]
    if candidate.kind == "pattern":
        lines = as_entry(candidate.content)
        parts.append("## What would be added\n\n" + fence("\n".join(lines), "yaml"))
    parts.append(
        f"## Decide\n\n- `loki review --approve {candidate.id}`\n"
        f'- `loki review --reject {candidate.id} --reason "…"`\n'
        f"- `loki review --defer {candidate.id}`"
    )
    return yaml_text.page(fields, parts)


def as_entry(entry: Mapping[str, Any]) -> list[str]:
    """The lines of a pattern as it stands in a list of them."""
    return dump([dict(entry)], indented=True, width=10**6).splitlines()


def read(text: str) -> Candidate:
    """The candidate of a page; what was decided since is not in it.

    Raises:
        ValueError: it is no page of a candidate.
    """
    fields, body = yaml_text.parse(text)
    kind, _, key = str(fields.get("id")).partition("-")
    if kind not in KINDS or not re.fullmatch("[0-9a-f]{8}", key):
        raise ValueError(f"found id {fields.get('id')!r}, expected pattern- or rule- and 8 digits")
    content = fields.get(kind)
    if kind == "pattern" and not (isinstance(content, dict) and content.get("id")):
        raise ValueError("found no pattern, expected a mapping with an id")
    if kind == "rule" and not (isinstance(content, str) and content.strip()):
        raise ValueError("found no rule, expected its text")
    sources = fields.get("sources")
    return Candidate(
        kind,
        key,
        content,
        tuple(Source.of(source) for source in sources) if isinstance(sources, list) else (),
        str(fields.get("created_at") or ""),
        body.partition("\n")[2].partition(SOURCES)[0].strip(),
    )


def render_learned(candidate: Candidate) -> str:
    """The page of an approved rule, in ``memory/learned/``."""
    fields = {
        "id": candidate.id,
        "category": "learned-rule",
        "approved_at": candidate.decided_at,
        "approved_by": candidate.decided_by,
        "sources": masked(codec.write(candidate.sources)),
    }
    return yaml_text.page(fields, [str(candidate.content).strip()])


def words(entry: Mapping[str, Any]) -> frozenset[str]:
    """The words of a pattern's signals, letter case folded."""
    found: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, Mapping):
            for key in ("literal", "word", "regex", "any"):
                collect(value.get(key))
        elif isinstance(value, (list, tuple)):
            for each in value:
                collect(each)
        elif value is not None:
            found.extend(re.findall(r"\w+", str(value).casefold()))

    collect(entry.get("signals"))
    return frozenset(found)


# --- The candidates of a workspace --------------------------------------------------------------------

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
        for name in self._store.keys(f"{FOLDER}candidate-"):
            text = self._store.read(name)
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

        A pattern is added to the pattern file by `loki.memory.learning.learned_rules.Review`, which calls
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
            self._store.write(f"{LEARNED}{candidate.id}.md", render_learned(candidate))
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
        final = [
            known
            for known in self._store.records(DECISIONS)
            if known.get("id") == candidate.id and known.get("verdict") in FINAL
        ]
        decided = self.get(candidate.id)
        if final and final[0] != record:  # somebody else was quicker
            _refuse_decided(decided)
        return decided

    def _write(self, candidate: Candidate) -> Candidate:
        sources = tuple(map(Source.of, masked(codec.write(candidate.sources))))
        clean = replace(candidate, content=masked(candidate.content), sources=sources)
        self._store.write(candidate.document, render_candidate(clean))
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
