"""Claude Agent SDK: loki as its hooks.

    from loki.adapters.claude_agent_sdk import query         # in place of claude_agent_sdk's
    async for message in query(prompt="Make the tests pass", options=options): ...

and `LokiClient` in place of ``ClaudeSDKClient``. Needs the extra ``claude-agent-sdk``. It decides
nothing: `loki.Monitor` does. Under test: ``tests/py/adapters/test_claude_agent_sdk.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from loki.adapters.claude_agent_hooks import Hooks
from loki.agents.preset import preset
from loki.agents.report import Report
from loki.agents.reported_error import kind_of
from loki.base.error import OUTAGES
from loki.decision.monitor import NOTHING
from loki.monitoring.monitor import Monitor

try:
    import claude_agent_sdk as sdk
except ImportError as error:
    raise ImportError(
        "needs claude-agent-sdk: pip install 'loki-core[claude-agent-sdk]'"
    ) from error


async def query(
    *, prompt: Any, options: Any = None, transport: Any = None, monitor: Monitor | None = None
) -> AsyncIterator[sdk.Message]:
    """As ``claude_agent_sdk.query``, watched.

    Args:
        prompt, options, transport: as there.
        monitor: what decides; None: one for the options' folder.

    Raises:
        AgentStuck: after the last message, where the same failure came too often.
        BreakerOpen: Claude's service is known to be down; nothing was started.
    """
    watch = _Watch(options, monitor)
    watch.begin()
    try:
        async for message in sdk.query(prompt=prompt, options=watch.options, transport=transport):
            watch.see(message)
            yield message
    finally:
        watch.end()
    watch.raise_if_stuck()


class LokiClient(sdk.ClaudeSDKClient):
    """``claude_agent_sdk.ClaudeSDKClient``, watched.

    Args:
        options, transport: as there.
        monitor: what decides; None: one for the options' folder.

    Raises:
        AgentStuck: out of ``receive_response`` and ``receive_messages``, after the result of a query
            in which the same failure came too often.
        BreakerOpen: out of ``query``: Claude's service is known to be down; nothing was sent.
    """

    def __init__(
        self, options: Any = None, transport: Any = None, *, monitor: Monitor | None = None
    ) -> None:
        self._watch = _Watch(options, monitor)
        super().__init__(self._watch.options, transport)

    async def query(self, prompt: Any, session_id: str = "default") -> None:
        """As the client's."""
        self._watch.begin()
        await super().query(prompt, session_id)

    async def receive_messages(self) -> AsyncIterator[sdk.Message]:
        """As the client's."""
        async for message in super().receive_messages():
            self._watch.see(message)
            yield message
            if isinstance(message, sdk.ResultMessage):
                self._watch.raise_if_stuck()

    async def receive_response(self) -> AsyncIterator[sdk.Message]:
        """As the client's."""
        async for message in super().receive_response():
            yield message
        self._watch.raise_if_stuck()


class _Watch:
    """Hooks in options, and what messages say of Claude's service."""

    def __init__(self, options: Any, monitor: Monitor | None) -> None:
        options = options or sdk.ClaudeAgentOptions()
        monitor = monitor or Monitor(options.cwd or ".", agent="claude")
        self._hooks, self._preset = Hooks(monitor), preset("claude")
        self._breaker = monitor.workspace.ways.breakers[self._preset.breaker]
        self._permit: Any = None
        hooks = dict(options.hooks or {})
        for event, hook in self._hooks.by_event().items():
            hooks[event] = [*hooks.get(event, ()), sdk.HookMatcher(hooks=[hook])]
        self.options = replace(options, hooks=hooks)

    def begin(self) -> None:
        """Ask the breaker; Claude Code itself asks the service again where that fails."""
        self.end()
        self._permit = self._breaker.guard()

    def see(self, message: Any) -> None:
        """Tell the breaker of each call that failed, and of a query that went well."""
        if isinstance(message, sdk.SystemMessage) and message.subtype == "api_retry":
            error, status = message.data.get("error"), message.data.get("error_status")
            self._tell(Report(error=str(error), kind=str(error), status=status))
        elif isinstance(message, sdk.ResultMessage):
            status = getattr(message, "api_error_status", None)
            self._tell(
                Report(error=message.result or "", status=status) if message.is_error else None
            )

    def _tell(self, failed: Report | None) -> None:
        kind = kind_of(self._preset, failed, None) if failed else None
        permit, self._permit = self._permit or self._breaker.try_acquire(), None
        if permit is None:
            return
        if failed is None:
            permit.success()
        elif kind in OUTAGES or (kind is None and failed.kind):
            permit.failure(failed.error)
        else:
            permit.ignore()

    def end(self) -> None:
        """No answer came: that says nothing of the service."""
        if self._permit is not None:
            self._permit.ignore()
            self._permit = None

    def raise_if_stuck(self) -> None:
        """Say it once: the agent may be told something else then."""
        stuck, self._hooks.stuck = self._hooks.stuck, NOTHING
        stuck.raise_if_stop()
