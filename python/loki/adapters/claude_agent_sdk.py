"""Claude Agent SDK: loki as its hooks.

    from loki.adapters.claude_agent_sdk import query         # in place of claude_agent_sdk's
    async for message in query(prompt="Make the tests pass", options=options): ...

and `LokiClient` in place of ``ClaudeSDKClient``. Needs the extra ``claude-agent-sdk``. It decides
nothing: `loki.Monitor` does.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

from loki.adapters.claude_agent_hooks import Hooks
from loki.adapters.monitor.monitor import Monitor
from loki.adapters.monitor.reported_calls import ReportedCalls
from loki.adapters.scope import CONVERSATION
from loki.base.time import Duration

try:
    import claude_agent_sdk as sdk
except ImportError as error:
    raise ImportError(
        "needs claude-agent-sdk: pip install 'loki-core[claude-agent-sdk]'"
    ) from error


async def query(
    *,
    prompt: str | AsyncIterable[dict[str, Any]],
    options: sdk.ClaudeAgentOptions | None = None,
    transport: sdk.Transport | None = None,
    monitor: Monitor | None = None,
    scope: str = CONVERSATION,
    wait: Duration | None = None,
) -> AsyncIterator[sdk.Message]:
    """As ``claude_agent_sdk.query``, watched.

    Args:
        prompt, options, transport: as there.
        monitor: what decides; None: one for the options' folder.
        scope: whose signs the session is told: ``conversation``, its own; ``project``, all of the branch;
            a user's name: the user's. `loki.adapters.scope.close` closes them.
        wait: how long it is waited, all pauses together, until the circuit breaker of Claude's service
            lets a query out; 0: not at all; None: as the monitor says.

    Raises:
        AgentStuck: after the last message, where the same failure came too often.
        BreakerOpen: Claude's service is known to be down for as long; nothing was started.
    """
    watch = _Watch(options, monitor, scope, wait)
    await watch.begin()
    try:
        async for message in sdk.query(prompt=prompt, options=watch.options, transport=transport):
            watch.see(message)
            yield message
    finally:
        watch.calls.end()
    watch.raise_if_stuck()


class LokiClient(sdk.ClaudeSDKClient):
    """``claude_agent_sdk.ClaudeSDKClient``, watched.

    Args:
        options, transport: as there.
        monitor: what decides; None: one for the options' folder.
        scope, wait: as `query` takes them.

    Raises:
        AgentStuck: out of ``receive_response`` and ``receive_messages``, after the result of a query
            in which the same failure came too often.
        BreakerOpen: out of ``query``: Claude's service is known to be down for as long as is waited;
            nothing was sent.
    """

    def __init__(
        self,
        options: sdk.ClaudeAgentOptions | None = None,
        transport: sdk.Transport | None = None,
        *,
        monitor: Monitor | None = None,
        scope: str = CONVERSATION,
        wait: Duration | None = None,
    ) -> None:
        self._watch = _Watch(options, monitor, scope, wait)
        super().__init__(self._watch.options, transport)

    async def query(
        self, prompt: str | AsyncIterable[dict[str, Any]], session_id: str = "default"
    ) -> None:
        """As the client's."""
        await self._watch.begin()
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
    """Hooks in options, and what messages say of Claude's service.

    Claude Code itself asks the service again where that fails.
    """

    def __init__(
        self,
        options: sdk.ClaudeAgentOptions | None,
        monitor: Monitor | None,
        scope: str,
        wait: Duration | None,
    ) -> None:
        options = options or sdk.ClaudeAgentOptions()
        hooks = Hooks(monitor or options.cwd or ".", scope, wait)
        self.calls = ReportedCalls(hooks.monitor.workspace, "claude")
        self.begin = partial(self.calls.abegin, hooks.monitor.wait)
        self.raise_if_stuck = hooks.raise_if_stuck
        given = options.hooks or {}
        ours = {
            event: [*given.get(event, ()), sdk.HookMatcher(hooks=[hook])]
            for event, hook in hooks.by_event().items()
        }
        self.options = replace(options, hooks={**given, **ours})

    def see(self, message: sdk.Message) -> None:
        """Tell the breaker of each call that failed, and of a query that went well."""
        if isinstance(message, sdk.SystemMessage) and message.subtype == "api_retry":
            error = str(message.data.get("error"))
            self.calls.failed(error, error, message.data.get("error_status"))
        elif isinstance(message, sdk.ResultMessage):
            if message.is_error:
                status = getattr(message, "api_error_status", None)
                self.calls.failed(message.result or "", status=status)
            else:
                self.calls.passed()
