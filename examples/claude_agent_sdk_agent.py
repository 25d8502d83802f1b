"""The same agent of the Claude Agent SDK with and without loki, on a task that it loops on.

Claude Code is real; what it takes for Anthropic's service is a script on this machine.

pip install 'loki-core[claude-agent-sdk]' pytest
python examples/claude_agent_sdk_agent.py
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import claude_agent_sdk as sdk
from looping_task import GOAL, PATIENCE, Step, Task, compare

import loki
from loki.adapters.claude_agent_sdk import query


def run(task: Task, with_loki: bool, listens: bool) -> str:
    """Run the agent; how it ended."""

    def model(body: dict[str, Any]) -> Step:
        if not body.get("tools"):  # it asks for a title and the like, too
            return Step(text="stats.py")
        return task.next_step(list(heard(body["messages"])), listens=listens)

    async def work(url: str, home: str) -> str:
        ask, ended = query if with_loki else sdk.query, ""
        async for message in ask(prompt=GOAL, options=options(task, url, home)):
            if isinstance(message, sdk.ResultMessage):
                ended = message.result or message.subtype
        return ended

    with service(model) as url, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        try:
            return asyncio.run(work(url, home))
        except sdk.ResultError as error:
            if error.subtype != "error_max_turns":
                raise
            return f"given up on after {PATIENCE} requests"
        except loki.AgentStuck as stuck:
            return f"stopped at the {stuck.count}th {stuck.failure and stuck.failure.error_type}"


def options(task: Task, url: str, home: str) -> sdk.ClaudeAgentOptions:
    """Claude Code with the task's two tools and none of its own, in a home of its own."""

    @sdk.tool("write_file", "Write a file", {"path": str, "content": str})
    async def write_file(given: dict[str, str]) -> dict[str, Any]:
        return said(task.write_file(**given))

    @sdk.tool("run_tests", "Run the tests", {})
    async def run_tests(_given: dict[str, str]) -> dict[str, Any]:
        return said(task.run_tests())

    tools = ["mcp__task__write_file", "mcp__task__run_tests"]
    return sdk.ClaudeAgentOptions(
        cwd=str(task.folder),
        mcp_servers={"task": sdk.create_sdk_mcp_server("task", tools=[write_file, run_tests])},
        tools=[],
        allowed_tools=tools,
        setting_sources=[],
        max_turns=PATIENCE,
        model="claude-opus-4-5",
        env={
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "HOME": home,
        },
    )


def said(text: str) -> dict[str, Any]:
    """A tool's answer."""
    return {"content": [{"type": "text", "text": text}]}


def heard(content: Any) -> Iterator[str]:
    """Every text in the messages of a request, in order."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for one in content:
            yield from heard(one.get("content") or one.get("text"))


@contextmanager
def service(model: Callable[[dict[str, Any]], Step]) -> Iterator[str]:
    """A service that speaks as Anthropic's does; its address."""
    numbers = iter(range(1, 1000))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Stream the model's next step."""
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in events(model(body), next(numbers)):
                data = json.dumps(event)
                self.wfile.write(f"event: {event['type']}\ndata: {data}\n\n".encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def events(step: Step, number: int) -> Iterator[dict[str, Any]]:
    """A step as the events of a streamed message."""
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": step.text}
    if step.tool:
        name = f"mcp__task__{step.tool}"
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    ending = {"stop_reason": "tool_use" if step.tool else "end_turn", "stop_sequence": None}
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


if __name__ == "__main__":
    compare(run)
