"""The MCP server, asked by the official client over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from support.tool_calls import PASSED, pytest_fails

FAILS = pytest_fails()
CHECK = {"command": "pytest -q", "exit_code": 1}


def asked(project: Path, work: Callable[[ClientSession], Awaitable[Any]]) -> Any:
    """What comes of a conversation with `loki mcp`."""
    command = [sys.executable, "-m", "loki", "mcp", "--project", str(project), "--agent", "tester"]

    async def main() -> Any:
        server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return await work(session)

    return asyncio.run(asyncio.wait_for(main(), 60))


async def say(session: ClientSession, name: str, **arguments: Any) -> str:
    result = await session.call_tool(name, arguments)
    assert not result.is_error, result
    (content,) = result.content
    return str(getattr(content, "text", content))


def test_a_conversation_with_the_official_client(tmp_path: Path) -> None:
    async def work(session: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"explain_failure", "what_was_tried", "report_attempt", "what_next"}
        assert all(tool.description for tool in tools.values())

        told = await say(session, "explain_failure", output=FAILS, **CHECK)
        assert "KeyError: 'next'" in told
        assert "\x1b" not in told
        assert "no sign binds" in await say(session, "what_was_tried", output=FAILS)

        answers = [
            await say(session, "report_attempt", approach=f"try {n}", output=FAILS, **CHECK)
            for n in range(4)
        ]
        assert "Nothing speaks against" in answers[0]
        assert "came back" in answers[1]
        assert "change the strategy" in answers[2]
        assert answers[3].startswith("Stop here")

        tried = await say(session, "what_was_tried", output=FAILS)
        assert "try 2" in tried
        assert "a tool call of tester" in tried
        assert "try 2" in await say(session, "what_next", output=FAILS, **CHECK)

        done = {"output": PASSED, "command": "pytest -q", "exit_code": 0}
        await say(session, "report_attempt", approach="read the header", **done)
        assert "what helped: attempt read the header" in await say(
            session, "what_was_tried", output=FAILS
        )

    asked(tmp_path, work)


@pytest.mark.parametrize(
    "output", ["", "\x00\x1b[2J\ud800", "x" * 3_000_000, "password=hunter2 failed"]
)
def test_hostile_output_is_answered(tmp_path: Path, output: str) -> None:
    from loki import Workspace
    from loki.adapters.mcp import Tools

    tools = Tools(Workspace(tmp_path), "tester")
    for answer in (
        tools.explain(output),
        tools.tried(output),
        tools.report("x", output),
        tools.next(output),
    ):
        assert len(answer) < 20_000
        assert "hunter2" not in answer
        assert "\x1b" not in answer


def test_wrong_arguments_are_an_answer_too(tmp_path: Path) -> None:
    async def work(session: ClientSession) -> None:
        result = await session.call_tool("explain_failure", {"exit_code": "many"})
        assert result.is_error
        assert "no sign" in await say(session, "what_was_tried")

    asked(tmp_path, work)


def test_a_broken_configuration_is_said_before_anything_is_served(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / ".loki").mkdir()
    (tmp_path / ".loki/config.toml").write_text("[loop]\nmax_retries = -1\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "loki", "mcp", "--project", str(tmp_path)],
        input=b"",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"config.toml" in done.stderr
    assert done.stdout == b""
