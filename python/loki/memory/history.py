"""A task's attempts: append-only on disk, and a page for people rendered from them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loki.memory.attempt import Attempt
from loki.memory.page import dump, front_matter
from loki.memory.store import Store

logger = logging.getLogger("loki")


class History:
    """The attempts of one task.

    Args:
        store: where they are kept.
        task_id: whose they are.
    """

    def __init__(self, store: Store, task_id: str) -> None:
        self._store = store
        self._task_id = task_id
        self._log = f"tasks/{task_id}/attempts.jsonl"

    def append(self, attempt: Attempt) -> None:
        """Keep an attempt; it is on disk when this returns."""
        self._store.append(self._log, attempt.to_dict())

    def amend(self, attempt: int, strategy: str) -> None:
        """Note that another strategy than the recorded one was used in answer to an attempt."""
        self._store.append(self._log, {"amends": attempt, "strategy_used": strategy})

    def attempts(self) -> list[Attempt]:
        """All attempts in order, amendments applied; a record that cannot be read is skipped."""
        found: dict[int, Attempt] = {}
        for record in self._store.records(self._log):
            try:
                if "amends" in record:
                    number = int(record["amends"])
                    found[number] = replace(found[number], strategy_used=record["strategy_used"])
                else:
                    attempt = Attempt.from_dict(record)
                    found[attempt.attempt] = attempt
            except (ValueError, KeyError, TypeError) as error:
                logger.warning("%s: skipped a record: %s", self._log, error)
        return [found[number] for number in sorted(found)]

    def write_page(self, *, status: str, title: str, updated_at: str) -> None:
        """Render ``attempts-<task_id>.md`` anew."""
        attempts = self.attempts()
        page = render_page(
            self._task_id, attempts, status=status, title=title, updated_at=updated_at
        )
        self._store.put(f"tasks/{self._task_id}/attempts-{self._task_id}.md", page)


def render_page(
    task_id: str, attempts: Sequence[Attempt], *, status: str, title: str, updated_at: str
) -> str:
    """The page of a task's attempts: front matter, then the attempts as YAML."""
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
    rows = [_row(attempt) for attempt in attempts]
    body = dump({"attempts": rows})
    return f"{head}\n# {title}\n\n## Attempt history\n\n```yaml\n{body}```\n"


def _row(attempt: Attempt) -> dict[str, Any]:
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
    if attempt.checks:
        row["checks"] = {
            check.name: "passed" if check.passed else "failed" for check in attempt.checks
        }
    if attempt.decision:
        row["decision"] = attempt.decision.get("reason")
    return row
