"""What an exception says that is no `loki.AgentError`: a service's outage, or a bug, and where that is.

Nothing is an outage without evidence for it: the kind of the error, or of what caused it, the HTTP status
that it carries, or what it says. All else is a mistake in somebody's code, which no wait mends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import os
import re
import socket
import sysconfig
import traceback
from collections.abc import Iterator
from functools import cache

from loki.recognition.failure import Failure

DEEPEST = 8
"""Causes of an exception that are looked at; chosen, not measured."""

LOST = (
    ConnectionError,
    TimeoutError,
    socket.gaierror,
    socket.herror,
    asyncio.TimeoutError,  # others than the built-in one before Python 3.11
    concurrent.futures.TimeoutError,
)
"""What Python raises where nobody answers."""

_NETWORK = frozenset(
    {errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT}
)
_BUGS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    StopAsyncIteration,
    StopIteration,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What Python itself raises for a mistake in code, whatever its text may sound like."""

_NAMES = re.compile(
    r"(?i)time_?out|connect(?:ion)?(?:lost|closed|reset|refused|aborted)?(?:error)?$|disconnect"
    r"|rate_?limit|too_?many_?requests|throttl|overloaded|unavailable|transport|server_?error$"
)
"""Classes of clients' errors that are outages, by their names, whoever's client that is."""

_STATUSES = ("status_code", "http_status", "status", "code")
_FAILED = range(400, 600)
_LATER = frozenset({408, 409, 425, 429})  # and 500 and above


def is_outage(error: BaseException) -> bool:
    """Whether a service that somebody asked has failed, so that asking again may help.

    Args:
        error: what was raised; what caused it is looked at, too.

    Example:
        >>> is_outage(ConnectionResetError("reset")), is_outage(KeyError("timeout"))
        (True, False)
        >>> is_outage(RuntimeError("503 Service Unavailable")), is_outage(RuntimeError("no such item"))
        (True, False)
    """
    found = (_seen(one) for one in exception_causes(error))
    return next((one for one in found if one is not None), False)


def names_outage(error_type: str) -> bool:
    """Whether a class of errors says by its name that a service has failed, whoever's client that is.

    Example:
        >>> names_outage("openai.InternalServerError"), names_outage("KeyError")
        (True, False)
    """
    return _NAMES.search(error_type) is not None


def raise_site(error: BaseException) -> str:
    """Where an exception was raised: the innermost line that is neither a library's nor loki's own.

    Returns:
        Such as ``/home/me/agent.py:12, in ask``; "" where nobody knows.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    own = [one for one in frames if not one.filename.startswith(_libraries())]
    found = (own or list(frames))[-1]
    return f"{found.filename}:{found.lineno}, in {found.name}"


def _seen(error: BaseException) -> bool | None:
    """Whether one error is an outage; None: it tells nothing, and what caused it may."""
    if isinstance(error, LOST) or (isinstance(error, OSError) and _is_network(error)):
        return True
    status = http_status_of(error)
    if status is not None:
        return status in _LATER or status >= 500  # noqa: PLR2004 - an HTTP status
    if isinstance(error, (*_BUGS, OSError)):
        return None
    if any(names_outage(base.__name__) for base in type(error).__mro__):
        return True
    match = Failure.of(f"{type(error).__name__}: {error}").match
    return True if match is not None and match.is_infrastructure else None


def _is_network(error: OSError) -> bool:
    """Whether an error of the system is one of the net: a file's has a name or a number of its own."""
    return error.errno in _NETWORK or (error.errno is None and error.filename is None)


def exception_causes(error: BaseException) -> Iterator[Exception]:
    """An exception, and what caused it, as far as that is looked at."""
    seen: BaseException | None = error
    for _ in range(DEEPEST):
        if not isinstance(seen, Exception):
            return
        yield seen
        seen = seen.__cause__


def http_status_of(error: BaseException) -> int | None:
    """The HTTP status that an error carries, or None."""
    for holder in (error, getattr(error, "response", None)):
        for name in _STATUSES:
            value = getattr(holder, name, None)
            if isinstance(value, int) and value in _FAILED:
                return value
    return None


@cache
def _libraries() -> tuple[str, ...]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return (*(os.path.join(path, "") for path in paths if path), os.path.join(package, ""), "<")
