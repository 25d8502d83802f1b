"""How a task ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from loki.base import codec
from loki.base.codec import kept
from loki.base.html import html_card
from loki.base.time import isoformat

EXIT_CODES = {"success": 0, "escalated": 3, "failed": 4, "paused": 6, "interrupted": 130}
"""By status."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended.

    Attributes:
        task_id: the task.
        status: success, failed, escalated, unverified, interrupted or paused. A task that was
            interrupted or paused goes on where it stood when it is run again.
        attempts: attempts made in this execution; 0 where the task was already done.
        files: paths changed since the task first began, relative to the project.
        pattern: id of the last failure's pattern, or None.
        reason: one sentence.
        duration_ms: milliseconds from begin to end of this execution.
        trigger: short name of what ended it, or "": retry_budget_exhausted, budget, …
        page: the dead-letter or escalation page, relative to ``.loki/``, or None.
        breaker: name of the circuit breaker that paused it, or None.
        awaiting: names of the criteria that a person has to approve, where nothing else is missing.
        review: id of the request that a person has to answer first, or None.
        retry_at: when that breaker may let a call through again, in UTC; None: nobody knows.
        other: fields that a newer version wrote; kept.
    """

    task_id: str = kept(plain="")
    status: str = kept(plain="unknown")
    attempts: int = kept(plain=0)
    files: tuple[str, ...] = kept(name="files_modified", default=())
    pattern: str | None = kept(name="failure_pattern", default=None)
    reason: str = ""
    duration_ms: int = 0
    trigger: str = ""
    page: str | None = None
    breaker: str | None = None
    retry_at: datetime | None = None
    awaiting: tuple[str, ...] = ()
    review: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def exit_code(self) -> int:
        """Exit code of ``loki run``, 5 where the budget is spent; 1 for what it cannot end with."""
        if self.status == "failed" and self.trigger == "budget":
            return 5
        return EXIT_CODES.get(self.status, 1)

    def _repr_html_(self) -> str:
        return html_card(
            f"Outcome: {self.status}",
            [
                ("task", self.task_id),
                ("attempts", self.attempts),
                ("files", ", ".join(self.files)),
                ("last pattern", self.pattern),
                ("took", f"{self.duration_ms / 1000:.1f} s"),
                ("ended by", self.trigger),
                ("page", self.page and f".loki/{self.page}"),
                ("waits for", ", ".join(self.awaiting)),
                ("breaker", self.breaker),
                ("again at", self.retry_at and isoformat(self.retry_at)),
            ],
            said=self.reason,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return codec.fields_of(self)
