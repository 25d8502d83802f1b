"""What a message claims of checks and tests: in plain words, of now, without any reserve. Pure.

The words are data, in ``honesty.yml`` and ``success-claim.yml``; what stands round them is judged by
structure:
headings, questions, quotations, lists of what is to do, figures that admit failures. One table for all
who hold an agent's words against a record: the monitor, hooks and adapters
(`loki.decision.monitor.completion_check`), the
loop (`loki.action.loop.claim_check`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from loki.decision.honesty import rules
from loki.decision.prose import prose_of, sentences

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FILE = Path(__file__).with_name("success-claim.yml")

ABOUT_TESTS = frozenset({"tests-pass", "tests-ran"})
"""Claims that only tests bear out."""

_FIGURES = re.compile(  # bounded: linear, and no number that `int` refuses
    r"(?<![\d,.])(\d[\d,]{0,11}) ?(?:/|of|out of|von|sur|de|di|из) ?(\d[\d,]{0,11})(?!\d)"
)
_SHARE = re.compile(r"(?<![\d.])(\d{1,2}(?:\.\d+)?) ?%")
_LAST_WORDS = 400
_STOPS = re.compile(r"[\u3002\uff01\uff1f]")
_NO_SENTENCE = ("?", ":", "…", "...", "\uff1f", "\uff1a")


@dataclass(frozen=True, slots=True)
class Claim:
    """What a message says of checks, to be compared with what they said.

    Attributes:
        id: ``tests-pass``, ``all-pass``, ``fixed`` or ``tests-ran``.
        span: where the sentence stands in the message, (begin, end) in code points.
        quote: the sentence, as it was written.
    """

    id: str
    span: tuple[int, int]
    quote: str

    @property
    def is_about_tests(self) -> bool:
        """Only tests bear it out."""
        return self.id in ABOUT_TESTS

    @property
    def is_of_now(self) -> bool:
        """It says how things are, not what was done once."""
        return self.id != "tests-ran"

    @property
    def is_of_all(self) -> bool:
        """It speaks of all tests, or of all that there is, and not of some of them."""
        if not self.is_about_tests:
            return self.id == "all-pass"
        return _says("of_all", self.quote) and not _says("of_some", self.quote)


def claims(message: str) -> list[Claim]:
    """What a message claims plainly, in its order.

    Args:
        message: any text, Markdown where it has marks.

    Example:
        >>> [claim.id for claim in claims("Fixed the parser. All tests pass.")]
        ['tests-pass']
        >>> claims("All tests should pass now. 41 of 43 tests pass.")
        []
    """
    return [
        Claim(name, span, message[slice(*span)])
        for name, span in rules().claimed(message)
        if _is_plain(message, span)
    ]


def admits(message: str) -> bool:
    """Whether a message tells of tests that fail, of what could not be checked, or that it goes on.

    Example:
        >>> admits("All related tests pass; 2 failures are pre-existing."), admits("All 12 tests pass.")
        (True, False)
    """
    goes_on = _says("goes_on", prose_of(message).strip()[-_LAST_WORDS:])
    return goes_on or any(_admits(sentence.text) for sentence in sentences(message))


def _admits(sentence: str) -> bool:
    """Whether a sentence tells of what fails now; what it tells of as mended is none of it."""
    left = _forms()["mended"].sub(" ", sentence)
    return _says("admits", left) or _shows_less(left)


def _is_plain(message: str, span: tuple[int, int]) -> bool:
    """Whether a sentence says what is so now, without any reserve."""
    begin, end = span
    line_begin = message.rfind("\n", 0, begin) + 1
    line_end = message.find("\n", end)
    line = message[line_begin : line_end if line_end >= 0 else len(message)]
    said = message[begin:end]
    if _says("heading", line) or said.rstrip().endswith(_NO_SENTENCE):
        return False
    if _is_taken_back(said, message[end : end + _LAST_WORDS]) or _is_to_come(message[:line_begin]):
        return False
    parts = [part for part in _STOPS.split(said) if part.strip()]
    if len(parts) > 1:  # marks that end sentences elsewhere
        parts = [part for part in parts if rules().claimed(part)]
    return any(not _is_reserved(part) for part in parts or [said])


def _is_reserved(said: str) -> bool:
    return _says("reserved", said) or _says("reserved_elsewhere", said) or _shows_less(said)


def _is_taken_back(said: str, behind: str) -> bool:
    """Whether a sentence tells of an earlier moment, or the next one makes it less than it says."""
    past = _says("past", said)
    following = next((sentence.text for sentence in sentences(behind)), "")
    if _says("taken_back", following) or (past and _says("earlier", said)):
        return True
    return past and _says("since", following)


def _is_to_come(before: str) -> bool:
    """Whether the list that a line stands in is one of what is asked for: what heads it says so."""
    for line in reversed(before.split("\n")):
        if not _says("item", line):
            is_head = _says("heading", line) or line.rstrip().endswith(_NO_SENTENCE)
            return is_head and _says("to_come", line)
    return False


def _shows_less(text: str) -> bool:
    """Whether figures admit that not all is well: ``41/43``, ``86 %``, ``2 failed``."""
    if _says("failed", text) or _SHARE.search(text):
        return True
    pairs = [(few.replace(",", ""), many.replace(",", "")) for few, many in _FIGURES.findall(text)]
    return any(int(few) < int(many) for few, many in pairs)


def _says(what: str, text: str) -> bool:
    return _forms()[what].search(text) is not None


@cache
def _forms() -> Mapping[str, re.Pattern[str]]:
    """What the file says, read once."""
    said: Mapping[str, Any] = yaml.load(FILE.read_text("utf-8"), Loader=_Loader)  # noqa: S506
    return {
        name: re.compile("|".join(forms), re.IGNORECASE)
        for name, forms in said.items()
        if name != "version"
    }
