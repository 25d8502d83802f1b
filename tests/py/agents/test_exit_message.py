"""What the last words of a program that failed mean for asking it again."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from loki.agents.agent_report import is_outage, wait_asked
from loki.agents.command_agent import CommandAgent

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)

OVERLOADED = (
    'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
)
LIMITED = (
    'API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'
)
WRONG_KEY = (
    'API Error: 401 {"type":"error","error":{"type":"authentication_error",'
    '"message":"invalid x-api-key"}}'
)
NO_CREDIT = (
    'API Error: 400 {"type":"error","error":{"type":"invalid_request_error",'
    '"message":"Your credit balance is too low to access the Anthropic API."}}'
)
BAD_REQUEST = (
    'API Error: 400 {"type":"error","error":{"type":"invalid_request_error",'
    '"message":"max_tokens: must be greater than 0"}}'
)
TRACEBACK = (
    'Traceback (most recent call last):\n  File "/x/agent.py", line 3, in <module>\n    ask()\n'
    '  File "/x/agent.py", line 2, in ask\n    return answers[1]\n'
)
JS = "TypeError: Cannot read properties of undefined (reading 'b')\n"


@pytest.mark.parametrize(
    ("output", "exit_code", "expected"),
    [
        (OVERLOADED, 1, True),
        (LIMITED, 1, True),
        ("Error: connect ECONNREFUSED 127.0.0.1:443", 1, True),
        ("", 1, True),
        ("Segmentation fault", 139, True),
        ("I read usage: it says so in the manual.", 1, True),
        (WRONG_KEY, 1, False),
        ("openai.AuthenticationError: Error code: 401 - Incorrect API key provided", 1, False),
        ("Invalid API key · Please run /login", 1, False),
        (NO_CREDIT, 1, False),
        (BAD_REQUEST, 1, False),
        ("error: unknown option '--fast'", 1, False),
        ("usage: agent [-h]\nagent: error: unrecognized arguments: --fast", 2, False),
        ("error: unexpected argument '--fast' found\n\nUsage: codex [OPTIONS]", 2, False),
        ("sh: 1: clod: not found", 127, False),
        ("sh: 0: cannot open ../agent.sh: No such file", 2, False),
        ("python: can't open file '/x/agent.py': [Errno 2] No such file or directory", 2, False),
        (f"{TRACEBACK}IndexError: list index out of range", 1, False),
        (f"{TRACEBACK}RuntimeError: no such item", 1, False),
        (f"{TRACEBACK}ModuleNotFoundError: No module named 'clients'", 1, False),
        (
            "  File \"/x/agent.py\", line 3\n    f(\n     ^\nSyntaxError: '(' was never closed",
            1,
            False,
        ),
        (
            f"/x/agent.js:3\n  a.b()\n    ^\n\n{JS}    at Object.<anonymous> (/x/agent.js:3:7)",
            1,
            False,
        ),
        (f"{TRACEBACK}RuntimeError: 503 Service Unavailable", 1, True),
        (f"{TRACEBACK}ConnectionRefusedError: [Errno 111] Connection refused", 1, True),
        (f"{TRACEBACK}openai.InternalServerError: Error code: 500", 1, True),
        (f"{TRACEBACK}httpx.ReadTimeout: The read operation timed out", 1, True),
        ("unexpected EOF", 1, True),
        ("something went wrong", 1, True),
    ],
)
def test_what_is_an_outage(output: str, exit_code: int, expected: bool) -> None:
    assert is_outage(output, exit_code, "agent --print") is expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("HTTP/1.1 429\nRetry-After: 7\n", 7),
        ('{"headers": {"retry-after": "7"}}', 7),
        ("retry-after: 7\nretry-after-ms: 1500", 1.5),
        ("retry-after: 7\nasking again\nretry-after: 60", 60),
        ("Retry-After: Sat, 04 Apr 2026 12:01:00 GMT", 60),
        ("Retry-After: 999999999999", 86_400),
        ("Rate limit reached for gpt. Please try again in 6m0s.", 360),
        ('"retryDelay": "34s"', 34),
        ("try again in a while", None),
        ("try again in 3x5h", None),
        ("Retry-After: soon", None),
        ("", None),
    ],
)
def test_what_its_service_asks_for(output: str, expected: float | None) -> None:
    assert wait_asked(output, NOON) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("claude -p", "api/claude"),
        ("/usr/local/bin/codex exec -", "api/openai"),
        ("FOO=1 gemini", "api/gemini"),
        ("npx -y @anthropic-ai/claude-code -p", "api/claude"),
        ("env FOO=1 claude", "api/claude"),
        ("./tools/agent.sh", "agent/agent.sh"),
        ("python3 -u tools/agent.py --fast", "agent/agent.py"),
        ("python3 -m aider --yes", "agent/aider"),
        ("sh -c 'cat; claude'", "agent/sh"),
        ("aider --yes", "agent/aider"),
    ],
)
def test_its_circuit_breaker(command: str, expected: str) -> None:
    assert CommandAgent(command).breaker == expected


def test_its_circuit_breaker_can_be_named() -> None:
    assert CommandAgent("./agent.sh", breaker="api/claude").breaker == "api/claude"
