"""The real command-line agents, as `make agents` installs them, against a service on this machine."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from support.llm_service import Received, Reply, Said
from support.paths import ROOT
from support.toolchain import missing

PROGRAMS = ROOT / "build" / "agents" / "node_modules" / ".bin"
"""Where `make agents` puts them."""

TOOLS = {"claude": "Write", "codex": "exec_command", "gemini": "write_file"}
"""The tool by which each writes a file."""

MODELS = {"claude": "claude-opus-4-5", "codex": "gpt-5", "gemini": "gemini-2.5-pro"}

RESULTS = ('"tool_result"', '"function_call_output"', '"functionResponse"')
"""What a request has where a tool has been called."""


def need_agent(name: str) -> Path:
    """The folder of the program; the test is skipped where it is not installed, but not in CI."""
    if not (PROGRAMS / name).exists():
        missing(f"{name} is not installed: run `make agents`")
    return PROGRAMS


def command(name: str, url: str) -> tuple[str, ...]:
    """What to say of a program besides its preset, so that it asks the service at an address."""
    words = (name, "--model", MODELS[name])
    if name != "codex":
        return words
    provider = {
        "name": "here",
        "base_url": f"{url}/v1",
        "env_key": "CODEX_API_KEY",
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }
    settings = [
        f"model_providers.here.{key}={json.dumps(value)}" for key, value in provider.items()
    ]
    pairs = [("-c", one) for one in ("model_provider=here", *settings)]
    return (name, "exec", "--model", MODELS[name], *(word for pair in pairs for word in pair))


def environment(name: str, url: str, home: Path) -> Mapping[str, str]:
    """Variables that lead a program to the service, in a home of its own."""
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"maxAttempts": 1},
    }
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    temporary = home.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        # Codex puts the helpers of its sandbox into its home, unless that is a temporary folder.
        "TMPDIR": str(temporary),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-test",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CODEX_API_KEY": "sk-test",
        "GEMINI_API_KEY": "test",
        "GOOGLE_GEMINI_BASE_URL": url,
    }


def writes(
    name: str, path: str = "note.txt", content: str = "hello\n"
) -> Callable[[Received], Reply]:
    """A script: the tool that writes a new file, then a last word, also for any other question."""
    tool, arguments = TOOLS[name], {"file_path": path, "content": content}
    if name == "codex":
        arguments = {"cmd": f"printf %s {shlex.quote(content)} > {path}"}

    def reply(request: Received) -> Reply:
        has_tool = f'"{tool}"' in request.text
        if not has_tool or any(result in request.text for result in RESULTS):
            return Said("I wrote the note.", input=100, output=40, cached=30)
        return Said(arguments=arguments, tool=tool, input=100, output=40, cached=30)

    return reply
