"""What tool files (`docs/design/tool-rules.md`) and pattern files (SPEC §3) look like.

A shape is a function from a `Cursor` to plain data: small ones, and what they make together. Regexes are
those of RE2 (https://github.com/google/re2/wiki/Syntax); what it refuses is said in plain words, at the
character where it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loki import _core
from loki.recognition.definition_file import Check, Cursor, closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from loki.base.error import ConfigError


# --- What RE2 refuses in a regex --------------------------------------------------------------------

MOST_REFUSALS = 100
"""Nobody reads on."""

_LONGEST = 4096
"""Characters of a regex in which the place of an error is looked for; chosen, not measured."""
_MOST_TRIES = 200

# What RE2's message begins with; what is said to be found; what is expected.
_SAYINGS: tuple[tuple[str, str, str], ...] = (
    ("missing ]", "a '[' that is not closed", "a ']' behind it, or '\\[' for the character itself"),
    ("missing )", "a '(' that is not closed", "a ')' behind it, or '\\(' for the character itself"),
    ("unexpected )", "a ')' that closes nothing", "'\\)' for the character itself"),
    ("trailing", "a backslash at the end", "two for the character itself"),
    ("no argument", "'{}' with nothing before it to repeat", "'\\{}' for the character itself"),
    ("bad repetition", "'{}', two repetitions in a row", "one"),
    ("invalid repetition size", "the repetition '{}'", "1000 at most, also one in another"),
    ("invalid named capture", "the group '{}'", "'(?P<name>…)', a name of letters, digits and _"),
    ("invalid character class", "'{}'", "a range that goes upwards, or a class that RE2 knows"),
    ("invalid escape", "the escape '{}'", "one that RE2 knows"),
    ("invalid perl", "the group '{}'", "one that RE2 knows, like '(?:…)' or '(?P<name>…)'"),
    ("too large together", "regexes that are too large together", "smaller or fewer ones"),
    ("pattern too large", "a regex that is too large", "a smaller one"),
)
_LOOK = {"(?=": "look-ahead", "(?!": "look-ahead", "(?<=": "look-behind", "(?<!": "look-behind"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a regex cannot be used.

    Attributes:
        reason: what was found, what was expected.
        at: the character of the regex where that stands; None where it is not known.
    """

    reason: str
    at: int | None


def regex_refusal(expression: str) -> Refusal | None:
    """Why RE2 refuses a regex; None where it does not.

    Example:
        >>> regex_refusal("error(?= in)")
        Refusal(reason="found the look-ahead '(?=', expected a regex without look-around", at=5)
    """
    error = _core.regex_error(expression)
    return None if error is None else _refusal(expression, *error)


def regex_refusals(expressions: Mapping[str, str]) -> Iterator[tuple[str, Refusal]]:
    """Of many regexes those that are refused, at most `MOST_REFUSALS`, each with its name."""
    names, texts = list(expressions), list(expressions.values())
    for index, said, fragment in _core.regex_errors(texts, MOST_REFUSALS):
        yield names[index], _refusal(texts[index], said, fragment)


def _refusal(expression: str, said: str, fragment: str) -> Refusal:
    at = _position(expression, said, fragment)
    return Refusal(_reason(expression, said, fragment, at), at)


def _reason(expression: str, said: str, fragment: str, at: int | None) -> str:
    here = expression[at : at + 4] if at is not None else fragment
    for head, name in _LOOK.items():
        if said.startswith("invalid perl") and here.startswith(head):
            return f"found the {name} '{head}', expected a regex without look-around"
    named = re.match(r"\(\?P=\w*\)?", expression[at or 0 :])
    if said.startswith("invalid perl") and named:
        fragment = named[0]
    if named or (said.startswith("invalid escape") and re.fullmatch(r"\\[1-9]", fragment)):
        return f"found the back-reference '{fragment}', expected a regex without back-references"
    for begin, found, expected in _SAYINGS:
        if said.startswith(begin):
            texts = (found.replace("{}", fragment), expected.replace("{}", fragment))
            return "found {}, expected {}".format(*texts)
    return f"found a regex that RE2 refuses ({said}), expected one that it takes"


def _position(expression: str, said: str, fragment: str) -> int | None:
    """RE2 says what is wrong, not where. It reads from left to right and stops at the first error,
    so the text as far as the culprit has the same error, and as far as any other place has not."""
    if len(expression) > _LONGEST:
        return None
    if said.startswith(("trailing", "missing ]")):
        return len(expression) - max(len(fragment), 1)
    if said.startswith("missing )"):
        return _unclosed(expression)
    is_whole = said.startswith("unexpected )")
    wanted = ")" if is_whole else fragment
    if not wanted:
        return None
    # What follows "(?P" tells whether that is a group.
    more = 2 if wanted.startswith("(?") else 0
    for begin in _occurrences(expression, wanted):
        error = _core.regex_error(expression[: begin + len(wanted) + more])
        if error and (error[0].startswith("unexpected )") if is_whole else error[1] == fragment):
            return begin
    return None


def _unclosed(expression: str) -> int | None:
    """The last '(' that nothing closes: taken as a plain character it needs one ')' less."""

    def is_open(text: str) -> bool:
        error = _core.regex_error(text)
        return error is not None and error[0].startswith("missing )")

    lacking = next((n for n in range(1, 20) if not is_open(expression + ")" * n)), 0)
    if not lacking:
        return None
    closing = ")" * (lacking - 1)
    for begin in reversed(_occurrences(expression, "(")):
        if not is_open(f"{expression[:begin]}\\{expression[begin:]}{closing}"):
            return begin
    return None


def _occurrences(expression: str, wanted: str) -> list[int]:
    found = re.finditer(f"(?={re.escape(wanted)})", expression)
    return [one.start() for one, _ in zip(found, range(_MOST_TRIES), strict=False)]


# --- Small shapes -----------------------------------------------------------------------------------

_MAX_DIGITS = 18
_LONGEST_KEY = 60
MAX_REGEXES = 5_000
"""Of one file: each is compiled once when the file is read. Chosen, not measured."""


def text(cursor: Cursor) -> str:
    """Text of one character or more."""
    value = cursor.text()
    if not value:
        raise cursor.wrong("text of 1 character or more")
    return value


def any_text(cursor: Cursor) -> str:
    """Text that may be empty."""
    return cursor.text()


def regex(cursor: Cursor) -> str:
    """A regex: noted, so that the core can be asked what it says of it."""
    value = text(cursor)
    cursor.document.regexes[cursor.pointer] = value
    if len(cursor.document.regexes) > MAX_REGEXES:
        raise cursor.error(f"found more than {MAX_REGEXES} regexes, expected at most so many")
    return value


def truth(cursor: Cursor) -> bool:
    """Either of true and false."""
    return cursor.scalar(("bool",), "true or false").lower() in {"true", "yes", "on"}


def whole(least: int, most: int) -> Check:
    """A whole number within bounds."""
    expected = f"a whole number from {least} to {most}"

    def check(cursor: Cursor) -> int:
        value = cursor.scalar(("int",), expected)
        if len(value) > _MAX_DIGITS or not value.isascii() or not value.lstrip("+-").isdigit():
            raise cursor.wrong(expected)
        if not least <= int(value) <= most:
            raise cursor.wrong(expected)
        return int(value)

    return check


def one_of(*names: str) -> Check:
    """One of several words."""
    expected = f"one of {', '.join(names)}"

    def check(cursor: Cursor) -> str:
        value = cursor.scalar(("str",), expected)
        if value not in names:
            raise cursor.wrong(expected + did_you_mean(value, names))
        return value

    return check


def list_of(item: Check, least: int = 0) -> Check:
    """A list; with fewer entries than `least` it is wrong."""

    def check(cursor: Cursor) -> list[Any]:
        values = [entry.gather(item) for entry in cursor.items("a list")]
        if len(values) < least:
            raise cursor.error(f"found an empty list, expected {least} or more entries")
        return values

    return check


def one_or_more(item: Check) -> Check:
    """A list, or one entry that stands for a list of one."""

    def check(cursor: Cursor) -> Any:
        return list_of(item, 1)(cursor) if cursor.found() == "a list" else [item(cursor)]

    return check


def mapping_of(value: Check, names: tuple[str, ...] = ()) -> Check:
    """A mapping from free names (or from some of the given ones) to one shape."""

    def check(cursor: Cursor) -> dict[str, Any]:
        result = {}
        for key, (node, entry) in cursor.entries("a mapping").items():
            if names and key not in names:
                cursor.document.note(_unknown(cursor, node, names))
            else:
                result[key] = entry.gather(value)
        return result

    return check


def record(required: dict[str, Check], optional: dict[str, Check], what: str) -> Check:
    """A mapping with known keys."""
    known = {**required, **optional}

    def check(cursor: Cursor) -> dict[str, Any]:
        entries = cursor.entries(f"{what}: a mapping")
        result, meant = {}, set()
        for key, (node, entry) in entries.items():
            if key in known:
                result[key] = entry.gather(known[key])
            else:
                cursor.document.note(_unknown(cursor, node, known))
                meant.add(closest(key, known))
        # A key that was misspelt is not missing, too.
        missing = [repr(key) for key in required if key not in entries and key not in meant]
        if missing:
            them = "it" if len(missing) == 1 else "them"
            raise cursor.error(f"found {what} without {', '.join(missing)}, expected {them}")
        return result

    return check


def _unknown(cursor: Cursor, node: Any, names: Iterable[str]) -> ConfigError:
    shown = node.value[:_LONGEST_KEY]
    expected = f"one of {', '.join(names)}{did_you_mean(shown, names)}"
    return cursor.error(f"found unknown key {shown!r}, expected {expected}", node)


def unique(item: Check, key: str, what: str) -> Check:
    """A list of records whose `key` differs."""

    def check(cursor: Cursor) -> list[Any]:
        seen: set[str] = set()
        values = []
        for entry in cursor.items(f"a list of {what}s"):
            value = entry.gather(item)
            name = value.get(key) if value else None
            if name in seen:
                said = (
                    f"found {key} {name[:_LONGEST_KEY]!r} a second time, expected each {key} once"
                )
                cursor.document.note(cursor.document.error(f"{entry.pointer}/{key}", said))
            elif name:
                seen.add(name)
            values.append(value)
        return values

    return check


def exactly_one(shape: Check, names: tuple[str, ...]) -> Check:
    """A record of which exactly one of several keys is there."""

    def check(cursor: Cursor) -> Any:
        before = len(cursor.document.problems)
        value = shape(cursor)
        if sum(name in value for name in names) != 1 and len(cursor.document.problems) == before:
            found = ", ".join(value) or "none"
            raise cursor.error(f"found {found}, expected exactly one of {', '.join(names)}")
        return value

    return check


# --- The shapes of the files ------------------------------------------------------------------------

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

# --- Tool files -------------------------------------------------------------------------------------


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

# --- Pattern files ----------------------------------------------------------------------------------


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
