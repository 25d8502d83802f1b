"""Rationalizations and red flags in what agents say: found by rules, answered by what to do instead.

The rules are data, in ``honesty.yml``; the pattern engine of recognition matches them. Pure, total,
linear in the message. What is found is a nudge, never a verdict: checks decide, words do not.

Code (fenced, indented, inline) and quotations (``>`` lines, words in quotation marks) are somebody
else's; items of a list that are still to be done are a plan. Positions stay: what is left out becomes
as many blanks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from loki import _core
from loki.base import codec
from loki.base.yaml_text import load_file

# --- What a message says in its author's own words ----------------------------------------------------

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•\u2013]|\d{1,3}[.)]|[✅❌✓✗☑])\s")
_TO_DO = re.compile(r"[ \t]*[-*+] \[ \]")  # what is left to do is a plan
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_RULE = re.compile(r"[ \t]*[|]|[ \t]*(?:[-=_*][ \t]*){3,}$")
_TICKS = re.compile("`+")
_QUOTES = (  # marks that are farther from each other do not belong together: chosen, not measured
    re.compile(r'"(?:[^"\n]|\n(?!\s)){1,999}"'),
    re.compile(r"[“„](?:[^“”„\n]|\n(?!\s)){1,999}[”“]"),
    re.compile(r"[«»](?:[^«»\n]|\n(?!\s)){1,999}[«»]"),
    re.compile(r"(?<![\w'])'[^'\n]{1,80}'(?![\w'])"),
)
_END = re.compile(r"[.!?]{1,9}[\"')\]*_”]{0,9}(?=\s|$)")  # bounded: linear in a row of dots
# Typographic apostrophes, hyphens and blanks, as rules write them.
_SAME_LENGTH = str.maketrans("\u2018\u2019\u2010\u2011\u00a0\t", "''--  ")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: where it stands in the message, and its words as rules see them.

    Attributes:
        begin, end: code points of the message.
        text: as many characters, on one line, in lower case (ASCII), quotations blank.
    """

    begin: int
    end: int
    text: str


def prose_of(message: str) -> str:
    """The message with code and quotations blank; as long as before, with the same lines.

    Example:
        >>> prose_of('I ran `make test`, it "passed"')
        'I ran            , it         '
    """
    kept = _without_inline_code("\n".join(_without_blocks(message.split("\n"))))
    for quote in _QUOTES:
        kept = quote.sub(lambda found: _blank(found[0]), kept)
    return kept


def sentences(message: str) -> list[Sentence]:
    """The sentences of a message's own words, in order; none is empty.

    Example:
        >>> [sentence.text for sentence in sentences("It works. Ran on\\n3 hosts.")]
        ['it works.', 'ran on 3 hosts.']
    """
    words = prose_of(message)
    found: list[Sentence] = []
    for begin, end in _paragraphs(words):
        joined = _lower(words[begin:end]).replace("\n", " ").replace("\r", " ")
        at = 0
        for stop in [*(one.end() for one in _END.finditer(joined)), len(joined)]:
            part = joined[at:stop]
            blank = len(part) - len(part.lstrip())
            if sentence := part.strip():
                start = begin + at + blank
                found.append(Sentence(start, start + len(sentence), sentence))
            at = stop
    return found


def _lower(text: str) -> str:
    """A text as rules see it: in lower case, with plain apostrophes and blanks."""
    # Characters that have no lower case of one character stay: positions must.
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(low if len(low := c.lower()) == 1 else c for c in text)
    return lower.translate(_SAME_LENGTH)


def _without_blocks(lines: list[str]) -> Iterable[str]:
    """Each line, blank where it is code or quoted."""
    fence = ""
    is_code = in_list = False
    after_blank = True
    for line in lines:
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not opened[2].strip():
                fence = ""
            yield " " * len(line)
            continue
        if opened and not (opened[1][0] == "`" and "`" in opened[2]):
            fence, is_code = opened[1], False
            yield " " * len(line)
            continue
        if not line.strip():
            after_blank = True
            yield " " * len(line)
            continue
        indented = line.startswith(("    ", "\t"))
        is_code = indented and not in_list and (is_code or after_blank)
        in_list = bool(_ITEM.match(line)) or (in_list and (indented or line.startswith(" ")))
        after_blank = False
        hidden = is_code or line.lstrip().startswith(">") or _TO_DO.match(line)
        yield " " * len(line) if hidden else line


def _without_inline_code(text: str) -> str:
    """Blank between two runs of as many backticks in one paragraph."""
    runs = list(_TICKS.finditer(text))
    if not runs:
        return text
    breaks = iter([*(found.start() for found in re.finditer(r"\n[ \t]*\n", text)), len(text)])
    following: dict[int, list[int]] = {}
    for index in reversed(range(len(runs))):
        following.setdefault(len(runs[index][0]), []).append(index)
    parts: list[str] = []
    at, border = 0, next(breaks)
    for index, run in enumerate(runs):
        same = following[len(run[0])]
        while same and same[-1] <= index:
            same.pop()
        if run.start() < at:
            continue
        while border < run.start():
            border = next(breaks)
        if not same or runs[same[-1]].start() > border:
            continue
        close = runs[same[-1]].end()
        parts += [text[at : run.start()], _blank(text[run.start() : close])]
        at = close
    return "".join([*parts, text[at:]])


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _paragraphs(text: str) -> Iterable[tuple[int, int]]:
    """(begin, end) of runs of lines that belong together: an item, a heading or a row is its own."""
    begin, at = None, 0
    for line in text.split("\n"):
        end = at + len(line)
        alone = bool(_HEADING.match(line) or _RULE.match(line))
        if begin is not None and (alone or not line.strip() or _ITEM.match(line)):
            yield begin, at - 1
            begin = None
        if alone:
            yield at, end
        elif line.strip() and begin is None:
            begin = at
        at = end + 1
    if begin is not None:
        yield begin, len(text)


# --- Rationalizations and red flags -------------------------------------------------------------------

RATIONALIZATION = "rationalization"
"""The family of the twelve; a red flag is its own family."""

CLOSING = "closing"
"""The context by which a message ends, or goes on to something else."""

FILE = Path(__file__).with_suffix(".yml")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rationalization, or a family of red flags.

    Attributes:
        id: its name, such as ``edge-case``.
        family: ``rationalization``, or the id of the family of red flags.
        name: what it is called.
        why: why it is wrong, a sentence.
        action: what is required instead, a sentence.
        unless: contexts that make it honest in the same sentence; unless_near: also in those
            beside it, in the same paragraph and at its borders; unless_message: anywhere.
        examples: messages that it is found in; counter_examples: messages that it is not found in.
    """

    id: str
    family: str
    name: str
    why: str
    action: str
    unless: frozenset[str] = frozenset()
    unless_near: frozenset[str] = frozenset()
    unless_message: frozenset[str] = frozenset()
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A rationalization or a red flag in a message.

    Attributes:
        id: of the rule, such as ``flaky-tests``.
        family: ``rationalization``, ``hedging``, ``minimizing``, ``scope-change``,
            ``skipped-verification`` or ``unverified-claim``.
        span: where the telling words stand in the message, (begin, end) in code points.
        quote: the sentence that they stand in, as it was written.
        why: why it is wrong.
        action: what is required instead.
    """

    id: str
    family: str
    span: tuple[int, int]
    quote: str
    why: str
    action: str


class Rules:
    """All rules, claims and contexts, compiled; immutable."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        """Args: definition: what ``honesty.yml`` holds.

        Raises:
            ValueError: a rule names a context or a word that there is none of, a regex is refused.
        """
        words = {f"<{name}>": text for name, text in definition["words"].items()}
        entries = [*definition["rationalizations"], *definition["red_flags"]]
        contexts, claims = definition["contexts"], definition["claims"]
        twelve = len(definition["rationalizations"])
        families = [RATIONALIZATION] * twelve + [entry["id"] for entry in definition["red_flags"]]
        rules = [
            codec.parse(Rule, {**entry, "family": family})
            for entry, family in zip(entries, families, strict=True)
        ]
        self.rules: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in rules})
        self._claims = {claim["id"]: frozenset(claim["unless"]) for claim in claims}
        everything = (*entries, *contexts, *claims)
        self._names = [entry["id"] for entry in everything]
        known = {context["id"] for context in contexts}
        for entry in (*entries, *claims):
            unknown = {name for key in _UNLESS for name in entry.get(key, ())} - known
            if unknown:
                raise ValueError(f"{entry['id']} names no context: {sorted(unknown)}")
        self._sentences = _compiled(everything, words)
        self._message = _compiled(contexts, words)

    def scan(self, message: str) -> list[Finding]:
        """What a message shows, in its order; at most one of a rule in a sentence."""
        parts = sentences(message)
        hits = [self._hits(sentence) for sentence in parts]
        if not any(hit.keys() & self.rules.keys() for hit in hits):
            return []
        anywhere = self._contexts(message)
        found = []
        for index, (sentence, hit) in enumerate(zip(parts, hits, strict=True)):
            for name in hit.keys() & self.rules.keys():
                rule = self.rules[name]
                if rule.unless_message & anywhere or rule.unless & hit.keys():
                    continue
                if rule.unless_near & _near(hits, index) and not _is_closed(hits, index):
                    continue
                begin, end = (sentence.begin + at for at in hit[name])
                quote = message[sentence.begin : sentence.end]
                found.append(Finding(name, rule.family, (begin, end), quote, rule.why, rule.action))
        return sorted(found, key=lambda finding: (finding.span, finding.id))

    def claimed(self, message: str) -> list[tuple[str, tuple[int, int]]]:
        """What a message says of checks, in its order: (id, span of the sentence)."""
        found = []
        for sentence in sentences(message):
            hit = self._hits(sentence)
            found += [
                (name, (sentence.begin, sentence.end))
                for name, unless in self._claims.items()
                if name in hit and not unless & hit.keys()
            ]
        return found

    def _hits(self, sentence: Sentence) -> dict[str, tuple[int, int]]:
        """Rule or context to where it hits first."""
        matches = self._sentences.match(sentence.text, "")
        return {
            self._names[index]: min((begin, end) for _, begin, end in places)
            for index, _, _, places in matches
        }

    def _contexts(self, message: str) -> set[str]:
        first = len(self.rules)
        return {
            self._names[first + index]
            for index, _, _, _ in self._message.match(_lower(message), "")
        }


def scan_message(message: str) -> list[Finding]:
    """The rationalizations and red flags in what an agent says, in the order of the message.

    Code (fenced, indented, inline) and quotations are left alone: they are not the agent's own words.

    Args:
        message: any text, Markdown where it has marks; of any size.

    Example:
        >>> for finding in scan_message("Done. One test is flaky."):
        ...     print(finding.id, "→", finding.action)
        flaky-tests → Find out why the test fails now and then, and mend that, before going on.
    """
    return rules().scan(message)


@cache
def rules() -> Rules:
    """The built-in rules."""
    return Rules(load_file(FILE))


_UNLESS = ("unless", "unless_near", "unless_message")
_BLANKS = ((" ?", r"\s*"), (" *", r"\s*"), (" ", r"\s+"))


def _compiled(entries: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> _core.PatternSet:
    def signal(given: str | Mapping[str, Any]) -> dict[str, Any]:
        written = {"regex": given} if isinstance(given, str) else dict(given)
        text: str = written["regex"]
        for name, meaning in (*words.items(), *_BLANKS):
            text = text.replace(name, meaning)
        return {**written, "regex": text}

    patterns = [
        {"id": entry["id"], "signals": [signal(given) for given in entry["signals"]]}
        for entry in entries
    ]
    return _core.PatternSet(json.dumps({"version": 2, "patterns": patterns}))


def _is_closed(hits: list[dict[str, tuple[int, int]]], index: int) -> bool:
    """Whether the next sentence only says that it is over: what stands before it mends nothing of it."""
    return index + 1 < len(hits) and CLOSING in hits[index + 1]


def _near(hits: Sequence[Mapping[str, Any]], index: int) -> frozenset[str]:
    """What hits in a sentence, and in the one before and behind it."""
    return frozenset().union(*(hit.keys() for hit in hits[max(0, index - 1) : index + 2]))
