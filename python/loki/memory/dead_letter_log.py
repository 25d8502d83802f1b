"""The log of dead letters: each is kept with a page, compared with the others, and learned from.

One log holds what is needed of every dead letter, so that a new one reads one file, not thousands
of tasks. Attempts of other tasks are read only when a pattern is about to be drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from loki.base.documents import readable
from loki.base.log import log_event
from loki.base.markup import code
from loki.memory import suggestion, task_record
from loki.memory.attempt import Attempt, History
from loki.memory.dead_letter import DeadLetter, alike, render_page
from loki.memory.learning import pattern_learning
from loki.memory.learning.candidate import Candidate, Candidates, Source
from loki.memory.store import Store
from loki.memory.suggestion import Solved
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet

LETTERS = "memory/dead-letters.jsonl"

MOST_OTHERS = 2000
"""Failures that a candidate is held against; chosen so that drawing one takes seconds at most."""

MOST_COMPARED = 100
"""Dead letters, the newest, that a suggestion or a pattern is drawn from; chosen, not measured."""

MOST_SOLVED = 20
"""Similar tasks that are looked up for whether they succeeded later; chosen, not measured."""

WHY = (
    "These tasks failed alike, and no pattern knew how. What all of them say, and no other failure "
    "kept here nor any example of a known pattern does, would be added to "
    "`.loki/learned-patterns.yml`. The pattern at the top of this page may be edited first."
)


class DeadLetterLog:
    """What loki keeps of every task that was given up in a workspace, joined with a store.

    Args:
        store: where it is kept.
        patterns: the project's patterns.
    """

    def __init__(self, store: Store, patterns: PatternSet) -> None:
        self._store = store
        self._patterns = patterns

    def add(self, letter: DeadLetter, attempts: Sequence[Attempt], page: str) -> None:
        """Write a task's page, keep what later ones need, and propose a pattern where one is due.

        Args:
            letter: the task.
            attempts: of the execution that ended, oldest first.
            page: where its page goes.
        """
        own, known = letter.to_dict(), self.raw()
        known.pop(letter.task_id, None)  # what became of it before is in its attempts
        similar = list(_letters(one for one in known.values() if alike(own, one)))
        candidate = self._learn(letter, known)
        suggestions = self._suggestions(letter, similar)
        text = render_page(letter, attempts, len(similar), suggestions, _pointer(candidate))
        self._store.write(page, text)
        self._store.append(LETTERS, own)

    def letters(self) -> list[DeadLetter]:
        """The last dead letter of each task, in the order in which they were first written."""
        return list(_letters(self.raw().values()))

    def matched_by(self, entry: Mapping[str, Any]) -> list[DeadLetter]:
        """The dead letters that a pattern would be the best match of."""
        return [
            letter
            for letter in self.letters()
            if (failure := letter.recognized())
            and pattern_learning.matches(entry, failure, self._patterns)
        ]

    def raw(self) -> dict[str, dict[str, Any]]:
        """The same as plain data by task: most are looked at once and let go."""
        kept = self._store.records(LETTERS)
        return {str(record["task"]): record for record in kept if record.get("task")}

    def _suggestions(self, letter: DeadLetter, similar: Sequence[DeadLetter]) -> str:
        if not similar:
            return ""
        pattern = self._patterns.patterns.get(letter.pattern or "")
        own = (pattern.strategy, *(pattern.alternatives or ())) if pattern else ()
        newest = sorted(similar, key=lambda one: (one.at, one.task_id))[: -MOST_COMPARED - 1 : -1]
        descriptions = {name: s.description for name, s in self._patterns.strategies.items()}
        solved = list(self._solved(newest))
        found = suggestion.suggest(letter, newest, descriptions, own, solved)
        return suggestion.render(found, newest, len(similar))

    def _solved(self, similar: Sequence[DeadLetter]) -> Iterator[Solved]:
        for letter in similar[:MOST_SOLVED]:
            if task_record.load(self._store, letter.task_id).status == "success":
                attempts = History(self._store, letter.task_id).attempts()
                last = next((a for a in reversed(attempts) if a.result == "success"), None)
                if last and last.action.strip():
                    yield Solved(letter.task_id, last.action)

    # --- Learning -----------------------------------------------------------------------------------

    def _learn(
        self, letter: DeadLetter, known: Mapping[str, Mapping[str, Any]]
    ) -> Candidate | None:
        """The candidate that a dead letter belongs to, where there are enough like it."""
        failure = letter.recognized()
        if failure is None or not pattern_learning.is_unmatched(letter.confidence):
            return None
        others = islice(self._unmatched(failure, known), MOST_COMPARED - 1)
        alike_ones = [*reversed(list(others)), (letter, failure)]
        if len(alike_ones) < pattern_learning.FEWEST:
            return None
        candidates = Candidates(self._store)
        sources = [Source(one.task_id, one.message, one.at) for one, _ in alike_ones]
        matched = self._matched_by(failure, candidates)
        if matched and not matched.is_open:
            return None
        if matched:
            return candidates.propose(replace(matched, sources=tuple(sources)))
        failures = [failure for _, failure in alike_ones]
        tried = frozenset.intersection(*(frozenset(one.strategies) for one, _ in alike_ones))
        entry = pattern_learning.draw(failures, self._others(failures), self._patterns, tried)
        if entry is None:
            log_event(letter.task_id, "no pattern could be drawn")
            return None
        made = candidates.propose(Candidate.pattern(entry, sources, letter.at, body=WHY))
        if made:
            log_event(letter.task_id, f"proposed pattern={made.name}")
        return made

    def _unmatched(
        self, failure: Failure, known: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[DeadLetter, Failure]]:
        """The newest first."""
        fitting = (
            raw
            for raw in reversed(list(known.values()))
            if raw.get("extension") == failure.extension and raw.get("failure")
        )
        for letter in _letters(fitting):
            if not pattern_learning.is_unmatched(letter.confidence):
                continue
            other = letter.recognized()
            if other and pattern_learning.alike(other, failure) and not self._is_known(other):
                yield letter, other

    def _is_known(self, failure: Failure) -> bool:
        """Whether a pattern that was added since knows it."""
        seen = pattern_learning.Evidence.of(failure)
        best = next(iter(self._patterns.match(seen.text, seen.language)), None)
        return best is not None and not pattern_learning.is_unmatched(best.confidence)

    def _matched_by(self, failure: Failure, candidates: Candidates) -> Candidate | None:
        """The candidate for a pattern that matches a failure already."""
        for one in candidates.all():
            if one.kind == "pattern" and pattern_learning.matches(
                one.content, failure, self._patterns
            ):
                return one
        return None

    def _others(self, sources: Sequence[Failure]) -> list[Failure]:
        """Failures of this workspace that are of another kind than the sources."""
        found: dict[str, Failure] = {}
        for name in self._store.keys("tasks/"):
            if not name.endswith("/attempts.jsonl"):
                continue
            for attempt in History(self._store, name.split("/")[1]).attempts():
                failure = attempt.recognized()
                if failure is not None:
                    found.setdefault(failure.fingerprint, failure)
            if len(found) > MOST_OTHERS:
                break
        return [
            f for f in found.values() if not any(pattern_learning.alike(f, one) for one in sources)
        ]


def scan(store: Store) -> Iterator[DeadLetter]:
    """Every dead letter that loki kept, oldest first; a task may have several."""
    return _letters(store.scan(LETTERS))


def _letters(records: Iterable[Mapping[str, Any]]) -> Iterator[DeadLetter]:
    return readable(LETTERS, records, DeadLetter.read)


def _pointer(candidate: Candidate | None) -> str:
    """The page's section on the candidate that a dead letter belongs to."""
    if candidate is None or candidate.kind != "pattern":
        return ""
    return (
        "## Pattern learning candidate\n\n"
        f"{len(candidate.sources)} tasks failed like this, and no pattern knew it. A pattern is "
        f"proposed: {code(candidate.name)}, in `.loki/{candidate.document}`. "
        f"`loki review` shows it and asks what to do with it."
    )
