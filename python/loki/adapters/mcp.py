"""An MCP server: any agent that speaks the Model Context Protocol asks loki about failures.

Needs ``pip install 'loki-core[mcp]'``. Behind ``loki mcp``; ``docs/mcp.md`` tells how to use it.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from loki import __version__
from loki.adapters.explanation import Asked, Explanation, explain, tell, tell_next
from loki.adapters.monitor.monitor import Monitor
from loki.base.error import LokiError, UsageError
from loki.base.secret import mask_secrets
from loki.decision.monitor.tool_call import ToolCall
from loki.decision.monitor.tool_command import Effect
from loki.recognition.text import clean

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from loki.runtime import Runtime


# --- What the tools answer, as text for a model -------------------------------------------------------

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
        return _plain(tell(self._explained(output, command, exit_code)))

    def tried(self, output: str = "", command: str = "") -> str:
        """What led nowhere."""
        parts = [self.monitor.instructions()]
        seen = self._explained(output, command, None).seen if output.strip() else ()
        for one in seen[-SHOWN:]:
            helped = f"; what helped: {one.solution}" if one.solution else ""
            how = f"after: {one.action}" if one.action else "failed the same way"
            parts.append(f"- {one.timestamp[:16]} {one.place}: {how}{helped}")
        if told := "\n".join(part for part in parts if part):
            return _plain(told)
        return "Nothing: no earlier try at this failure is known, and no sign binds here."

    def report(
        self, approach: str, output: str, command: str = "", exit_code: int | None = None
    ) -> str:
        """What is to be said to a try."""
        if approach.strip():
            attempt = ToolCall("attempt", {"approach": approach}, effect=Effect.WRITE)
            self.monitor.after(attempt, "", ok=True)
        check = ToolCall("check", {}, command or None, None if command else Effect.RUN)
        reaction = self.monitor.after(check, output, exit_code=exit_code)
        if reaction:
            return _plain(reaction.text)
        passed = "Noted: it passed." if exit_code == 0 else "Noted."
        return f"{passed} Nothing speaks against going on."

    def next(self, output: str, command: str = "", exit_code: int | None = None) -> str:
        """How to go on."""
        said = self._explained(output, command, exit_code)
        if said.verdict == "passed":
            return _plain(f"{tell(said)}\n{self.monitor.instructions()}".strip())
        steps = "\n".join(line.strip() for line in tell_next(said.next))
        return _plain(f"{said.failure}\n{steps}\n{self.monitor.instructions()}".strip())

    def _explained(self, output: str, command: str, exit_code: int | None) -> Explanation:
        data = output.encode("utf-8", "replace")
        return explain(self.workspace, Asked(data, "text", command or None, exit_code))


def _plain(text: str) -> str:
    """Text without what a terminal would act on, and without secrets."""
    return mask_secrets(clean(text))


# --- The server ---------------------------------------------------------------------------------------

Output = Annotated[
    str, Field(description="What the command printed, stdout and stderr, all of it and as it is.")
]
Command = Annotated[str, Field(description="The command that printed it, as typed: pytest -q")]
ExitCode = Annotated[
    int | None, Field(description="The command's exit code, 0 where it passed; where you know it.")
]
Approach = Annotated[
    str, Field(description="What you changed since the last report, in a sentence; '' if nothing.")
]

INSTRUCTIONS = (
    "When a command, a test or a build fails: explain_failure says what failed and whether it was seen "
    "before. Before you try again: what_was_tried. After each try: report_attempt, with the output of "
    "the check; do what it says. When you do not know how to go on: what_next."
)


def server(workspace: Runtime, *, agent: str = "mcp") -> MCPServer:
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

    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    class Server(MCPServer):
        """Says in a sentence what was wrong with a call."""

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            """Call a tool."""
            try:
                return await super().call_tool(name, arguments, context)
            except ToolError as error:
                said = _why(name, error.__cause__)
                if not said:
                    raise
                raise ToolError(said) from error

    tools = Tools(workspace, agent)
    app = Server("loki", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    def explain_failure(output: Output, command: Command = "", exit_code: ExitCode = None) -> str:
        """Call it when a command, a test or a build failed: says what failed, where, of what kind,
        whether it was seen before, and what to do."""
        return tools.explain(output, command, exit_code)

    def what_was_tried(output: Output = "", command: Command = "") -> str:
        """Call it before you try to mend a failure: says what was tried when it was seen before and
        what helped, and what led nowhere in this project and must not be done again. Without an
        output: only the latter."""
        return tools.tried(output, command)

    def report_attempt(
        approach: Approach, output: Output, command: Command = "", exit_code: ExitCode = None
    ) -> str:
        """Call it after each try to mend something, once the check was run again, whether it passed
        or failed. The answer says to go on, to go about it another way, or to stop: do so."""
        return tools.report(approach, output, command, exit_code)

    def what_next(output: Output, command: Command = "", exit_code: ExitCode = None) -> str:
        """Call it when you do not know how to go on: the next steps for a failure, with all that
        must not be done again."""
        return tools.next(output, command, exit_code)

    for function in (explain_failure, what_was_tried, report_attempt, what_next):
        reads = function is not report_attempt
        app.add_tool(
            function,
            description=" ".join(cleandoc(function.__doc__ or "").split()),
            annotations=ToolAnnotations(read_only_hint=reads, destructive_hint=False),
            structured_output=False,
        )
    return app


def _why(tool: str, cause: BaseException | None) -> str:
    """Why a tool was not carried out, in a sentence; "" where that was not foreseen."""
    if isinstance(cause, LokiError):
        return str(cause)
    if not isinstance(cause, ValidationError):
        return ""
    wrong = []
    for one in cause.errors(include_url=False):
        name = ".".join(map(str, one["loc"]))
        expected = "a whole number" if name == "exit_code" else "a text"
        found = "is missing" if one["type"] == "missing" else f"is {one['input']!r:.60}"
        wrong.append(f"`{name}` {found}, expected {expected}")
    return f"{tool} was not called: {'; '.join(wrong)}."
