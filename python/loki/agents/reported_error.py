"""What it means that a command-line agent could not go on: an outage, or something for a person.

What programs say is data, ``presets.yml``; what services say, ``model-errors.yml``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from loki.agents import model_error
from loki.agents.agent_report import Report
from loki.agents.exit_message import is_outage, wait_asked
from loki.agents.preset import Preset
from loki.base.error import OUTAGES, AgentError, ErrorKind, LLMError
from loki.base.secret import mask_secrets
from loki.base.token_estimate import clip_line

LONGEST = 500
"""Characters of its words in a message. Chosen, not measured."""

HINTS: dict[str, str] = {
    "authentication": "log in with it once, or set the variable of its key",
    "quota": "a person has to raise the limit or pay; asking again does not help",
    "not_found": "is the model's name right?",
}
"""What to do about it, by kind."""


def kind_of(preset: Preset, report: Report, exit_code: int | None) -> ErrorKind | None:
    """What kind of error a program reports; None: it says nothing that is known.

    Args:
        preset: of the program.
        report: what it said.
        exit_code: how it ended.

    Example:
        >>> from loki.agents.preset import preset
        >>> said = Report(error="API Error: Request rejected (429)", status=429)
        >>> kind_of(preset("claude"), said, 1)
        'rate_limit'
    """
    said = report.error or report.plain
    for known in preset.errors:
        if known.pattern.search(said):
            return known.kind
    if exit_code is not None and exit_code in preset.exit_codes:
        return preset.exit_codes[exit_code]
    status = report.status
    if status is None and preset.status and (found := re.search(preset.status, said)):
        status = int(found[1])
    if status is None:
        return None
    return model_error.kind_of(status, {"error": {"type": report.kind, "message": said}})


def shows_outage(preset: Preset, report: Report) -> bool:
    """Whether a program that asks again by itself tells of an outage; what it has a name for is one.

    Args:
        preset: of the program.
        report: what it said; its ``error`` is not empty.

    Example:
        >>> from loki.agents.preset import preset
        >>> claude = preset("claude")
        >>> shows_outage(claude, Report(error="overloaded_error", status=529))
        True
        >>> shows_outage(claude, Report(error="invalid x-api-key", status=401))
        False
    """
    kind = kind_of(preset, report, None)
    return kind in OUTAGES or (kind is None and bool(report.kind))


def last_error(preset: Preset, report: Report, output: str, exit_code: int | None) -> str:
    """The last line of a program that failed before its first event, if it is known; else "".

    Without a way to log in, for instance, programs print a sentence and end.

    Args:
        preset: of the program.
        report: what it said.
        output: the end of what it printed.
        exit_code: how it ended; None: by a signal.

    Example:
        >>> from loki.agents.preset import preset
        >>> last_error(preset("gemini"), Report(), "Please set an Auth method in settings.json", 41)
        'Please set an Auth method in settings.json'
    """
    lines = output.strip().splitlines()
    if not exit_code or report.events or not lines:
        return ""
    said = lines[-1].strip()
    return said if kind_of(preset, replace(report, error=said), exit_code) else ""


def error_of(
    name: str,
    preset: Preset,
    report: Report,
    output: str,
    exit_code: int | None,
    command: Sequence[str],
    now: datetime,
) -> AgentError:
    """The error that a program reports.

    Args:
        name: the agent's.
        preset: of the program.
        report: what it said; its ``error`` is not empty.
        output: the end of what it printed.
        exit_code: how it ended.
        command: its words.
        now: the time that a date is seen from, with a zone.
    """
    said = clip_line(" ".join(mask_secrets(report.error).split()), LONGEST)
    wait = wait_asked(f"{output}\n{report.error}", now)
    tokens = report.usage.total if report.usage is not None else None
    if report.kind in preset.own_limits:
        message = f"{name} came to a limit that its own options set ({report.kind}): {said}"
        return AgentError(message, retryable=False, output=output, tokens=tokens, cost=report.cost)
    kind = kind_of(preset, report, exit_code)
    if kind is None:
        retryable = is_outage(report.error, exit_code or 1, shlex.join(command))
        return AgentError(
            f"{name}: {said}",
            retryable=retryable,
            output=output,
            retry_after=wait,
            tokens=tokens,
            cost=report.cost,
        )
    hint = f": {HINTS[kind]}" if kind in HINTS else ""
    return LLMError(
        f"{name}: {said} ({kind.replace('_', ' ')}){hint}",
        kind,
        status=report.status,
        retry_after=wait if kind in OUTAGES else None,
        provider=preset.provider,
        model=report.model,
        usage=report.usage,
        cost=report.cost,
        output=output,
    )
