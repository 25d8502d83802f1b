"""What to do about a failure: the ANALYZE phase of the closed loop, as a pure function.

The order of the rules is the contract; each is one function below, and `decide` asks them in turn:

1. the user aborted, or security was violated        → escalate
2. the pattern escalates or must not be retried      → escalate
3. infrastructure, not the work, failed              → the same again after a wait, 5 times at most;
                                                       a pause once its circuit breaker is open
4. retries are spent                                 → dead letter
5. the same failure, already answered the same way   → the first strategy not yet tried, else escalate
6. anything else                                     → the pattern's strategy

An identical retry never happens outside rule 3.

Counts are exact for any number of attempts. Failures themselves are kept for the newest `REMEMBERED`
different ones, so a task of ten thousand attempts decides as quickly, and takes as much memory, as one
of a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from loki.base.markup import html_card
from loki.decision.drift import in_scope
from loki.memory.sign import Seen, Sighting
from loki.recognition.failure import Failure
from loki.recognition.pattern import HIGH, Pattern
from loki.recognition.similarity import same_failure, same_site

if TYPE_CHECKING:
    from loki import _core


# --- Which signs of a branch bear on a task -----------------------------------------------------------

# A branch is shared by tasks: what one of them ran into says little to another, and much where they meet in
# a failure or a file.


@dataclass(frozen=True, slots=True)
class Subject:
    """What a task is about, as far as it is known.

    Attributes:
        task: its id.
        failures: that it has to mend, where there are any.
        scope: files, folders and globs that it names.
    """

    task: str
    failures: Sequence[Failure | None] = ()
    scope: Sequence[str] = ()


def bearing(seen: Seen, subject: Subject) -> tuple[list[Sighting], Sequence[Sighting]]:
    """Of all that was seen, the signs that bear on a task, and those that come back in turn.

    Args:
        seen: what was seen on the branch, newest first; of signs that bear alike the newer one
            comes first.
        subject: the task.
    """
    ranked = [(_bearing(sign, subject), sign) for sign in seen.signs]
    bearing = [one for one in ranked if any(one[0])]
    signs = [sign for _, sign in sorted(bearing, key=lambda one: one[0], reverse=True)]
    return signs, seen.cycle if any(one in signs for one in seen.cycle) else ()


def _bearing(sign: Sighting, subject: Subject) -> tuple[bool, bool, int]:
    """How much a sign bears on a task: the same failure, its own, files in common."""
    failures = [one for one in subject.failures if one is not None]
    files = {path for one in failures for path in _files(one)}
    named, scope = _files(sign.failure), subject.scope
    return (
        any(same_failure(sign.failure, one) for one in failures),
        subject.task in sign.tasks,
        sum(path in files or (bool(scope) and in_scope(path, scope)) for path in named),
    )


def _files(failure: Failure) -> list[str]:
    """The project's files that a failure names."""
    frames = (frame.path for frame in failure.frames if frame.in_project)
    tests = (test.partition("::")[0] for test in failure.tests)
    named = (failure.path, *frames, *(path for path in tests if "." in path))
    return list(dict.fromkeys(path for path in named if path))


# --- What failed before in a task ---------------------------------------------------------------------

REMEMBERED = 100
"""Different failures that answers are remembered for; chosen, not measured. A task that fails in more
ways than this may be given a strategy again that did not help against one of the oldest."""


@dataclass(frozen=True, slots=True)
class PastFailure:
    """An earlier attempt of the same task that failed.

    Attributes:
        failure: what its first failing check said.
        answer: the strategy chosen in answer to it; None where there was none.
        infrastructure: it was infrastructure that failed, not the work.
        progress: fewer tests failed than ever before in the task.
    """

    failure: Failure
    answer: str | None = None
    infrastructure: bool = False
    progress: bool = False

    @property
    def pattern(self) -> str | None:
        """Id of the pattern that the failure matched."""
        return self.failure.match.pattern if self.failure.match else None


@dataclass(frozen=True)
class _Known:
    """A failure, and how often each strategy was the answer to it."""

    failure: Failure
    answers: Mapping[str, int]

    @cached_property
    def site(self) -> _core.FailureSite:
        return self.failure.site()


@dataclass(frozen=True, slots=True)
class FailureHistory:
    """The failed attempts of a task so far.

    Attributes:
        work: how many were failures of the work; stalled: how many of those came no nearer to the end.
        infrastructure_streak: how many of the last ones in a row infrastructure failed.
        wait_streak: how many of the last ones in a row were answered with a wait.
        answers: every strategy that was an answer, and how often.
        last: the last one, or None.
    """

    work: int = 0
    stalled: int = 0
    infrastructure_streak: int = 0
    wait_streak: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)
    last: PastFailure | None = None
    _patterns: Mapping[str, int] = field(default_factory=dict)
    _stalled: Mapping[str, int] = field(default_factory=dict)
    _known: Mapping[str, _Known] = field(default_factory=dict)
    _answered: dict[str, frozenset[str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, failures: Iterable[PastFailure]) -> FailureHistory:
        """What failed before, oldest first."""
        past = cls()
        for failure in failures:
            past = past.add(failure)
        return past

    def earlier(self, pattern: str) -> int:
        """How many failures of the work matched a pattern."""
        return self._patterns.get(pattern, 0)

    def stalled_at(self, pattern: str) -> int:
        """How many failures of the work that matched a pattern came no nearer to the end."""
        return self._stalled.get(pattern, 0)

    def answers_to(self, failure: Failure) -> Set[str]:
        """Strategies that were already the answer to this very failure; none for an unspecific one."""
        found = self._answered.get(failure.fingerprint)  # more than one ask, for one failure
        if found is None:
            found = self._answered[failure.fingerprint] = frozenset(self._answers_to(failure))
        return found

    def _answers_to(self, failure: Failure) -> set[str]:
        if not failure.is_specific:
            return set()
        exact = self._known.get(failure.fingerprint)
        found = set(exact.answers) if exact else set()
        site = failure.site()
        for known in self._known.values():
            if not known.answers.keys() <= found and same_site(known.site, site):
                found |= known.answers.keys()
        return found

    def add(self, failed: PastFailure, *, wait: str = "retry_with_backoff") -> FailureHistory:
        """The past after one more failed attempt.

        Args:
            failed: the attempt.
            wait: name of the strategy that only waits.
        """
        waits = self.wait_streak + 1 if failed.answer == wait else 0
        answers = _counted(self.answers, failed.answer)
        after = replace(self, wait_streak=waits, answers=answers, last=failed)
        if failed.infrastructure:
            return replace(after, infrastructure_streak=self.infrastructure_streak + 1)
        return replace(
            after,
            work=self.work + 1,
            stalled=self.stalled + (not failed.progress),
            infrastructure_streak=0,
            _patterns=_counted(self._patterns, failed.pattern),
            _stalled=_counted(self._stalled, None if failed.progress else failed.pattern),
            _known=_remember(self._known, failed) if failed.failure.is_specific else self._known,
        )

    def amended(self, strategy: str) -> FailureHistory:
        """The past where another strategy than the recorded one was the last answer."""
        if self.last is None:
            return self
        last, known = self.last, self._known
        entry = known.get(last.failure.fingerprint)
        if entry and not last.infrastructure:
            answers = _counted(_uncounted(entry.answers, last.answer), strategy)
            known = {**known, last.failure.fingerprint: _Known(entry.failure, answers)}
        return replace(
            self,
            wait_streak=0,
            answers=_counted(_uncounted(self.answers, last.answer), strategy),
            last=replace(last, answer=strategy),
            _known=known,
        )


def _remember(known: Mapping[str, _Known], failed: PastFailure) -> Mapping[str, _Known]:
    fingerprint = failed.failure.fingerprint
    before = known.get(fingerprint) or _Known(failed.failure, {})
    others = {key: entry for key, entry in known.items() if key != fingerprint}
    while len(others) >= REMEMBERED:
        others.pop(next(iter(others)))
    answers = _counted(before.answers, failed.answer)
    return {**others, fingerprint: _Known(before.failure, answers)}


def _counted(counts: Mapping[str, int], name: str | None) -> Mapping[str, int]:
    return counts if name is None else {**counts, name: counts.get(name, 0) + 1}


def _uncounted(counts: Mapping[str, int], name: str | None) -> Mapping[str, int]:
    if name is None or name not in counts:
        return counts
    rest = {key: count for key, count in counts.items() if key != name}
    return {**rest, name: counts[name] - 1} if counts[name] > 1 else rest


# --- The rules ----------------------------------------------------------------------------------------

ESCALATE = "escalate"
DEFAULT_STRATEGY = "analyze_then_fix"
"""The answer where no pattern matched."""

FALLBACKS = ("context_expand", "analyze_then_fix")
"""Tried after a pattern's own alternatives, in this order."""

RETRY = "retry_with_backoff"

RETRIES = 3
"""Attempts after the first where neither a person nor a pattern says, as the closed-loop document has it."""

CONFIDENT = 0.5
"""From here on a match may escalate, or call a failure infrastructure, the first time it is seen."""


class Action(str, Enum):
    """What the loop does next."""

    FIX = "fix"
    RETRY = "retry"
    PAUSE = "pause"
    ESCALATE = "escalate"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class Limits:
    """How often to try again.

    Attributes:
        max_retries: attempts after the first, 0 or more, where somebody said how many; None: the
            failing pattern's ``max_auto_retries``, and `RETRIES` where there is no pattern. Those
            count only attempts that come no nearer to the end.
        infrastructure_retries: waits in a row for infrastructure to come back, 0 or more.
    """

    max_retries: int | None = None
    infrastructure_retries: int = 5

    def left(self, past: FailureHistory) -> int:
        """How many attempts may follow the next one, as far as no pattern says otherwise."""
        if self.max_retries is None:
            return max(0, RETRIES - past.stalled)
        return max(0, self.max_retries - past.work)


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that a decision depends on.

    Attributes:
        failure: the failure at hand.
        past: what failed before it in this run of the task.
        patterns: the pattern set's patterns by id.
        limits: how often to try again.
        agent_failed: loki's own agent or runner failed, not a check.
        stop: why a person must take over at once, or "".
        circuit: why the agent may not be asked again now, or "".
        gave_up: the agent has been asked again already, as often as makes sense.
        progress: fewer tests fail than ever before in the task.
        landing: the project has changed under the work, which is begun again on the newer one: no
            pattern's rules hold, which are for what a person has to merge.
        violation: how security was violated, a line, or "".
    """

    failure: Failure
    past: FailureHistory
    patterns: Mapping[str, Pattern]
    limits: Limits = Limits()
    agent_failed: bool = False
    stop: str = ""
    circuit: str = ""
    gave_up: bool = False
    landing: bool = False
    violation: str = ""
    progress: bool = False

    @property
    def pattern(self) -> Pattern | None:
        """The pattern that the failure matched."""
        match = self.failure.match
        return self.patterns.get(match.pattern) if match and not self.landing else None

    @property
    def confidence(self) -> float:
        """Confidence of the match, 0 where there is none."""
        return self.failure.match.confidence if self.failure.match else 0.0

    @property
    def is_infrastructure(self) -> bool:
        """Whether infrastructure failed, which never counts as an agent being stuck."""
        match = self.failure.match
        return self.agent_failed or (match is not None and match.is_infrastructure)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and why.

    Attributes:
        action: fix, retry, pause, escalate or dead_letter.
        strategy: the strategy, where the action is fix, retry or pause.
        rule: number of the rule that decided, 1 to 6.
        reason: one sentence for people.
        trigger: a short name for what decided an escalation or dead letter, else "".
        review: the match is of medium confidence and worth a person's look later.
    """

    action: Action
    strategy: str | None
    rule: int
    reason: str
    trigger: str = ""
    review: bool = False

    def _repr_html_(self) -> str:
        facts = (("strategy", self.strategy), ("rule", self.rule), ("trigger", self.trigger))
        look = [("review", "of medium confidence, worth a look later")] if self.review else []
        return html_card(f"Decision: {self.action.value}", [*facts, *look], said=self.reason)


def decide(situation: Situation) -> Decision:
    """The decision for a failure; pure: the same situation always gives the same decision.

    Args:
        situation: the failure, what came before it, the patterns and the limits.

    Example:
        >>> from loki import Failure
        >>> failure = Failure.of("something broke in a new way")
        >>> decide(Situation(failure, past=FailureHistory(), patterns={})).strategy
        'analyze_then_fix'
    """
    for rule in (_stop, _must_not_retry, _infrastructure, _spent, _repeated):
        decision = rule(situation)
        if decision is not None:
            return decision
    return _by_pattern(situation)


def is_retryable(failure: Failure, patterns: Mapping[str, Pattern]) -> bool:
    """Whether asking again may help, as far as its pattern tells the first time it is seen.

    Args:
        failure: what failed.
        patterns: the pattern set's patterns by id.
    """
    match = failure.match
    pattern = patterns.get(match.pattern) if match else None
    if match is None or pattern is None or match.confidence < CONFIDENT:
        return True
    return not (pattern.non_retryable or pattern.strategy == ESCALATE)


def alternatives(pattern: Pattern | None) -> tuple[str, ...]:
    """Strategies to try after the first, in order; none where a pattern says ``[]``."""
    if pattern is None or pattern.alternatives is None:
        return FALLBACKS
    return (*pattern.alternatives, *FALLBACKS) if pattern.alternatives else ()


def next_untried(pattern: Pattern | None, tried: Set[str]) -> str | None:
    """The first alternative not in ``tried``, or None."""
    return next((name for name in alternatives(pattern) if name not in tried), None)


def _stop(situation: Situation) -> Decision | None:
    if situation.violation:
        reason = f"a security violation, of which nothing was done: {situation.violation}"
        return Decision(Action.ESCALATE, None, 1, reason, trigger="security_violation")
    if not situation.stop:
        return None
    return Decision(Action.ESCALATE, None, 1, situation.stop, trigger="stopped")


def _must_not_retry(situation: Situation) -> Decision | None:
    pattern = situation.pattern
    if pattern is None or not (pattern.non_retryable or pattern.strategy == ESCALATE):
        return None
    if situation.confidence < CONFIDENT and not situation.past.earlier(pattern.id):
        return None
    reason = f"{pattern.id} is never retried automatically: {pattern.description}"
    return Decision(Action.ESCALATE, None, 2, reason, trigger=pattern.id)


def _infrastructure(situation: Situation) -> Decision | None:
    if not situation.is_infrastructure:
        return None
    if situation.circuit:
        return Decision(Action.PAUSE, RETRY, 3, situation.circuit, trigger="circuit_open")
    if situation.gave_up:
        reason = f"nobody could be asked, however often: {situation.failure.said}"
        return Decision(Action.ESCALATE, None, 3, reason, trigger="infrastructure")
    streak = situation.past.infrastructure_streak
    limit = situation.limits.infrastructure_retries
    if streak >= limit:
        reason = f"infrastructure failed {streak + 1} times in a row: {situation.failure.said}"
        return Decision(Action.ESCALATE, None, 3, reason, trigger="infrastructure")
    reason = f"infrastructure failed; the same again after a wait ({streak + 1} of {limit})"
    return Decision(Action.RETRY, RETRY, 3, reason)


def _spent(situation: Situation) -> Decision | None:
    said = situation.limits.max_retries
    reason = _spent_of_own(situation) if said is None else _spent_of(said, situation.past.work)
    if not reason:
        return None
    return Decision(Action.DEAD_LETTER, None, 4, reason, trigger="retry_budget_exhausted")


def _spent_of(retries: int, failures: int) -> str:
    """Why no more attempts are left of so many after the first, or ""."""
    if failures < retries:
        return ""
    return f"all {retries + 1} attempts are spent" if retries else "the only attempt is spent"


def _spent_of_own(situation: Situation) -> str:
    """Why nothing is left where nobody said how often to try: by the pattern, then by `RETRIES`.

    Who came nearer than ever before may go on; how often that can happen is the number of tests.
    """
    past, pattern = situation.past, situation.pattern
    allowed = pattern.max_auto_retries if pattern else RETRIES
    if situation.progress and allowed:
        return ""
    if pattern is not None and past.stalled_at(pattern.id) >= allowed:
        times = f"{allowed} times in a task without progress" if allowed else "not once"
        return f"{pattern.id} may be retried {times}, where the task does not say how often"
    most = max(RETRIES, allowed)
    if past.stalled == past.work:
        return _spent_of(most, past.stalled)
    return "" if past.stalled < most else f"{past.stalled + 1} attempts came no nearer to the end"


def _repeated(situation: Situation) -> Decision | None:
    due = _due(situation)
    answered = situation.past.answers_to(situation.failure)
    if due not in answered or situation.landing:  # the project is another one each time
        return None
    other = next_untried(situation.pattern, answered)
    tried = ", ".join(sorted(answered))
    if other is None or other == ESCALATE:
        reason = f"the same failure again, and no strategy is left (tried: {tried})"
        return Decision(Action.ESCALATE, None, 5, reason, trigger="same_failure")
    reason = f"the same failure again although {tried} was tried; {other} is next"
    return Decision(Action.FIX, other, 5, reason)


def _by_pattern(situation: Situation) -> Decision:
    strategy, pattern = _due(situation), situation.pattern
    if pattern is None:
        return Decision(Action.FIX, strategy, 6, "no pattern matched")
    reason = f"{pattern.id} at confidence {situation.confidence:.2f}"
    review = situation.confidence < HIGH
    return Decision(Action.FIX, strategy, 6, reason, review=review)


def _due(situation: Situation) -> str:
    """The strategy now due: the pattern's, but an unsure match does not escalate by itself."""
    pattern = situation.pattern
    if pattern is None or pattern.strategy == ESCALATE:
        return DEFAULT_STRATEGY
    return pattern.strategy
