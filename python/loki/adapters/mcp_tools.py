"""What the tools of loki's MCP server answer, as text for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.adapters.monitor.monitor import Monitor
from loki.base.secret import mask_secrets
from loki.decision.monitor.tool_call import Effect, ToolCall
from loki.recognition.text import clean

if TYPE_CHECKING:
    from loki.adapters.explanation import Explanation
    from loki.runtime import Runtime

SHOWN = 5
"""Earlier failures that are shown, the newest. Chosen, not measured."""


class Tools:
    """What the server's tools answer, as text.

    Args:
        workspace: the project.
        agent: who asks, for records.
    """

    def __init__(self, workspace: Runtime, agent: str) -> None:
        self.workspace = workspace
        self.monitor = Monitor(workspace, agent=agent)

    def explain(self, output: str, command: str = "", exit_code: int | None = None) -> str:
        """What failed."""
        from loki.adapters.explanation import tell

        return _plain(tell(self._explained(output, command, exit_code)))

    def tried(self, output: str = "", command: str = "") -> str:
        """What led nowhere."""
        parts = [self.monitor.instructions()]
        seen = self._explained(output, command, None).seen if output.strip() else ()
        for one in seen[-SHOWN:]:
            helped = f"; what helped: {one.solution}" if one.solution else ""
            after = f" after: {one.action}" if one.action else ""
            parts.append(
                f"- {one.timestamp[:16]} {one.place}:{after or ' failed the same way'}{helped}"
            )
        told = "\n".join(part for part in parts if part)
        return (
            _plain(told)
            if told
            else "Nothing: no earlier try at this failure is known, and no sign binds here."
        )

    def report(
        self, approach: str, output: str, command: str = "", exit_code: int | None = None
    ) -> str:
        """What is to be said to a try."""
        if approach.strip():
            self.monitor.after(
                ToolCall("attempt", {"approach": approach}, effect=Effect.WRITE), "", ok=True
            )
        check = ToolCall("check", {}, command or None, None if command else Effect.RUN)
        reaction = self.monitor.after(check, output, exit_code=exit_code)
        if reaction:
            return _plain(reaction.text)
        passed = "Noted: it passed." if exit_code == 0 else "Noted."
        return f"{passed} Nothing speaks against going on."

    def next(self, output: str, command: str = "", exit_code: int | None = None) -> str:
        """How to go on."""
        from loki.adapters.explanation import tell, tell_next

        said = self._explained(output, command, exit_code)
        if said.verdict == "passed":
            return _plain(f"{tell(said)}\n{self.monitor.instructions()}".strip())
        steps = "\n".join(line.strip() for line in tell_next(said.next))
        return _plain(f"{said.failure}\n{steps}\n{self.monitor.instructions()}".strip())

    def _explained(self, output: str, command: str, exit_code: int | None) -> Explanation:
        from loki.adapters.explanation import Asked, explain

        data = output.encode("utf-8", "replace")
        return explain(self.workspace, Asked(data, "text", command or None, exit_code))


def _plain(text: str) -> str:
    """Text without what a terminal would act on, and without secrets."""
    return mask_secrets(clean(text))
