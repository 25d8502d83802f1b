"""Whether an agent may end with what it says: a claim of success needs a check that bears it out. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256

from loki.decision.background import bearing
from loki.decision.honesty import Claim, rules
from loki.decision.monitor_state import Going, MonitorState
from loki.memory.quote import one_line, quoted

MOST_CLAIMS = 32
"""Claims that are remembered as refused. Chosen, not measured."""

MOST_REFUSALS = 2
"""Ends that are refused in one turn, whatever the claims say: some agents have no limit. Chosen."""

LONGEST_MESSAGE = 8_000
"""Characters of an ending message that are read, its last. Chosen, not measured."""

ABOUT_TESTS = frozenset({"tests-pass", "tests-ran"})
"""Claims that only tests bear out; others also a program that was run. See ``honesty.yml``."""


_SENTENCE = re.compile(r"[!?;\n]|\.(?=\s|$)")
_FAILS = re.compile(r"(?i)\b(?:fail(?:s|ing|ed|ures?)?|red|broken)\b")
_MENDED = re.compile(
    r"(?i)\b(?:fixed|mended|repaired|resolved|solved|no longer|pass(?:es|ing)? now|now pass(?:es)?)\b"
)


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
        >>> state, said = objection(MonitorState(unverified=True, untested=True), "All tests pass.")
        >>> said[:24], objection(state, "All tests pass.")[1]
        ('You say `All tests pass.', '')
    """
    judged, going = bearing(state, running)
    if not (judged.unverified or judged.untested or judged.failing):
        return state, ""
    turn = _hash(turn) if turn else ""
    ends = state.ends if turn == state.turn else 0
    if ends >= MOST_REFUSALS:
        return state, ""
    claims = [claim for claim in _claims(message) if _is_bare(judged, claim, going)]
    new = [claim for claim in claims if _key(claim) not in state.refused]
    if not new or _tells_of_failure(state, message):
        return state, ""
    refused = (*state.refused, *map(_key, claims))[-MOST_CLAIMS:]
    what = "test" if state.untested and not state.unverified else "check"
    why = (
        "the last check that ran failed"
        if state.failing
        else f"no {what} has passed since the last change"
    )
    todo = f"Run the {what}s and show what they print"
    if going is not None:
        why = f"{quoted(one_line(going.command))} still runs in the background"
        todo = "Wait until it has ended and show what it prints"
    text = (
        f"You say {quoted(new[0].quote)}, but {why}. {todo}, or say plainly what is not verified."
    )
    return replace(state, refused=refused, turn=turn, ends=ends + 1), text


def _is_bare(state: MonitorState, claim: Claim, going: Going | None) -> bool:
    """Whether nothing that ran since the last change bears a claim out."""
    if going is not None:  # who waits for it may say that the work is done
        return going.runs_tests and claim.id in ABOUT_TESTS and (state.untested or state.failing)
    if state.failing:
        return True
    if claim.id in ABOUT_TESTS:
        return state.untested
    return state.unverified and not state.ran


def _tells_of_failure(state: MonitorState, message: str) -> bool:
    """Whether a message names a test that fails, and says that it does: who does hides nothing."""
    failing = {
        test.rpartition("::")[2].partition("[")[0]
        for one in state.seen.sightings
        if (look := state.looks.get(one.failure.fingerprint)) and look.change == state.change
        for test in one.failure.tests
    }
    parts = _SENTENCE.split(message[-LONGEST_MESSAGE:])
    return any(
        _FAILS.search(part) and not _MENDED.search(part) and any(name in part for name in failing)
        for part in parts
    )


def _claims(message: str) -> Sequence[Claim]:
    return rules().claims(message[-LONGEST_MESSAGE:])


def _key(claim: Claim) -> str:
    return _hash(" ".join(claim.quote.casefold().split()))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
