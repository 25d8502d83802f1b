"""What a person approved or rejected of a task: ``tasks/<id>/approvals.jsonl``.

A decision is about one criterion and about one content: what the task had made of the project then.
Where the content is another one, the decision says nothing any more.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from loki.base.error import UsageError
from loki.base.markdown import bullets, code, fence, inline
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
        >>> from loki.testing import MemoryStore
        >>> approvals = Approvals(MemoryStore(), "t")
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


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked to approve.

    Attributes:
        task_id, title: the task.
        criteria: (name, what has to hold) of each.
        files: paths changed.
        diff: the change, in the unified format.
        digest: of what the task has made of the project: what an approval is about.
    """

    task_id: str
    title: str
    criteria: Sequence[tuple[str, str]]
    files: Sequence[str]
    diff: str
    digest: str


def render(request: ApprovalRequest) -> str:
    """The page: what to approve, of which change, and how."""
    resume = f"loki resume {request.task_id}"
    asked = "\n".join(
        f"- **{inline(name)}**" + (f": {inline(said)}" if said != name else "")
        for name, said in request.criteria
    )
    approve = "\n".join(
        f"- {code(f'{resume} --approve {shlex.quote(name)}')}" for name, _ in request.criteria
    )
    first = shlex.quote(request.criteria[0][0]) if request.criteria else "CRITERION"
    undo = code(f"loki undo {request.task_id}")
    reject = code(f'{resume} --reject {first} --note "what is wrong"')
    return f"""\
## Approval: {inline(request.title)}

**Task ID:** {inline(request.task_id)}
**Trigger:** approval: every other check passes; these criteria wait for a person:

{asked}

### What was changed

{bullets(map(code, request.files))}

{fence(request.diff.rstrip(), "diff")}

### Awaiting

Look at the change, then say yes or no to each:

{approve}

Not good enough: {reject}; the agent is told the note and works on. An approval is of exactly this
change ({code(request.digest[:12])}): once anything of it is different, it is asked for again.
{undo} restores the files as they were.
"""
