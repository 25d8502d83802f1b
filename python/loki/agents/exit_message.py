"""What a program that failed said last: could asking again help, and when?"""

from __future__ import annotations

import re
from datetime import datetime

from loki.action.loop.exception_analysis import names_outage
from loki.base.time import seconds
from loki.decision.loop_policy import CONFIDENT
from loki.decision.retry_after import retry_after
from loki.recognition.failure import Failure, recognize

NEVER_MENDED = frozenset({"auth-error", "env-missing"})
"""Kinds of failure that are no outage: a wrong key, a spent quota, a setting that is missing."""

BAD_REQUESTS = frozenset(
    {
        "invalid_request_error",
        "not_found_error",
        "request_too_large",
        "INVALID_ARGUMENT",
        "FAILED_PRECONDITION",
        "NOT_FOUND",
    }
)
"""Types of errors by which services refuse what was asked for: Anthropic's, OpenAI's, Google's."""

BUGS = frozenset(
    {
        "config-parse-error",
        "import-not-found",
        "runtime-error",
        "syntax-error",
        "test-failure",
        "type-error",
    }
)
"""Kinds that are the program's own mistake where it names a place in code and no service."""

USAGE_CODES = frozenset({64, 126, 127})
"""Exit codes of a wrong command: ``EX_USAGE`` of sysexits.h; a shell that cannot run a program."""

_USAGE = re.compile(
    r"^usage:|^(?:\S+: )?error: (?:unknown|unrecognized|unexpected|no such) (?:option|argument)",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER = re.compile(
    r"\b(retry-after(?:-ms)?)[\"']?\s*[:=]\s*[\"']?([^\"'\r\n}]{1,40})", re.IGNORECASE
)
_DELAY = re.compile(
    r"(?:\b(?:try again|retry) (?:in|after)|\"retryDelay\"\s*:)\s*\"?((?:[\d.]+[hms]+)+)",
    re.IGNORECASE,
)


def is_outage(output: str, exit_code: int, command: str) -> bool:
    """Whether asking again could help: not after a wrong key or command, a bad request, or a bug.

    Args:
        output: the end of what the program printed.
        exit_code: how it ended.
        command: its command line.

    Example:
        >>> is_outage("API Error: 529 overloaded_error", 1, "claude -p")
        True
        >>> is_outage("error: unknown option '--fast'", 1, "claude -p --fast")
        False
        >>> is_outage("sh: 0: cannot open agent.sh: No such file", 2, "sh agent.sh")
        False
    """
    if exit_code in USAGE_CODES or _USAGE.search(output):
        return False
    failure = recognize(output, command=command, exit_code=exit_code)
    match = failure.match
    if match is not None and match.confidence >= CONFIDENT and match.kind in NEVER_MENDED:
        return False
    return failure.error_type not in BAD_REQUESTS and not _is_bug(failure)


def _is_bug(failure: Failure) -> bool:
    """Whether the program itself is wrong: a file that is not there, an exception that is no service's."""
    match = failure.match
    if match is None or match.confidence < CONFIDENT:
        return False
    if any(one.is_infrastructure for one in failure.matches) or names_outage(
        failure.error_type or ""
    ):
        return False
    return match.kind == "shell-error" or (match.kind in BUGS and failure.path is not None)


def wait_asked(output: str, now: datetime) -> float | None:
    """Seconds that its service asked to wait, by the last that was said of it; None: nothing.

    Args:
        output: the end of what the program printed.
        now: the time that a date is seen from, with a zone.

    Example:
        >>> from datetime import timezone
        >>> now = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
        >>> wait_asked("429 Too Many Requests\\nretry-after: 20\\n", now)
        20.0
        >>> wait_asked("Rate limit reached. Please try again in 1m30s.", now)
        90.0
    """
    headers = {name.lower(): value.strip() for name, value in _HEADER.findall(output)}
    found = retry_after(headers, now)
    if found is not None:
        return found
    for text in reversed(_DELAY.findall(output)):
        try:
            return seconds(text)
        except ValueError:
            continue
    return None
