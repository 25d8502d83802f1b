"""Claude Agent SDK: hooks that tell a monitor what tools do, and Claude what the monitor says.

What hooks are given and may answer: https://code.claude.com/docs/en/hooks. Seen with Claude Code 2.1.330:
it takes no notice of ``continue: false`` after a tool that failed, so that a stop is said by
``PostToolBatch``, once all calls that were made at once have their results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loki.adapters.conversation import Watching
from loki.decision.monitor.monitor_policy import NOTHING
from loki.decision.monitor.tool_call import ToolCall

if TYPE_CHECKING:
    from claude_agent_sdk.types import HookCallback, HookContext


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
