"""An MCP server: any agent that speaks the Model Context Protocol asks loki about failures.

Needs ``pip install 'loki-core[mcp]'``. Behind ``loki mcp``; ``docs/mcp.md`` tells how to use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from loki.base.error import UsageError
from loki.base.secret import mask_secrets
from loki.decision.tool_call import Effect, ToolCall
from loki.monitoring.monitor import Monitor
from loki.recognition.text import clean

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from loki.cli.explanation import Explanation
    from loki.workspace import Workspace

Output = Annotated[str, Field(description="What it printed, as it is, stdout and stderr.")]
Command = Annotated[str, Field(description="The command that printed it, as typed.")]
ExitCode = Annotated[int | None, Field(description="Its exit code, where you know it.")]
Approach = Annotated[str, Field(description="What you changed, in a sentence.")]

INSTRUCTIONS = (
    "When a command, a test or a build fails: explain_failure says what failed and whether it was seen "
    "before. Before you try again: what_was_tried. After each try: report_attempt, with the output of "
    "the check; do what it says. When you do not know how to go on: what_next."
)

SHOWN = 5
"""Earlier failures that are shown, the newest. Chosen, not measured."""


def server(workspace: Workspace, *, agent: str = "mcp") -> MCPServer:
    """The server of a project; run it with ``.run()``.

    Args:
        workspace: the project.
        agent: the name of the agent that asks, for records.

    Raises:
        UsageError: the package ``mcp`` is not there.
    """
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise UsageError("mcp is not installed: pip install 'loki-core[mcp]'") from error

    from loki import __version__

    tools = Tools(workspace, agent)
    app = MCPServer("loki", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    @app.tool(structured_output=False)
    def explain_failure(output: Output, command: Command = "", exit_code: ExitCode = None) -> str:
        """What failed in the output of a command: where, of what kind, seen before or not, what to do."""
        return tools.explain(output, command, exit_code)

    @app.tool(structured_output=False)
    def what_was_tried(output: Output = "", command: Command = "") -> str:
        """What led nowhere in this project and must not be done again; and, for a failure, what was
        tried when it was seen before and what helped. Ask before you try to mend it."""
        return tools.tried(output, command)

    @app.tool(structured_output=False)
    def report_attempt(
        approach: Approach, output: Output, command: Command = "", exit_code: ExitCode = None
    ) -> str:
        """Report a try to mend something and what the check then printed, passed or failed. The answer
        says to go on, to go about it another way, or to stop."""
        return tools.report(approach, output, command, exit_code)

    @app.tool(structured_output=False)
    def what_next(output: Output, command: Command = "", exit_code: ExitCode = None) -> str:
        """The next steps for a failure, with all that must not be done again."""
        return tools.next(output, command, exit_code)

    return app


class Tools:
    """What the server's tools answer, as text.

    Args:
        workspace: the project.
        agent: who asks, for records.
    """

    def __init__(self, workspace: Workspace, agent: str) -> None:
        self.workspace = workspace
        self.monitor = Monitor(workspace, agent=agent)

    def explain(self, output: str, command: str = "", exit_code: int | None = None) -> str:
        """What failed."""
        from loki.cli.explanation import tell

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
            _plain(told) if told else "Nothing: this was not seen before, and no sign binds here."
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
        return _plain(reaction.text) if reaction else "Noted. Nothing speaks against going on."

    def next(self, output: str, command: str = "", exit_code: int | None = None) -> str:
        """How to go on."""
        from loki.cli.explanation import tell_next

        said = self._explained(output, command, exit_code)
        steps = "\n".join(line.strip() for line in tell_next(said.next))
        return _plain(f"{said.failure}\n{steps}\n{self.monitor.instructions()}".strip())

    def _explained(self, output: str, command: str, exit_code: int | None) -> Explanation:
        from loki.cli.explanation import Asked, explain

        data = output.encode("utf-8", "replace")
        return explain(self.workspace, Asked(data, "text", command or None, exit_code))


def _plain(text: str) -> str:
    """Text without what a terminal would act on, and without secrets."""
    return mask_secrets(clean(text))
