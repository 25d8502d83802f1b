"""What commands have in common: errors as sentences, what is shown, log lines, what is meant."""

from __future__ import annotations

import json
import logging
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from loki.base.error import ConfigError, LokiError, UsageError
from loki.base.text_format import escape_control_characters, line, span
from loki.base.time import moment, seconds

if TYPE_CHECKING:
    from loki.action.changes.journal import UndoResult
    from loki.runtime import Runtime


# --- Errors as sentences, log lines, JSON -------------------------------------------------------------

INTERRUPTED = 130

_COLORS = {
    **dict.fromkeys(("success", "passed", "rescued", "completed", "CLOSED"), "green"),
    **dict.fromkeys(("failed", "backing_off", "dead-letter", "unreadable", "OPEN"), "red"),
    **dict.fromkeys(("escalated", "paused", "cancelled", "blocked", "HALF_OPEN"), "yellow"),
    **dict.fromkeys(("unverified", "interrupted", "infrastructure"), "yellow"),
    **dict.fromkeys(("pending_evaluation", "in-progress"), "yellow"),
    **dict.fromkeys(("pending", "running"), "cyan"),
}
"""Of statuses, whatever has them: what is well, what is not, what waits, what is to come."""


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Turn loki's errors into one sentence on stderr and the right exit code."""
    try:
        yield
    except (UsageError, ConfigError) as error:
        fail(str(error), 2)
    except LokiError as error:
        fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):  # the second: at a question
        fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone (`loki show | head`): nothing is left to say.
        sys.stdout = None
        raise typer.Exit(0) from None


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong, and end."""
    typer.secho(f"loki: {message}", err=True, fg="red")
    raise typer.Exit(code)


def show_json(data: Any, *, error: bool = False) -> None:
    """JSON for programs, on stdout; on stderr where stdout is a command's own."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=True), err=error)


def present(data: Any, lines: str | Iterable[str], *, json: bool, nothing: str = "") -> None:
    """What a command found, or what came of it.

    Args:
        data: it for programs.
        lines: it for people; a generator is not asked where a program reads.
        json: a program reads.
        nothing: what people are told where there is no line.
    """
    if json:
        show_json(data)
    else:
        tell(lines, nothing)


def tell(lines: str | Iterable[str], nothing: str = "") -> None:
    """Lines for people; or what they are told where there is no line."""
    told = lines if isinstance(lines, str) else "\n".join(lines)
    if told or nothing:
        typer.echo(told or nothing)


def told_facts(title: str, facts: Iterable[tuple[str, str]], wide: int = 11) -> Iterator[str]:
    """What is known of one thing, as lines: its title, and each fact behind its name.

    Args:
        title: what it is; facts: names and values, nothing hostile among them.
        wide: columns for a name.
    """
    yield typer.style(title, bold=True)
    for name, value in facts:
        yield f"  {name:<{wide}}{value}"


def columns(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> Iterator[str]:
    """Rows whose cells stand below each other, as lines; colors do not count.

    Args:
        rows: cells that nothing hostile is in.
        head: names of the columns, if they are to be told.
    """
    all_ = [head, *rows] if head else [*rows]
    wide = [max(map(_width, column)) for column in zip(*all_, strict=True)]
    for row in all_:
        cells = (cell + " " * (most - _width(cell)) for cell, most in zip(row, wide, strict=True))
        yield "  ".join(cells).rstrip()


def _width(cell: str) -> int:
    return len(re.sub(r"\x1b\[[\d;]*m", "", cell))


def picked(thing: object, *names: str) -> dict[str, Any]:
    """Some of what a thing has, by its names."""
    return {name: getattr(thing, name) for name in names}


class _Console(logging.Handler):
    """Log lines on stderr, colored where it is a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        told = escape_control_characters(record.getMessage())
        if record.levelno >= logging.WARNING:
            typer.secho(f"loki: warning: {told}", err=True, fg="yellow")
            return
        typer.echo(re.sub(r"=(\w+)", _paint, told), err=True)


def _paint(match: re.Match[str]) -> str:
    return f"={colored(match[1])}" if match[1] in _COLORS else match[0]


def colored(status: str, wide: int = 0, said: str = "") -> str:
    """A status in its color, where it is shown on a terminal.

    Args:
        status: it.
        wide: columns that it takes at least.
        said: what is shown in its place.
    """
    return typer.style((said or status).ljust(wide), fg=_COLORS.get(status))


def log_to_console(level: int = logging.INFO) -> None:
    """Show loki's log lines as they come.

    Args:
        level: the least of them; a command that tells itself what it does shows warnings alone.
    """
    logger = logging.getLogger("loki")
    if not any(isinstance(handler, _Console) for handler in logger.handlers):
        logger.addHandler(_Console())
        from loki.adapters import telemetry

        if "opentelemetry.sdk.trace" in sys.modules:  # as under opentelemetry-instrument
            telemetry.instrument()
        else:
            telemetry.from_environment()
    logger.setLevel(level)
    logger.propagate = False


def open_project(project: Path, level: int = logging.WARNING) -> Runtime:
    """The project that a command is about; loki's log lines are shown.

    Args:
        project: its folder.
        level: the least of the lines.
    """
    log_to_console(level)
    return load_project(project)


def load_project(project: Path) -> Runtime:
    """The project in a folder; its log lines go where they went before."""
    from loki.runtime import Runtime  # which a command's --help does not wait for

    return Runtime(project)


def project_option(project: Path) -> str:
    """The option that a command needs to be about a project, where that is not this folder."""
    return "" if project == Path() else f" --project {shlex.quote(str(project))}"


def conflicts_of(undone: UndoResult) -> str:
    """Which files somebody changed since, and how."""
    return "; ".join(f"{one.path}: {one.reason}" for one in undone.conflicts)


def name_and_value(option: str, given: str, meaning: str) -> tuple[str, str]:
    """What ``NAME=VALUE`` says.

    Args:
        option: what it was given to.
        given: it.
        meaning: what the value is.

    Raises:
        UsageError: there is no name.
    """
    name, equals, value = given.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{option} is {given!r}: expected a name, '=' and {meaning}")
    return name.strip(), value


def shown_path(path: Path) -> Path:
    """A path as a person would type it here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def time_between(start: datetime, end: datetime) -> str:
    """How long it is from one moment to another; no time where that is over already."""
    return span(max(0.0, (end - start).total_seconds()) * 1000)


def since_moment(option: str, text: str, now: datetime) -> datetime:
    """The moment that an option names: so long ago (``2d``), or a date or time in ISO 8601.

    Raises:
        UsageError: it is neither.

    Example:
        >>> from datetime import timezone
        >>> now = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
        >>> since_moment("--since", "90m", now).isoformat()
        '2026-04-04T10:30:00+00:00'
        >>> since_moment("--since", "2026-04-01", now).isoformat()
        '2026-04-01T00:00:00+00:00'
    """
    named = moment(text) if text[:4].isdigit() and "-" in text else None
    if named is not None:
        return named
    try:
        return now - timedelta(seconds=seconds(text))
    except ValueError as error:
        raise UsageError(f"{option}: {error}; a date like 2026-04-01 can be said, too") from error


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def take_signals(answer: Callable[[int, FrameType | None], None] = _interrupt) -> None:
    """Let Ctrl-C and SIGTERM interrupt, also where a shell in the background had SIGINT ignored."""
    signal.signal(signal.SIGINT, answer)
    signal.signal(signal.SIGTERM, answer)


# --- The task that somebody means ---------------------------------------------------------------------

_LISTED = 20
"""Ids that an error names, at most; chosen."""


def find(known: Sequence[str], wanted: str, what: str = "task") -> str:
    """The id that is, or alone begins with, what was asked for.

    Args:
        known: ids that there are.
        wanted: one of them, or how it begins.
        what: what they are ids of.

    Raises:
        UsageError: there is none, or several.
    """
    if wanted in known:
        return wanted
    found = [id_ for id_ in known if wanted and id_.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{wanted!r} is the beginning of several {what}s: {_listing(found)}")
    raise UsageError(unknown(known, wanted, what))


def unknown(known: Sequence[str], wanted: str, what: str) -> str:
    """That there is nothing of a name, and which was meant, or which there are.

    Args:
        known: names that there are; wanted: the one that is none of them.
        what: what they name.
    """
    ends = {id_.rpartition("/")[2]: id_ for id_ in known}
    near = get_close_matches(wanted, known) or get_close_matches(wanted, ends)
    if near:
        meant = " or ".join(line(ends.get(id_, id_)) for id_ in near)
        return f"no {what} {wanted!r}; did you mean {meant}?"
    there = f"there are: {_listing(known)}" if known else f"there are no {what}s here yet"
    return f"no {what} {wanted!r}; {there}"


def _listing(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
    return ", ".join(map(line, ids[:_LISTED])) + more
