"""What changes while a triage agent works: what it tried and was refused; and what somebody did, by whom
nobody can tell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from loki.jobs.triage.triage_record import Refusal, document
from loki.memory.store import Store

REFUSED = ".refused.jsonl"
"""Ends the name of the log of what a triage agent was refused."""

COUNTED = frozenset(
    [
        "runs",
        "iterations",
        "consecutive_failures",
        "total_failures",
        "failure_restarts",
        "next_run_at",
        "not_before",
        "put_off",
        "last_scheduled_at",
        "last_failure_at",
        "last_success_at",
        "last_status",
        "last_triaged_at",
        "triages",
        "running",
        "pending",
        "stopped",
    ]
)
"""Fields of a recurring task that the dispatcher itself writes."""

SHOWN = 10
"""Changes that are told, the others are counted; chosen, not measured."""


def refused_commands_log(task: str, number: int) -> str:
    """The name of the log of what the agent of a triage was refused."""
    return document(task, number, REFUSED)


def audited_definitions(store: Store) -> dict[str, str]:
    """What people decide, as it stands now: recurring tasks without their counters, queued tasks.

    Args:
        store: of the workspace.
    """
    found: dict[str, str] = {}
    for name in store.names("recurring/"):
        if name.split("/")[2:] == ["task.json"]:
            data = _parsed(store.get(name))
            said = (
                {key: value for key, value in data.items() if key not in COUNTED}
                if isinstance(data, Mapping)
                else data
            )
            found[name] = json.dumps(said, sort_keys=True, default=str)
    for name in store.names("queue/"):
        if name.endswith(".json"):
            for id_, title in _queued(_parsed(store.get(name))):
                found[f"queued task {id_}"] = title
    return found


def audited_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """What differs between two looks at `definitions`.

    Example:
        >>> audited_changes({"a": "1", "b": "2"}, {"a": "3", "c": "4"})
        ('a was changed', 'b is gone', 'c is new')
    """
    told = [
        f"{name} {'is new' if name not in before else 'is gone' if name not in after else 'was changed'}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    rest = len(told) - SHOWN
    return tuple(told[:SHOWN] + ([f"and {rest} more"] if rest > 0 else []))


def refused_commands(store: Store, task: str, number: int) -> Iterator[Refusal]:
    """What the agent of a triage tried and was refused."""
    for record in store.scan(refused_commands_log(task, number)):
        try:
            yield Refusal.model_validate(record)
        except ValueError:
            yield Refusal(what=str(record.get("what", ""))[:500])


def _queued(data: Any) -> Iterator[tuple[str, str]]:
    tasks = data.get("tasks") if isinstance(data, Mapping) else data
    for one in tasks if isinstance(tasks, list) else []:
        if isinstance(one, Mapping):
            title = one.get("title") or (one.get("task_data") or {}).get("title")
            yield str(one.get("id") or one.get("task_id")), str(title)


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return text
