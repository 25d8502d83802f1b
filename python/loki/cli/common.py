"""What every command does alike: errors as sentences, log lines, JSON."""

from __future__ import annotations

import functools
import json
import logging
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn, ParamSpec, TypeVar

import typer

from loki.base.error import ConfigError, LokiError, UsageError

P = ParamSpec("P")
R = TypeVar("R")

INTERRUPTED = 130

_COLORS = {"success": "green", "failed": "red", "escalated": "yellow", "passed": "green"}


def speaks_plainly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn loki's errors into one sentence on stderr and the right exit code."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (UsageError, ConfigError) as error:
            fail(str(error), 2)
        except LokiError as error:
            fail(str(error), 1)
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)
        except BrokenPipeError:
            # Whoever read our output has gone (`loki show | head`): nothing is left to say.
            sys.stdout = None
            raise typer.Exit(0) from None

    return wrapped


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong, and end."""
    typer.secho(f"loki: {message}", err=True, fg="red")
    raise typer.Exit(code)


def show_json(data: Any, *, error: bool = False) -> None:
    """JSON for programs, on stdout; on stderr where stdout is a command's own."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=True), err=error)


class _Console(logging.Handler):
    """Log lines on stderr, colored where it is a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if record.levelno >= logging.WARNING:
            typer.secho(f"loki: warning: {line}", err=True, fg="yellow")
            return
        typer.echo(re.sub(r"=(\w+)", _paint, line), err=True)


def _paint(match: re.Match[str]) -> str:
    color = _COLORS.get(match[1])
    return f"={typer.style(match[1], fg=color)}" if color else match[0]


def log_to_console() -> None:
    """Show loki's log lines as they come."""
    logger = logging.getLogger("loki")
    if not any(isinstance(handler, _Console) for handler in logger.handlers):
        logger.addHandler(_Console())
    logger.setLevel(logging.INFO)
    logger.propagate = False
