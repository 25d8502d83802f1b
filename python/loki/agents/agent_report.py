"""What a command-line agent printed, as one value: its last words, its figures, what went wrong.

Pure: bytes in as they come, a `Report` out. Total: no bytes make it raise, and where they are cut does
not matter. Bounded: whatever is printed, a few megabytes are kept.

What programs say is data, ``presets.yml``; what services say, ``model-errors.yml``.

claude: https://code.claude.com/docs/en/headless, and what Claude Code 2.1.330 prints; codex: what
Codex 0.169.0 prints, and its exec_events.rs; gemini: https://geminicli.com/docs/cli/headless, and what
Gemini CLI 0.61.0 prints; aider: its ``base_coder.py``. Events and fields that are not known here are
left alone, and what is of another type than expected counts as absent.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from loki.action.loop.agent_call import names_outage
from loki.agents import model_call
from loki.agents.preset import Preset
from loki.base.error import OUTAGES, AgentError, ErrorKind, LLMError
from loki.base.secret import mask_secrets
from loki.base.time import seconds
from loki.base.tokens import TokenUsage, clip_line, dollars_said, tokens_said
from loki.decision.loop_policy import CONFIDENT
from loki.decision.retry import retry_after
from loki.recognition.failure import Failure, recognize

# --- What a program that failed said last -------------------------------------------------------------

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


# --- What it printed, as one value --------------------------------------------------------------------

LONGEST_LINE = 8 * 2**20
"""Bytes of a line, at most; a longer one is dropped. Ten times the longest answer. Chosen."""

LONGEST_TEXT = 2**18
"""Characters kept of what the agent said, the last ones. Chosen, not measured."""

PLAIN = 2**20
"""Bytes kept of what is no event, the last ones. Chosen, not measured."""

CANDIDATES = 50
"""Places where a document may begin that are looked at. Chosen, not measured."""

Event: TypeAlias = Mapping[str, Any]


@dataclass
class Report:
    """What an agent says of its work.

    Attributes:
        text: its last message.
        said: all its messages.
        model, session: as it names them, or "".
        usage: tokens; None: it does not say.
        cost: US dollars; None: it does not say.
        error: what went wrong; "": nothing.
        kind: what it calls that, or "".
        status: the HTTP status that its service answered with, where it tells.
        is_whole: its last event has come.
        events: how many were read; unreadable: lines that should have been one.
        plain: the end of what was no event.
        in_code: a block of code has begun, in what prints plain text.
    """

    text: str = ""
    said: str = ""
    model: str = ""
    session: str = ""
    usage: TokenUsage | None = None
    cost: float | None = None
    error: str = ""
    kind: str = ""
    status: int | None = None
    is_whole: bool = False
    events: int = 0
    unreadable: int = 0
    plain: str = ""
    in_code: bool = field(default=False, repr=False)
    pieces: deque[str] = field(default_factory=deque, repr=False)
    size: int = field(default=0, repr=False)

    def say(self, text: str, *, joined: bool = False) -> None:
        """Take another message, or a piece that goes on with the last one."""
        if not text:
            return
        self.text = (self.text + text if joined else text)[-LONGEST_TEXT:]
        self.pieces.append(text if joined else f"{text}\n\n")
        self.size += len(self.pieces[-1])
        while len(self.pieces) > 1 and self.size - len(self.pieces[0]) > LONGEST_TEXT:
            self.size -= len(self.pieces.popleft())

    def fail(self, error: str, kind: str = "", status: int | None = None) -> None:
        """Take what went wrong; the last that is said counts."""
        self.error, self.kind, self.status = error or kind or "no reason was given", kind, status


Form: TypeAlias = Callable[[Report, Event], str]
"""Takes an event into a report; what people are shown of it, or ""."""


class Reader:
    """Reads what an agent prints, as it comes.

    Args:
        form: takes each event.
        line: takes each line that is no event, where the program prints plain text.

    Example:
        >>> reader = Reader(FORMS["codex"])
        >>> reader.feed(b'{"type": "item.completed", "item": {"type": "agent_mess')
        []
        >>> reader.feed(b'age", "text": "Done."}}\\n')
        ['Done.']
        >>> reader.close().text
        'Done.'
    """

    def __init__(self, form: Form, line: Callable[[Report, str], str] | None = None) -> None:
        self.report = Report()
        self._form, self._take_line = form, line
        self._parts: list[bytes] = []
        self._length = 0
        self._plain: deque[bytes] = deque()
        self._plain_size = 0

    def feed(self, chunk: bytes) -> list[str]:
        """Take the next bytes; what people are shown of them."""
        *lines, rest = chunk.split(b"\n")
        shown = []
        for line in lines:
            self._add(line)
            shown.append(self._end_line())
        self._add(rest)
        return [line for line in shown if line]

    def close(self, errors: bytes = b"") -> Report:
        """The report.

        Args:
            errors: the end of what was printed as errors: some programs say there why they failed.
        """
        self._end_line()
        report = self.report
        plain = b"".join(self._plain)
        report.plain = plain.decode("utf-8", "replace")
        if self._take_line is None and not report.is_whole:
            # One document over many lines, instead of a line for each event.
            for text in (report.plain, errors[-PLAIN:].decode("utf-8", "replace")):
                document = next(_documents(text), None)
                if document is not None and not report.is_whole:
                    report.events += 1
                    report.unreadable = 0
                    self._form(report, document)
        report.said = "".join(report.pieces).strip()[-LONGEST_TEXT:]
        return report

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= LONGEST_LINE:
            self._parts.append(part)
        else:
            self._parts.clear()

    def _end_line(self) -> str:
        line, length = b"".join(self._parts), self._length
        self._parts.clear()
        self._length = 0
        if length > LONGEST_LINE:
            self.report.unreadable += 1
            return ""
        text = line.strip()
        if not text:
            return ""
        if self._take_line is not None:
            return self._take_line(self.report, text.decode("utf-8", "replace"))
        event = _event(text)
        if event is None:
            self.report.unreadable += text.startswith(b"{")
            self._keep(line + b"\n")
            return ""
        self.report.events += 1
        return self._form(self.report, event)

    def _keep(self, line: bytes) -> None:
        self._plain.append(line[-PLAIN:])
        self._plain_size += len(self._plain[-1])
        while self._plain_size - len(self._plain[0]) > PLAIN:
            self._plain_size -= len(self._plain.popleft())


def _event(line: bytes | str) -> Event | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _documents(text: str) -> Iterator[Event]:
    """Objects that begin at the start of a line, the last first."""
    decoder, start = json.JSONDecoder(), len(text)
    for _ in range(CANDIDATES):
        start = max(text.rfind("\n{", 0, start) + 1, 0)
        with suppress(ValueError, RecursionError):
            found, _end = decoder.raw_decode(text, start)
            if isinstance(found, dict):
                yield found
        if start == 0:
            return


# --- Why it could not go on: an outage, or something for a person -------------------------------------

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
    return model_call.kind_of(status, {"error": {"type": report.kind, "message": said}})


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
    took: dict[str, Any] = {"output": output, "tokens": tokens, "cost": report.cost}
    if report.kind in preset.own_limits:
        message = f"{name} came to a limit that its own options set ({report.kind}): {said}"
        return AgentError(message, retryable=False, **took)
    kind = kind_of(preset, report, exit_code)
    if kind is None:
        retryable = is_outage(report.error, exit_code or 1, shlex.join(command))
        return AgentError(f"{name}: {said}", retryable=retryable, retry_after=wait, **took)
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


# --- The forms in which agents say what they do -------------------------------------------------------


def claude(report: Report, event: Event) -> str:
    """An event of ``claude --output-format stream-json``, or the object of ``json``."""
    kind = event.get("type")
    report.session = _text(event.get("session_id")) or report.session
    if kind == "system":
        report.model = _text(event.get("model")) or report.model
    elif kind == "assistant" and event.get("parent_tool_use_id") is None:
        shown = ""
        for block in _list(_map(event.get("message")).get("content")):
            if block.get("type") == "text":
                report.say(_text(block.get("text")))
                shown = report.text
            elif block.get("type") == "tool_use":
                shown = _tool(block.get("name"), block.get("input"))
        return shown
    elif kind == "result":
        _claude_result(report, event)
    return ""


def _claude_result(report: Report, event: Event) -> None:
    said, subtype = _text(event.get("result")), _text(event.get("subtype"))
    report.is_whole = True
    report.error = report.kind = ""
    report.status = None
    models = {name: _map(one) for name, one in _map(event.get("modelUsage")).items()}
    usages = [
        _usage(one, "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        for one in models.values()
    ] or [
        _usage(_map(event.get("usage")), "input_tokens", "output_tokens",
               "cache_read_input_tokens", "cache_creation_input_tokens")
    ]  # fmt: skip
    if models or isinstance(event.get("usage"), Mapping):
        report.usage = sum(usages, TokenUsage())
    report.cost = dollars_said(event.get("total_cost_usd"))
    if not report.model and models:
        report.model = _text(
            max(models, key=lambda name: dollars_said(models[name].get("costUSD")) or 0)
        )
    if event.get("is_error") is True or subtype.startswith("error"):
        errors = [_text(one) for one in event.get("errors") or () if isinstance(one, str)] if (
            isinstance(event.get("errors"), list)) else []  # fmt: skip
        kind = subtype if subtype.startswith("error") else _text(event.get("api_error_type"))
        report.fail(said or "; ".join(errors), kind, _status(event.get("api_error_status")))
    elif said and said != report.text:
        report.say(said)


def codex(report: Report, event: Event) -> str:
    """An event of ``codex exec --json``."""
    kind, item = event.get("type"), _map(event.get("item"))
    if kind == "thread.started":
        report.session = _text(event.get("thread_id"))
    elif kind == "turn.completed":
        report.is_whole, report.error, report.status = True, "", None
        used = _map(event.get("usage"))
        if used:
            # Of its input, what came out of the cache is a part.
            usage = _usage(used, "input_tokens", "output_tokens", "", "")
            cached = _count(used.get("cached_input_tokens"))
            written = _count(used.get("cache_write_input_tokens"))
            report.usage = TokenUsage(usage.input, usage.output, cached, written)
    elif kind == "turn.failed":
        report.is_whole = True
        report.fail(_text(_map(event.get("error")).get("message")))
    elif kind == "error":
        report.fail(_text(event.get("message")))
        return report.error
    elif kind == "item.completed" and item.get("type") == "agent_message":
        report.say(_text(item.get("text")))
        return report.text
    elif kind == "item.started" and item.get("type") == "command_execution":
        return f"$ {_text(item.get('command'))}"
    elif kind == "item.completed" and item.get("type") == "file_change":
        return "edit " + ", ".join(_text(one.get("path")) for one in _list(item.get("changes")))
    elif kind == "item.started" and item.get("type") == "mcp_tool_call":
        return _tool(item.get("tool"), item.get("arguments"))
    return ""


def gemini(report: Report, event: Event) -> str:
    """An event of ``gemini --output-format stream-json``, or the object of ``json``."""
    kind = event.get("type")
    report.session = _text(event.get("session_id")) or report.session
    if kind == "init":
        report.model = _text(event.get("model"))
    elif kind == "message" and event.get("role") == "assistant":
        report.say(_text(event.get("content")), joined=event.get("delta") is True)
    elif kind == "tool_use":
        report.text = ""  # what it says next is a message of its own
        return _tool(event.get("tool_name"), event.get("parameters"))
    elif kind == "error" and event.get("severity") != "warning":
        report.fail(_text(event.get("message")))
        return report.error
    elif kind == "result" or (kind is None and ("response" in event or "error" in event)):
        before = report.error  # said in an event of its own, and not repeated
        report.is_whole, report.error, report.status = True, "", None
        report.say(_text(event.get("response")))
        _gemini_stats(report, _map(event.get("stats")))
        error = _map(event.get("error"))
        if error or event.get("status") == "error":
            said = _text(error.get("message")) or before
            report.fail(said, _text(error.get("type")), _status(error.get("code")))
    return ""


def _gemini_stats(report: Report, stats: Mapping[str, Any]) -> None:
    models = {name: _map(one) for name, one in _map(stats.get("models")).items()}
    usage, most = TokenUsage(), -1
    for name, one in models.items():
        counts = _map(one.get("tokens")) or one
        read = _count(counts.get("prompt", counts.get("input_tokens")))
        read += _count(counts.get("tool"))
        total = max(_count(counts.get("total", counts.get("total_tokens"))), read)
        # What is neither read nor said is thought, which is paid for like the answer.
        usage += TokenUsage(read, total - read, _count(counts.get("cached")))
        if total > most and report.model in {"", "auto"}:
            report.model, most = _text(name), total
    if models:
        report.usage = usage


_TOKENS = re.compile(r"^Tokens: ([\d.,]+[kM]?) sent,(?:.*?([\d.,]+[kM]?) cache write,)?"
                     r"(?:.*?([\d.,]+[kM]?) cache hit,)?.*?([\d.,]+[kM]?) received\.")  # fmt: skip
_COST = re.compile(r"\bCost: \$[\d.,]+ (?:message|request|send), \$([\d.]+) session\.")
_LITELLM = re.compile(r"^(?:litellm\.)?([A-Z]\w*(?:Error|Timeout|Exceeded\w*|NotFound)|Timeout): ")
_NOISE = re.compile(r"^(?:Aider v|Main model:|Model: |Weak model:|Git repo:|Repo-map:|Applied edit to"
                    r"|Added .* to the chat|Retrying in|Update git (?:name|email)"
                    r"|HTTPSConnectionPool|Use /help|Cost estimates)")  # fmt: skip


def aider_line(report: Report, line: str) -> str:
    """A line that aider prints; it has no events."""
    report.events += 1
    if found := _TOKENS.match(line):
        sent, written, hit, received = (_abbreviated(one) for one in found.groups())
        used = TokenUsage(max(sent, hit + written), received, hit, written)  # part of what is sent
        report.usage = (report.usage or TokenUsage()) + used
        # Printed after an answer: whatever failed before was mended.
        report.is_whole, report.error, report.kind = True, "", ""
    if found := _COST.search(line):
        report.cost = dollars_said(float(found[1])) if found[1].count(".") < 2 else None  # noqa: PLR2004
    elif found := _LITELLM.match(line):
        report.fail(line[:LONGEST_TEXT], found[1])
        return line
    elif found := re.match(r"^(?:Main model|Model): (\S+)", line):
        report.model = found[1]
    if line.startswith("Applied edit to "):
        # The name of the file stands on a line of its own before that.
        report.text = report.text.removesuffix(f"{line[16:]}\n")
        return line
    if line.startswith("```"):
        report.in_code = not report.in_code
    elif not report.in_code and not _NOISE.match(line) and not _TOKENS.match(line):
        report.say(f"{line}\n", joined=True)
    return ""


def _nothing(_report: Report, _event: Event) -> str:
    return ""


FORMS: Mapping[str, Form] = {"claude": claude, "codex": codex, "gemini": gemini, "aider": _nothing}
"""What takes an event, by the form that a preset names."""

LINES: Mapping[str, Callable[[Report, str], str]] = {"aider": aider_line}
"""What takes a line, of programs that print plain text."""


# --- Values of any type, as events hold them ---------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    # JSON may hold half of a surrogate pair, which no file can.
    return value[-LONGEST_TEXT:].encode("utf-8", "replace").decode("utf-8")


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Iterator[Mapping[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def _count(value: Any) -> int:
    return tokens_said(value) or 0


def _status(value: Any) -> int | None:
    return value if isinstance(value, int) and 400 <= value <= 599 else None  # noqa: PLR2004


def _usage(counts: Mapping[str, Any], *names: str) -> TokenUsage:
    """Tokens by the names of input, output, out of the cache and into it, which add to the input."""
    fresh, output, hit, written = (_count(counts.get(name)) for name in names)
    return TokenUsage(fresh + hit + written, output, hit, written)


def _tool(name: Any, arguments: Any) -> str:
    """A tool's call as people are shown it: its name, and what it is about."""
    about = (value for value in _map(arguments).values() if isinstance(value, str) and value)
    return f"{_text(name)} {_text(next(about, ''))}".strip()


def _abbreviated(text: str | None) -> int:
    """A count as aider prints it: 950, 1.2k, 13k, 1,234."""
    if not text:
        return 0
    digits = text.replace(",", "").rstrip("kM")
    scale = {"k": 1e3, "M": 1e6}.get(text[-1], 1)
    try:
        return _count(round(float(digits) * scale))
    except (ValueError, OverflowError):
        return 0
