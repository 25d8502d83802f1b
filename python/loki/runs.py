"""The runs of a workspace, joined with git: signs while one is open, and how it ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from loki.action.branch import end_of, start_of
from loki.memory import task_record
from loki.memory.sign import SignRules
from loki.memory.signs import Run, Signs

if TYPE_CHECKING:
    from loki.memory.run import Closed
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


class Runs:
    """All work on one git branch until it is closed, for each branch of a project.

    A run is open from its first failure on. It ends by `close`, or because its branch is merged or
    deleted; the next one on the same branch begins without signs.

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
            rules = {**self._workspace.config.signs.model_dump(), **rules}
        known = SignRules(**rules)
        return Signs(
            self._store,
            here,
            known,
            is_open=lambda task: not self._succeeded(task),
            start=lambda: start_of(self._root, here),
        )

    def open(self) -> list[Run]:
        """The runs that have seen a failure and are not closed."""
        from loki.memory.run import open_runs

        return open_runs(self._store)

    def close(self, branch: str | None = None, *, reason: str = "closed") -> Closed | None:
        """Close a run: its signs become candidates for lasting rules where a task did not succeed.

        Args:
            branch: whose run; the current branch's by default.
            reason: closed, merged or deleted.

        Returns:
            What was closed; None where no failure was seen in it.
        """
        from loki.memory.run import close
        from loki.people.signals import Signals

        here = self.branch if branch is None else branch
        now = self._workspace.clock.now()
        closed = close(self._store, here, succeeded=self._succeeded, now=now, reason=reason)
        for signal in Signals(self._store, self._workspace.clock, branch=self.branch).clear_run(
            here
        ):
            logger.info("signal %s removed: its run is over", signal.label)
        return closed

    def close_ended(self) -> list[Closed]:
        """Close the runs whose branches are merged or deleted; outside git there are none."""
        closed = []
        current = self.branch
        for run in self.open():
            if run.branch is None or run.branch == current:
                continue
            reason = end_of(self._root, run.branch, run.start)
            found = self.close(run.branch, reason=reason) if reason else None
            if found is not None:
                closed.append(found)
                logger.info(
                    "closed the run on %s, which is %s: %d signs, %d candidates for rules",
                    run.branch,
                    reason,
                    found.signs,
                    len(found.candidates),
                )
        return closed

    def _succeeded(self, task: str) -> bool:
        outcome = task_record.load(self._store, task).get("outcome") or {}
        return bool(outcome.get("status") == "success")
