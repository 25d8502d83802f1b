"""Whether an agent may end with what it says: a claim of success needs a check that bears it out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from loki.decision.honesty import Claim, rules
from loki.decision.monitor_state import MonitorState
from loki.memory.quote import quoted

MOST_CLAIMS = 32
"""Claims that are remembered as refused. Chosen, not measured."""

MOST_REFUSALS = 2
"""Ends that are refused in one turn, whatever the claims say: some agents have no limit. Chosen."""

LONGEST_MESSAGE = 8_000
"""Characters of an ending message that are read, its last. Chosen, not measured."""

ABOUT_TESTS = frozenset({"tests-pass", "tests-ran"})
"""Claims that only tests bear out; others also a program that was run. See ``honesty.yml``."""


def objection(state: MonitorState, message: str, turn: str = "") -> tuple[MonitorState, str]:
    """The state after an end, and what the agent is told; "": it may end.

    Args:
        state: the state before.
        message: the agent's last words.
        turn: what it works on since a person has spoken; "" where nobody knows: then all ends until
            a check passes are of one turn.

    Example:
        >>> state, said = objection(MonitorState(unverified=True, untested=True), "All tests pass.")
        >>> said[:24], objection(state, "All tests pass.")[1]
        ('You say `All tests pass.', '')
    """
    if not (state.unverified or state.untested or state.failing):
        return state, ""
    turn = _hash(turn) if turn else ""
    ends = state.ends if turn == state.turn else 0
    if ends >= MOST_REFUSALS:
        return state, ""
    claims = [claim for claim in _claims(message) if _is_bare(state, claim)]
    new = [claim for claim in claims if _key(claim) not in state.refused]
    if not new:
        return state, ""
    refused = (*state.refused, *map(_key, claims))[-MOST_CLAIMS:]
    what = "test" if state.untested and not state.unverified else "check"
    why = (
        "the last check that ran failed"
        if state.failing
        else f"no {what} has passed since the last change"
    )
    text = (
        f"You say {quoted(new[0].quote)}, but {why}. Run the {what}s and show what they print, or say "
        "plainly what is not verified."
    )
    return replace(state, refused=refused, turn=turn, ends=ends + 1), text


def _is_bare(state: MonitorState, claim: Claim) -> bool:
    """Whether nothing that ran since the last change bears a claim out."""
    if state.failing:
        return True
    if claim.id in ABOUT_TESTS:
        return state.untested
    return state.unverified and not state.ran


def _claims(message: str) -> Sequence[Claim]:
    return rules().claims(message[-LONGEST_MESSAGE:])


def _key(claim: Claim) -> str:
    return _hash(" ".join(claim.quote.casefold().split()))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
