"""The tables of what is kept in single files: tasks, transitions, dead letters, signs, calls."""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis.arrow import EPOCH, of_rows
from loki.analysis.failures_table import in_short
from loki.base.error import StoreError
from loki.base.time import isoformat, moment
from loki.decision.breaker_transition_log import RECOVERIES, TRANSITIONS
from loki.jobs.dead_letters.dead_letter_form import letter_of
from loki.jobs.queue import queue_list_file
from loki.jobs.queue.queue_lists import document
from loki.memory import attempt_metrics, dead_letter_log, task_record
from loki.memory.call_log import Calls
from loki.memory.history import log_name
from loki.memory.run_close import open_runs
from loki.memory.task_record import TaskRecord
from loki.stores.file_store import FileStore

logger = logging.getLogger("loki")


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


# --- breakers ----------------------------------------------------------------------------------------

STATE = "state/circuit-breakers.json"

SAME = timedelta(seconds=1)
"""Two files that tell of one transition do not agree to the millisecond. Chosen, not measured."""

_RECOVERY = re.compile(r"(\S+) Circuit recovered: (.*)")


def transitions(store: FileStore) -> pa.Table:
    """The changes of state of all circuit breakers, by time.

    Older projects kept recoveries only, and how each breaker stands now: what these tell of and the
    log of transitions does not, is added.
    """
    rows = list(_logged(store))
    logged = defaultdict(list)
    for row in rows:
        logged[row["breaker"], row["after"]].append(row["at"])
    for row in (*_recoveries(store), *_standing(store)):
        known = logged[row["breaker"], row["after"]]
        if not any(abs(at - row["at"]) <= SAME for at in known):
            known.append(row["at"])
            rows.append(row)
    rows.sort(key=lambda row: row["at"])
    return of_rows("transitions", ({**row, "timestamp": isoformat(row["at"])} for row in rows))


def _logged(store: FileStore) -> Iterator[dict[str, Any]]:
    for record in store.scan(f"logs/{TRANSITIONS}"):
        at = moment(str(record.get("at")))
        if at is not None and _are_texts(record.get("breaker"), record.get("after")):
            own = {name: record.get(name) for name in ("breaker", "before", "after", "error")}
            yield {**own, "at": at, "source": "transitions"}


def _recoveries(store: FileStore) -> Iterator[dict[str, Any]]:
    for line in (store.get(f"logs/{RECOVERIES}") or "").splitlines():
        found = _RECOVERY.fullmatch(line.strip())
        at = moment(found[1]) if found else None
        if found and at is not None:
            change = {"breaker": found[2], "before": "HALF_OPEN", "after": "CLOSED"}
            yield {**change, "at": at, "source": "recoveries"}


def _standing(store: FileStore) -> Iterator[dict[str, Any]]:
    try:
        data = json.loads(store.get(STATE) or "{}")
    except (ValueError, RecursionError) as error:
        logger.warning("%s: left out: %s", STATE, error)
        return
    for name, state in data.items() if isinstance(data, dict) else ():
        at = moment(str(state.get("last_state_change"))) if isinstance(state, dict) else None
        if at is not None and _are_texts(state.get("state")):
            change = {
                "breaker": name,
                "after": state.get("state"),
                "error": state.get("last_error"),
            }
            yield {**change, "at": at, "source": "state"}


def _are_texts(*values: object) -> bool:
    return all(isinstance(one, str) for one in values)


# --- dead letters, signs, calls -----------------------------------------------------------------------------


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
        found = queue_list_file.read(name, store.get(name) or "").tasks.values()
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
