"""What a tool answered, as text, and what that says of how the call went. Pure, total and linear.

Outputs are often cut to their last lines, so what a summary says comes first. The forms are data, in
``output-outcome.yml``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from loki import _core
from loki.base.yaml_text import load_file
from loki.decision.monitor.tool_command import typed

# --- Any value as text, however deep it is ------------------------------------------------------------

MOST_PARTS = 5_000
"""Parts of a value that JSON cannot say which are looked at. Chosen, not measured."""

DEEPEST_VALUE = 50
"""Levels of a value that are told as JSON. Chosen, not measured."""

_MANY = (dict, list, tuple)
_JOINED = (list, tuple, set, frozenset)


def any_text(value: object) -> str:
    """A value as text, the same for the same value.

    Example:
        >>> any_text({"b": [1], "a": None})
        '{"a": null, "b": [1]}'
    """
    try:
        if _is_deep(value):  # the same text however much of the stack is taken
            return _flat(value)
        return json.dumps(value, sort_keys=True, default=repr)
    except Exception:  # too deep, a circle, keys of several types; its own methods may do anything
        return _flat(value)


def any_repr(value: object) -> str:
    """What Python shows of a value, where it can.

    Example:
        >>> any_repr([1, "x"])
        "[1, 'x']"
    """
    try:
        return repr(value)
    except Exception:  # as there
        return _flat(value)


def _is_deep(value: object) -> bool:
    level: list[Any] = [value] if isinstance(value, _MANY) else []
    for _ in range(DEEPEST_VALUE):
        many = (one.values() if isinstance(one, dict) else one for one in level)
        parts = (part for held in many for part in held)
        level = list(islice((part for part in parts if isinstance(part, _MANY)), MOST_PARTS))
        if not level:
            break
    return bool(level)


def _flat(value: object) -> str:
    """Its parts in a row, their depth before each; a circle ends where enough was seen."""
    parts: list[str] = []
    waiting: list[tuple[int, Any]] = [(0, value)]
    while waiting and len(parts) < MOST_PARTS:
        depth, one = waiting.pop()
        parts.append(f"{depth}:{_leaf(one)}")
        held = _held(one)[: MOST_PARTS - len(parts)]
        waiting += [(depth + 1, part) for part in reversed(held)]
        del waiting[:-MOST_PARTS]  # these would not be looked at any more
    return " ".join(parts)


def _held(one: object) -> list[object]:
    """The parts of a value, of a mapping in an order that is the same for the same one."""
    try:
        if isinstance(one, Mapping):
            pairs = sorted(((_leaf(name), held) for name, held in one.items()), key=lambda p: p[0])
            return [part for pair in pairs for part in pair]
        return list(one) if isinstance(one, _JOINED) else []
    except Exception:  # as there
        return []


def _leaf(one: object) -> str:
    if isinstance(one, (Mapping, *_JOINED)):
        return type(one).__name__
    if isinstance(one, int) and not isinstance(one, bool):
        return hex(one)  # a decimal one may have too many digits
    try:
        return repr(one)
    except Exception:  # as there
        return type(one).__name__


def short(text: str, most: int) -> str:
    """A text that is not longer, or both ends of it and a hash, so that it differs from others still.

    Args:
        text: any text.
        most: characters of the longest that stays as it is, 60 or more.

    Example:
        >>> short("x" * 9, 60), len(short("x" * 999, 60))
        ('xxxxxxxxx', 60)
    """
    if len(text) <= most:
        return text
    name = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    begin = (most - 18) // 2
    return f"{text[:begin]}…{name}…{text[len(text) - (most - 18 - begin) :]}"


# --- What a tool's function returned, as text and exit code -------------------------------------------

EXIT_CODES = ("exit_code", "returncode", "return_code", "exitcode", "exit_status")
"""What tools call an exit code: `subprocess.CompletedProcess`, Docker, agents' shell tools."""

OUTPUTS = ("stdout", "stderr", "output", "error")
"""Where tools that run commands put what was printed, in the order in which it is read."""

DEEPEST = 8
"""Levels of a value that are read; what lies deeper is shown as its type. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered.

    Attributes:
        text: what it says, readable: what was printed where a command ran, else JSON.
        exit_code: of the command that it ran; None: it says none.
    """

    text: str
    exit_code: int | None = None


def tool_result(value: Any) -> ToolResult:
    """Read what a tool's function returned.

    Args:
        value: anything. Text stays as it is; of a mapping or an object that has an exit code, or of
            text that is such a mapping as JSON, the output is the text. Bytes count as what they
            are only as a whole value (a command's output); inside others only their size is told,
            they may be images.

    Example:
        >>> tool_result({"returncode": 1, "stdout": "1 failed\\n", "stderr": ""})
        ToolResult(text='1 failed\\n', exit_code=1)
        >>> tool_result({"found": 3}).text, tool_result("3 found").text
        ('{"found": 3}', '3 found')
    """
    if isinstance(value, (bytes, bytearray)):
        return ToolResult(bytes(value).decode("utf-8", "replace"))
    if isinstance(value, str):
        said = _json(value)
        return _of_command(said) or ToolResult(value)
    if (blocks := text_blocks(value)) is not None:
        return tool_result(blocks)
    plain = _plain(value)
    if isinstance(plain, str):
        return ToolResult(plain)
    return _of_command(plain) or ToolResult(json.dumps(plain, ensure_ascii=False))


def text_blocks(value: Any) -> str | None:
    """The text of content blocks, as MCP and models' services have them; None: it has no such.

    Args:
        value: anything: a mapping with ``type: text``, or a list with one in it.

    Example:
        >>> text_blocks([{"type": "text", "text": "1 failed"}, {"type": "image", "data": "…"}])
        '1 failed'
    """
    blocks = value if isinstance(value, list) else [value]
    if not all(isinstance(one, Mapping) and "type" in one for one in blocks):
        return None
    texts = [one["text"] for one in blocks if isinstance(one.get("text"), str)]
    return "\n".join(texts) if texts else None


def _of_command(said: Any) -> ToolResult | None:
    """What a command said; None: it is no answer of one."""
    if not isinstance(said, Mapping):
        return None
    codes = [said[name] for name in EXIT_CODES if name in said]
    if not codes or isinstance(codes[0], bool) or not isinstance(codes[0], int):
        return None
    printed = [said[name] for name in OUTPUTS if isinstance(said.get(name), str) and said[name]]
    text = "\n".join(one.rstrip("\n") for one in printed[:-1]) + "\n" if printed[1:] else ""
    return ToolResult(text + "".join(printed[-1:]), codes[0])


def _json(text: str) -> Any:
    """The mapping that a text is as JSON; None: it is none."""
    head = text.lstrip()[:1]
    if head != "{" or not any(f'"{name}"' in text for name in EXIT_CODES):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON can say it; never an error, whatever it is."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if depth >= DEEPEST:
        return f"<{type(value).__name__}>"
    try:
        return _of_many(value, depth + 1)
    except Exception:  # a value's own methods may do anything
        return f"<{type(value).__name__}>"


def _of_many(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one, depth) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one, depth) for one in value]
    if isinstance(value, (set, frozenset)):  # in an order that is the same in each process
        return sorted((_plain(one, depth) for one in value), key=str)
    if not isinstance(value, type) and (names := _names(value)):
        return {name: _plain(getattr(value, name, None), depth) for name in names}
    return str(value)


def _names(value: Any) -> list[str]:
    """The names of what an object holds: a pydantic model, a dataclass, a finished process."""
    held = getattr(type(value), "model_fields", None)
    if isinstance(held, Mapping):
        return list(held)
    if is_dataclass(value):
        return [field.name for field in fields(value) if not field.name.startswith("_")]
    if any(isinstance(getattr(value, name, None), int) for name in EXIT_CODES):
        return [name for name in (*EXIT_CODES, *OUTPUTS) if hasattr(value, name)]
    return []


# --- What the output of a call says of how it went ----------------------------------------------------

LONGEST = 2_000_000
"""Characters of an output that are counted. Chosen, not measured."""

LOOKED_AT = 4_000
"""Characters at either end of an output that are read for what it says. Chosen, not measured."""

COMPARED = 2_000
"""Characters at either end by which two outputs are the same. Chosen, not measured."""

LONGEST_LINE = 500
"""Characters of a line that are looked at. Chosen, not measured."""

FILE = Path(__file__).with_name("output-outcome.yml")

_PLACE = re.compile(r"[\w/\\-]\.[A-Za-z]\w{0,5}(?::\d+|\(\d+)")
_SAYS = re.compile(
    r"\s*(?:FAILED|ERROR|FAIL|--- FAIL|not ok|error(?:\[\w+\])?:|[\u2715\u2717\u00d7])"
)
_COUNTS = re.compile(
    r"(?i)\b(\d{1,7}) (?:failed\b|failing\b|failures?\b|(?:previous )?errors?\b|problems?\b)"
    r"|\b(?:failures|errors)[=:] ?(\d{1,7})\b"
)
_VARIES = re.compile(  # from run to run of the same; numbers stay: they are what a program found
    r"0x[0-9a-fA-F]{4,}"
    r"|\b\d{4}-\d\d-\d\d[T ]?"
    r"|\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
    r"|\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:s|ms|us|µs|ns|secs?|seconds?|minutes?|mins?)\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"
    r"|(?<=/tmp/)[\w.-]+"
    r"|(?i:(?<=pid )|(?<=pid=)|(?<=pid: ))\d+"
    r"|(?i:\b(?:seed|shuffle)[ =:]{1,3}\d+)"  # tests go in another order each time
    r"|(?m:^(?:[\w./\\-]+ )?(?=[^\s%]*\.|[^%\n]*%)[.FEsSxXpP]+ *(?:\[ *\d+%\])?$)"  # a mark a test
)
_HEAD = 250  # characters in which a scaffold says what is wrong with an answer
_SHELL_SAYS = ("execution timed out", "command timed out", "error:", "fatal:")
_FEW = 3  # lines that a shell alone prints
_WRAPPED = 3  # times that an answer may be wrapped, as text in a list of parts
_SENTENCE = 4  # characters of an error; fewer are a code or a mark
_MARKS = "\u2717\u2718\u2716\u00d7\u2715"  # linters have them, too
_SAYS_THAT = ("not_begun", "timed_out", "complains")
_HINTS = ("pass", "fail", "ok", "error", "tests", "succe", *_MARKS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an output says.

    Attributes:
        said: hash of it, without what varies from run to run; "": nothing was printed.
        passed, failed: tests, as it counts them; of a summary without numbers 1 and 0.
        has_tests: it says how tests went.
        has_begun: False: a check could not begin, so that it says nothing of the project.
        timed_out: time was up.
        complains: somebody printed that something is wrong.
        is_loose: what it says of tests may be of anything else: ``3 errors``, and no test beside it.
    """

    said: str = ""
    passed: int = 0
    failed: int = 0
    has_tests: bool = False
    has_begun: bool = True
    timed_out: bool = False
    complains: bool = False
    is_loose: bool = False

    @property
    def is_green(self) -> bool:
        """It says that tests passed, and of none that failed."""
        return self.has_tests and not self.failed and self.has_begun

    def of(self, *, runs_tests: bool) -> Outcome:
        """The same for a call that runs tests, or runs none: there ``3 errors`` says nothing of them."""
        if runs_tests or not self.is_loose:
            return self
        return replace(self, passed=0, failed=0, has_tests=False)

    @property
    def is_red(self) -> bool:
        """It says that tests failed."""
        return self.has_tests and self.failed > 0


def outcome(text: str, exit_code: int | None = None) -> Outcome:
    """Read an output.

    Args:
        text: what was printed; of a long one both ends are read.
        exit_code: of the command, where it is known.

    Example:
        >>> said = outcome("FAILED t.py::test_a - KeyError\\n1 failed, 20 passed in 0.1s")
        >>> said.failed, said.passed, said.is_red
        (1, 20, True)
        >>> outcome("Ran 3 tests in 0.01s\\n\\nOK").is_green, outcome("sh: 1: pytest: not found").has_begun
        (True, False)
    """
    data, shown = _forms(), ends(text)
    tests = _tests(shown, data)
    says = {_SAYS_THAT[index] for index, *_ in data.says.match(shown, "")} if shown else set()
    return replace(
        tests,
        said=said_by(shown),
        has_begun=exit_code not in data.not_begun_codes
        and (tests.has_tests or "not_begun" not in says),
        timed_out=exit_code == data.timed_out_code or "timed_out" in says,
        complains="complains" in says,
    )


def said_by(text: str) -> str:
    """Hash of what an output says, without what varies from run to run; "": it says nothing.

    Example:
        >>> said_by("3 found in 0.21s at 0x7f3a11") == said_by("3 found in 1.4s at 0x7fffe0")
        True
        >>> said_by("3 found") == said_by("4 found"), said_by("  \\n")
        (False, '')
    """
    plain = " ".join(_VARIES.sub("", ends(text, COMPARED)).split())
    return sha256(plain.encode("utf-8", "replace")).hexdigest()[:16] if plain else ""


def extent(text: str) -> int:
    """How much an output tells of that failed: the most that a summary counts; without one its lines.

    Of lines those count that have a place in a file, or that say that something failed.

    Example:
        >>> extent("a.py:3: error: x\\nb.py:4: error: y\\n")
        2
        >>> extent("a.py:3: error: x\\nFound 31 errors in 9 files\\n")
        31
    """
    lines = [line[:LONGEST_LINE] for line in text[:LONGEST].splitlines()]
    told = (number for line in lines for pair in _COUNTS.findall(line) for number in pair)
    most = max((int(number) for number in told if number), default=0)
    return most or sum(1 for line in lines if _SAYS.match(line) or _PLACE.search(line))


def exit_code_in(text: str) -> int | None:
    """The exit code that is written into a tool's text, or None.

    Example:
        >>> exit_code_in("Exit code 2\\nmake: *** No rule"), exit_code_in("fine")
        (2, None)
        >>> exit_code_in("[The command completed with exit code 1.]")
        1
    """
    found = _forms().exit_code.findall(ends(text))
    return int(found[-1]) if found else None


def says_failed(
    text: str, *, changes: bool = False, runs: bool = False, reads: bool = False
) -> bool | None:
    """Whether a tool's text says by itself that the call failed; None: it says nothing of it.

    Args:
        text: what it gave.
        changes: the tool was to change a file.
        runs: it was to run a command.
        reads: it was to show something: what is more than a few words is that, and no refusal.

    Example:
        >>> says_failed("Error: there is no such file"), says_failed("3 files")
        (True, None)
        >>> says_failed("bash: line 1: rg: command not found\\n", runs=True)
        True
    """
    data, shown = _forms(), ends(text).strip()
    code = exit_code_in(shown) if changes or runs else None
    if code is not None:
        return code != 0
    lines = [line for line in shown.splitlines() if line.strip()]
    if runs:
        failed = _shell_failed(shown, lines, data)
    elif _json_error(shown, data) is not None:
        failed = True
    elif reads and (len(lines) > _FEW or len(shown) > LONGEST_LINE):
        failed = False
    else:
        failed = shown[:60].casefold().startswith(data.says_failed) or _is_shells(lines, data)
    failed = failed or (changes and data.says_refused.search(shown) is not None)
    return True if failed else None


def unframed(text: str) -> tuple[str, str]:
    """(an output without what a scaffold puts behind each, the file that is open in it or "").

    Example:
        >>> unframed("edited\\n(Open file: /src/app.py)\\n(Current directory: /src)\\nbash-$")
        ('edited', '/src/app.py')
    """
    found = _forms().framing.search(text, max(0, len(text) - LOOKED_AT))
    if found is None:
        return text, ""
    file = found["file"].strip()
    return text[: found.start()], "" if file.casefold() in {"n/a", "none"} else file


def error_in(text: str) -> str:
    """What an answer that is JSON says of an error, or "".

    Example:
        >>> error_in('{"error": "No presentation is loaded"}')
        'No presentation is loaded'
    """
    return _json_error(ends(text).strip(), _forms()) or ""


def _json_error(shown: str, data: _Forms) -> str | None:
    """What an answer that is JSON says of an error as a whole, not of one of many things; None: of none."""
    if shown[:1] not in {"{", "[", '"'} or not shown:
        return None
    try:
        answer: Any = json.loads(shown)
    except (ValueError, RecursionError):  # cut, or in another form
        found = data.json_says.search(shown[:_HEAD])
        return None if found is None else found["said"] or ""
    for _ in range(_WRAPPED):
        if isinstance(answer, list) and len(answer) == 1:
            answer = answer[0]
        if isinstance(answer, dict) and set(answer) <= {"type", "text", "annotations", "content"}:
            answer = answer.get("text", answer.get("content"))
        if isinstance(answer, str):
            try:
                answer = json.loads(answer)
            except (ValueError, RecursionError):
                return None
    return _error_of(answer) if isinstance(answer, dict) else None


def _error_of(answer: Mapping[str, Any]) -> str | None:
    told = {str(name).casefold(): value for name, value in answer.items()}
    for name in ("error", "err", "error_message", "errormessage"):
        value = told.get(name)
        if isinstance(value, dict):
            value = value.get("message", True)
        if value is True:
            return ""
        if isinstance(value, str) and len(value) >= _SENTENCE:
            return value[:300]
    has_failed = any(told.get(name) is True for name in ("iserror", "is_error"))
    has_failed = has_failed or any(told.get(name) is False for name in ("success", "ok"))
    if has_failed or str(told.get("status")).casefold() == "error":
        said = next((told[name] for name in ("message", "reason", "detail") if name in told), "")
        return said[:300] if isinstance(said, str) else ""
    return None


def is_wrong_form(text: str) -> bool:
    """Whether a scaffold says that what its agent answered is in no form that it takes."""
    return _forms().wrong_form.search(text.lstrip()[:_HEAD]) is not None


def ends(text: str, most: int = LOOKED_AT) -> str:
    """Both ends of a text, so many characters of each."""
    return text if len(text) <= 2 * most else f"{text[:most]}\n{text[-most:]}"


def _shell_failed(shown: str, lines: Sequence[str], data: _Forms) -> bool:
    """Whether a shell, or an interpreter that died, says so where nobody tells an exit code."""
    head = shown[:60].casefold()
    if _is_shells(lines, data) or head.startswith(_SHELL_SAYS):
        return True
    has_stack = "Traceback (most recent call last)" in shown or 'File "' in shown
    return has_stack and data.died.match(lines[-1].strip()[:LONGEST_LINE]) is not None


def _is_shells(lines: Sequence[str], data: _Forms) -> bool:
    """Whether an output is a shell's own words, as a whole."""
    return 0 < len(lines) <= _FEW and all(
        data.shell_says.match(line.strip()[:LONGEST_LINE]) for line in lines
    )


def _tests(text: str, data: _Forms) -> Outcome:
    """How tests went, as far as a text says that."""
    most: dict[str, int] = {}
    seen, single, loose = False, 0, True
    for line in text.splitlines():
        low = line[:LONGEST_LINE].casefold()
        if not any(hint in low for hint in _HINTS):
            continue
        if any(form.search(line[:LONGEST_LINE]) for form in data.one_failed):
            single += 1
            loose = loose and line.lstrip()[:1] in _MARKS
        for form in data.tests:
            found = form.search(line[:LONGEST_LINE])
            if found is None:
                continue
            seen = True
            is_of_tests = "test" in low or low.startswith(("failed (", "[  failed"))
            groups = found.groupdict()
            loose = loose and bool(groups) and not groups.get("passed") and not is_of_tests
            for name, number in groups.items():
                most[name] = max(most.get(name, 0), int(number or 0))
    if not seen and not single:
        return Outcome()
    failed = most.get("failed", 0) + most.get("errors", 0)
    counted = "failed" in most or "errors" in most
    failed = failed if failed or (counted and seen) else single
    passed = most.get("passed", 0 if failed else 1)
    return Outcome(passed=passed, failed=failed, has_tests=True, is_loose=loose)


@dataclass(frozen=True, slots=True)
class _Forms:
    """What the file says."""

    tests: tuple[re.Pattern[str], ...]
    one_failed: tuple[re.Pattern[str], ...]
    says: _core.PatternSet
    not_begun_codes: frozenset[int]
    timed_out_code: int
    exit_code: re.Pattern[str]
    says_failed: tuple[str, ...]
    says_refused: re.Pattern[str]
    shell_says: re.Pattern[str]
    died: re.Pattern[str]
    wrong_form: re.Pattern[str]
    json_says: re.Pattern[str]
    framing: re.Pattern[str]


@cache
def _forms() -> _Forms:
    said = load_file(FILE)
    patterns = [
        {"id": name, "signals": [{"regex": form, "slow": True} for form in said[name]]}
        for name in _SAYS_THAT
    ]
    says = _core.PatternSet(json.dumps({"version": 2, "patterns": patterns}))
    return typed(_Forms, said, says=says)
