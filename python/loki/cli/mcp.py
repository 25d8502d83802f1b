"""``loki mcp``: the MCP server of a project, on standard input and output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from loki.cli.common import load_project


def command(
    project: Annotated[
        Path | None,
        typer.Option(help="The project's folder; else the nearest one above with .loki or .git."),
    ] = None,
    agent: Annotated[str, typer.Option(help="Name of the agent that asks, for records.")] = "mcp",
) -> None:
    """Serve agents that speak the Model Context Protocol (MCP), over standard input and output.

    An agent's configuration starts it; it ends with its input. Its tools: explain_failure,
    what_was_tried, report_attempt, what_next.

    Example: `claude mcp add loki -- loki mcp`
    """
    from loki.adapters.hooks.hook_handler import project_of
    from loki.adapters.mcp import server

    folder = project or Path(project_of(os.getcwd(), os.environ))
    server(load_project(folder), agent=agent).run("stdio")
