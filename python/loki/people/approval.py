"""What a person approved or rejected of a task: ``tasks/<id>/approvals.jsonl``.

A decision is about one criterion and about one content: what the task had made of the project then.
Where the content is another one, the decision says nothing any more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from loki.base.error import UsageError
from loki.memory.store import Store

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Approval:
    """One person's decision about one criterion.

    Attributes:
        criterion: name of the criterion: what is approved.
        approved: approved, or rejected.
        by: who decided.
        at: when, ISO 8601 UTC.
        digest: of what the task had made of the project then; of nothing else is this a decision.
        note: why, in the person's words; the next attempt is told why something was rejected.
    """

    criterion: str
    approved: bool
    by: str
    at: str
    digest: str
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a decision that nobody made, or about nothing."""
        for name in ("criterion", "by", "digest"):
            if not getattr(self, name).strip():
                raise UsageError(f"an approval needs {name!r}: who approves what, of which content")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Approval:
        """A decision from a record.

        Raises:
            ValueError: a field is missing or of another kind.
        """
        try:
            found = cls(**{f.name: data[f.name] for f in fields(cls) if f.name in data})
        except (TypeError, AttributeError, UsageError) as error:
            raise ValueError(f"no approval: {error}") from error
        if not isinstance(found.approved, bool):
            raise ValueError("no approval: 'approved' is neither true nor false")
        return found


class Approvals:
    """The decisions about one task, oldest first.

    Args:
        store: where memory is kept.
        task_id: the task.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from loki.stores.files import FileStore
        >>> approvals = Approvals(FileStore(Path(tempfile.mkdtemp())), "t")
        >>> approvals.add(Approval("the text reads well", True, "ann", "2026-04-04T10:00:00Z", "d1"))
        >>> approvals.standing("the text reads well", "d1").by
        'ann'
        >>> approvals.standing("the text reads well", "d2") is None
        True
    """

    def __init__(self, store: Store, task_id: str) -> None:
        self._store = store
        self._log = f"tasks/{task_id}/approvals.jsonl"

    def add(self, approval: Approval) -> None:
        """Keep a decision; a later one about the same takes its place.

        Raises:
            StoreError: it could not be kept.
        """
        self._store.append(self._log, asdict(approval))

    def all(self) -> list[Approval]:
        """Every decision, oldest first; a damaged record is left out with a warning."""
        found = []
        for record in self._store.records(self._log):
            try:
                found.append(Approval.from_dict(record))
            except ValueError as error:
                logger.warning("%s: skipped a record: %s", self._log, error)
        return found

    def standing(self, criterion: str, digest: str) -> Approval | None:
        """The last decision about a criterion that is about this content; None where there is none.

        Args:
            criterion: its name.
            digest: of what the task has made of the project now.
        """
        about = [a for a in self.all() if a.criterion == criterion and a.digest == digest]
        return about[-1] if about else None
