"""The breaker of a service that a program asks by itself, and again: what it reports is counted."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from loki.agents.agent_report import Report
from loki.agents.fallback_driver import asleep, spread
from loki.agents.preset import preset
from loki.agents.reported_error import shows_outage
from loki.base.error import BreakerOpen
from loki.execution.resilience import ways

if TYPE_CHECKING:
    from loki.decision.shared_breaker import SharedPermit
    from loki.workspace import Workspace


class ReportedCalls:
    """Calls of a program to its service, one after the other.

    Args:
        workspace: whose breakers count.
        program: as `loki.agents.preset.preset` knows it.
    """

    def __init__(self, workspace: Workspace, program: str) -> None:
        self._preset = preset(program)
        self._ways = workspace.once(ways)
        self._breaker = self._ways.breakers[self._preset.breaker]
        self._permit: SharedPermit | None = None

    def begin(self) -> None:
        """Before the program is asked.

        Raises:
            BreakerOpen: its service is known to be down.
        """
        self.end()
        self._permit = self._breaker.guard()

    async def abegin(self, wait: float | None = None) -> None:
        """The same, once the service may be asked.

        Args:
            wait: seconds to wait for that, all pauses together; None: as the workspace says.

        Raises:
            BreakerOpen: it may not be asked in that time.
        """
        until = self._ways.clock.monotonic() + (self._ways.wait if wait is None else wait)
        while True:
            try:
                await asyncio.to_thread(self.begin)
                return
            except BreakerOpen as refusal:
                seconds = refusal.retry_after
                if seconds is None or seconds > until - self._ways.clock.monotonic():
                    raise
            await asleep(self._ways.clock, spread(seconds), threading.Event())

    def passed(self) -> None:
        """An answer came."""
        self._tell(None)

    def failed(self, error: str, kind: str = "", status: int | None = None) -> None:
        """A call failed; the program may make another.

        Args:
            error: what was said; kind: what the program calls it, or "".
            status: the HTTP status, where it tells.
        """
        self._tell(Report(error=error, kind=kind, status=status))

    def end(self) -> None:
        """No answer came: that says nothing of the service."""
        if self._permit is not None:
            self._permit.ignore()
            self._permit = None

    def _tell(self, failed: Report | None) -> None:
        permit, self._permit = self._permit or self._breaker.try_acquire(), None
        if permit is None:
            return
        if failed is None:
            permit.success()
        elif shows_outage(self._preset, failed):
            permit.failure(failed.error)
        else:
            permit.ignore()
