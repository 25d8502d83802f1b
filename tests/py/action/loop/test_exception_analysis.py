"""An exception that is no AgentError: an outage only where something says so, else a bug with its place."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from loki.action.loop.agent_call import as_failure_of, is_outage
from loki.action.loop.loop_events import AgentFailed


class ServiceDownError(Exception):
    """A class that tells nothing."""


class ApiRateLimitError(Exception):
    """One whose name does."""


def carrying(**fields: Any) -> Exception:
    error = Exception("it failed")
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def caused(error: Exception, by: Exception) -> Exception:
    error.__cause__ = by
    return error


def while_handling(error: Exception, other: Exception) -> Exception:
    error.__context__ = other
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("reset"),
        TimeoutError("no answer in 60 s"),
        socket.gaierror(-3, "Temporary failure in name resolution"),
        OSError("connection lost"),
        OSError(errno.EHOSTUNREACH, "No route to host"),
        ApiRateLimitError("later"),
        RuntimeError("503 Service Unavailable"),
        Exception("Error code: 529 - overloaded_error"),
        carrying(status_code=503),
        carrying(code=429),
        caused(RuntimeError("could not ask"), ConnectionRefusedError("refused")),
        caused(KeyError("answer"), TimeoutError("slow")),
    ],
    ids=repr,
)
def test_an_outage(error: Exception) -> None:
    assert is_outage(error)


@pytest.mark.parametrize(
    "error",
    [
        IndexError("list index out of range"),
        KeyError("timeout"),
        KeyError("rate limit exceeded"),
        RuntimeError("something is wrong"),
        RecursionError("maximum recursion depth exceeded"),
        ValueError("503 Service Unavailable"),
        ZeroDivisionError("division by zero"),
        StopIteration(),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "prompt.txt"),
        PermissionError(errno.EACCES, "Permission denied", "prompt.txt"),
        OSError(errno.ENOSPC, "No space left on device"),
        MemoryError(),
        ServiceDownError("no"),
        carrying(status_code=400),
        carrying(status_code=True),
        while_handling(IndexError("x"), ConnectionResetError("reset")),
    ],
    ids=repr,
)
def test_a_bug(error: Exception) -> None:
    assert not is_outage(error)


def pick(items: list[str]) -> str:
    return items[3]


def test_a_bug_is_told_with_its_place() -> None:
    try:
        pick([])
    except IndexError as error:
        event = as_failure_of(error)
    assert isinstance(event, AgentFailed)
    assert not event.retryable
    line = pick.__code__.co_firstlineno + 1
    assert event.failure.message == (
        f"the agent raised IndexError: list index out of range ({__file__}:{line}, in pick)"
    )


def test_a_bug_that_a_library_meets_is_told_with_the_line_that_called_it() -> None:
    import json

    def ask() -> object:
        return json.loads("{")

    try:
        ask()
    except ValueError as error:
        event = as_failure_of(error)
    assert isinstance(event, AgentFailed)
    assert f"{__file__}:{ask.__code__.co_firstlineno + 1}, in ask)" in event.failure.message
