"""Whether what a client raised is an outage: the official clients, others by their status, wrapped ones."""

from __future__ import annotations

import socket
from datetime import datetime, timezone
from typing import Any

import pytest

from loki.agents.model_call import outage
from loki.base.error import LLMError

NOW = datetime(2026, 4, 4, tzinfo=timezone.utc)


def carrying(**fields: Any) -> Exception:
    error = Exception("it failed")
    for name, value in fields.items():
        setattr(error, name, value)
    return error


class Group(Exception):
    """As `ExceptionGroup`, which Python 3.10 does not have."""

    def __init__(self, *exceptions: Exception) -> None:
        super().__init__("some failed")
        self.exceptions = exceptions


def caused(inner: BaseException | None, depth: int = 1) -> Exception:
    error: Exception = RuntimeError("wrapped")
    error.__cause__ = inner if depth == 1 else caused(inner, depth - 1)
    return error


def real_errors() -> list[tuple[Exception, str]]:
    import httpx2 as httpx  # what openai's client is built on; httpx names its errors alike
    import openai

    request = httpx.Request("POST", "https://api.example.com/v1")
    limited = httpx.Response(429, headers={"retry-after": "7"}, request=request)
    return [
        (openai.RateLimitError("slow down", response=limited, body=None), "rate_limit"),
        (openai.APIConnectionError(request=request), "connection"),
        (openai.APITimeoutError(request=request), "timeout"),
        (httpx.ConnectError("refused"), "connection"),
        (httpx.ReadTimeout("slow"), "timeout"),
        (httpx.HTTPStatusError("503", request=request, response=httpx.Response(503)), "server"),
    ]


@pytest.mark.parametrize(("error", "kind"), real_errors(), ids=lambda one: type(one).__name__)
def test_official_clients(error: Exception, kind: str) -> None:
    found = outage(error, "api/openai/gpt-5", NOW)
    assert found is not None
    if kind == "server":
        assert found.kind in {"server", "overloaded"}
    else:
        assert found.kind == kind
    if kind == "rate_limit":
        assert found.retry_after == 7


@pytest.mark.parametrize(
    ("error", "is_outage"),
    [
        (ConnectionRefusedError("refused"), True),
        (TimeoutError("slow"), True),
        (socket.gaierror(-3, "Temporary failure in name resolution"), True),
        (carrying(status_code=529), True),
        (carrying(code=503), True),
        (carrying(http_status=429), True),
        (carrying(status_code=400), False),
        (carrying(status_code=401), False),
        (carrying(status_code=True), False),
        (carrying(code="429"), False),
        (carrying(code=5), False),
        (LLMError("later", "overloaded"), True),
        (LLMError("no key", "authentication"), False),
        (FileNotFoundError("no such file"), False),
        (ValueError("bad value"), False),
        (caused(carrying(status_code=503)), True),
        (caused(ConnectionResetError("x"), 3), True),
        (caused(KeyboardInterrupt()), False),
        (caused(ConnectionResetError("x"), 50), False),
        (Group(carrying(status_code=401), carrying(status_code=503)), True),
        (Group(carrying(status_code=401), carrying(status_code=404)), False),
        (Group(carrying(status_code=503), KeyError("a bug")), False),
        (Group(Group(TimeoutError("slow"))), True),
        (Group(), False),
    ],
)
def test_others(error: Exception, is_outage: bool) -> None:
    assert (outage(error, "api/x/y", NOW) is not None) == is_outage
