"""What the tables of `loki.analysis` have in them: name, type, unit and meaning of each column.

The one place that says so: the tables are made by it, `docs/jupyter.md` is checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from loki.base.error import UsageError
from loki.base.markup import table


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: as it is called in the table.
        type: text; category: text that repeats, kept once; time: a moment in UTC, to the
            millisecond; integer, number, truth; list of text; checks: a list of name, passed and
            duration_ms. Every column may be null.
        unit: ``ms``, ``USD``, ``tokens``, or "" where there is none.
        meaning: one line.
    """

    name: str
    type: str
    unit: str
    meaning: str


class Columns(Sequence[Column]):
    """The columns of a table; shown, it is a table itself.

    Args:
        table: name of the table.
        columns: its columns, in order.
    """

    def __init__(self, table: str, columns: Sequence[Column]) -> None:
        self.table = table
        self._columns = tuple(columns)

    @overload
    def __getitem__(self, index: int) -> Column: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Column, ...]: ...

    def __getitem__(self, index: int | slice) -> Column | tuple[Column, ...]:
        return self._columns[index]

    def __len__(self) -> int:
        return len(self._columns)

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Name, type, unit and meaning of each, as text."""
        for column in self._columns:
            yield column.name, column.type, column.unit, column.meaning

    def __repr__(self) -> str:
        rows = [_HEAD, *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join((*(row[i].ljust(widths[i]) for i in range(3)), row[3])) for row in rows
        )

    def _repr_html_(self) -> str:
        return table(f"Columns of {self.table}", _HEAD, self.rows())


_HEAD = ("column", "type", "unit", "meaning")


def _columns(*columns: tuple[str, str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, type_, unit, meaning) for name, type_, unit, meaning in columns)


_TASK = ("task", "category", "", "id of the task")

_IN_SHORT = (
    ("fingerprint", "category", "", "of the failure: equal means the same"),
    ("signature", "category", "", "pattern:extension:slug"),
    ("pattern", "category", "", "id of the pattern that it shows best"),
    ("kind", "category", "", "kind of failure, as that pattern says"),
    ("message", "text", "", "first line of the causing error"),
    ("path", "category", "", "failing file, relative to the project"),
    ("line", "integer", "", "in that file, from 1"),
)

TABLES: Mapping[str, tuple[Column, ...]] = {
    "attempts": _columns(
        _TASK,
        ("execution", "integer", "", "which execution of the task it belongs to, from 1"),
        ("attempt", "integer", "", "its number in the task's life, from 1"),
        ("timestamp", "time", "UTC", "when it began"),
        ("result", "category", "", "success, failed, interrupted, unverified or drift"),
        ("action", "text", "", "what the agent says it did"),
        ("error", "text", "", "message of the failure"),
        ("pattern_matched", "category", "", "id of the failure's pattern"),
        ("kind", "category", "", "kind of the failure, as its pattern says"),
        ("confidence", "number", "0 to 1", "of the pattern's match"),
        ("strategy_used", "category", "", "strategy chosen in answer to this attempt's failure"),
        ("decision", "category", "", "what was decided: fix, escalate, dead_letter, pause, …"),
        ("duration_ms", "integer", "ms", "from asking the agent to the end of the checks"),
        ("delay_ms", "integer", "ms", "how long was waited before it"),
        ("phase", "category", "", "phase that failed"),
        ("infrastructure", "truth", "", "infrastructure failed, not the work"),
        ("fingerprint", "category", "", "of the failure: equal means the same"),
        ("signature", "category", "", "of the failure: pattern:extension:slug"),
        ("files_modified", "list of text", "", "paths relative to the project"),
        ("checks", "checks", "", "what each check did: name, passed, duration_ms"),
        ("validation_passed", "truth", "", "whether the gates let it pass; null: they did not run"),
        ("regressions", "integer", "", "tests that passed before and then failed"),
        ("agent", "category", "", "who answered"),
        ("model", "category", "", "model that the agent named"),
        ("agent_confidence", "number", "0 to 1", "the agent's own"),
        ("tokens", "integer", "tokens", "that the answer took; null: not told"),
        ("cost", "number", "USD", "of the answer; null: not told"),
        ("branch", "category", "", "git branch"),
        ("commit", "category", "", "git commit"),
    ),
    "failures": _columns(
        ("source", "category", "", "where it was seen: attempt, tool call or test"),
        ("task", "category", "", "id of the task, where there is one"),
        ("execution", "integer", "", "execution of the task, from 1"),
        ("attempt", "integer", "", "attempt of the task, from 1"),
        ("timestamp", "time", "UTC", "when the attempt, call or test began"),
        ("fingerprint", "category", "", "equal means the same failure"),
        ("signature", "category", "", "pattern:extension:slug"),
        (
            "sighting",
            "integer",
            "",
            "how often its fingerprint was seen by then, in all sources, from 1",
        ),
        ("pattern", "category", "", "id of the pattern that it shows best"),
        ("kind", "category", "", "kind of failure, as that pattern says"),
        ("confidence", "number", "0 to 1", "of that match"),
        ("band", "category", "", "high, medium or low"),
        ("strategy", "category", "", "what that pattern suggests first"),
        ("infrastructure", "truth", "", "infrastructure failed, not the work"),
        ("tool", "category", "", "tool that reported it"),
        ("language", "category", "", "of the failing source"),
        ("error_type", "category", "", "like TypeError"),
        ("error_code", "category", "", "like F401 or TS2322"),
        ("message", "text", "", "first line of the causing error"),
        ("path", "category", "", "failing file, relative to the project"),
        ("line", "integer", "", "in that file, from 1"),
        ("column", "integer", "", "in that line, as the tool counts"),
        ("extension", "category", "", "of the path, without the dot"),
        ("tests", "list of text", "", "ids of the failing tests"),
        ("exit_code", "integer", "", "of the command"),
    ),
    "strategies": _columns(
        ("task", "category", "", "id of the task"),
        ("execution", "integer", "", "which execution of the task, from 1"),
        ("attempt", "integer", "", "attempt whose failure it answered"),
        ("pattern", "category", "", "id of that failure's pattern"),
        ("strategy", "category", "", "its name"),
        ("mended", "truth", "", "the failure was gone and did not come back; null: nobody knows"),
    ),
    "tasks": _columns(
        _TASK,
        ("title", "text", "", "what is to be achieved"),
        ("kind", "category", "", "bug_fix, feature, refactor, security or config_change"),
        ("complexity", "category", "", "low, medium or high"),
        ("status", "category", "", "how its last execution ended; running, paused: it goes on"),
        ("reason", "text", "", "why, one sentence"),
        ("trigger", "category", "", "short name of what ended it"),
        ("agent", "category", "", "who works on it"),
        ("executions", "integer", "", "how often it was begun"),
        ("attempts", "integer", "", "attempts over its life"),
        ("failed_attempts", "integer", "", "those of them that failed by the work"),
        ("infrastructure_attempts", "integer", "", "those that infrastructure failed"),
        ("first_attempt", "time", "UTC", "when its first attempt began"),
        ("last_attempt", "time", "UTC", "when its last attempt began"),
        ("updated_at", "time", "UTC", "when its record was last written"),
        ("duration_ms", "integer", "ms", "of all its attempts, without waits"),
        ("delay_ms", "integer", "ms", "waited before its attempts"),
        ("tokens", "integer", "tokens", "of all its attempts, as far as told"),
        ("cost", "number", "USD", "of all its attempts, as far as told"),
        ("page", "text", "", "its dead-letter or escalation page, relative to .loki/"),
    ),
    "transitions": _columns(
        ("timestamp", "time", "UTC", "when it changed"),
        ("breaker", "category", "", "name of the circuit breaker"),
        (
            "before",
            "category",
            "",
            "state that it left: CLOSED, OPEN or HALF_OPEN; null: not known",
        ),
        ("after", "category", "", "state that it entered"),
        ("error", "text", "", "the failure that tripped it"),
        ("source", "category", "", "transitions, recoveries or state: the file that says so"),
    ),
    "dead_letters": _columns(
        _TASK,
        ("title", "text", "", "what was to be achieved"),
        ("in_queue", "truth", "", "it stands among the queue's dead letters now"),
        ("timestamp", "time", "UTC", "when it was given up, or failed last"),
        ("first_failure", "time", "UTC", "when it failed first, where the queue has it"),
        ("failures", "integer", "", "failures that count; null: not kept"),
        ("attempts", "integer", "", "attempts over its life; null: not kept"),
        ("pattern", "category", "", "id of the last failure's pattern"),
        ("kind", "category", "", "kind of the last failure"),
        ("confidence", "number", "0 to 1", "of that match"),
        ("signature", "category", "", "of the last failure"),
        ("error", "text", "", "what failed last, one sentence"),
        ("strategies", "list of text", "", "what was tried, in order"),
        ("recovery_strategy", "category", "", "how a queued one may be recovered"),
        ("requeues", "integer", "", "how often a queued one was brought back"),
        ("original_queue", "category", "", "list of the queue that it stood in"),
    ),
    "signs": _columns(
        ("branch", "category", "", "git branch of the run; null: outside git"),
        ("sightings", "integer", "", "how often the failure was seen in the run"),
        ("tasks", "list of text", "", "ids of the newest tasks that it was seen in"),
        ("approaches", "list of text", "", "newest things that led there"),
        *_IN_SHORT,
    ),
    "calls": _columns(
        ("timestamp", "time", "UTC", "when it began"),
        ("call", "category", "", "llm, or agent for a whole agent"),
        ("task", "category", "", "id of the task that it was for"),
        ("provider", "category", "", "as OpenTelemetry names it, or an agent's name"),
        ("model", "category", "", "as it was asked for"),
        ("response_model", "category", "", "model that answered"),
        ("outcome", "category", "", "ok, error, refused or cancelled"),
        ("attempts", "integer", "", "calls that went out; 0: refused by its breaker"),
        ("input_tokens", "integer", "tokens", "of the requests, cached ones included"),
        ("output_tokens", "integer", "tokens", "of the answers"),
        ("cache_read_tokens", "integer", "tokens", "those of the input that came out of the cache"),
        ("cache_write_tokens", "integer", "tokens", "those of the input that were put into it"),
        ("cost", "number", "USD", "of all of them; null: not known"),
        ("latency_ms", "integer", "ms", "from begin to end, waits included"),
        ("error_kind", "category", "", "why no answer came"),
        ("status", "integer", "", "HTTP status of the last call that failed with one"),
        ("breaker", "category", "", "circuit breaker that it passed"),
        ("work", "category", "", "full, simpler or minimal: how much was asked for"),
        ("error", "text", "", "what was said where it failed"),
    ),
    "tool_calls": _columns(
        ("timestamp", "time", "UTC", "when it had failed"),
        ("tool", "category", "", "name of the tool"),
        ("call", "text", "", "the call in one line"),
        ("tried", "text", "", "what was changed since the failure before"),
        ("exit_code", "integer", "", "of the command"),
        ("session", "category", "", "of the agent"),
        ("agent", "category", "", "who called"),
        ("task", "category", "", "what it works on"),
        *_IN_SHORT,
    ),
    "test_runs": _columns(
        ("run", "category", "", "id of the test run"),
        ("timestamp", "time", "UTC", "when it began"),
        ("duration_ms", "integer", "ms", "of the whole run"),
        ("branch", "category", "", "git branch"),
        ("commit", "category", "", "git commit"),
        ("environment", "category", "", "interpreter, platform, and a hash of what is installed"),
        ("passed", "integer", "", "tests that passed"),
        ("failed", "integer", "", "tests that failed"),
        ("errors", "integer", "", "tests whose fixtures failed, files that could not be collected"),
        ("skipped", "integer", "", "tests that were skipped"),
        ("reruns", "integer", "", "tries that failed and were made again"),
        ("interrupted", "truth", "", "it was stopped before its end"),
        ("exit_code", "integer", "", "of pytest"),
    ),
    "test_failures": _columns(
        ("run", "category", "", "id of the test run"),
        ("timestamp", "time", "UTC", "when the test, or the run, began"),
        ("test", "category", "", "node id of the test"),
        ("phase", "category", "", "setup, call, teardown, collect, crash or timeout"),
        ("outcome", "category", "", "failed, error, crashed, timeout or rerun"),
        ("duration_ms", "integer", "ms", "that this phase took"),
        ("worker", "category", "", "process that ran it, like gw0"),
        ("rerun", "integer", "", "number of a try that was made again; 0: the last"),
        *_IN_SHORT,
    ),
}
"""The columns of each table."""


def columns(name: str) -> Columns:
    """The columns of a table: name, type, unit and meaning of each.

    Args:
        name: ``attempts``, ``failures``, ``strategies``, ``tasks``, ``transitions``, ``dead_letters``,
            ``signs``, ``calls``, ``tool_calls``, ``test_runs`` or ``test_failures``.

    Raises:
        UsageError: there is no such table.

    Example:
        >>> columns("attempts")[3]
        Column(name='timestamp', type='time', unit='UTC', meaning='when it began')
    """
    found = TABLES.get(name)
    if found is None:
        raise UsageError(f"no table {name!r}: expected one of {', '.join(TABLES)}")
    return Columns(name, found)
