"""Signs: bindings "this led nowhere, do not do it again", armed by the second same failure of a run.

Pure: what was seen in, what was seen out; `loki.memory.signs` joins it with a store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

from loki.base import codec
from loki.base.codec import Positive, kept
from loki.base.error import UsageError
from loki.base.secret import masked
from loki.base.tokens import tokens
from loki.memory.quote import one_line, quoted
from loki.recognition.failure import Failure
from loki.recognition.similarity import same_site

if TYPE_CHECKING:
    from loki import _core


# ------------------------------------------------------------------------------------------------------
# Signs: bindings "this led nowhere, do not do it again", armed by the second same failure of a
# run.

ARMED = 2
"""Sightings of the same failure that arm a sign, where nothing else is configured."""

MOST_APPROACHES = 5
"""Approaches that a sign names, the newest; the others are counted. Chosen, not measured."""

MOST_TASKS = 50
"""Tasks that a sighting remembers, the newest. Chosen, not measured."""

MOST_WAITING = 32
"""Failures remembered that are no sign yet: a repetition of a longer period is not seen. Chosen."""

MOST_SETTLED = 64
"""Signs kept whose tasks have all succeeded; those of open tasks are never dropped. Chosen."""

MOST_RECENT = 24
"""Failures in a row that are looked at for a cycle. Chosen, not measured."""

APPROACH_LENGTH = 300
"""Characters kept of an approach. Chosen, not measured."""


class Advice(str, Enum):
    """What a sighting means for whoever is about to try again."""

    GO_ON = "go_on"
    """Nothing was tried in vain yet."""

    AVOID = "avoid"
    """A sign: try again, but none of the approaches that led here."""

    CHANGE = "change"
    """Seen once more although there was a sign: another strategy, or a person."""


@dataclass(frozen=True, slots=True)
class SignRules:
    """What arms a sign.

    Args:
        threshold: sightings of the same failure in a run, 2 or more.
        thresholds: the same by kind of failure, or by pattern.
        exempt: globs of whole commands whose failures arm nothing: tools that poll.
        exempt_kinds: kinds of failure, or patterns, that arm nothing.

    Raises:
        UsageError: a threshold is under 2.

    Example:
        >>> rules = SignRules(thresholds={"test-failure": 3}, exempt=("gh run watch*",))
        >>> rules.threshold_for(Failure.of("FAILED t.py::test_a", pattern="test-failure"))
        3
    """

    threshold: int = ARMED
    thresholds: Mapping[str, int] = field(default_factory=dict)
    exempt: tuple[str, ...] = ()
    exempt_kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what would bind before anything was repeated."""
        for name, value in (("threshold", self.threshold), *self.thresholds.items()):
            if value < ARMED:
                raise UsageError(f"{name} is {value}: expected {ARMED} or more sightings")

    def threshold_for(self, failure: Failure) -> int:
        """How often a failure must be seen."""
        by_kind = self.thresholds.get(failure.kind, self.threshold)
        return self.thresholds.get(failure.pattern_id, by_kind)

    def ignores(self, failure: Failure, command: str = "") -> bool:
        """Whether a failure arms nothing, however often it is seen."""
        return (
            (failure.match is not None and failure.match.is_infrastructure)
            or not failure.is_specific  # it could be anything
            or failure.kind in self.exempt_kinds
            or failure.pattern_id in self.exempt_kinds
            or self.is_exempt(command)
        )

    def is_exempt(self, command: str) -> bool:
        """Whether a command polls: its failures arm nothing."""
        return bool(command) and any(fnmatchcase(command, glob) for glob in self.exempt)


DEFAULT_RULES = SignRules()


@dataclass(frozen=True, slots=True)
class Approach:
    """Something that was tried, in its author's words, and how often it led to the same failure."""

    text: str
    count: int = 1

    @classmethod
    def from_dict(cls, data: Any) -> Approach:
        """What is kept of it; of an older version its text alone."""
        return cls(data) if isinstance(data, str) else codec.parse(cls, data)


@dataclass(frozen=True)
class Sighting:
    """A failure that was seen in this run, and what led to it.

    Attributes:
        failure: the first of its kind that was seen; it represents the others.
        count: how often it was seen.
        approaches: the newest things tried, newest last.
        tasks: ids of the newest tasks that it was seen in.
        threshold: sightings that arm a sign.
        is_mended: the check that showed it has passed since; it binds again when it comes back.
    """

    failure: Failure
    count: Positive = 1
    approaches: tuple[Approach, ...] = ()
    tasks: tuple[str, ...] = ()
    threshold: int = ARMED
    is_mended: bool = kept(default=False, omit=True)

    @property
    def is_sign(self) -> bool:
        """Seen often enough to bind, and not mended."""
        return self.count >= self.threshold and not self.is_mended

    @property
    def advice(self) -> Advice:
        """What it means for the next attempt."""
        if not self.is_sign:
            return Advice.GO_ON
        return Advice.AVOID if self.count == self.threshold else Advice.CHANGE

    def again(self, approach: str, task: str) -> Sighting:
        """The sighting after one more."""
        tasks = (*(known for known in self.tasks if known != task), task) if task else self.tasks
        return replace(
            self,
            count=self.count + 1,
            approaches=_tried_again(self.approaches, approach),
            tasks=tasks[-MOST_TASKS:],
            is_mended=False,
        )

    @cached_property
    def line(self) -> str:
        """As JSON in one line, secrets masked; made once: a run is written anew with each failure."""
        return json.dumps(masked(self.to_dict()))

    @cached_property
    def site(self) -> _core.FailureSite:
        """What tells its failure from others."""
        return self.failure.site()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        said = codec.fields_of(self)
        del said["threshold"]  # as the rules have it
        return said

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], rules: SignRules = DEFAULT_RULES) -> Sighting:
        """What `to_dict` gave; its failure is fingerprinted anew where recognition changed.

        Raises:
            ValueError: it is no sighting.
        """
        found = codec.parse(cls, data, "sighting")
        return replace(found, threshold=rules.threshold_for(found.failure))


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen in a run.

    Attributes:
        sightings: by when each was seen last, newest last.
        recent: fingerprints of the last failures, newest last.
    """

    sightings: tuple[Sighting, ...] = ()
    recent: tuple[str, ...] = ()

    @property
    def signs(self) -> tuple[Sighting, ...]:
        """What binds, newest first."""
        return tuple(one for one in reversed(self.sightings) if one.is_sign)

    @property
    def cycle(self) -> tuple[Sighting, ...]:
        """The signs that come back in turn, in their order; none where there is no such turn."""
        length = period(self.recent)
        known = {one.failure.fingerprint: one for one in self.sightings if one.is_sign}
        turn = [known.get(fingerprint) for fingerprint in self.recent[-length:] if length]
        return tuple(one for one in turn if one is not None) if all(turn) else ()


def observe(
    seen: Seen,
    failure: Failure,
    approach: str,
    task: str,
    rules: SignRules = DEFAULT_RULES,
    *,
    is_open: Callable[[str], bool] = lambda _task: True,
) -> tuple[Seen, Sighting]:
    """All that was seen after one more failure, and the sighting that it belongs to.

    Args:
        seen: what was seen before.
        failure: a failure that the rules do not ignore.
        approach: what led to it, or "".
        task: id of its task, or "".
        rules: what arms a sign.
        is_open: whether a task has not succeeded yet; its signs are never dropped.
    """
    known = _find(seen.sightings, failure)
    if known is None:
        first = Sighting(_slim(failure), 0, threshold=rules.threshold_for(failure))
        sighting, others = first.again(approach, task), seen.sightings
    else:
        sighting = known.again(approach, task)
        others = tuple(one for one in seen.sightings if one is not known)
    recent = (*seen.recent, sighting.failure.fingerprint)[-MOST_RECENT:]
    return Seen(_bounded((*others, sighting), is_open), recent), sighting


def mend(seen: Seen, failures: Sequence[Failure]) -> Seen:
    """All that was seen, once checks have passed that had shown some of it."""
    gone = {id(found) for one in failures if (found := _find(seen.sightings, one)) is not None}
    return replace(
        seen,
        sightings=tuple(
            replace(one, is_mended=True) if id(one) in gone else one for one in seen.sightings
        ),
    )


def period(recent: Sequence[str]) -> int:
    """After how many failures the same ones come back in the same order, 2 or more; else 0.

    Example:
        >>> period("xABCABC"), period("ABAB"), period("AAAA"), period("ABA")
        (3, 2, 0, 0)
    """
    for length in range(2, len(recent) // 2 + 1):
        turn = recent[-length:]
        if len(set(turn)) > 1 and recent[-2 * length : -length] == turn:
            return length
    return 0


def _find(sightings: Sequence[Sighting], failure: Failure) -> Sighting | None:
    site = failure.site()
    alike_first = sorted(sightings, key=lambda s: s.failure.fingerprint != failure.fingerprint)
    return next((one for one in alike_first if same_site(one.site, site)), None)


def _slim(failure: Failure) -> Failure:
    """What tells it from others and can be fingerprinted anew; attempts keep the rest."""
    match = replace(failure.match, signals=(), spans=()) if failure.match else None
    matches = (match,) if match else ()
    return replace(
        failure, match=match, matches=matches, excerpt="", excerpt_lines=None, site_lines=None
    )


def _tried_again(approaches: tuple[Approach, ...], text: str) -> tuple[Approach, ...]:
    text = one_line(text, APPROACH_LENGTH)
    if not text:
        return approaches
    known = next((a for a in approaches if a.text == text), Approach(text, 0))
    others = (a for a in approaches if a.text != text)
    return (*others, replace(known, count=known.count + 1))[-MOST_APPROACHES:]


def _bounded(
    sightings: tuple[Sighting, ...], is_open: Callable[[str], bool]
) -> tuple[Sighting, ...]:
    """Without the longest unseen ones that are over the limits."""
    waiting = [one for one in sightings if not one.is_sign]
    dropped = waiting[:-MOST_WAITING]
    if len(sightings) - len(waiting) > MOST_SETTLED:
        settled = [
            one
            for one in sightings
            if one.is_sign and one.tasks and not any(map(is_open, one.tasks))
        ]
        dropped += settled[:-MOST_SETTLED]
    gone = set(map(id, dropped))
    return tuple(one for one in sightings if id(one) not in gone)


# ------------------------------------------------------------------------------------------------------
# Signs as agents and people read them: the failure, how often, what led there, what it forbids;
# pure.

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
