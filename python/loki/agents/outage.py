"""Whether what a client raised is an outage of the service it calls, whoever's client that is.

Under test: ``tests/py/agents/test_outage.py``.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from loki.agents.model_error import Service, client_error, status_error
from loki.base.error import LLMError

DEEPEST = 8
"""Causes of an exception that are looked at; chosen, not measured."""

_LOST = (ConnectionError, TimeoutError, socket.gaierror)
_CLIENTS = frozenset(
    {
        "APIStatusError",
        "APITimeoutError",
        "APIConnectionError",
        "TimeoutException",
        "TransportError",
    }
)
_FAILED = range(400, 600)
_STATUSES = ("status_code", "http_status", "status", "code")


def outage(error: Exception, name: str, now: datetime) -> LLMError | None:
    """An outage, normalized; None: asking again does not help, or it is no error of a call at all.

    Clients' errors are known by their names, as `loki.agents.model_error.client_error` knows them; any
    other by the HTTP status that it carries. Frameworks wrap them, so causes are looked at, too.

    Args:
        error: what was raised.
        name: whom was asked, for messages.
        now: the time that a Retry-After date is seen from, with a zone.

    Example:
        >>> from datetime import timezone
        >>> now = datetime(2026, 4, 4, tzinfo=timezone.utc)
        >>> outage(ConnectionResetError("reset"), "api/x/y", now).kind, outage(KeyError("x"), "x", now)
        ('connection', None)
    """
    provider, _, model = name.removeprefix("api/").partition("/")
    service = Service(provider, model, "")
    for cause in _causes(error):
        found = _of(cause, service, now)
        if found is not None:
            return found if found.retryable else None
    return None


def _causes(error: BaseException) -> Iterator[Exception]:
    seen: BaseException | None = error
    for _ in range(DEEPEST):
        if not isinstance(seen, Exception):
            return
        yield seen
        seen = seen.__cause__


def _of(error: Exception, service: Service, now: datetime) -> LLMError | None:
    if isinstance(error, LLMError):
        return error
    if isinstance(error, _LOST) or {base.__name__ for base in type(error).__mro__} & _CLIENTS:
        return client_error(service, error, now)
    status = _status(error)
    if status is None:
        return None
    body = getattr(error, "body", None) or str(error)
    return status_error(service, status, body, _headers(error), now)


def _status(error: Exception) -> int | None:
    """The HTTP status that an error carries, or None."""
    for holder in (error, getattr(error, "response", None)):
        for name in _STATUSES:
            value = getattr(holder, name, None)
            if isinstance(value, int) and value in _FAILED:
                return value
    return None


def _headers(error: Exception) -> Mapping[str, Any]:
    for holder in (getattr(error, "response", None), error):
        headers = getattr(holder, "headers", None)
        if isinstance(headers, Mapping):
            return headers
    return {}
