"""Whether what a client raised is an outage of the service it calls, whoever's client that is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from loki.action.loop.exception_analysis import LOST, exception_causes, http_status_of
from loki.agents.model_error import Service, client_error, status_error
from loki.base.error import LLMError

_CLIENTS = frozenset(
    {
        "APIStatusError",
        "APITimeoutError",
        "APIConnectionError",
        "TimeoutException",
        "TransportError",
    }
)


def outage(error: Exception, name: str, now: datetime) -> LLMError | None:
    """An outage, normalized; None: asking again does not help, or it is no error of a call at all.

    Clients' errors are known by their names, as `loki.agents.model_error.client_error` knows them; any
    other by the HTTP status that it carries. Frameworks wrap them, so causes are looked at, too; a group
    of errors is an outage where each of them is an error of a call, and one of them an outage.

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
    found = normalized(error, name, now)
    return found if found is not None and found.retryable else None


def normalized(error: Exception, name: str, now: datetime) -> LLMError | None:
    """What became of a call, whether asking again helps or not; None: it is no error of a call.

    Args:
        error, name, now: as `outage` takes them.
    """
    group = getattr(error, "exceptions", None)
    if isinstance(group, tuple) and group:
        each = [normalized(one, name, now) for one in group]
        told = [one for one in each if one is not None]
        is_calls = len(told) == len(each)
        return next((one for one in told if one.retryable), told[0]) if is_calls else None
    provider, _, model = name.removeprefix("api/").partition("/")
    service = Service(provider, model, "its key")
    return next(
        (one for cause in exception_causes(error) if (one := _of(cause, service, now))), None
    )


def _of(error: Exception, service: Service, now: datetime) -> LLMError | None:
    if isinstance(error, LLMError):
        return error
    if isinstance(error, LOST) or {base.__name__ for base in type(error).__mro__} & _CLIENTS:
        return client_error(service, error, now)
    status = http_status_of(error)
    if status is None:
        return None
    body = getattr(error, "body", None) or str(error)
    return status_error(service, status, body, _headers(error), now)


def _headers(error: Exception) -> Mapping[str, Any]:
    for holder in (getattr(error, "response", None), error):
        headers = getattr(holder, "headers", None)
        if isinstance(headers, Mapping):
            return headers
    return {}
