"""What a project remembers, as tables: read when each is first looked at, then kept.

What only some tables need is imported with them: who wants the attempts does not wait for the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import cached_property
from importlib import import_module
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis import attempt_log
from loki.analysis.arrow import EPOCH, listed, of_arrays, of_rows, whole
from loki.analysis.attempt_log import RawAttempts
from loki.analysis.column import TABLES, Columns, columns
from loki.base.error import StoreError, UsageError
from loki.base.markup import table
from loki.base.time import isoformat, moment
from loki.decision.breakers_file import TRANSITIONS
from loki.jobs.dead_letters.dead_letter_form import letter_of
from loki.jobs.queue import queue_index
from loki.jobs.queue.queue_index import document
from loki.memory import attempt_metrics, dead_letter_log, task_record
from loki.memory.attempt import Attempt, CheckRecord, log_name
from loki.memory.attempt_metrics import uses
from loki.memory.call_log import Calls
from loki.memory.sign import open_runs
from loki.memory.suites.suite_history import LOG, SuiteRun
from loki.memory.task_record import TaskRecord
from loki.memory.tool_failure import ToolFailure, ToolFailures
from loki.recognition.failure import Failure
from loki.stores.file_store import FileStore, open_store

if TYPE_CHECKING:
    import pandas
    import polars


# --- The table ``attempts`` ---------------------------------------------------------------------------


def attempts(raw: RawAttempts, tasks: Sequence[str]) -> pa.Table:
    """The table of all attempts.

    Args:
        raw: as they were read.
        tasks: ids of the tasks, by their numbers.
    """
    column = by_name(raw.table)
    failure = column["failure"]
    best = first(pc.struct_field(failure, "matches"))
    validation = column["validation"]
    skipped = pc.fill_null(pc.struct_field(validation, "skipped"), False)
    passed = pc.struct_field(validation, "passed")
    return of_arrays(
        "attempts",
        {
            **{name: column[name] for name in column if name not in _NESTED},
            "task": named(raw.tasks, tasks),
            "kind": pc.struct_field(best, "kind"),
            "decision": pc.struct_field(column["decision"], "action"),
            "phase": unless_blank(column["phase"]),
            "agent": unless_blank(column["agent"]),
            "fingerprint": pc.coalesce(
                pc.struct_field(failure, "fingerprint"), column["fingerprint"]
            ),
            "signature": pc.coalesce(pc.struct_field(failure, "signature"), column["signature"]),
            "validation_passed": pc.if_else(skipped, pa.scalar(None, pa.bool_()), passed),
            "regressions": pc.struct_field(column["regression"], "regressions"),
        },
    )


_NESTED = frozenset({"failure", "decision", "validation", "regression"})


def named(numbers: pa.Array, names: Sequence[str]) -> pa.Array:
    """Numbers as categories of these names."""
    texts = pa.array([name.encode("utf-8", "replace").decode() for name in names], pa.string())
    return pa.DictionaryArray.from_arrays(numbers, texts)


def unless_blank(texts: pa.Array) -> pa.Array:
    """Texts, null for those that say nothing."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def first(lists: pa.Array) -> pa.Array:
    """The first entry of each list; null where there is none."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    starts = lists.offsets.slice(0, len(lists))
    places = pc.if_else(pc.greater(lengths, 0), starts, pa.scalar(None, starts.type))
    return lists.values.take(places)


def by_name(table: pa.Table) -> dict[str, pa.Array]:
    """The columns of a table, each in one piece."""
    return dict(zip(table.column_names, map(whole, table.columns), strict=True))


# --- The table ``failures`` ---------------------------------------------------------------------------

OWN = (
    *("fingerprint", "signature", "tool", "language", "error_type", "error_code", "message"),
    *("path", "line", "column", "extension", "tests", "exit_code"),
)
"""What the table has of a failure itself."""

OF_THE_MATCH = ("pattern", "kind", "confidence", "band", "strategy")
"""And of its best match."""


IN_SHORT = ("fingerprint", "signature", "pattern", "kind", "message", "path", "line")
"""What other tables have of a failure."""


def failures(
    raw: RawAttempts,
    tasks: Sequence[str],
    calls: Iterable[ToolFailure] = (),
    runs: Iterable[SuiteRun] = (),
) -> pa.Table:
    """The table of all failures, by time.

    Args:
        raw: the attempts, as they were read; tasks: ids of the tasks, by their numbers.
        calls: agents' tool calls that failed; runs: of the project's tests.
    """
    rows = (row for run in runs for row in _of_run(run))
    others = of_rows("failures", (*map(_of_call, calls), *rows))
    table = pa.concat_tables([of_attempts(raw, tasks), others])
    return with_sightings(table.unify_dictionaries().combine_chunks())


def of_attempts(raw: RawAttempts, tasks: Sequence[str]) -> pa.Table:
    """The failures of all attempts, in the order of `attempts`; ``sighting`` is not counted yet."""
    failed = pc.struct_field(whole(raw.table["failure"]), "message").is_valid()
    table, numbers = raw.table.filter(failed), raw.tasks.filter(failed)
    column = by_name(table)
    failure = column["failure"]
    best = first(pc.struct_field(failure, "matches"))
    return of_arrays(
        "failures",
        {
            **{name: pc.struct_field(failure, name) for name in OWN},
            **{name: pc.struct_field(best, name) for name in OF_THE_MATCH},
            **{name: column[name] for name in ("execution", "attempt", "timestamp")},
            "source": pa.repeat(pa.scalar("attempt"), len(numbers)),
            "task": named(numbers, tasks),
            "infrastructure": column["infrastructure"],
        },
    )


def with_sightings(table: pa.Table) -> pa.Table:
    """Failures by time, each with how often its fingerprint was seen by then."""
    table = table.take(pc.sort_indices(table, [("timestamp", "ascending")]))
    seen: dict[Any, int] = {}
    counted = []
    for code in table["fingerprint"].unify_dictionaries().combine_chunks().indices.to_pylist():
        seen[code] = number = seen.get(code, 0) + 1
        counted.append(None if code is None else number)
    place = table.schema.get_field_index("sighting")
    return table.set_column(place, table.schema.field(place), pa.array(counted, pa.int64()))


def of_failure(failure: Failure) -> dict[str, Any]:
    """What the table has of a failure, wherever it was seen."""
    match = failure.match
    return {
        **{name: getattr(failure, name) for name in OWN},
        **({name: getattr(match, name) for name in OF_THE_MATCH} if match else {}),
        "infrastructure": match is not None and match.is_infrastructure,
    }


def in_short(failure: Failure) -> dict[str, Any]:
    """What other tables have of a failure."""
    all_of_it = of_failure(failure)
    return {name: all_of_it.get(name) for name in IN_SHORT}


def _of_call(call: ToolFailure) -> Mapping[str, Any]:
    own = {"source": "tool call", "task": call.task or None, "timestamp": call.at}
    exit_code = call.failure.exit_code if call.exit_code is None else call.exit_code
    return {**of_failure(call.failure), **own, "exit_code": exit_code}


def _of_run(run: SuiteRun) -> Iterator[Mapping[str, Any]]:
    for one in (*run.reruns, *run.failures):
        yield {
            **of_failure(one.failure),
            "source": "test",
            "timestamp": one.started_at or run.started_at,
            "tests": one.failure.tests or (one.test,),
        }


# --- Agents' tool calls, runs of tests ----------------------------------------------------------------

logger = logging.getLogger("loki")


def read_runs(store: FileStore) -> Iterator[SuiteRun]:
    """The runs of the project's tests, as they were kept; one that cannot be read is skipped."""
    for record in store.scan(LOG):
        try:
            yield SuiteRun.from_dict(record)
        except (ValueError, OverflowError) as error:
            logger.warning("%s: skipped a record: %s", LOG, error)


def _of_tool_call(call: ToolFailure) -> dict[str, Any]:
    own = ("tool", "call", "exit_code")
    return {
        **{name: getattr(call, name) for name in own},
        **{name: getattr(call, name) or None for name in ("tried", "session", "agent", "task")},
        "timestamp": call.at,
        **in_short(call.failure),
    }


def _of_test_run(run: SuiteRun) -> dict[str, Any]:
    count = run.counts.get
    return {
        "run": run.id,
        "timestamp": run.started_at,
        **{name: getattr(run, name) for name in ("duration_ms", "interrupted", "exit_code")},
        **{name: getattr(run, name) or None for name in ("branch", "commit", "environment")},
        **{name: count(name, 0) for name in ("passed", "failed", "skipped")},
        "errors": count("error", 0) + count("errors", 0),
        "reruns": len(run.reruns),
    }


def _failures_of(run: SuiteRun) -> Iterator[dict[str, Any]]:
    for one in (*run.reruns, *run.failures):
        yield {
            "run": run.id,
            "timestamp": one.started_at or run.started_at,
            **{name: getattr(one, name) for name in ("test", "phase", "outcome", "duration_ms")},
            "worker": one.worker or None,
            "rerun": one.rerun,
            **in_short(one.failure),
        }


# --- The table ``tasks`` ------------------------------------------------------------------------------


def tasks(store: FileStore, names: Sequence[str], attempts: pa.Table) -> pa.Table:
    """One row a task: its record, and what its attempts add up to.

    Args:
        store: where they are kept.
        names: ids of the tasks.
        attempts: the table of all attempts.
    """
    sums = _sums(attempts)
    return of_rows("tasks", (_task(store, name, sums.get(name, {})) for name in names))


def _task(store: FileStore, name: str, sums: Mapping[str, Any]) -> dict[str, Any]:
    record = task_record.load(store, name)
    told = record.outcome.to_dict() if record.outcome else {}
    if not told.get("status"):
        told = _outcome(store, name, record)
    own = ("title", "kind", "complexity", "agent", "updated_at")
    return {
        **{key: (getattr(record, key) if record else None) or None for key in own},
        **{key: told.get(key) or None for key in ("status", "reason", "trigger", "page")},
        "attempts": 0,
        "failed_attempts": 0,
        "infrastructure_attempts": 0,
        "executions": record.execution or None,
        **sums,
        "task": name,
    }


def _outcome(store: FileStore, name: str, record: TaskRecord) -> dict[str, Any]:
    """How the last execution stands that nobody noted the end of."""
    last = None
    for last, _ in attempt_metrics.executions(name, store.scan(log_name(name)), record):  # noqa: B007
        pass
    if last is None:
        return {}
    return {"status": last.final_status, "reason": last.reason, "page": last.page}


def _sums(attempts: pa.Table) -> dict[str, dict[str, Any]]:
    """What the attempts of each task add up to."""
    infrastructure = attempts["infrastructure"]
    failed = pc.and_not(
        pc.equal(pc.cast(attempts["result"], pa.string()), "failed"), infrastructure
    )
    table = pa.table(
        {
            "task": pc.cast(attempts["task"], pa.string()),
            "attempts": pa.repeat(pa.scalar(1), attempts.num_rows),
            "failed_attempts": pc.cast(failed, pa.int64()),
            "infrastructure_attempts": pc.cast(infrastructure, pa.int64()),
            "executions": attempts["execution"],
            "at": pc.cast(attempts["timestamp"], pa.int64()),
            **{name: attempts[name] for name in ("duration_ms", "delay_ms", "tokens", "cost")},
        }
    )
    names = (
        *("attempts", "failed_attempts", "infrastructure_attempts", "duration_ms", "delay_ms"),
        *("tokens", "cost"),
    )
    found = table.group_by("task").aggregate(
        [*((name, "sum") for name in names), ("executions", "max"), ("at", "min"), ("at", "max")]
    )
    kept = {}
    for row in found.to_pylist():
        sums = {name: row[f"{name}_sum"] for name in names}
        times = {"first_attempt": _iso(row["at_min"]), "last_attempt": _iso(row["at_max"])}
        kept[row["task"]] = {**sums, "executions": row["executions_max"], **times}
    return kept


def _iso(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return isoformat(EPOCH + timedelta(milliseconds=milliseconds))


# --- The table ``transitions`` ------------------------------------------------------------------------


def transitions(store: FileStore) -> pa.Table:
    """The changes of state of all circuit breakers, by time."""
    rows = sorted(_transitions(store), key=itemgetter("timestamp"))
    return of_rows("transitions", rows)


def _transitions(store: FileStore) -> Iterator[dict[str, Any]]:
    for record in store.scan(f"logs/{TRANSITIONS}"):
        at = moment(str(record.get("at")))
        if at is not None and _are_texts(record.get("breaker"), record.get("after")):
            own = {name: record.get(name) for name in ("breaker", "before", "after", "error")}
            yield {**own, "timestamp": isoformat(at)}


def _are_texts(*values: object) -> bool:
    return all(isinstance(one, str) for one in values)


# --- Dead letters, signs, calls -----------------------------------------------------------------------


def dead_letters(store: FileStore) -> pa.Table:
    """The dead letters of the loop and of the queue, by time, one row each.

    What the queue says of a task completes the newest letter that the loop kept of it.
    """
    rows = list(_of_the_loop(store))
    newest = {row["task"]: row for row in rows}
    for row in _of_the_queue(store):
        known = newest.get(row["task"])
        if known is None:
            rows.append(row)
        else:
            known.update({**row, **{name: value for name, value in known.items() if value}})
            known["in_queue"] = True
    return of_rows("dead_letters", sorted(rows, key=lambda row: row["timestamp"] or ""))


def _of_the_loop(store: FileStore) -> Iterator[dict[str, Any]]:
    for letter in dead_letter_log.scan(store):
        own = ("title", "pattern", "kind", "confidence", "signature", "strategies")
        row = {name: getattr(letter, name) for name in own}
        known = {"task": letter.task_id, "error": letter.message or letter.error}
        yield {**row, **known, "in_queue": False, "timestamp": letter.at or None}


def _of_the_queue(store: FileStore) -> Iterator[dict[str, Any]]:
    try:
        name = document("dead-letter")
        found = queue_index.read(name, store.read(name) or "").tasks.values()
    except StoreError as error:
        logger.warning("%s; its dead letters are left out", error)
        return
    for letter in map(letter_of, found):
        yield {
            "task": letter.task_id,
            "title": letter.title,
            "in_queue": True,
            "timestamp": letter.last_failure or None,
            "first_failure": letter.first_failure,
            "failures": letter.failure_count,
            "attempts": letter.total_attempts,
            "error": letter.error_summary,
            "recovery_strategy": letter.recovery_strategy or None,
            "requeues": letter.requeues,
            "original_queue": letter.other.get("original_queue"),
        }


def signs(store: FileStore) -> pa.Table:
    """What led nowhere twice in the runs that are not closed, branch by branch, newest first."""
    rows = (
        {
            "branch": run.branch,
            "sightings": sign.count,
            "tasks": sign.tasks,
            "approaches": [approach.text for approach in sign.approaches],
            **in_short(sign.failure),
        }
        for run in open_runs(store)
        for sign in run.seen.signs
    )
    return of_rows("signs", rows)


def calls(store: FileStore) -> pa.Table:
    """The calls to models and agents, in the order in which they were kept."""
    rows = []
    for call in Calls(store):
        row = {name: value if value != "" else None for name, value in asdict(call).items()}
        usage = {
            f"{name}_tokens": getattr(call.usage, name)
            for name in ("input", "output", "cache_read", "cache_write")
        }
        rows.append({**row, **usage, "timestamp": call.at})
    return of_rows("calls", rows)


# --- The table ``strategies`` -------------------------------------------------------------------------

_OWN = (
    *("attempt", "timestamp", "result", "execution", "infrastructure", "phase", "fingerprint"),
    *("pattern_matched", "strategy_used", "error", "recognizer_version"),
)
"""What of an attempt tells what became of a strategy, besides its failure, checks and gates."""

_OF_THE_FAILURE = (
    *("message", "error_type", "error_code", "path", "tests", "frames", "normalized"),
    *("fingerprint", "recognizer_version"),
)
"""What of a failure, besides its best match, tells whether another one is the same."""


def strategies(raw: RawAttempts, tasks: Sequence[str]) -> pa.Table:
    """The table of all strategies used, task by task, as `loki.memory.attempt_metrics` judges them.

    Args:
        raw: the attempts, as they were read.
        tasks: ids of the tasks, by their numbers.
    """
    found = [
        (task, execution, use)
        for task, execution, attempts in _executions(raw)
        for use in uses(attempts)
    ]
    every = [use for _, _, use in found]
    return of_arrays(
        "strategies",
        {
            "task": named(pa.array([task for task, _, _ in found], pa.int32()), tasks),
            "execution": pa.array([execution for _, execution, _ in found], pa.int64()),
            "attempt": pa.array([use.attempt for use in every], pa.int64()),
            "pattern": pa.array([use.pattern for use in every], pa.string()),
            "strategy": pa.array([use.strategy for use in every], pa.string()),
            "mended": pa.array([use.cured for use in every], pa.bool_()),
        },
    )


def _executions(raw: RawAttempts) -> Iterator[tuple[int, int, list[Attempt]]]:
    """The tasks and executions in which a strategy was used, with their attempts in order."""
    used = pc.unique(raw.tasks.filter(raw.table["strategy_used"].is_valid().combine_chunks()))
    here = pc.is_in(raw.tasks, used)
    table, numbers = raw.table.filter(here), raw.tasks.filter(here).to_pylist()
    column = by_name(table.select((*_OWN, "failure", "checks", "validation")))
    gates = listed(pc.struct_field(column["validation"], "gates"))
    own = zip(*(column[name].to_pylist() for name in _OWN), strict=True)
    rest = zip(_failures(column["failure"]), _checks(column["checks"]), gates, strict=True)
    made = (
        (
            number,
            Attempt(
                **dict(zip(_OWN, values, strict=True)),
                action="",
                failure=failure,
                checks=checks,
                validation={"gates": ran},
            ),
        )
        for number, values, (failure, checks, ran) in zip(numbers, own, rest, strict=True)
    )
    for task, of_it in groupby(made, key=lambda pair: pair[0]):
        by_execution: dict[int, list[Attempt]] = {}
        for _, attempt in of_it:
            by_execution.setdefault(attempt.execution, []).append(attempt)
        for execution in sorted(by_execution):
            yield task, execution, by_execution[execution]


def _failures(column: pa.Array) -> Iterator[dict[str, Any]]:
    """The fields of each failure that are not null; none where nothing failed."""
    best = listed(first(pc.struct_field(column, "matches")))
    own = zip(*(listed(pc.struct_field(column, name)) for name in _OF_THE_FAILURE), strict=True)
    for values, match in zip(own, best, strict=True):
        said = zip(_OF_THE_FAILURE, values, strict=True)
        failure = {name: value for name, value in said if value is not None}
        if match is not None:
            failure["matches"] = [{**match, "coverage": 0.0}]
        yield failure


def _checks(lists: pa.Array) -> Iterator[tuple[CheckRecord, ...]]:
    """The checks of each attempt: name, and whether it passed."""
    each = lists.flatten()
    names, passed = (pc.struct_field(each, name).to_pylist() for name in ("name", "passed"))
    pairs = list(zip(names, passed, strict=True))
    made = {
        (name, passed): CheckRecord(name, "", "", passed=passed, exit_code=None, duration_ms=0)
        for name, passed in set(pairs)
    }
    records = map(made.__getitem__, pairs)
    for size in pc.list_value_length(lists).to_pylist():
        yield tuple(islice(records, size or 0))


# --- All of them --------------------------------------------------------------------------------------


class Tables:
    """The tables of a project's history.

    Each is read from disk when it is first asked for, and is an Arrow table; `columns` says what is
    in it. Call `loki.analysis.history` again to see what has happened since.

    Args:
        folder: the project's ``.loki``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = open_store(folder)

    @cached_property
    def attempts(self) -> pa.Table:
        """Every attempt of every task, task by task."""
        return attempts(self._raw, self._tasks)

    @cached_property
    def failures(self) -> pa.Table:
        """Every failure that was seen, by time."""
        return failures(self._raw, self._tasks, self._tool_failures, self._test_runs)

    @cached_property
    def strategies(self) -> pa.Table:
        """Every use of a strategy, and whether it mended its failure, task by task."""
        return strategies(self._raw, self._tasks)

    @cached_property
    def tasks(self) -> pa.Table:
        """Every task, and what its attempts add up to."""
        return tasks(self._store, self._tasks, self.attempts)

    @cached_property
    def transitions(self) -> pa.Table:
        """Every known change of state of a circuit breaker, by time."""
        return transitions(self._store)

    @cached_property
    def dead_letters(self) -> pa.Table:
        """The tasks that were given up, by time."""
        return dead_letters(self._store)

    @cached_property
    def signs(self) -> pa.Table:
        """What led nowhere twice in the runs that are not closed."""
        return signs(self._store)

    @cached_property
    def calls(self) -> pa.Table:
        """The calls to models and agents."""
        return calls(self._store)

    @cached_property
    def test_runs(self) -> pa.Table:
        """The runs of the project's tests under ``pytest --loki``."""
        return of_rows("test_runs", map(_of_test_run, self._test_runs))

    @cached_property
    def test_failures(self) -> pa.Table:
        """The tests that failed in them, every try of each."""
        rows = (row for run in self._test_runs for row in _failures_of(run))
        return of_rows("test_failures", rows)

    @cached_property
    def tool_calls(self) -> pa.Table:
        """The tool calls of watched agents that failed."""
        return of_rows("tool_calls", map(_of_tool_call, self._tool_failures))

    def __getitem__(self, name: str) -> pa.Table:
        """The table of that name.

        Raises:
            UsageError: there is none.
        """
        columns(name)
        found: pa.Table = getattr(self, name)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tables."""
        return tuple(TABLES)

    def columns(self, name: str) -> Columns:
        """The columns of a table; as `loki.analysis.columns`."""
        return columns(name)

    def pandas(self, name: str) -> pandas.DataFrame:
        """A table as pandas' data frame; whole numbers that may be missing are ``Int64``.

        Raises:
            UsageError: there is no such table, or pandas is not installed.
        """
        found = self[name]
        pandas = _installed("pandas", "analysis", "polars")
        nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
        return found.to_pandas(types_mapper=nullable.get)

    def polars(self, name: str) -> polars.DataFrame:
        """A table as polars' data frame.

        Raises:
            UsageError: there is no such table, or polars is not installed.
        """
        found = self[name]
        frame: polars.DataFrame = _installed("polars", "polars", "pandas").from_arrow(found)
        return frame

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {self._size(name)}" for name in self.names)
        return f"<Tables of {self.folder.parent}: {sizes}>"

    def _repr_html_(self) -> str:
        rows = [
            (name, self._size(name), ", ".join(column.name for column in TABLES[name]))
            for name in self.names
        ]
        return table(f"Tables of {self.folder.parent}", ("table", "rows", "columns"), rows)

    def _size(self, name: str) -> int | str:
        """Rows of a table; of one that takes long only where somebody has looked at it."""
        is_waited_for = name == "strategies" and name not in self.__dict__
        return "not read yet" if is_waited_for else self[name].num_rows

    @cached_property
    def _tasks(self) -> list[str]:
        folder = self.folder / "tasks"
        if not folder.is_dir():
            return []
        return sorted(path.name for path in folder.iterdir() if path.is_dir())

    @cached_property
    def _raw(self) -> RawAttempts:
        return attempt_log.read(self._store, self._tasks)

    @cached_property
    def _tool_failures(self) -> tuple[ToolFailure, ...]:
        return tuple(ToolFailures(self._store))

    @cached_property
    def _test_runs(self) -> tuple[SuiteRun, ...]:
        return tuple(read_runs(self._store))


def _installed(name: str, extra: str, other: str) -> Any:
    """A package that is there where somebody has asked for it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{name} is not installed: pip install 'loki-core[{extra}]', or use .{other}(name)"
        ) from error
