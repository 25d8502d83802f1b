"""Signs as agents and people read them: the failure, how often, what led there, what it forbids; pure."""

from __future__ import annotations

from collections.abc import Sequence

from loki.base.token_estimate import tokens
from loki.memory.quote import quoted
from loki.memory.sign import APPROACH_LENGTH, Advice, Seen, Sighting
from loki.recognition.failure import Failure

SIGNS_TOKENS = 600
"""Most tokens of the signs in a briefing: as much as a task needs to say what it is about. Chosen."""

OTHERS_TOKENS = 150
"""Most tokens of those that do not bear on the task: one or two. Chosen, not measured."""

EVERY = 10**9
"""A budget for all of them: on the page for people."""

PAGE = "anti-repeat.md"
"""Name of that page."""


def render_sign(sighting: Sighting) -> str:
    """A sign as an agent reads it: the failure, how often, what led there, what it forbids."""
    lines = [f"- Seen {sighting.count} times: {render_failure(sighting.failure)}"]
    for approach in reversed(sighting.approaches):
        times = f" ({approach.count} times)" if approach.count > 1 else ""
        lines.append(f"  - led there{times}: {quoted(approach.text, APPROACH_LENGTH)}")
    others = sighting.count - sum(approach.count for approach in sighting.approaches)
    if sighting.approaches and others > 0:
        lines.append(f"  - and what was tried the other {_times(others)}")
    lines.append("  - Do not do any of these again for this failure. Go about it another way.")
    if sighting.advice is Advice.CHANGE:
        lines.append("  - Seen this often, change the strategy or ask a person.")
    return "\n".join(lines)


def render_signs(
    signs: Sequence[Sighting],
    cycle: Sequence[Sighting] = (),
    budget_tokens: int = SIGNS_TOKENS,
    others: Sequence[Sighting] = (),
) -> str:
    """Signs as an agent reads them, and that some come back in turn.

    Args:
        signs: the most important first.
        cycle: those that come back in turn; that is told first.
        budget_tokens: most tokens of all; what is over it is counted.
        others: further signs, of other work: a few of them, the first ones, where there is room.
    """
    lines: list[str] = []
    if cycle:
        turn = ", then ".join(quoted(str(one.failure), 100) for one in cycle)
        lines.append(
            f"- These come back in turn: {turn}. Mending one brings the next one back: find a "
            "change that mends all of them at once."
        )
    left = budget_tokens - tokens("\n".join([*lines, _more(9999)]))
    shown = _fitting(signs, left)
    left -= tokens("\n".join(shown)) + 1
    shown += _fitting(others, min(left, OTHERS_TOKENS))
    hidden = len(signs) + len(others) - len(shown)
    return "\n".join([*lines, *shown, *([_more(hidden)] if hidden else [])])


def _fitting(signs: Sequence[Sighting], budget_tokens: int) -> list[str]:
    """The first signs, as many as a budget has room for."""
    shown: list[str] = []
    for sign in signs:
        rendered = render_sign(sign)
        budget_tokens -= tokens(f"\n{rendered}")
        if budget_tokens < 0:
            break
        shown.append(rendered)
    return shown


def _more(count: int) -> str:
    return f"- and {count} more of this branch"


def render_page(branch: str, seen: Seen) -> str:
    """The page ``anti-repeat.md``."""
    body = render_signs(seen.signs, seen.cycle, EVERY) or "None yet."
    return (
        f"# Signs on {quoted(branch)}\n\n"
        "These failures came back. What led to them led nowhere; it binds every later attempt. "
        f"`loki close` ends this run, and its signs.\n\n{body}\n"
    )


def render_failure(failure: Failure) -> str:
    """A failure in a line: where, what, and which test."""
    rest = f" and {len(failure.tests) - 1} more" if len(failure.tests) > 1 else ""
    tests = f" in {quoted(failure.tests[0], 100)}{rest}" if failure.tests else ""
    return f"{quoted(str(failure), 300)}{tests}"


def _times(count: int) -> str:
    return "time" if count == 1 else f"{count} times"
