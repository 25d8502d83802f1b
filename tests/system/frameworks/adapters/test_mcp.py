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
        for tool in tools.values():
            assert (tool.description or "").startswith("Call it ")
            assert "  " not in (tool.description or "")

        told = await say(session, "explain_failure", output=FAILS, **CHECK)
        assert "KeyError: 'next'" in told
        assert "\x1b" not in told
        assert "no sign binds" in await say(session, "what_was_tried", output=FAILS)

        answers = [
            await say(session, "report_attempt", approach=f"try {n}", output=FAILS, **CHECK)
            for n in range(12)
        ]
        assert "Nothing speaks against" in answers[0]
        assert "came back" in answers[1] + answers[2]
        assert "another way" in answers[4]
        assert answers[11].startswith("Stop here")

        tried = await say(session, "what_was_tried", output=FAILS)
        assert "try 11" in tried
        assert "a tool call of tester" in tried
        assert "try 11" in await say(session, "what_next", output=FAILS, **CHECK)

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
        (said,) = result.content
        assert getattr(said, "text", "") == (
            "explain_failure was not called: `output` is missing, expected a text; "
            "`exit_code` is 'many', expected a whole number."
        )
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


def test_what_failed_behind_a_tool_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not `Error executing tool`, which helps nobody."""
    from mcp.server.mcpserver.exceptions import ToolError

    from loki import Workspace
    from loki.adapters.mcp import Tools, server
    from loki.base.error import StoreError

    def full(*_: object) -> str:
        raise StoreError("cannot write .loki/x: No space left on device")

    monkeypatch.setattr(Tools, "explain", full)
    app = server(Workspace(tmp_path))
    with pytest.raises(ToolError, match="^cannot write .loki/x: No space left on device$"):
        asyncio.run(app.call_tool("explain_failure", {"output": FAILS}))


def test_nothing_is_next_where_nothing_failed(tmp_path: Path) -> None:
    from loki import Workspace
    from loki.adapters.mcp import Tools

    assert Tools(Workspace(tmp_path), "x").next(PASSED, exit_code=0).startswith("Nothing failed")


def test_the_project_is_the_one_above_where_the_agent_started_it(tmp_path: Path) -> None:
    """As hooks find it: one memory, wherever in a project an agent begins."""
    (tmp_path / ".git").mkdir()
    below = tmp_path / "web" / "src"
    below.mkdir(parents=True)

    async def main() -> None:
        environment = {k: v for k, v in os.environ.items() if not k.endswith("_PROJECT_DIR")}
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "loki", "mcp"], cwd=below, env=environment
        )
        async with stdio_client(command) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await say(session, "report_attempt", approach="x", output=FAILS, **CHECK)

    asyncio.run(asyncio.wait_for(main(), 60))
    assert (tmp_path / ".loki" / "logs" / "tool-calls.jsonl").exists()
    assert not (below / ".loki").exists()
