"""What a triage agent's answer means, whatever stands round its verdict; and what is kept of a triage.

How it is read, and what an echo is: ``docs/design/triage.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field, ValidationError

from loki.jobs.recurring.recurring_run import KeptModel, Moment
from loki.memory.quote import one_line, plain

if TYPE_CHECKING:
    from loki.memory.store import Store

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

MOST, LONGEST_JSON = 20, 20_000
"""Objects of JSON that are looked at, the last ones, and characters of one; chosen, not measured."""

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
_SIGNS = re.compile(r"[\W_]+")
_OBJECT = re.compile(r"^[ \t]{0,20}\{", re.MULTILINE)
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
    found = [*_written(text, asked), *_in_json(text, asked)]
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
        lines = prompt.splitlines()
        self._lines = frozenset(filter(None, map(_words, lines)))
        self._shown = _words("\n".join((*filter(_QUOTED.match, lines), evidence)))

    def says(self, line: str) -> bool:
        """Whether a line stands in the prompt, as the form of the answer does."""
        return _words(line) in self._lines

    def holds(self, text: str) -> bool:
        """Whether the evidence has a text as it is, whatever its letters are written as."""
        return _words(text) in self._shown

    def shows(self, kind: str, cause: str) -> bool:
        """Whether the evidence names a verdict, and its cause where it has one."""
        said = _words(cause.partition("\n")[0])[:CAUSE_LENGTH]
        is_named = _words(f"verdict {kind}") in self._shown
        return is_named and (not said or f"root cause {said}" in self._shown)


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
    for block in _blocks(_fields(text)):
        head, after = block[0], block[1:]
        if head.name != "verdict":
            before = block
            continue
        # One that ends the answer has its grounds before it.
        said = {one.name: one.text for one in reversed(after or before)}
        before = []
        named = head.text.partition("\n")[0]
        kind, cause = kind_of(named), said.get("root_cause", "")
        if asked.shows(kind, cause) if kind else asked.says(head.line):
            continue
        if kind:
            yield head.at, _verdict(kind, said)
        else:
            value = one_line(plain(named), 80)
            yield head.at, Verdict(problem=f"its last verdict names no kind, or several: {value}")


def _blocks(fields: list[_Field]) -> list[list[_Field]]:
    """Fields by the verdict that they follow; those before the first are the first block."""
    blocks: list[list[_Field]] = []
    for one in fields:
        if one.name == "verdict" or not blocks:
            blocks.append([])
        blocks[-1].append(one)
    return blocks


def _in_json(text: str, asked: Asked) -> Iterator[tuple[int, Verdict]]:
    """Where the last objects stand that begin a line and say a verdict, and which."""
    decoder, done = json.JSONDecoder(), 0
    for start in [match.end() - 1 for match in _OBJECT.finditer(text)][-MOST:]:
        if start < done:
            continue
        try:
            found, length = decoder.raw_decode(text[start : start + LONGEST_JSON])
        except (ValueError, RecursionError):
            continue
        done = start + length
        said = {_name(key): _text(value) for key, value in found.items()}
        kind, cause = kind_of(said.get("verdict", "")), said.get("root_cause", "")
        # Records of programs name verdicts too: one without a cause says nothing else, then.
        is_one = bool(cause) or said.keys() <= {"verdict", *_FIELDS}
        if kind and is_one and not asked.holds(text[start:done]) and not asked.shows(kind, cause):
            yield start, _verdict(kind, said)


def _name(key: str) -> str:
    return re.sub(r"[^a-z]", "_", key.strip().casefold()[:40])


def _text(value: object) -> str:
    """What an object says, as text; a list as lines."""
    if isinstance(value, list):
        return "\n".join(map(_text, value[:100]))
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


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


def _verdict(kind: str, said: Mapping[str, str]) -> Verdict:
    cause, evidence, action = (said.get(name, "") for name in _FIELDS)
    return Verdict(
        kind,
        one_line(cause.strip().strip("*`").strip(), CAUSE_LENGTH),
        plain(evidence).strip()[:TEXT_LENGTH].rstrip(),
        plain(action).strip()[:TEXT_LENGTH].rstrip(),
    )


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


REFUSED = ".refused.jsonl"
"""Ends the name of the log of what the agent of a triage was refused."""


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


def refusals(store: Store, task: str, number: int) -> Iterator[Refusal]:
    """What the agent of a triage tried and was refused."""
    for record in store.scan(document(task, number, REFUSED)):
        try:
            yield Refusal.model_validate(record)
        except ValueError:
            yield Refusal(what=str(record.get("what", ""))[:500])


def document(task: str, number: int, suffix: str = ".json") -> str:
    """The name of a document of a triage.

    Example:
        >>> document("backup", 1, ".prompt.md")
        'recurring/backup/triage/1.prompt.md'
    """
    return f"recurring/{task}/triage/{number}{suffix}"
