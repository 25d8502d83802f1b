"""Claude Agent SDK: loki as its hooks.

What hooks are given and may answer: https://code.claude.com/docs/en/hooks. Seen with Claude Code 2.1.330:
it takes no notice of ``continue: false`` after a tool that failed, so that a stop is said by
``PostToolBatch``, once all calls that were made at once have their results.

    from loki.adapters.claude_agent_sdk import query         # in place of claude_agent_sdk's
    async for message in query(prompt="Make the tests pass", options=options): ...

and `LokiClient` in place of ``ClaudeSDKClient``. Needs the extra ``claude-agent-sdk``. It decides
nothing: `loki.Monitor` does.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loki.adapters.conversation import CONVERSATION, Watching
from loki.adapters.monitor.breaker_call import ReportedCalls
from loki.adapters.monitor.monitor import Monitor
from loki.base.time import Duration
from loki.decision.monitor.monitor_state import NOTHING
from loki.decision.monitor.tool_call import ToolCall

try:
    import claude_agent_sdk as sdk
except ImportError as error:
    raise ImportError(
        "needs claude-agent-sdk: pip install 'loki-core[claude-agent-sdk]'"
    ) from error

if TYPE_CHECKING:
    from claude_agent_sdk.types import HookCallback, HookContext


# --- Hooks that tell a monitor, and Claude ------------------------------------------------------------


class Hooks(Watching[Any]):
    """What hooks tell a monitor, and what it answers.

    Args:
        monitor: what decides; a project's folder: one for that.
        scope: whose signs a session is told: ``conversation``, its own; ``project``, all of the branch; a
            user's name: the user's.

    Attributes:
        stuck: the reaction that stopped the agent; ``none`` while it goes on.
    """

    _agent_name = "claude"
    stuck, _told = NOTHING, ""  # of this client: a session of its own

    def raise_if_stuck(self) -> None:
        """Say it once: the agent may be told something else then."""
        stuck, self.stuck = self.stuck, NOTHING
        stuck.raise_if_stop()

    def by_event(self) -> dict[Any, HookCallback]:
        """The hooks, by the names of Claude Code's events."""
        return {
            "UserPromptSubmit": self._prompt,
            "PreToolUse": self._before,
            "PostToolUse": self._after,
            "PostToolUseFailure": self._after,
            "PostToolBatch": self._batch,
            "Stop": self._ending,
        }

    async def _prompt(self, given: Any, _id: str | None, _more: HookContext) -> Any:
        """Tell it the signs; what stands in the conversation already is not said again."""
        signs = await self._watch.ainstructions(_session(given))
        told, self._told = self._told, signs
        return _context(given, signs if signs != told else "")

    async def _before(self, given: Any, _id: str | None, _more: HookContext) -> Any:
        refusal = self.stuck or self._watch.before(_session(given), _call(given))
        if not refusal:
            return {}
        said = {"permissionDecision": "deny", "permissionDecisionReason": refusal.text}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}

    async def _after(self, given: Any, _id: str | None, _more: HookContext) -> Any:
        if given.get("is_interrupt"):  # a person stopped it: no failure
            return {}
        is_own = not given["tool_name"].startswith("mcp__")  # MCP's tell of failures in their text
        ok = False if "error" in given else True if is_own else None
        result = given["error"] if "error" in given else _printed(given["tool_response"])
        said = await self._watch.aheard(_session(given), _call(given), result, ok=ok)
        self.stuck = said if said.kind == "stop" else self.stuck
        return _context(given, said.text)

    async def _batch(self, _given: Any, _id: str | None, _more: HookContext) -> Any:
        """All calls that the model made at once have their results: the one place to stop it."""
        return {"continue_": False, "stopReason": self.stuck.text} if self.stuck else {}

    async def _ending(self, given: Any, _id: str | None, _more: HookContext) -> Any:
        said = given.get("last_assistant_message") or ""
        refusal = await self._watch.aending(_session(given), said)
        return {"decision": "block", "reason": refusal.text} if refusal else {}


def _session(given: Any) -> str:
    return str(given.get("session_id") or "")


def _call(given: Any) -> ToolCall:
    return ToolCall(given["tool_name"], given["tool_input"], id=given.get("tool_use_id", ""))


def _printed(response: Any) -> Any:
    """What a tool gave; its own shell tells of no failure here."""
    is_shell = isinstance(response, Mapping) and {"stdout", "stderr"} <= set(response)
    return {**response, "exit_code": 0} if is_shell else response


def _context(given: Any, text: str) -> Any:
    """Text that the model sees beside what a hook is about."""
    said = {"hookEventName": given["hook_event_name"], "additionalContext": text}
    return {"hookSpecificOutput": said} if text else {}


# --- The SDK's functions, watched ---------------------------------------------------------------------


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
            a user's name: the user's. `loki.adapters.conversation.close` closes them.
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


class _Watch(Hooks):
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
        super().__init__(monitor or options.cwd or ".", scope, wait)
        self.calls = ReportedCalls(self.monitor.workspace, "claude")
        self.begin = partial(self.calls.abegin, self.monitor.wait)
        given = options.hooks or {}
        ours = {
            event: [*given.get(event, ()), sdk.HookMatcher(hooks=[hook])]
            for event, hook in self.by_event().items()
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
