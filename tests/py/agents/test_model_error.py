"""What services say when they do not answer, as kinds of error."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, get_args

import pytest

from loki.agents.model_call import Service, _knowledge, client_error, kind_of, status_error
from loki.base.error import OUTAGES, ErrorKind

NOW = datetime(2026, 4, 4, tzinfo=timezone.utc)
SERVICE = Service("openai", "gpt-test", "OPENAI_API_KEY")


def openai(type_: str | None, message: str = "", code: str | None = None) -> dict[str, Any]:
    return {"error": {"type": type_, "message": message, "code": code, "param": None}}


def anthropic(type_: str, message: str = "", code: str | None = None) -> dict[str, Any]:
    details = {"error_code": code} if code else None
    return {"type": "error", "error": {"type": type_, "message": message, "details": details}}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "bad_request"), (401, "authentication"), (402, "quota"), (403, "permission"),
        (404, "not_found"), (405, "bad_request"), (408, "server"), (409, "server"),
        (413, "too_long"), (422, "bad_request"), (429, "rate_limit"), (500, "server"),
        (501, "server"), (502, "server"), (503, "overloaded"), (504, "server"), (520, "server"),
        (529, "overloaded"), (None, "server"),
    ],
)  # fmt: skip
def test_by_status_where_nothing_more_is_said(status: int | None, kind: str) -> None:
    bodies: list[Any] = [None, "", "<html>", {}, {"error": None}, {"error": {}}, [], {"detail": ""}]
    for body in bodies:
        assert kind_of(status, body) == kind
    # Types that stand for many things decide nothing against a status.
    if status is not None:
        assert kind_of(status, anthropic("invalid_request_error")) == kind


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, anthropic("rate_limit_error"), "rate_limit"),
        (429, anthropic("rate_limit_error", code="ramp_limit_exceeded"), "rate_limit"),
        (429, anthropic("rate_limit_error", code="contract_spend_limit_reached"), "quota"),
        (400, anthropic("invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-05-01 at 00:00 UTC."), "quota"),
        (400, anthropic("invalid_request_error", "Your credit balance is too low to access the API."), "quota"),
        (402, anthropic("billing_error"), "quota"),
        (400, anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit: 198000 + 8000 > 200000"), "too_long"),
        (None, anthropic("overloaded_error", "Overloaded"), "overloaded"),
        (None, anthropic("api_error", "Internal server error"), "server"),
        (None, anthropic("rate_limit_error"), "rate_limit"),
        (404, anthropic("not_found_error", "model: claude-nix"), "not_found"),
        (429, openai("insufficient_quota", "You exceeded your current quota"), "quota"),
        (429, openai("insufficient_quota", code="project_spend_limit_exceeded"), "quota"),
        (429, openai("requests", "Rate limit reached", "rate_limit_exceeded"), "rate_limit"),
        (429, openai(None, "Request too large for gpt-x on tokens per min (TPM): Limit 30000"), "too_long"),
        (400, openai("invalid_request_error", "", "context_length_exceeded"), "too_long"),
        (400, openai("invalid_request_error", "This model's maximum context length is 8192 tokens."), "too_long"),
        (401, openai("invalid_request_error", "Incorrect API key", "invalid_api_key"), "authentication"),
        (None, {"code": "server_error", "message": "x"}, "server"),
        (None, {"code": "rate_limit_exceeded", "message": "x"}, "rate_limit"),
        (500, {"error": "the model has crashed"}, "server"),
        (402, {"error": {"code": 402, "message": "Insufficient credits"}}, "quota"),
    ],
)  # fmt: skip
def test_by_what_is_said(status: int | None, body: Any, kind: str) -> None:
    assert kind_of(status, body) == kind


def test_every_rule_has_a_kind_that_there_is_and_a_source() -> None:
    known = _knowledge()
    assert {rule.kind for rule in known.rules} <= set(get_args(ErrorKind))
    assert all(rule.source and (rule.names or rule.says) for rule in known.rules)
    assert all(words == words.casefold() for rule in known.rules for words in rule.says)


def test_a_wait_is_told_only_where_waiting_helps() -> None:
    headers = {"Retry-After": "30", "x-request-id": "req_7"}
    later = status_error(SERVICE, 429, openai("requests"), headers, NOW)
    assert (later.retry_after, later.request_id) == (30.0, "req_7")
    never = status_error(SERVICE, 429, openai("insufficient_quota"), headers, NOW)
    assert (never.retry_after, never.retryable) == (None, False)


def test_messages_say_what_to_do_and_stay_short() -> None:
    error = status_error(SERVICE, 401, openai(None, "no\n" * 10_000), {}, NOW)
    assert "OPENAI_API_KEY" in str(error)
    assert len(str(error)) < 700
    assert "\n" not in str(error)
    assert (error.provider, error.model) == ("openai", "gpt-test")
    spent = status_error(SERVICE, 429, openai("insufficient_quota", "It is spent."), {}, NOW)
    assert "It is spent: a person has to" in str(spent)


def test_text_that_cannot_be_sent_is_no_outage() -> None:
    with pytest.raises(UnicodeEncodeError) as caught:
        "\ud800".encode()
    error = client_error(SERVICE, caught.value, NOW)
    assert error is not None
    assert (error.kind, error.retryable) == ("bad_request", False)


def test_what_is_no_error_of_a_call_is_left_alone() -> None:
    assert client_error(SERVICE, KeyError("x"), NOW) is None
    cut = client_error(SERVICE, ConnectionResetError("reset"), NOW)
    assert cut is not None
    assert cut.kind in OUTAGES
