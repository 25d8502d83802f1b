"""What earlier runs of a project's tests showed, kept compactly and bounded.

Two things are kept in a store. ``logs/test-runs.jsonl`` has a record of each run, for people and for
tables. ``state/test-history.json`` is what labels are made from; it alone is read at the end of a run.
Most tests have passed in every run, so that most have the same row of letters: a row is kept once, and
each test says which is its. Runs are numbered; the last letter of every row belongs to the last run.
What is bounded, how tests are forgotten, and why it is so: ``docs/design/tests.md``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias

from loki.base import codec
from loki.base.documents import Masked, trimmed
from loki.base.secret import mask_secrets
from loki.memory.store import Store
from loki.recognition.failure import Failure
from loki.recognition.root_cause import is_infrastructure
from loki.recognition.similarity import THRESHOLD, overlap

# --- What one run of a test suite showed --------------------------------------------------------------

Phase: TypeAlias = Literal["setup", "call", "teardown", "collect", "crash", "timeout"]
"""Where a test failed: in its fixtures, itself, or before there was a test; its process died, or was
given up."""

Outcome: TypeAlias = Literal["failed", "error", "crashed", "timeout", "rerun"]
"""What became of it; ``rerun``: it was tried again."""


@dataclass(frozen=True, slots=True)
class SuiteFailure:
    """A test that failed, or one of its tries that did.

    Attributes:
        test: its node id; of a file that could not be collected, the file's.
        phase: where it failed.
        outcome: what became of it.
        failure: what was recognized.
        started_at: when this phase began, ISO 8601 UTC, or "".
        duration_ms: milliseconds that this phase took.
        worker: name of the process that ran it, ``gw0``; "" where there was one process only.
        rerun: number of this try where the test was tried again, from 1; 0: the last try.
    """

    __test__: ClassVar[bool] = False  # no test, though pytest would take its name for one

    test: str
    phase: Phase
    outcome: Outcome
    failure: Failure
    started_at: str = ""
    duration_ms: int = 0
    worker: str = ""
    rerun: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; `from_dict` reads it back."""
        return codec.fields_of(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SuiteFailure:
        """What `to_dict` gave, by this or another version; unknown fields are left out.

        Raises:
            ValueError: it is no record of a failing test.
        """
        return codec.parse(cls, data, "record of a failing test")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """One run of a test suite.

    Attributes:
        id: its name, different from that of every other run.
        started_at: when it began, ISO 8601 UTC.
        duration_ms: milliseconds that it took.
        branch: git branch, or "".
        commit: id of the commit that was checked out, or "".
        tree: a hash of the working tree's state; "": not known. Same commit and same tree: same code.
        environment: what else an outcome may depend on (interpreter, platform); runs with different
            ones are never taken for two runs of the same.
        passed: node ids of the tests that passed, those included that a rerun had to help.
        failures: the tests that failed in the end; a test may have failed in more than one phase.
        reruns: tries that failed and were made again, whatever came of it in the end.
        counts: how many tests came out how, by pytest's words: passed, failed, error, skipped, ….
        interrupted: it ended before all its tests had run (Ctrl-C, ``-x``, ``--maxfail``).
        exit_code: of pytest, as it was before loki.
    """

    __test__: ClassVar[bool] = False

    id: str
    started_at: str = ""
    duration_ms: int = 0
    branch: str = ""
    commit: str = ""
    tree: str = ""
    environment: str = ""
    passed: tuple[str, ...] = ()
    failures: tuple[SuiteFailure, ...] = ()
    reruns: tuple[SuiteFailure, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    interrupted: bool = False
    exit_code: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; `from_dict` reads it back."""
        return codec.fields_of(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SuiteRun:
        """What `to_dict` gave, by this or another version; unknown fields are left out.

        Raises:
            ValueError: it is no record of a run.
        """
        return codec.parse(cls, data, "record of a test run")


# --- What each test did in earlier runs: one letter a run, and each failure once ----------------------

VERSION = 1

ABSENT, PASSED, RESCUED, INFRASTRUCTURE = "-", "p", "r", "i"
"""Letters: did not run (or was skipped); passed; passed when it was tried again; was failed by
something that says nothing about it."""

FAILED = {"failed": "f", "error": "e", "crashed": "c", "timeout": "t"}
"""Letters of the outcomes of `SuiteFailure`."""

PAST_RUNS = 200
"""Runs that are kept which ran at least half of the known tests, and as many of the others. Chosen."""

AT_ONCE = 20
"""Runs over that bound that are dropped together: every row has to be written anew. Chosen."""

TESTS = 100_000
"""Tests that are kept. Chosen; names that are made up anew in each run would grow without end."""

SHOWN_RUNS = 8
"""Different failures that are kept of a test, those seen last. Chosen."""

LONGEST = 300
"""Characters of a message that are kept. Chosen."""


class NewerVersionError(ValueError):
    """A newer loki wrote this: it is left as it is."""


_OF_ITS_FOLDER = frozenset({"conftest.py", "__init__.py"})
"""Names of files that are imported for every test in their folder and below."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that is remembered.

    Attributes:
        number: of the run in this project, from 1.
        id, started_at, commit, tree, environment: as of `SuiteRun`.
        is_whole: it ran at least half of the tests that were known then.
    """

    number: int
    id: str
    started_at: str = ""
    commit: str = ""
    tree: str = ""
    environment: str = ""
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a test did in one run.

    Attributes:
        run: the run.
        letter: passed, rescued, failed …, as above.
        is_same: it showed the failure that is asked for.
        said: the failure that it showed, ``type: message``, or "".
    """

    run: PastRun
    letter: str
    is_same: bool = False
    said: str = ""

    @property
    def has_passed(self) -> bool:
        """It passed in the end."""
        return self.letter in {PASSED, RESCUED}

    @property
    def has_failed(self) -> bool:
        """It failed at least once, for a reason of its own."""
        return self.letter not in {PASSED, INFRASTRUCTURE}


@dataclass(frozen=True, slots=True)
class Earlier:
    """What is known of a test and of a failure of it.

    Attributes:
        runs: what the test did in each remembered run in which it ran, oldest first.
        times: runs in which it showed this failure, forgotten runs included.
        first, last: when it showed this failure, ISO 8601 UTC; "": never.
    """

    runs: tuple[Sighting, ...] = ()
    times: int = 0
    first: str = ""
    last: str = ""


NO_PAST_RUNS = Earlier()


@dataclass(slots=True)
class Shown:
    """A failure of a test.

    Attributes:
        known: number of what it said.
        first, last: when it was seen, ISO 8601 UTC.
        times: in how many runs.
        seen: numbers of those that are remembered.
    """

    known: int
    first: str
    last: str
    times: int
    seen: list[int]


@dataclass(slots=True)
class SuitePastRuns:
    """What the tests of a project did in earlier runs.

    Attributes:
        runs: remembered runs, oldest first.
        rows: for each test its letters, the last one of the last run.
        shown: for each test that failed, its failures, the one seen last at the end.
        said: what failures said: error type and normalized message; each once.
    """

    __test__ = False

    runs: list[PastRun] = field(default_factory=list)
    rows: dict[str, str] = field(default_factory=dict)
    shown: dict[str, list[Shown]] = field(default_factory=dict)
    said: list[tuple[str, str]] = field(default_factory=list)

    def earlier(self, test: str, failure: Failure, before: str = "") -> Earlier:
        """What is known of a test and of a failure of it; ``before``: id of a run to leave out."""
        name = mask_secrets(test)
        shown = self.shown.get(name, [])
        same = [one for one in shown if _same(self.said[one.known], failure)]
        said_in = {number: one for one in shown for number in one.seen}
        same_in = {number for one in same for number in one.seen}
        row = self.rows.get(name, "")
        sightings = tuple(
            Sighting(run, letter, run.number in same_in, _said(self.said, said_in.get(run.number)))
            for run, letter in zip(self.runs[-len(row) or len(self.runs) :], row, strict=False)
            if letter != ABSENT and run.id != before
        )
        now = next((run.number for run in self.runs if run.id == before), None)
        times = sum(one.times - (now in one.seen) for one in same)
        if not times:
            return Earlier(sightings)
        seen = [one.run.started_at for one in sightings if one.is_same]
        first = min(one.first for one in same)
        return Earlier(sightings, times, first, seen[-1] if seen else max(o.last for o in same))

    # --- A run is added -----------------------------------------------------------------------------

    def add(self, run: SuiteRun) -> None:
        """Remember a run; the same one twice is one."""
        if any(known.id == run.id for known in self.runs):
            return
        number = self.runs[-1].number + 1 if self.runs else 1
        letters = {_known(test, self.rows): letter for test, letter in _letters(run).items()}
        for file in _collected([one for one in self.rows if "::" not in one], letters):
            letters.setdefault(file, PASSED)
        self.rows = {test: row + letters.get(test, ABSENT) for test, row in self.rows.items()} | {
            test: letter for test, letter in letters.items() if test not in self.rows
        }
        whole = 2 * len(letters) >= len(self.rows)
        self.runs.append(
            PastRun(number, run.id, run.started_at, run.commit, run.tree, run.environment, whole)
        )
        index = {said: place for place, said in enumerate(self.said)}
        for one in (*run.reruns, *run.failures):
            self._show(_known(one.test, self.rows), one, run, number, index)
        self._forget()

    def _show(
        self,
        test: str,
        one: SuiteFailure,
        run: SuiteRun,
        number: int,
        index: dict[tuple[str, str], int],
    ) -> None:
        shown = self.shown.setdefault(test, [])
        known = next((s for s in shown if _same(self.said[s.known], one.failure)), None)
        if known is None:
            said = _described(one.failure)
            place = index.setdefault(said, len(self.said))
            if place == len(self.said):
                self.said.append(said)
            known = Shown(place, run.started_at, run.started_at, 0, [])
            shown.append(known)
        if number not in known.seen:
            known.times += 1
            known.seen.append(number)
        known.first = min(known.first, run.started_at)
        known.last = max(known.last, run.started_at)
        shown.sort(key=lambda s: s.seen[-1:] or [0])
        del shown[:-SHOWN_RUNS]

    def _forget(self) -> None:
        """Drop what is over the bounds: runs, then tests that no remembered run has run."""
        dropped = self._runs_to_drop()
        if dropped:
            self._drop(dropped)
        if len(self.rows) > TESTS:
            # A row ends at the last run: the more absences at its end, the longer it is gone.
            by_age = sorted(self.rows, key=lambda test: _absences(self.rows[test]))
            for test in by_age[TESTS:]:
                del self.rows[test]
        for test in [test for test in self.shown if test not in self.rows]:
            del self.shown[test]
        self._renumber()

    def _runs_to_drop(self) -> set[int]:
        """Places of the oldest runs of each kind, once there are so many too many."""
        whole = [place for place, run in enumerate(self.runs) if run.is_whole]
        others = [place for place, run in enumerate(self.runs) if not run.is_whole]
        many = [kind for kind in (whole, others) if len(kind) >= PAST_RUNS + AT_ONCE]
        return {place for kind in many for place in kind[:-PAST_RUNS]}

    def _drop(self, places: set[int]) -> None:
        kept = [place for place in range(len(self.runs)) if place not in places]
        shorter = {}
        for row in set(self.rows.values()):
            start = len(self.runs) - len(row)
            letters = "".join(row[place - start] for place in kept if place >= start)
            shorter[row] = letters.lstrip(ABSENT)
        self.runs = [self.runs[place] for place in kept]
        self.rows = {test: shorter[row] for test, row in self.rows.items() if shorter[row]}
        numbers = {run.number for run in self.runs}
        for shown in self.shown.values():
            for one in shown:
                one.seen = [number for number in one.seen if number in numbers]

    def _renumber(self) -> None:
        """Keep of what was said only what a test still shows."""
        used = sorted({one.known for shown in self.shown.values() for one in shown})
        if len(used) < len(self.said):
            places = {old: new for new, old in enumerate(used)}
            self.said = [self.said[old] for old in used]
            for shown in self.shown.values():
                for one in shown:
                    one.known = places[one.known]

    # --- As text ------------------------------------------------------------------------------------

    def dumps(self) -> str:
        """As JSON; secrets were masked when it was added."""
        rows = list(dict.fromkeys(self.rows.values()))
        places = {row: place for place, row in enumerate(rows)}
        data = {
            "version": VERSION,
            "runs": [
                [r.number, r.id, r.started_at, r.commit, r.tree, r.environment, int(r.is_whole)]
                for r in self.runs
            ],
            "rows": rows,
            "tests": {test: places[row] for test, row in self.rows.items()},
            "said": self.said,
            "shown": {
                test: [[s.known, s.first, s.last, s.times, s.seen] for s in shown]
                for test, shown in self.shown.items()
            },
        }
        return json.dumps(data, ensure_ascii=True, separators=(",", ":")) + "\n"

    @classmethod
    def loads(cls, text: str) -> SuitePastRuns:
        """What `dumps` gave.

        Raises:
            NewerVersionError: a newer version wrote it.
            ValueError: it is something else.
        """
        from pydantic_core import from_json

        try:
            data = from_json(text, cache_strings="keys")
            if int(data["version"]) > VERSION:
                raise NewerVersionError(f"found version {data['version']}, expected {VERSION}")
            return cls._checked(data)
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None

    @classmethod
    def _checked(cls, data: dict[str, Any]) -> SuitePastRuns:
        runs = [
            PastRun(int(number), str(run), str(at), str(commit), str(tree), str(where), bool(whole))
            for number, run, at, commit, tree, where, whole in data["runs"]
        ]
        rows = [str(row) for row in data["rows"]]
        if any(len(row) > len(runs) for row in rows):
            raise ValueError("found a row that is longer than there are runs")
        said = [(str(kind), str(message)) for kind, message in data["said"]]
        shown = {
            str(test): [
                Shown(int(known), str(first), str(last), int(times), [int(n) for n in seen])
                for known, first, last, times, seen in entries
            ]
            for test, entries in data["shown"].items()
        }
        if any(not 0 <= one.known < len(said) for entries in shown.values() for one in entries):
            raise ValueError("found a failure that says nothing")
        return cls(runs, {str(t): rows[place] for t, place in data["tests"].items()}, shown, said)


def _letters(run: SuiteRun) -> dict[str, str]:
    """What each test did; where it failed more than once, what it did itself."""
    letters = dict.fromkeys(run.passed, PASSED)
    for one in run.reruns:
        if letters.get(one.test) == PASSED and not is_infrastructure(one.failure):
            letters[one.test] = RESCUED
    for one in run.failures:
        letter = INFRASTRUCTURE if is_infrastructure(one.failure) else FAILED.get(one.outcome, "f")
        if letters.get(one.test, INFRASTRUCTURE) in {PASSED, RESCUED, INFRASTRUCTURE}:
            letters[one.test] = letter
    return letters


def _collected(files: Sequence[str], tests: Iterable[str]) -> Iterator[str]:
    """Which of some files that could not be collected once were: a test of theirs ran."""
    if not files:
        return
    ran = {file for test in tests if (parts := test.partition("::"))[1] and (file := parts[0])}
    for file in files:
        folder, _, name = file.rpartition("/")
        if name in _OF_ITS_FOLDER:
            if any(one.startswith(f"{folder}/" if folder else "") for one in ran):
                yield file
        elif file in ran or any(one.startswith(f"{file}/") for one in ran):  # a folder, perhaps
            yield file


def _known(test: str, rows: dict[str, str]) -> str:
    """A test's name as it is kept; most are known and hold no secret, which is quick to see."""
    return test if test in rows else mask_secrets(test)


def _described(failure: Failure) -> tuple[str, str]:
    # Whether pytest names the type of a failed assertion depends on how it prints tracebacks.
    kind = "" if failure.error_type == "AssertionError" else failure.error_type or ""
    return mask_secrets(kind), mask_secrets(failure.normalized)[:LONGEST]


def _same(said: tuple[str, str], failure: Failure) -> bool:
    """Whether a test shows a failure again: of one test, type and message are enough."""
    kind, message = _described(failure)
    return kind == said[0] and (message == said[1] or overlap(message, said[1]) > THRESHOLD)


def _said(said: Sequence[tuple[str, str]], one: Shown | None) -> str:
    return ": ".join(filter(None, said[one.known])) if one is not None else ""


def _absences(row: str) -> int:
    return len(row) - len(row.rstrip(ABSENT))


# --- What is kept in a store --------------------------------------------------------------------------

LOG = "logs/test-runs.jsonl"
"""Name of the log in a store."""

DOCUMENT = "state/test-history.json"
"""Name of the document in a store."""

WHOLE = 50
"""Failures of a run that the log keeps whole; others without excerpt, stack and matches. Chosen."""

MOST = 1_000
"""Failures of a run that the log keeps at all. Chosen."""

RUNS, TEXT = 1_000, 20_000_000
"""Runs that the log keeps, and characters of them all; the oldest go first. Chosen."""

EVERY = 20
"""Runs after which the log is looked at again: to see how long it is, it has to be read. Chosen."""

logger = logging.getLogger("loki")


class SuiteHistory:
    """What the tests of a project showed before.

    Args:
        store: where it is kept; None: nothing is known, nothing is kept.

    Example:
        >>> from loki.recognition.failure import Failure
        >>> SuiteHistory().earlier("tests/test_a.py::test_x", Failure.of("assert 1 == 2")).runs
        ()
    """

    __test__ = False

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._past: SuitePastRuns | None = None

    @property
    def past(self) -> SuitePastRuns:
        """What is known, read at the first question; damage is told once and costs labels only."""
        if self._past is None:
            past = SuitePastRuns()
            text = self._store.read(DOCUMENT) if self._store is not None else None
            try:
                if text is not None:
                    past = SuitePastRuns.loads(text)
            except ValueError as error:
                logger.warning("%s: no history of tests can be read: %s", DOCUMENT, error)
            self._past = past
        return self._past

    def earlier(self, test: str, failure: Failure, *, before: str = "") -> Earlier:
        """What is known of a test and of a failure of it.

        Args:
            test: node id.
            failure: how it fails now.
            before: id of a run that is left out where it is known: the one that is asked for.
        """
        return self.past.earlier(test, failure, before) if self._store is not None else NO_PAST_RUNS

    def keep(self, run: SuiteRun) -> None:
        """Remember a run; others may do so at the same time.

        Raises:
            StoreError: the store cannot; a `loki.stores.file_store.ForgivingStore` goes on without.
        """
        if self._store is None:
            return
        store = self._store
        store.append(LOG, _logged(run), durable=False)
        kept = SuitePastRuns()

        def rewrite(text: str | None) -> str | None:
            nonlocal kept
            try:
                kept = SuitePastRuns.loads(text) if text is not None else SuitePastRuns()
            except NewerVersionError:
                return text
            except ValueError as error:
                logger.warning("%s is damaged (%s): begun anew", DOCUMENT, error)
                store.set_aside(DOCUMENT)
                kept = SuitePastRuns()
            kept.add(run)
            return Masked(kept.dumps())

        self._store.update(DOCUMENT, rewrite, durable=False)
        self._past = kept
        if kept.runs and kept.runs[-1].number % EVERY == 0:
            # What another process adds in this very moment may be lost to the log, not to labels.
            self._store.update(LOG, lambda log: trimmed(log, RUNS, TEXT), durable=False)


def _logged(run: SuiteRun) -> dict[str, Any]:
    """A run as the log keeps it: without the names of what passed."""
    failures = [_reduced(one, index) for index, one in enumerate(run.failures[:MOST])]
    reruns = [_reduced(one, index) for index, one in enumerate(run.reruns[:MOST])]
    kept = replace(run, passed=(), failures=tuple(failures), reruns=tuple(reruns)).to_dict()
    left = len(run.failures) + len(run.reruns) - len(failures) - len(reruns)
    return {**kept, **({"left_out": left} if left else {})}


def _reduced(one: SuiteFailure, index: int) -> SuiteFailure:
    if index < WHOLE:
        return one
    failure = replace(one.failure, excerpt="", frames=(), matches=one.failure.matches[:1])
    return replace(one, failure=failure)
