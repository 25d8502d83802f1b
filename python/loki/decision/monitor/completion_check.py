"""Whether an agent may end with what it says: a claim of success is held against what its checks showed.

The words are data, in ``honesty.yml`` and ``success-claim.yml``; what stands round them is judged by
structure: headings, questions, quotations, lists of what is to do, figures that admit failures. One table
for all who hold an agent's words against a record: the monitor, and the loop
(`loki.action.loop.agent_call`).

Only what is claimed plainly is looked at, and only what the run itself speaks against, or what nothing in
it bears out: where loki cannot tell, it lets the words pass. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from loki.base.yaml_text import load_file
from loki.decision.honesty import prose_of, rules, sentences
from loki.decision.monitor.check_evidence import bearing
from loki.decision.monitor.monitor_state import Evidence, MonitorState, RunningCall
from loki.memory.quote import one_line, quoted

# --- What a message claims of checks and tests, plainly -----------------------------------------------

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
    said: Mapping[str, Any] = load_file(FILE)
    return {
        name: re.compile("|".join(forms), re.IGNORECASE)
        for name, forms in said.items()
        if name != "version"
    }


# --- What speaks against a claim ----------------------------------------------------------------------

MOST_CLAIMS = 32
"""Claims that are remembered as refused. Chosen, not measured."""

MOST_REFUSALS = 2
"""Ends that are refused in one turn, whatever the claims say: some agents have no limit. Chosen."""

LONGEST_MESSAGE = 8_000
"""Characters of an ending message that are read, its last. Chosen, not measured."""


def objection(
    state: MonitorState, message: str, turn: str = "", running: Collection[str] | None = None
) -> tuple[MonitorState, str]:
    """The state after an end, and what the agent is told; "": it may end.

    Args:
        state: the state before.
        message: the agent's last words.
        turn: what it works on since a person has spoken; "" where nobody knows: then all ends until
            a check passes are of one turn.
        running: tasks in the background that are known to go on; None: nobody knows.

    Example:
        >>> state, said = objection(MonitorState(evidence=Evidence(edits=1)), "All tests pass.")
        >>> said[:24], objection(state, "All tests pass.")[1]
        ('You say `All tests pass.', '')
    """
    judged, going = bearing(state, running)
    turn = _hash(turn) if turn else ""
    ends = state.ends if turn == state.turn else 0
    if ends >= MOST_REFUSALS or _is_borne_out(judged.evidence):
        return state, ""
    message = message[-LONGEST_MESSAGE:]
    found = [
        (one, why) for one in claims(message) if (why := _against(judged.evidence, one, going))
    ]
    new = [(one, why) for one, why in found if _key(one) not in state.refused]
    if not new or admits(message) or _names(message, judged.evidence.named):
        return state, ""
    refused = (*state.refused, *(_key(one) for one, _ in found))[-MOST_CLAIMS:]
    claim, why = new[0]
    text = f"You say {quoted(claim.quote)}, but {why}, or say plainly what is not verified."
    return replace(state, refused=refused, turn=turn, ends=ends + 1), text


def _is_borne_out(known: Evidence) -> bool:
    """Whether nothing can be said against any claim."""
    return (
        not known.broken and not known.failed and (not known.edits or known.passed == known.edits)
    )


def _against(known: Evidence, claim: Claim, going: RunningCall | None) -> str:
    """What speaks against a claim, and what would bear it out; "": nothing."""
    if going is not None:  # who waits for it may say that the work is done
        if not (going.runs_tests and claim.is_about_tests and known.passed < known.edits):
            return ""
        command = quoted(one_line(going.command))
        return f"{command} still runs in the background: wait until it has ended and show what it prints"
    if not claim.is_about_tests:
        if known.broken and claim.is_of_all:
            return "the last check failed: run it again and show what it prints"
        is_bare = claim.is_of_all and known.edits and max(known.tests, known.ran) < 0
        return "nothing was run: run it and show what it prints" if is_bare else ""
    if known.tests < 0:
        is_bare = bool(known.edits) and (claim.is_of_all or not claim.is_of_now)
        return (
            "no tests were run: run the project's tests and show what they print" if is_bare else ""
        )
    return _against_tests(known) if claim.is_of_all else ""


def _against_tests(known: Evidence) -> str:
    """What speaks against that all tests pass, where some were run."""
    again = f"run {quoted(one_line(known.command, 80)) if known.command else 'them'} again"
    by = f" ({quoted(one_line(known.command, 80))})" if known.command else ""
    if known.failed and known.tests == known.edits:
        return (
            f"the last run of tests{by} ended with {known.failed} failed: mend that, {again} and show "
            "what it prints"
        )
    if max(known.tests, known.ran) >= known.edits:
        return ""  # something ran since the last change: nobody can tell what it shows
    return f"files were changed after the last run of tests{by}: {again} and show what it prints"


def _names(message: str, failing: Sequence[str]) -> bool:
    """Whether a message names a test that fails, and says that it does: who does hides nothing."""
    names = {test.rpartition("::")[2].partition("[")[0] for test in failing} - {""}
    parts = _SENTENCE.split(message)
    return any(
        _FAILS.search(part) and not _MENDED.search(part) and any(name in part for name in names)
        for part in parts
    )


_SENTENCE = re.compile(r"[!?;\n]|\.(?=\s|$)")
_FAILS = re.compile(r"(?i)\b(?:fail(?:s|ing|ed|ures?)?|red|broken)\b")
_MENDED = re.compile(
    r"(?i)\b(?:fixed|mended|repaired|resolved|solved|no longer|pass(?:es|ing)? now|now pass(?:es)?)\b"
)


def _key(claim: Claim) -> str:
    return _hash(" ".join(claim.quote.casefold().split()))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
