"""A task's attempts: append-only on disk, and a page for people rendered from them.

The log holds three kinds of records: attempts; ``{"amends": n, "strategy_used": …}``, where another
strategy than the recorded one was used; ``{"ends": execution, "at": …, "outcome": {…}}``, where an
execution of the task ended, was paused or interrupted.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from loki.base.markup import fence, inline
from loki.base.yaml_dump import dump
from loki.memory.attempt import Attempt
from loki.memory.front_matter import front_matter
from loki.memory.store import Store

logger = logging.getLogger("loki")


def log_name(task_id: str) -> str:
    """Name of a task's log in a store.

    Example:
        >>> log_name("fix-login-1a2b3c")
        'tasks/fix-login-1a2b3c/attempts.jsonl'
    """
    return f"tasks/{task_id}/attempts.jsonl"


class History:
    """The attempts of one task.

    Args:
        store: where they are kept.
        task_id: whose they are.
    """

    def __init__(self, store: Store, task_id: str) -> None:
        self._store = store
        self._task_id = task_id
        self._log = log_name(task_id)

    def append(self, attempt: Attempt) -> None:
        """Keep an attempt; it is on disk when this returns."""
        self._store.append(self._log, attempt.to_dict())

    def amend(self, attempt: int, strategy: str) -> None:
        """Note that another strategy than the recorded one was used in answer to an attempt."""
        self._store.append(self._log, {"amends": attempt, "strategy_used": strategy})

    def end(self, execution: int, outcome: Mapping[str, Any], *, title: str, at: str) -> None:
        """Note how an execution ended, and render the page anew.

        Args:
            execution: its number in the task's life, 1 or more.
            outcome: its ``status`` and what else is known, JSON-able.
            title: of the task.
            at: when, ISO 8601 UTC.
        """
        self._store.append(self._log, {"ends": execution, "at": at, "outcome": dict(outcome)})
        self.write_page(status=str(outcome["status"]), title=title, updated_at=at)

    def attempts(self) -> list[Attempt]:
        """All attempts in order, amendments applied; a record that cannot be read is skipped.

        No failure is recognized anew before `Attempt.recognized` asks for it.
        """
        return read_attempts(self._store.scan(self._log), self._log)

    def write_page(self, *, status: str, title: str, updated_at: str) -> None:
        """Render ``attempts-<task_id>.md`` anew."""
        attempts = self.attempts()
        page = render_page(
            self._task_id, attempts, status=status, title=title, updated_at=updated_at
        )
        self._store.put(f"tasks/{self._task_id}/attempts-{self._task_id}.md", page)


def read_attempts(records: Iterable[Mapping[str, Any]], log: str = "log") -> list[Attempt]:
    """The attempts in a log's records, by number, amendments applied.

    Args:
        records: the records, oldest first.
        log: its name, for warnings about records that cannot be read.

    A record that a retry wrote twice counts once; different ones with one number are both kept, for
    what was acknowledged is never lost.
    """
    found: list[Attempt] = []
    last: dict[int, int] = {}
    for record in records:
        try:
            if "ends" in record:
                continue
            if "amends" in record:
                index = last[int(record["amends"])]
                found[index] = replace(found[index], strategy_used=str(record["strategy_used"]))
                continue
            attempt = Attempt.from_dict(record)
            before = last.get(attempt.attempt)
            if before is None or found[before] != attempt:
                last[attempt.attempt] = len(found)
                found.append(attempt)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            logger.warning("%s: skipped a record: %s", log, error)
    return sorted(found, key=lambda attempt: attempt.attempt)


def render_page(
    task_id: str, attempts: Sequence[Attempt], *, status: str, title: str, updated_at: str
) -> str:
    """The page of a task's attempts: front matter, then the attempts as YAML.

    `read_page` reads it back.
    """
    head = front_matter(
        {
            "entity_name": f"session.current.attempts.{task_id}",
            "namespace": "session.current",
            "category": "attempts",
            "task_id": task_id,
            "total_attempts": len(attempts),
            "final_status": status,
            "created_at": attempts[0].timestamp if attempts else updated_at,
            "updated_at": updated_at,
            "tags": ["attempts", "closed-loop"],
        }
    )
    body = dump({"attempts": [page_row(attempt) for attempt in attempts]})
    block = fence(body.rstrip("\n"), "yaml")
    return f"{head}\n# {inline(title)}\n\n## Attempt history\n\n{block}\n"


def read_page(page: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(front matter, attempts) of a page that `render_page` wrote.

    Raises:
        ValueError: it is no such page.
    """
    parts = re.fullmatch(
        r"---\n(.*?\n)---\n.*?^(`{3,})yaml\n(.*)^\2\n", page, re.DOTALL | re.MULTILINE
    )
    if parts is None:
        raise ValueError("not a page of attempts: expected front matter and a block of YAML")
    try:
        head = yaml.load(parts[1], Loader=yaml.CSafeLoader)
        return head, yaml.load(parts[3], Loader=yaml.CSafeLoader)["attempts"]
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise ValueError(f"not a page of attempts: {error}") from error


def page_row(attempt: Attempt) -> dict[str, Any]:
    """An attempt as its page shows it.

    The document's nine fields always; of the others those that say something, but neither what the
    tools printed nor the failure's own fields, which the log has.
    """
    row: dict[str, Any] = {
        "attempt": attempt.attempt,
        "timestamp": attempt.timestamp,
        "action": attempt.action,
        "result": attempt.result,
        "error": attempt.error,
        "pattern_matched": attempt.pattern_matched,
        "strategy_used": attempt.strategy_used,
        "duration_ms": attempt.duration_ms,
        "files_modified": list(attempt.files_modified),
    }
    checks = [
        {
            "name": check.name,
            "passed": check.passed,
            "exit_code": check.exit_code,
            "duration_ms": check.duration_ms,
        }
        for check in attempt.checks
    ]
    commands = [{k: c.get(k) for k in ("command", "exit_code")} for c in attempt.commands]
    other = {
        "execution": attempt.execution if attempt.execution > 1 else None,
        "phase": attempt.phase,
        "infrastructure": attempt.infrastructure,
        "signature": attempt.signature,
        "fingerprint": attempt.fingerprint,
        "recognizer_version": attempt.recognizer_version,
        "confidence": attempt.confidence,
        "decision": attempt.decision,
        "checks": checks,
        "validation": attempt.validation,
        "regression": attempt.regression,
        "commands": commands,
        "agent": attempt.agent,
        "agent_confidence": attempt.agent_confidence,
        "model": attempt.model,
        "tokens": attempt.tokens,
        "cost": attempt.cost,
        "delay_ms": attempt.delay_ms,
        "branch": attempt.branch,
        "commit": attempt.commit,
    }
    return {**row, **{name: value for name, value in other.items() if value}}
