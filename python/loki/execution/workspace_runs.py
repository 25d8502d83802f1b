"""The runs of a workspace, joined with git: signs while one is open, and how it ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from loki.action.changes.git import (
    MERGED_INTO,
    OLD,
    default_branch,
    end_of,
    has_taken_in,
    start_of,
)
from loki.base.time import isoformat, moment
from loki.memory import task_record
from loki.memory.sign import SignRules
from loki.memory.signs import Run, Signs

if TYPE_CHECKING:
    from datetime import datetime

    from loki.memory.run_close import Closed
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


class Runs:
    """All work on one git branch until it is closed, for each branch of a project.

    A run is open from its first failure on. It ends by `close`, or because its branch is merged or
    deleted; on the default branch, and where there is none, because another branch was merged into it, or
    by age. The next one on the same branch begins without signs.

    Args:
        workspace: the project.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> runs = Workspace(tempfile.mkdtemp()).runs()
        >>> for approach in ("added a default", "caught the error"):
        ...     seen = runs.signs().observe("FAILED t.py::test_a - KeyError: 'next'", approach)
        >>> closed = runs.close()
        >>> closed.signs, len(closed.candidates), runs.open()
        (1, 1, [])
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._store = workspace.store
        self._root = str(workspace.project)

    @property
    def branch(self) -> str | None:
        """The branch that is checked out; None outside git and where the head is detached."""
        return self._workspace.position()[0]

    def signs(self, branch: str | None = None, **rules: Any) -> Signs:
        """The signs of a run; see `loki.Workspace.signs`."""
        here = self.branch if branch is None else branch
        if self._workspace.is_configured:
            configured = self._workspace.config.signs.model_dump(exclude={"max_age"})
            rules = {**configured, **rules}
        known = SignRules(**rules)
        return Signs(
            self._store,
            here,
            known,
            is_open=lambda task: not self._succeeded(task),
            start=lambda: {**start_of(self._root, here), "at": isoformat(self._now())},
        )

    def open(self) -> list[Run]:
        """The runs that have seen a failure and are not closed."""
        from loki.memory.run_close import open_runs

        return open_runs(self._store)

    def close(self, branch: str | None = None, *, reason: str = "closed") -> Closed | None:
        """Close a run: its signs become candidates for lasting rules where a task did not succeed.

        Args:
            branch: whose run; the current branch's by default.
            reason: closed, merged or deleted.

        Returns:
            What was closed; None where no failure was seen in it.
        """
        return self._close(self.branch if branch is None else branch, reason)

    def _close(self, here: str | None, reason: str) -> Closed | None:
        from loki.memory.run_close import close
        from loki.people.signals import Signals

        now = self._now()
        closed = close(self._store, here, succeeded=self._succeeded, now=now, reason=reason)
        for signal in Signals(self._store, self._workspace.clock, branch=self.branch).clear_run(
            here
        ):
            logger.info("signal %s removed: its run is over", signal.label)
        return closed

    def close_ended(self) -> list[Closed]:
        """Close the runs that are over: whose branches are merged or deleted, or that are too old."""
        closed = []
        current = self.branch
        for run in self.open():
            reason = self._end_of(run, current)
            found = self._close(run.branch, reason) if reason else None
            if found is not None:
                closed.append(found)
                logger.info(
                    "closed the run on %s, which is %s: %d signs, %d candidates for rules",
                    run.branch or "no branch",
                    reason,
                    found.signs,
                    len(found.candidates),
                )
        return closed

    def _end_of(self, run: Run, current: str | None) -> str:
        """How a run ended, or "" where it has not."""
        main = default_branch(self._root)
        if run.branch is not None and run.branch != current:
            ended = end_of(self._root, run.branch, run.start)
            if ended and run.branch != main:
                return ended
        if run.branch is not None and main and run.branch != main:
            return ""
        if run.branch is not None and has_taken_in(self._root, run.branch, run.start):
            return MERGED_INTO
        begun = moment(str(run.start.get("at")))
        most = self._workspace.config.signs.max_age
        return OLD if begun and (self._now() - begun).total_seconds() > most else ""

    def _now(self) -> datetime:
        return self._workspace.clock.now()

    def _succeeded(self, task: str) -> bool:
        return task_record.load(self._store, task).status == "success"
