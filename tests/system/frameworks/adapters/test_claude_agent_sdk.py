"""The bundled Claude Code, through the Claude Agent SDK and loki, against a service on this machine."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import claude_agent_sdk as sdk
import pytest

import loki
from loki.adapters.claude_agent_sdk import LokiClient, query
from loki.testing import ManualClock
from support import agents
from support.framework_agents import ZERO, monitor
from support.llm_service import LLMService, Received, Reply, Said, failed
from support.toolchain import missing

PROGRAM = Path(sdk.__file__).parent / "_bundled" / "claude"
DOWN = failed(529, "overloaded_error", "Overloaded")


@pytest.fixture(scope="module")
def program() -> Path:
    """The program that the SDK brings along; skipped where there is none for this machine."""
    try:
        subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        missing(f"the Claude Code that claude-agent-sdk brings does not run: {error}")
    return PROGRAM


class Stage:
    """A project with a check that fails, and options that lead Claude Code to a service."""

    def __init__(self, root: Path) -> None:
        self.root, self.project = root, root / "project"
        self.project.mkdir()
        self.program("pytest", f"cat <<'END'\n{ZERO}\nEND\nexit 1\n")

    def program(self, name: str, script: str) -> None:
        file = self.project / name
        file.write_text(f"#!/bin/sh\n{script}")
        file.chmod(0o755)

    def options(self, service: LLMService, retries: int = 0, **more: Any) -> Any:
        home = self.root / f"home{len(list(self.root.iterdir()))}"
        variables = dict(agents.environment("claude", service.url, home))
        return sdk.ClaudeAgentOptions(
            cwd=str(self.project),
            env={**variables, "CLAUDE_CODE_MAX_RETRIES": str(retries)},
            model=agents.MODELS["claude"],
            permission_mode="acceptEdits",
            allowed_tools=["Bash", "Write"],
            setting_sources=[],
            **more,
        )

    def edit(self, number: int) -> Said:
        arguments = {"file_path": f"{self.project}/stats.py", "content": "x = 0\n"}
        return Said(arguments=arguments, tool="Write", number=number)

    def check(self, number: int) -> Said:
        return Said(arguments={"command": "./pytest -q"}, tool="Bash", number=number)

    def tries(self) -> Iterator[Reply]:
        number = 0
        while True:
            number += 2
            yield self.edit(number - 1)
            yield self.check(number)


@pytest.fixture
def stage(tmp_path: Path, program: Path) -> Stage:
    return Stage(tmp_path)


def say(replies: Iterator[Reply]) -> Any:
    """A script for the agent; whatever else Claude Code asks gets a title."""

    def reply(request: Received) -> Reply:
        return next(replies, Said("done", number=99)) if '"Bash"' in request.text else Said("title")

    return reply


async def _all(messages: Any, heard: list[Any]) -> None:
    async for message in messages:  # a message that came stays heard, whatever comes next
        heard += [message]


def test_a_repeat_is_named_and_then_stopped_as_an_error_of_the_caller(stage: Stage) -> None:
    heard: list[Any] = []
    with LLMService(say(stage.tries())) as service:
        options = stage.options(service, max_turns=30)
        with pytest.raises(loki.AgentStuck) as stuck:
            asyncio.run(_all(query(prompt="Fix it", options=options, scope="project"), heard))
        requests = [one for one in service.received if '"Bash"' in one.text]
    assert (stuck.value.count, len(requests)) == (6, 12)
    assert isinstance(heard[-1], sdk.ResultMessage)
    assert "came back" not in requests[5].text
    assert requests[6].text.count("This failure came back") == 1
    assert requests[8].text.count("The same failure for the 4th time") == 1
    # Another session is told before it begins, where it is told what the project knows.
    for scope, is_told in (("project", True), ("conversation", False)):
        with LLMService(say(iter([Said("Nothing to do.")]))) as service:
            options = stage.options(service)
            asyncio.run(_all(query(prompt="Fix it", options=options, scope=scope), heard))
            assert ("ZeroDivisionError" in service.received[0].text) is is_told


def test_a_client_goes_on_after_it_was_stopped(stage: Stage) -> None:
    heard: list[Any] = []

    async def go(service: LLMService) -> None:
        async with LokiClient(
            stage.options(service, max_turns=30), monitor=monitor(stage.project)
        ) as client:
            await client.query("Fix it")
            with pytest.raises(loki.AgentStuck):
                await _all(client.receive_response(), heard)
            await client.query("Say what you tried")
            await _all(client.receive_response(), heard)

    turns = stage.tries()
    replies = [next(turns) for _ in range(12)]
    with LLMService(say(iter([*replies, Said("I tried six.", number=13)]))) as service:
        asyncio.run(go(service))
    assert [m.result for m in heard if isinstance(m, sdk.ResultMessage)][-1] == "I tried six."


def test_a_claim_without_a_check_is_refused_once(stage: Stage) -> None:
    heard: list[Any] = []
    claim, truth = Said("All tests pass now.", number=2), Said("Not verified.", number=3)
    with LLMService(say(iter([stage.edit(1), claim, truth]))) as service:
        asyncio.run(_all(query(prompt="Fix it", options=stage.options(service)), heard))
        assert "but no tests were run: run the project's tests" in service.received[-1].text
    assert heard[-1].result == "Not verified."


def test_a_healthy_session_is_unchanged(stage: Stage) -> None:
    stage.program("pytest", "echo 2 passed\n")
    seen = []
    for ask in (query, sdk.query):
        heard: list[Any] = []
        script = [stage.edit(1), stage.check(2), Said("All tests pass.", number=3)]
        with LLMService(say(iter(script))) as service:
            asyncio.run(_all(ask(prompt="Fix it", options=stage.options(service)), heard))
            requests = [len(one.body["messages"]) for one in service.received]
        contents = [getattr(message, "content", None) for message in heard]
        seen.append((requests, contents, heard[-1].result, heard[-1].num_turns))
        (stage.project / "stats.py").unlink()
    assert str(seen[0]) == str(seen[1])


def test_claude_code_asks_again_and_loki_counts_and_refuses_what_is_new(stage: Stage) -> None:
    """Three calls over the wire: one, and the two retries that Claude Code makes by itself."""
    heard: list[Any] = []
    with LLMService(lambda _: DOWN) as service:
        watched = monitor(stage.project)
        options = stage.options(service, retries=2)
        with pytest.raises(sdk.ResultError):
            asyncio.run(_all(query(prompt="Fix it", options=options, monitor=watched), heard))
        assert len(service.received) == 3
        refused = query(prompt="Fix it", options=options, monitor=watched, wait=0)
        with pytest.raises(loki.BreakerOpen, match="api/claude"):
            asyncio.run(_all(refused, heard))
        assert len(service.received) == 3


def test_a_query_waits_until_the_service_may_be_asked(stage: Stage) -> None:
    clock, heard = ManualClock(), list[Any]()
    watched = monitor(stage.project, clock)
    breaker = watched.workspace.breakers()["api/claude"]
    for _ in range(3):
        breaker.guard().failure("529")
    began = clock.monotonic()
    with LLMService(say(iter([Said("Nothing to do.")]))) as service:
        options = stage.options(service)
        asyncio.run(_all(query(prompt="Fix it", options=options, monitor=watched), heard))
    assert heard[-1].result == "Nothing to do."
    assert clock.monotonic() - began >= 299


def test_a_wrong_key_is_no_outage(stage: Stage) -> None:
    refused = failed(401, "authentication_error", "invalid x-api-key")
    watched = monitor(stage.project)
    with LLMService(lambda _: refused) as service, pytest.raises(sdk.ResultError):
        asyncio.run(_all(query(prompt="a", options=stage.options(service), monitor=watched), []))
    assert watched.workspace.breakers()["api/claude"].snapshot().counts.failures == 0


def test_hooks_of_the_options_stay(stage: Stage) -> None:
    seen: list[str] = []

    async def mine(given: Any, _id: Any, _context: Any) -> Any:
        seen.append(given["tool_name"])
        return {}

    hooks: Any = {"PreToolUse": [sdk.HookMatcher(hooks=[mine])]}
    with LLMService(say(iter([stage.edit(1), Said("Done.", number=2)]))) as service:
        options = stage.options(service, hooks=hooks)
        asyncio.run(_all(query(prompt="Fix it", options=options), []))
    assert seen == ["Write"]
    assert len(options.hooks["PreToolUse"]) == 1  # the caller's own options are not changed
