"""Whether an agent may end with what it says: a claim of success is held against what its checks showed.

Only what is claimed plainly is looked at, and only what the run itself speaks against, or what nothing in
it bears out: where loki cannot tell, it lets the words pass. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256

from loki.decision.monitor.check_evidence import bearing
from loki.decision.monitor.monitor_state import Evidence, MonitorState, RunningCall
from loki.decision.monitor.success_claim import Claim, admits, claims
from loki.memory.quote import one_line, quoted

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
