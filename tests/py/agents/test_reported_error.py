"""What a program reports is an outage, or something that only a person can mend."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from loki.agents.agent_report import Report, error_of
from loki.agents.preset import preset
from loki.base.error import AgentError, LLMError

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def error(
    name: str, said: str, status: int | None = None, kind: str = "", code: int = 1, output: str = ""
) -> AgentError:
    report = Report(error=said, status=status, kind=kind)
    known = preset(name)
    return error_of(name, known, report, output, code, known.complete(), NOW)


@pytest.mark.parametrize(
    ("name", "said", "status", "kind", "retryable"),
    [
        # As the programs print them, or printed them.
        ("claude", "API Error: 529 Overloaded. This is a server-side issue, usually temporary", 529,
         "overloaded", True),
        ("claude", "API Error: Request rejected (429) · This request would exceed your organization "
         "rate limit", 429, "rate_limit", True),
        ("claude", "API Error: 500 Internal server error", 500, "server", True),
        ("claude", "Invalid API key · Fix external API key", 401, "authentication", False),
        ("claude", "Not logged in · Please run /login", None, "authentication", False),
        ("claude", "Credit balance is too low", 400, "quota", False),
        ("claude", "Claude AI usage limit reached|1750000000", 429, "quota", False),
        ("claude", "5-hour limit reached ∙ resets 3pm", None, "quota", False),
        ("claude", "You've hit your session limit · resets 3pm", 429, "quota", False),
        ("claude", "You have reached your specified API usage limits.", 400, "quota", False),
        ("claude", "API Error: 400 messages: bad", 400, "bad_request", False),
        ("claude", "API Error: Unable to connect to API (ConnectionRefused)", None, "connection", True),
        ("claude", "Prompt is too long", 400, "too_long", False),
        ("codex", "unexpected status 503 Service Unavailable: The server is overloaded, url: http://"
         "127.0.0.1:9294/v1/responses", None, "overloaded", True),
        ("codex", "exceeded retry limit, last status: 429 Too Many Requests", None, "rate_limit", True),
        ("codex", "unexpected status 500 Internal Server Error: oops, url: x", None, "server", True),
        ("codex", "Quota exceeded. Check your plan and billing details.", None, "quota", False),
        ("codex", "You've hit your usage limit. Try again in 3 days.", None, "quota", False),
        ("codex", "unexpected status 401 Unauthorized: Incorrect API key provided", None,
         "authentication", False),
        ("codex", "Missing environment variable: `CODEX_API_KEY`.", None, "authentication", False),
        ("codex", '{"error": {"message": "bad", "type": "invalid_request_error"}}', None,
         "bad_request", False),
        ("codex", "Reconnecting... waiting for network (Connection failed: error sending request)",
         None, "connection", True),
        ("codex", "stream disconnected before completion: Transport error", None, "connection", True),
        ("gemini", "The model is overloaded. Please try again later.", 503, "overloaded", True),
        ("gemini", "You exceeded your current quota, please check your plan and billing details. "
         "Please retry in 37.2s.\nSuggested retry after 37s.", 429, "rate_limit", True),
        ("gemini", "You have exhausted your daily quota on this model.", 429, "quota", False),
        ("gemini", "You have exhausted your capacity on this model. Your quota will reset after 5h.",
         429, "quota", False),
        ("gemini", '[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid '
         'API key.","status":"INVALID_ARGUMENT"}}]', None, "authentication", False),
        ("gemini", "Please set an Auth method in your settings.json", None, "authentication", False),
        ("gemini", "[API Error: fetch failed]", None, "connection", True),
        ("aider", "litellm.AuthenticationError: AnthropicException - invalid x-api-key", None,
         "authentication", False),
        ("aider", "litellm.RateLimitError: AnthropicException - rate_limit_error", None, "rate_limit",
         True),
        ("aider", "litellm.RateLimitError: OpenAIException - You exceeded your current quota", None,
         "quota", False),
        ("aider", "litellm.InternalServerError: AnthropicException - Overloaded", None, "overloaded",
         True),
    ],
)  # fmt: skip
def test_what_they_say(
    name: str, said: str, status: int | None, kind: str, retryable: bool
) -> None:
    found = error(name, said, status)
    assert isinstance(found, LLMError)
    assert (found.kind, found.retryable) == (kind, retryable)
    assert str(found).startswith(f"{name}: ")


def test_words_that_nobody_knows() -> None:
    found = error("claude", "Something odd happened", kind="error_during_execution")
    assert not isinstance(found, LLMError)
    assert found.retryable
    assert not error("codex", "error: unexpected argument '--fast' found").retryable


def test_a_limit_that_its_user_set() -> None:
    found = error("claude", "Reached maximum number of turns (3)", kind="error_max_turns")
    assert not found.retryable
    assert "a limit that its own options set (error_max_turns)" in str(found)


def test_an_exit_code_that_says_why() -> None:
    for code, kind in (
        (41, "authentication"),
        (429 & 255, "rate_limit"),
        (503 & 255, "overloaded"),
    ):
        found = error("gemini", "Something about it", code=code)
        assert isinstance(found, LLMError)
        assert (found.kind, found.provider) == (kind, "gcp.gemini")


def test_the_wait_that_its_service_asks_for() -> None:
    assert error("gemini", "rate limit. Please retry in 37.2s.", 429).retry_after == 37.2
    assert error("gemini", "rate limit\nSuggested retry after 37s.", 429).retry_after == 37
    assert error("codex", "Rate limit reached. Please try again in 20s.", 429).retry_after == 20
    assert error("claude", "429", 429, output="retry-after: 12").retry_after == 12
    assert error("gemini", "exhausted your daily quota. Retry in 5h.", 429).retry_after is None


def test_a_key_that_it_repeats_is_masked() -> None:
    key = "sk-proj-" + "a1B2" * 10
    found = error("codex", f"unexpected status 401 Unauthorized: Incorrect API key provided: {key}")
    assert key not in str(found)
