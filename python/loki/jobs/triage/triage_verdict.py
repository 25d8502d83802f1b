"""What a triage agent's answer means, whatever stands round its verdict; and what is kept of a triage.

How it is read, and what an echo is: ``docs/design/triage.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import Field, ValidationError

from loki.jobs.recurring.recurring_run import KeptModel, Moment
from loki.memory.quote import one_line, plain

# --- JSON objects in a text, in time linear in its length ---------------------------------------------

MOST = 20
"""Objects of a text that are looked at, the last ones; chosen, not measured."""

LONGEST_JSON = 20_000
"""Characters of one; chosen, not measured."""

_START = re.compile(r"^[ \t]{0,20}\{", re.MULTILINE)


def objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The last objects of a text, each of which begins a line: start, end and what it says.

    Example:
        >>> [said for _, _, said in objects('So:\\n```json\\n{"a": 1}\\n```')]
        [{'a': 1}]
    """
    decoder = json.JSONDecoder()
    starts = [match.end() - 1 for match in _START.finditer(text)][-MOST:]
    done = 0
    for start in starts:
        if start < done:
            continue
        try:
            said, length = decoder.raw_decode(text[start : start + LONGEST_JSON])
        except (ValueError, RecursionError):
            continue
        done = start + length
        yield start, done, said


def told(said: Mapping[str, Any], name: str) -> str:
    """What an object says under a name in any spelling, as text; a list as lines.

    Example:
        >>> told({"Root Cause": ["a", "b"]}, "root_cause")
        'a\\nb'
    """
    for key, value in said.items():
        if _name(key) == name:
            values = value if isinstance(value, list) else [value]
            return "\n".join(_text(one) for one in values[:100])
    return ""


def named(said: Mapping[str, Any]) -> set[str]:
    """The names that an object says something under, in one spelling."""
    return {_name(key) for key in said}


def _name(key: str) -> str:
    return re.sub(r"[^a-z]", "_", key.strip().casefold()[:40])


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


# --- The verdict of an answer -------------------------------------------------------------------------

NOOP, FILE_FIX, PAUSE, RECOMMEND_CONFIG = "NOOP", "FILE-FIX", "PAUSE", "RECOMMEND-CONFIG"

KINDS = (NOOP, FILE_FIX, PAUSE, RECOMMEND_CONFIG)
"""What a verdict may be."""

LONGEST = 200_000
"""Characters of an answer that are read, its last ones: the verdict ends it. Chosen, not measured."""

CAUSE_LENGTH, TEXT_LENGTH = 200, 4000
"""Characters kept of a root cause, and of evidence or an action. Chosen, not measured."""

MARGIN = "| "
"""Begins each line of evidence in a prompt: an echo of it is no line of a verdict."""

NEAR = 1000
"""Characters round a verdict in which the evidence says the cause that goes with it. Chosen."""

_FIELDS = ("root_cause", "evidence", "action_taken")

_QUOTED = re.compile(r"\s*[|>]")
_FIELD = re.compile(
    r"\s{0,20}(?:[-+*#]{1,6}\s{1,4}|\d{1,3}[.)]\s{1,4})?[*_`]{0,3}"
    r"(VERDICT|ROOT[_ -]?CAUSE|EVIDENCE|ACTION[_ -]?TAKEN)[*_`]{0,3}\s{0,4}"
    r"(?:[:=][*_`]{0,3}\s?(.*)|)$",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"(?<=[^\s;,])[ \t;,]{1,8}(?=(?:ROOT_CAUSE|EVIDENCE|ACTION_TAKEN):)")
_WORD = re.compile(
    r"\b(?:(NO[-_ ]?OP)|(FILE[-_ ]?FIX)|(PAUSE)|(RECOMMEND[-_ ]?CONFIG))\b", re.IGNORECASE
)
_SHOWN = re.compile(r"\bverdict (no ?op|file ?fix|pause|recommend ?config)\b")
_SIGNS = re.compile(r"[\W_]+")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})[\w-]*\s*$")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a triage agent concluded.

    Attributes:
        kind: one of `KINDS`.
        root_cause: one line, or "".
        evidence: some lines, or "".
        action: what it says that it did, or wants done, or "".
        problem: why nothing could be read of its answer; "" where something could.
    """

    kind: str = NOOP
    root_cause: str = ""
    evidence: str = ""
    action: str = ""
    problem: str = ""

    @property
    def is_readable(self) -> bool:
        """Whether the agent gave one."""
        return not self.problem


def parse(answer: str, prompt: str = "", evidence: str = "") -> Verdict:
    """The last verdict of an answer.

    Args:
        answer: all that the agent said; anything.
        prompt: what it was asked: a verdict that only repeats a part of it is none.
        evidence: what it could read besides: a verdict that stands there with its cause is quoted.

    Returns:
        The verdict, NOOP with a ``problem`` where there is none to read.

    Example:
        >>> parse("**VERDICT:** pause\\nROOT_CAUSE: the token expired").kind
        'PAUSE'
        >>> parse("all is well").problem
        'no verdict in it'
    """
    text = _BESIDE.sub("\n", answer[-LONGEST:].replace("\r\n", "\n").replace("\r", "\n"))
    asked = Asked(prompt, evidence)
    found = list(_written(text, asked))
    for start, end, said in objects(text):
        kind = kind_of(told(said, "verdict"))
        cause, *rest = (told(said, name) for name in _FIELDS)
        # Records of programs name verdicts too: one without a cause says nothing else, then.
        is_one = bool(cause) or named(said) <= {"verdict", *_FIELDS}
        if kind and is_one and not (asked.holds(text[start:end]) or asked.shows(kind, cause)):
            found.append((start, _verdict(kind, cause, *rest)))
    if not found:
        said_last = one_line(plain(text[-2000:]).strip().rpartition("\n")[2], 120)
        return Verdict(
            problem=f"no verdict in it{f'; it ends: {said_last}' if prompt and said_last else ''}"
        )
    return max(found, key=lambda one: one[0])[1]


def kind_of(value: str) -> str | None:
    """The verdict that a value names; None: it names none, or more than one.

    Example:
        >>> kind_of("`file fix`"), kind_of("NOOP|FILE-FIX|PAUSE|RECOMMEND-CONFIG")
        ('FILE-FIX', None)
    """
    head = value.strip(" \t*_`\"'.=:")[:200]
    named = {KINDS[(match.lastindex or 1) - 1] for match in _WORD.finditer(head)}
    return named.pop() if len(named) == 1 and _WORD.match(head) else None


class Asked:
    """What a prompt says, to tell an echo by.

    Args:
        prompt: the prompt.
        evidence: what could be read besides.
    """

    def __init__(self, prompt: str, evidence: str = "") -> None:
        shown = (line for line in prompt.splitlines() if _QUOTED.match(line))
        self._near = _round_verdicts(_words("\n".join((*shown, evidence))))
        self._lines = frozenset(filter(None, map(_words, prompt.splitlines())))
        self._whole = _words(f"{prompt}\n{evidence}")

    def says(self, line: str) -> bool:
        """Whether a line stands in it."""
        return _words(line) in self._lines

    def holds(self, text: str) -> bool:
        """Whether a text of some lines stands in it, or in the evidence, as it is."""
        return _words(text) in self._whole

    def shows(self, kind: str, cause: str) -> bool:
        """Whether the evidence names a verdict, together with a cause where there is one: a quotation.

        A cause that stands elsewhere is no quotation of both: what is wrong is often printed.
        """
        said = f"root cause {_words(cause)[:CAUSE_LENGTH]}" if cause else ""
        return kind in self._near and said in self._near[kind]


def _round_verdicts(evidence: str) -> dict[str, str]:
    """By kind, what stands `NEAR` where the words of some evidence name it."""
    spans: dict[str, list[list[int]]] = {}
    for match in _SHOWN.finditer(evidence):
        kind = kind_of(match[1]) or ""
        start, end = max(0, match.start() - NEAR), match.end() + NEAR
        of_kind = spans.setdefault(kind, [])
        if of_kind and start <= of_kind[-1][1]:
            of_kind[-1][1] = end
        else:
            of_kind.append([start, end])
    return {kind: "\n".join(evidence[a:b] for a, b in of_kind) for kind, of_kind in spans.items()}


def _words(text: str) -> str:
    """A text without what quotes, stresses or parts its words."""
    return _SIGNS.sub(" ", text.casefold()).strip()


@dataclass(slots=True)
class _Field:
    name: str
    at: int
    line: str
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def _written(text: str, asked: Asked) -> Iterator[tuple[int, Verdict]]:
    """Where verdicts stand that are written as lines, and which; also those that name no kind."""
    before: list[_Field] = []
    for block in _own(_blocks(_fields(text)), asked):
        is_verdict = bool(block) and block[0].name == "verdict"
        kind = kind_of(block[0].text.partition("\n")[0]) if is_verdict else None
        if kind is not None:
            # One that ends the answer has its grounds before it.
            said = {one.name: one.text for one in reversed(block[1:] or before)}
            yield block[0].at, _verdict(kind, *(said.get(name, "") for name in _FIELDS))
        elif is_verdict:
            value = one_line(plain(block[0].text.partition("\n")[0]), 80)
            yield (
                block[0].at,
                Verdict(problem=f"its last verdict names no kind, or several: {value}"),
            )
        before = [one for one in block if one.name != "verdict"]


def _blocks(fields: list[_Field]) -> list[list[_Field]]:
    """Fields by the verdict that they follow; those before the first are the first block."""
    blocks: list[list[_Field]] = [[]]
    for one in fields:
        if one.name == "verdict":
            blocks.append([])
        blocks[-1].append(one)
    return blocks


def _own(blocks: list[list[_Field]], asked: Asked) -> list[list[_Field]]:
    """The blocks that are no echoes; what an echo says is a part of the field before it."""
    own: list[list[_Field]] = []
    for block in blocks:
        if not (own and block and _is_echo(block, asked)):
            own.append(block)
            continue
        for one in block:
            # Its verdict and its cause were quoted together; whatever else follows may be the agent's.
            if one.name not in {"verdict", "root_cause"} and not asked.says(one.line):
                own[-1].append(one)
            elif own[-1]:
                own[-1][-1].lines += [one.line, *one.lines[1:]]
    return own


def _is_echo(block: list[_Field], asked: Asked) -> bool:
    """Whether a verdict was asked for in these words, or shown with its cause, or with none given."""
    if block[0].name != "verdict":
        return False
    kind = kind_of(block[0].text.partition("\n")[0])
    at = next((at for at, one in enumerate(block) if one.name == "root_cause"), 0)
    cause = block[at].text.partition("\n")[0] if at else ""
    if not (kind and cause):
        return asked.says(block[0].line) or bool(kind and asked.shows(kind, ""))
    between = (line for one in block[:at] for line in (one.line, *one.lines[1:]))
    return asked.shows(kind, cause) or asked.holds("\n".join((*between, block[at].line)))


def _fields(text: str) -> list[_Field]:
    found: list[_Field] = []
    at = 0
    for line in text.split("\n"):
        here, at = at, at + len(line) + 1
        match = None if _QUOTED.match(line) else _FIELD.match(line)
        if match is not None and (match[2] is not None or _is_heading(line)):
            name = re.sub(r"[ -]", "_", match[1].lower()).replace("rootc", "root_c")
            name = name.replace("actiont", "action_t")
            found.append(_Field(name, here, line, [(match[2] or "").rstrip(" \t")]))
        elif found and not _FENCE.match(line):
            found[-1].lines.append(line.rstrip())
    return found


def _is_heading(line: str) -> bool:
    return line.lstrip()[:1] in {"#", "*", "_"}


def _verdict(kind: str, root_cause: str, evidence: str, action: str) -> Verdict:
    return Verdict(
        kind,
        one_line(_unstressed(root_cause), CAUSE_LENGTH),
        plain(evidence).strip()[:TEXT_LENGTH].rstrip(),
        plain(action).strip()[:TEXT_LENGTH].rstrip(),
    )


def _unstressed(text: str) -> str:
    return text.strip().strip("*`").strip()


# --- What is kept of a triage -------------------------------------------------------------------------

Status: TypeAlias = Literal["running", "done", "failed"]


class Refusal(KeptModel):
    """Something that a triage agent tried and was not let.

    Attributes:
        at: when; None where nobody knows.
        what: the command, with secrets masked, or what it changed.
    """

    at: Moment | None = None
    what: str = ""


class TriageRecord(KeptModel):
    """A triage; unknown fields are kept.

    Attributes:
        id: ``.triage-<task>-<number>``; title, tags: as of any task.
        task_id: the recurring task; number: 1, 2, … of it.
        agent: who is asked; model, tokens, cost: what it took, cost in US dollars, where known.
        status: running, done, or failed: it came to no answer; reason: why it failed.
        failures: the task's failures in a row when it began.
        verdict, root_cause, evidence, action_taken: what the agent said.
        problem: why nothing could be read of its answer.
        acted: what loki did about the verdict, in a sentence; fix: id of the task that it submitted.
        recommendation: what the agent asks for and loki does not do.
        refused: what it tried to change and could not.
        meanwhile: definitions and queue entries that changed while it ran, by whom nobody can tell.
        prompt, answer: names of the documents that hold them.
    """

    id: str
    number: int = Field(ge=1)
    task_id: str
    title: str = ""
    tags: tuple[str, ...] = ()
    agent: str = ""
    model: str = ""
    tokens: int | None = None
    cost: float | None = None
    status: Status
    started_at: Moment
    ended_at: Moment | None = None
    reason: str = ""
    failures: int = 0
    verdict: str = ""
    root_cause: str = ""
    evidence: str = ""
    action_taken: str = ""
    problem: str = ""
    acted: str = ""
    fix: str = ""
    recommendation: str = ""
    refused: tuple[Refusal, ...] = ()
    meanwhile: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As it is kept, JSON-able."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_text(self) -> str:
        """What its file says."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"


def read_triage(text: str) -> TriageRecord | None:
    """A record from its file; None: it is none.

    Example:
        >>> read_triage("[]") is None
        True
    """
    try:
        return TriageRecord.model_validate(json.loads(text))
    except (ValidationError, ValueError, RecursionError):
        return None


def document(task: str, number: int, suffix: str = ".json") -> str:
    """The name of a document of a triage.

    Example:
        >>> document("backup", 1, ".prompt.md")
        'recurring/backup/triage/1.prompt.md'
    """
    return f"recurring/{task}/triage/{number}{suffix}"
