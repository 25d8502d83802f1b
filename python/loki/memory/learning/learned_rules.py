"""Learned rules, which every later task is told, and the review in which people decide on candidates.

Each rule is a page in ``.loki/memory/learned/``: approved, or written by a person. The head is optional;
the rule is what stands below it. Approved patterns stand in a file of their own, which loki writes whole; a
review makes one decision at a time, and writes only what loads.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from loki.base import atomic_file, locks, yaml_text
from loki.base.error import ConfigError
from loki.base.time import moment
from loki.base.tokens import tokens
from loki.memory.dead_letter import DeadLetter
from loki.memory.dead_letter_log import DeadLetterLog
from loki.memory.learning.candidate import APPROVED, Candidate, Candidates
from loki.recognition.pattern import LEARNED, PatternSet

if TYPE_CHECKING:
    from loki.memory.store import Store


FOLDER = "memory/learned/"

RULES_TOKENS = 500
"""Most tokens of the rules in a briefing; chosen, not measured."""

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Rule:
    """A lasting rule.

    Attributes:
        id: what it is called: the page's ``id``, else its name.
        text: the rule, Markdown.
        approved_at: when a person approved it, ISO 8601 UTC; "" where a person wrote it.
        approved_by: who did, or "".
    """

    id: str
    text: str
    approved_at: str = ""
    approved_by: str = ""


def read(name: str, text: str) -> Rule:
    """The rule of a page.

    Args:
        name: of its file.
        text: what stands in it.

    Raises:
        ValueError: its head cannot be read, or nothing stands below it.

    Example:
        >>> read("style.md", "Never edit gen/ by hand.\\n").text
        'Never edit gen/ by hand.'
    """
    fields, body = yaml_text.parse(text) if text.startswith("---") else ({}, text)
    if not body.strip():
        raise ValueError("found no rule, expected its text below the head")
    return Rule(
        str(fields.get("id") or name.removesuffix(".md")),
        body.strip(),
        str(fields.get("approved_at") or ""),
        str(fields.get("approved_by") or ""),
    )


def fitting(rules: Sequence[Rule], budget_tokens: int) -> tuple[Sequence[Rule], int]:
    """The rules that a budget has room for, and how many it has not.

    Those that people wrote come first, then those approved last.
    """
    in_order = sorted(rules, key=lambda rule: rule.id)
    in_order.sort(key=lambda rule: rule.approved_at or "~", reverse=True)
    told = []
    for rule in in_order:
        if (cost := tokens(rule.text)) <= budget_tokens:
            budget_tokens -= cost
            told.append(rule)
    return told, len(rules) - len(told)


class Learned:
    """The learned rules of a workspace; what cannot be read is told once and skipped.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told: set[str] = set()

    def rules(self) -> list[Rule]:
        """All of them, as they stand now, by the names of their pages."""
        found = []
        for name in self._store.keys(FOLDER):
            if not name.endswith(".md"):
                continue
            try:
                found.append(read(name.removeprefix(FOLDER), self._store.read(name) or ""))
            except ValueError as error:
                if name not in self._told:
                    self._told.add(name)
                    logger.warning("%s: skipped: %s", name, error)
        return found


# --- The weekly review --------------------------------------------------------------------------------

AT_MOST = 10
"""Candidates of one review."""

EVERY = timedelta(days=7)
"""From one review to the next."""

HEAD = (
    "# Patterns that `loki review` learned. It writes this file: yours is failure-patterns.yml.\n"
)

OFTEN = 3
"""Deferrals beyond which a candidate is pointed out."""


@dataclass(frozen=True, slots=True)
class Agenda:
    """What there is to decide.

    Attributes:
        candidates: those of this review, longest waiting first.
        waiting: how many wait in all.
        last: when the last decision was made, ISO 8601 UTC, or None.
        is_due: something waits, and nobody decided on anything for a week.
    """

    candidates: tuple[Candidate, ...]
    waiting: int
    last: str | None
    is_due: bool


class Review:
    """What a person decides, carried out.

    Args:
        candidates: what is decided on.
        letters: the dead letters that a pattern is tried with.
        folder: the project's ``.loki``, which need not be there.
    """

    def __init__(self, candidates: Candidates, letters: DeadLetterLog, folder: Path) -> None:
        self._candidates = candidates
        self._letters = letters
        self.pattern_file = folder / LEARNED

    def agenda(self, now: datetime) -> Agenda:
        """What there is to decide now."""
        waiting, last = self._candidates.open(), self._candidates.last_review()
        then = moment(last) if last else None
        # A decision of tomorrow, by a clock that was wrong, does not put the next review off.
        late = then is None or not timedelta(0) <= now - then < EVERY
        return Agenda(tuple(waiting[:AT_MOST]), len(waiting), last, bool(waiting) and late)

    def would_match(self, candidate: Candidate) -> list[DeadLetter]:
        """The dead letters kept here that a candidate's pattern would be the best match of."""
        if candidate.kind != "pattern":
            return []
        return self._letters.matched_by(candidate.content)

    def approve(self, id_: str, by: str, now: datetime) -> Candidate:
        """Learn it: a rule goes to ``memory/learned/``, a pattern to ``learned-patterns.yml``.

        Args:
            id_: of the candidate, or how that begins.
            by: who decided.
            now: the time.

        Raises:
            UsageError: there is no such candidate, or it was rejected.
            ConfigError: the pattern cannot be used, there is another one of its name, or a pattern
                file does not load; nothing is written, and the candidate open.
            StoreError: something could not be written.
        """
        with self._alone():
            candidate = self._candidates.get(id_)
            if candidate.kind == "pattern" and (candidate.is_open or candidate.status == APPROVED):
                self._add(candidate)
            return self._candidates.approve(candidate.id, by, now)

    def reject(self, id_: str, reason: str, by: str, now: datetime) -> Candidate:
        """Do not learn it; see `Candidates.reject`."""
        with self._alone():
            return self._candidates.reject(id_, reason, by, now)

    def defer(self, id_: str, by: str, now: datetime) -> Candidate:
        """Put it off; see `Candidates.defer`."""
        with self._alone():
            return self._candidates.defer(id_, by, now)

    def _add(self, candidate: Candidate) -> None:
        path, entry = self.pattern_file, candidate.content
        is_there = path.exists()
        learned = PatternSet.load(path).definition.get("patterns", []) if is_there else []
        if entry in learned:
            return
        if entry["id"] in PatternSet.of_project(path.parent).patterns:
            reason = f"found another pattern {entry['id']!r}, expected a name that is free"
            raise ConfigError(reason, file=candidate.document)
        text = HEAD + yaml_text.dump({"version": 2, "patterns": [*learned, entry]}, indented=True)
        try:
            PatternSet.loads(text)
        except ConfigError as error:
            raise ConfigError(error.reason, file=candidate.document) from error
        atomic_file.write_atomic(path, text.encode(), 0o600)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        atomic_file.make_folder(self.pattern_file.parent)
        with locks.hold(self.pattern_file):
            yield


def is_put_off(candidate: Candidate) -> bool:
    """Whether it was deferred more often than is good."""
    return candidate.deferrals > OFTEN
