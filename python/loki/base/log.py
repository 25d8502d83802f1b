"""The loop's log lines: one form for people, the same as data for programs."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from loki.base.text_format import escape_control_characters

logger = logging.getLogger("loki")

_WORD = re.compile(r'([A-Za-z_]\w*)=("[^"\n]*"|\S+)|\S+')
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")

NAMES = frozenset({"task", "check", "pattern", "strategy", "reason", "failure", "error"})
"""Fields that stay text, also where their value looks like a number."""


def fields(message: str) -> dict[str, str | int | float]:
    """The ``name=value`` words of a log line; numbers are numbers.

    Args:
        message: the line. A word that ends with a colon ends the fields, too: what follows it was
            said by somebody else.

    Example:
        >>> fields('attempt=2 pattern=type-error check="pytest -q" duration_ms=12')
        {'attempt': 2, 'pattern': 'type-error', 'check': 'pytest -q', 'duration_ms': 12}
        >>> fields("strategy auto_fix failed: a=1")
        {}
    """
    found: dict[str, str | int | float] = {}
    for word in _WORD.finditer(message):
        name, value = word.groups()
        if name is not None:
            found[name] = _value(name, value)
        elif word[0].endswith(":"):
            break
    return found


def quoted(text: str) -> str:
    """A text of somebody else's as the value of a field.

    Example:
        >>> quoted('found "a"\\nin b')
        '"found \\'a\\' in b"'
    """
    return '"' + " ".join(text.replace('"', "'").splitlines()) + '"'


def _value(name: str, value: str) -> str | int | float:
    text = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    if name in NAMES or not _NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


def log_event(task: str, message: str, *, warning: bool = False) -> None:
    """Write ``[closed-loop] task=… message`` to the logger ``loki``.

    The record's attribute ``loki`` holds the line's fields; a handler that writes JSON takes them
    from there.

    Args:
        task: id of the task.
        message: the rest of the line.
        warning: worth a person's attention.
    """
    write(f"task={task} {message}", {"task": task, **fields(message)}, warning=warning)


def write(message: str, data: Mapping[str, Any], *, warning: bool = False) -> None:
    """Write ``[closed-loop] message`` in one line: what it quotes of others forges no second one.

    Args:
        message: the line, without its head.
        data: the same for programs.
        warning: worth a person's attention.
    """
    level = logging.WARNING if warning else logging.INFO
    line = escape_control_characters(" ".join(message.split()))
    logger.log(level, "[closed-loop] %s", line, extra={"loki": dict(data)})
