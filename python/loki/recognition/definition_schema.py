"""What tool files (`docs/design/tool-rules.md`) and pattern files (SPEC §3) look like.

A shape is a function from a `Cursor` to plain data; the small ones are in `shape`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loki.recognition.definition_file import did_you_mean
from loki.recognition.schema_shapes import (
    any_text,
    exactly_one,
    list_of,
    mapping_of,
    one_of,
    one_or_more,
    record,
    regex,
    text,
    truth,
    unique,
    whole,
)

if TYPE_CHECKING:
    from loki.recognition.definition_file import Check, Cursor

STRATEGIES = (
    "auto_fix",
    "context_expand",
    "analyze_then_fix",
    "dependency_check",
    "retry_with_backoff",
    "escalate",
)
FIELDS = (
    "error_type",
    "error_code",
    "message",
    "path",
    "line",
    "column",
    "function",
    "test",
    "test_name",
    "command",
)
CRITERIA = ("lint", "type", "test", "build", "syntax", "command", "custom", "approval")
RESULT_FORMATS = ("junit", "jest", "go", "libtest")
TASK_TYPES = ("bug_fix", "feature", "refactor", "security", "config_change")

# --- tool files -----------------------------------------------------------------------------


def _words(cursor: Cursor) -> str:
    value = text(cursor)
    if not value.strip(" "):
        raise cursor.wrong("text of 1 word or more")
    return value


_regexes = one_or_more(regex)

_detect = exactly_one(
    record({}, {"literal": text, "regex": regex}, "evidence"), ("literal", "regex")
)

_field = record(
    {"match": regex},
    {"take": one_of("first", "last", "each"), "frame": truth, "join": text},
    "a field rule",
)

_block = record(
    {"id": text, "role": one_of("cause", "summary", "echo", "warning", "retry"), "start": _regexes},
    {
        "lead": whole(0, 5),
        "continue": _regexes,
        "until": _regexes,
        "through": _regexes,
        "acquit": _regexes,
        "max_lines": whole(1, 100_000),
        "detected": truth,
        "closes": truth,
        "fields": list_of(_field),
        "requires": list_of(one_of(*FIELDS)),
        "set": mapping_of(text, FIELDS),
        "nests": list_of(text),
        "opens": list_of(text),
        "kind": text,
        "rank": whole(0, 99),
        "reach": whole(1, 100_000),
    },
    "a block",
)

_link = record({"match": regex, "echo": one_of("previous", "next")}, {}, "a link")

_said_folder = record(
    {"match": regex, "literals": list_of(text, 1)},
    {
        "holds": one_of("after", "before", "line"),
        "until": regex,
        "any": truth,
        "package": truth,
        "module": regex,
        "separator": text,
        "line": regex,
    },
    "a folder",
)

_frames_folder = record(
    {"frame": regex, "separator": text, "roots": list_of(any_text, 1)}, {"any": truth}, "a folder"
)


def _folder(cursor: Cursor) -> Any:
    return (_frames_folder if "frame" in cursor.entries("a folder") else _said_folder)(cursor)


_expect = record(
    {},
    {
        **dict.fromkeys(
            ("tool", "language", "error_type", "error_code", "message", "path"), any_text
        ),
        **dict.fromkeys(("line", "column", "output_line", "frames"), whole(0, 10**9)),
        "tests": list_of(text),
        "kind": any_text,
    },
    "an expectation",
)

_sample = record(
    {"name": text, "text": any_text, "expect": _expect},
    {"command": text, "exit_code": whole(-255, 255), "root": text},
    "a sample",
)

tool_file = record(
    {"version": whole(1, 1), "tool": text},
    {
        "language": text,
        "kind": text,
        "check": one_of("lint", "type", "test", "build"),
        "commands": list_of(_words),
        "detect": list_of(_detect),
        "fallback": truth,
        "over": list_of(text),
        "innermost": one_of("last", "first"),
        "library": list_of(regex),
        "prefixes": list_of(regex),
        "blocks": unique(_block, "id", "block"),
        "links": list_of(_link),
        "folders": list_of(_folder, 1),
        "results": record(
            {"format": one_of(*RESULT_FORMATS)},
            {
                "environment": text,
                "argument": text,
                "append": list_of(text, 1),
                "insert": list_of(text, 1),
                "leave_out": list_of(text, 1),
                "when": list_of(_words, 1),
                "reports": list_of(text, 1),
            },
            "results",
        ),
        "narrow": record(
            {"unit": one_of("file", "folder"), "form": text, "files": list_of(text, 1)},
            {
                "option": list_of(text, 1),
                "shared": list_of(text, 1),
                "selects": list_of(text, 1),
                "values": list_of(text, 1),
                "when": list_of(_words, 1),
                "search": record({"variable": text, "folders": list_of(text, 1)}, {}, "a search"),
            },
            "how to name tests",
        ),
        "launches": list_of(_words, 1),
        "scripts": record(
            {"run": list_of(_words, 1)},
            {"names": mapping_of(text), "separator": text, "flags": list_of(text, 1)},
            "scripts",
        ),
        "fix_commands": list_of(
            record(
                {"when": list_of(_words, 1), "command": list_of(text, 1)},
                {
                    "drop": list_of(text, 1),
                    "otherwise": list_of(list_of(text, 1), 1),
                    "alone": list_of(text),
                },
                "a fix command",
            )
        ),
        "samples": list_of(_sample),
    },
    "a tool file",
)

# --- pattern files --------------------------------------------------------------------------


def _weight(cursor: Cursor) -> str | float:
    expected = "strong, weak or a number above 0, up to 1"
    value = cursor.scalar(("str", "float", "int"), expected)
    if value in {"strong", "weak"}:
        return value
    try:
        number = float(value)
    except ValueError:
        raise cursor.wrong(expected + did_you_mean(value, ("strong", "weak"))) from None
    if not 0 < number <= 1:  # also where it is no number (.nan)
        raise cursor.wrong(expected)
    return number


_text_keys: dict[str, Check] = {"literal": text, "word": text, "regex": regex, "slow": truth}

_alternative = exactly_one(record({}, _text_keys, "a signal"), ("literal", "word", "regex"))

_any_keys: dict[str, Check] = {**_text_keys, "any": list_of(_alternative, 1)}

_negated = exactly_one(record({}, _any_keys, "a signal"), ("literal", "word", "regex", "any"))

_signal = exactly_one(
    record(
        {},
        {
            **_any_keys,
            "not": _negated,
            "w": _weight,
            "in": one_of("anywhere", "message", "tool", "code", "kind"),
        },
        "a signal",
    ),
    ("literal", "word", "regex", "any", "not"),
)


def _pattern(signal: Check) -> Check:
    return record(
        {
            "id": text,
            "signals": list_of(signal, 1),
            "strategy": one_of(*STRATEGIES),
            "description": text,
        },
        {
            "max_auto_retries": whole(0, 1000),
            "auto_fixable": truth,
            "kind": text,
            "language": text,
            "fix_command": text,
            "alternatives": list_of(one_of(*STRATEGIES)),
            "non_retryable": truth,
            "examples": list_of(text),
            "near_misses": list_of(text),
        },
        "a pattern",
    )


_criterion = record(
    {"name": text, "type": one_of(*CRITERIA)},
    dict.fromkeys(("command", "description", "expected", "scope", "agent"), text),
    "a criterion",
)


def _pattern_file(version: int) -> Check:
    signal: Check = text if version == 1 else _signal
    return record(
        {"version": whole(1, 2)},
        {
            "extends": one_of("default"),
            "patterns": unique(_pattern(signal), "id", "pattern"),
            "strategies": mapping_of(
                record({"description": text}, {"steps": list_of(text)}, "a strategy"), STRATEGIES
            ),
            "success_criteria": mapping_of(list_of(_criterion), TASK_TYPES),
        },
        "a pattern file",
    )


def pattern_file(cursor: Cursor) -> dict[str, Any]:
    """A failure-patterns.yml of version 1 or 2."""
    entries = cursor.entries("a pattern file: a mapping")
    if "version" not in entries:
        raise cursor.error(
            "found a pattern file without 'version', expected version: 1 or version: 2"
        )
    version = whole(1, 2)(entries["version"][1])
    value: dict[str, Any] = _pattern_file(version)(cursor)
    return value
