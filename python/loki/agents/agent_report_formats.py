"""The forms in which command-line agents say what they do: an event into a report.

claude: https://code.claude.com/docs/en/headless, and what Claude Code 2.1.330 prints; codex: what
Codex 0.169.0 prints, and its exec_events.rs; gemini: https://geminicli.com/docs/cli/headless, and what
Gemini CLI 0.61.0 prints; aider: its ``base_coder.py``. Events and fields that are not known here are
left alone, and what is of another type than expected counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loki.agents.agent_report import LONGEST_TEXT, Event, Form, Report
from loki.base.token_usage import TokenUsage, dollars_said, tokens_said


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


# --- values of any type, as events hold them ---------------------------------------------------------


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
