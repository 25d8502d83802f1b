"""Signs: bindings "this led nowhere, do not do it again", armed by the second same failure of a run.

A run is all work on one git branch until it is closed; every branch has its own signs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from functools import cached_property, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from loki.base import codec
from loki.base.codec import Positive, kept
from loki.base.documents import Masked
from loki.base.error import UsageError
from loki.base.secret import masked
from loki.base.tokens import tokens
from loki.memory.quote import one_line, quoted
from loki.memory.store import Store
from loki.recognition.failure import Failure, as_failure
from loki.recognition.similarity import same_failure, same_site

if TYPE_CHECKING:
    from loki import _core
    from loki.recognition.text import Text


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


# --- Signs as agents and people read them -------------------------------------------------------------

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
        times = "time" if others == 1 else f"{others} times"
        lines.append(f"  - and what was tried the other {times}")
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


# --- The signs of a run, kept in a store that many processes share ------------------------------------

NO_BRANCH = "@no-branch"
"""The folder where there is no branch: outside git, or a detached head. No branch is encoded so."""

LONGEST_NAME = 200
"""Bytes of a folder's name; file systems allow 255. Chosen, not measured."""

SIGNS, WAITING = "signs.json", "waiting.json"
"""What binds; what was seen too seldom to bind."""

Told = Callable[[str], None]

logger = logging.getLogger("loki")


def _ignored(_: str) -> None:
    """Whoever only looks leaves a file as it is."""


@dataclass(frozen=True, slots=True)
class Run:
    """All that is kept of a run.

    Attributes:
        branch: its git branch, or None.
        seen: what was seen in it.
        start: how git stood when the first failure was kept; see `loki.action.changes.git`.
    """

    branch: str | None
    seen: Seen = field(default_factory=Seen)
    start: Mapping[str, Any] = field(default_factory=dict)

    def dump(self) -> Masked:
        """Its signs as JSON, one a line, secrets masked."""
        head = {"version": 1, "branch": self.branch, "start": dict(self.start)}
        return _lines(head, (one for one in self.seen.sightings if one.is_sign))

    def dump_waiting(self) -> Masked:
        """What was seen that is no sign yet, in the same form."""
        head = {"version": 1, "recent": list(self.seen.recent)}
        return _lines(head, (one for one in self.seen.sightings if not one.is_sign))

    @classmethod
    def parse(
        cls,
        text: str,
        branch: str | None,
        rules: SignRules = DEFAULT_RULES,
        left_out: Told = _ignored,
    ) -> Run | None:
        """What `dump` gave, as far as it can be read; None: nothing of it can.

        Args:
            text: that.
            branch: the run's, where the text does not say.
            rules: what arms a sign.
            left_out: is told what cannot be read.
        """
        if (found := _parsed(text, rules, left_out)) is None:
            return None
        data, kept = found
        said, start = data.get("branch", branch), data.get("start") or {}
        if not isinstance(said, str | None) or not isinstance(start, dict):
            left_out("found another branch or start than loki writes")
            said, start = branch, {}
        return cls(said, Seen(kept), start)

    def with_waiting(
        self, text: str, rules: SignRules = DEFAULT_RULES, left_out: Told = _ignored
    ) -> Run:
        """The run, and what `dump_waiting` gave, as far as that can be read."""
        if (
            found := _parsed(text, rules, left_out)
        ) is None:  # as a machine that went down may leave it
            return self
        data, waiting = found
        # Killed in between, it stands in both: once it is a sign, that is what it is.
        known = {one.failure.fingerprint for one in self.seen.sightings}
        others = (one for one in waiting if one.failure.fingerprint not in known)
        recent = data.get("recent")
        recent = tuple(map(str, recent)) if isinstance(recent, list) else ()
        return replace(self, seen=Seen((*others, *self.seen.sightings), recent))


def _lines(head: Mapping[str, Any], sightings: Iterable[Sighting]) -> Masked:
    lines = ",\n".join(sighting.line for sighting in sightings)
    return Masked(f'{json.dumps(masked(head))[:-1]}, "sightings": [\n{lines}\n]}}\n')


def _parsed(
    text: str, rules: SignRules, left_out: Told
) -> tuple[Mapping[str, Any], tuple[Sighting, ...]] | None:
    """What a file says, and the sightings in it: one that cannot be read spoils only itself."""
    try:
        data = json.loads(text)
        sightings = list(data["sightings"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        left_out(f"{type(error).__name__}: {error}")
        return None
    found = []
    for one in sightings:
        try:
            found.append(Sighting.from_dict(one, rules))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            left_out(f"a sighting is left out, {type(error).__name__}: {error}")
    return data, tuple(one for one in found if not rules.ignores(one.failure))


def folder_of(branch: str | None) -> str:
    """The folder of a branch's run, relative to ``.loki/``: its name percent-encoded.

    Example:
        >>> folder_of("feature/login form"), folder_of(None)
        ('run/feature%2Flogin%20form/', 'run/@no-branch/')
    """
    if not branch:
        return f"run/{NO_BRANCH}/"
    name = quote(branch, safe="", errors="backslashreplace")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 17]}-{sha256(name.encode()).hexdigest()[:16]}"
    return f"run/{name}/"


class Signs:
    """The signs of one branch.

    Every process reads what the others have seen before it adds what it saw itself.

    Args:
        store: where they are kept.
        branch: name of the git branch, or None.
        rules: what arms a sign.
        is_open: whether a task has not succeeded yet; its signs are never dropped.
        start: tells how git stands, when the first failure of the run is kept.

    Example:
        >>> from loki.testing import MemoryStore
        >>> signs = Signs(MemoryStore(), "main")
        >>> text = "FAILED test_login.py::test_redirect - KeyError: 'next'"
        >>> signs.observe(text, "added a default").advice.value
        'go_on'
        >>> signs.observe(text, "caught the error").advice.value
        'avoid'
        >>> print(signs)
        - Seen 2 times: `KeyError: 'next'` in `test_login.py::test_redirect`
          - led there: `caught the error`
          - led there: `added a default`
          - Do not do any of these again for this failure. Go about it another way.
    """

    def __init__(
        self,
        store: Store,
        branch: str | None,
        rules: SignRules = DEFAULT_RULES,
        *,
        is_open: Callable[[str], bool] = lambda _task: True,
        start: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.branch = branch
        self.rules = rules
        self._store = store
        self._is_open = is_open
        self._start = start
        self._folder = folder_of(branch)
        self._read_last: tuple[str | None, str | None] = (None, None)
        self._run = Run(branch)

    @property
    def armed(self) -> tuple[Sighting, ...]:
        """The signs that bind now, newest first."""
        return self.seen.signs

    @property
    def seen(self) -> Seen:
        """All that was seen in the run, by whichever process."""
        return self._read(self._store.read(self._folder + WAITING)).seen

    def __str__(self) -> str:
        """The signs as an agent is to read them, before anything else; "" where there are none."""
        seen = self.seen
        return render_signs(seen.signs, seen.cycle)

    def observe(
        self,
        failure: Failure | Text,
        approach: str = "",
        task: str = "",
        *,
        command: str = "",
        only_new: bool = False,
    ) -> Sighting:
        """Remember a failure and what led to it.

        Args:
            failure: what failed: a `loki.Failure`, or the output that tells.
            approach: what was tried, in a few words.
            task: id of the task, where there is one.
            command: what was run, for the exemptions of tools that poll.
            only_new: whoever has run into it already, it is no repetition: it counts once.

        Returns:
            The sighting: its ``advice`` says whether to go on, to avoid ``approaches``, or to change
            the strategy or ask a person. An infrastructure failure, an unspecific one and an exempt
            one are not remembered: their count is 0.
        """
        known = as_failure(failure)
        if self.rules.ignores(known, command):
            return Sighting(known, 0, threshold=self.rules.threshold_for(known))
        # git is asked before the lock is held, and only where the run begins.
        start = None if self._run.seen.sightings else self._beginning()
        found: list[tuple[Sighting, Masked]] = []

        def change(waiting: str | None) -> str:
            if not found:
                run = self._read(waiting)
                alike = (one for one in run.seen.sightings if same_failure(one.failure, known))
                if only_new and (old := next(alike, None)):
                    found.append((old, self._kept()))
                else:
                    found.append(self._observed(run, known, approach, task, start))
            return found[0][1]

        # What binds nobody yet is also in the attempts: the disk need not be waited for.
        self._store.update(self._folder + WAITING, change, durable=False)
        ((sighting, _),) = found
        if sighting.is_sign:
            self._store.update(self._folder + PAGE, lambda _old: self._page())
        return sighting

    def mend(self, failures: Sequence[Failure]) -> None:
        """Take back the signs of failures whose checks have passed; they bind again when they come back.

        Args:
            failures: what is mended; what is no sign stays as it is.
        """
        if not any(same_failure(sign.failure, one) for sign in self.armed for one in failures):
            return

        def change(waiting: str | None) -> str:
            run = self._read(waiting)
            self._run = replace(run, branch=self.branch, seen=mend(run.seen, failures))
            return self._kept()

        self._store.update(self._folder + WAITING, change)
        self._store.update(self._folder + PAGE, lambda _old: self._page())

    def _beginning(self) -> Mapping[str, Any]:
        """How git stood when the run began, which may be now."""
        current = self._read(self._store.read(self._folder + WAITING))
        return current.start if current.seen.sightings else self._start()

    def _observed(
        self,
        run: Run,
        failure: Failure,
        approach: str,
        task: str,
        start: Mapping[str, Any] | None,
    ) -> tuple[Sighting, Masked]:
        """The sighting of one more failure, and what waits then; the lock of both files is held."""
        seen, sighting = observe(
            run.seen, failure, approach, task, self.rules, is_open=self._is_open
        )
        if not run.seen.sightings:  # None: somebody has closed the run that was known
            run = replace(run, start=self._start() if start is None else start)
        self._run = replace(run, branch=self.branch, seen=seen)
        return sighting, self._kept()

    def _kept(self) -> Masked:
        """What waits now; what binds is written where it has changed. The lock of both is held."""
        signs, rest = self._run.dump(), self._run.dump_waiting()
        if signs != self._read_last[0]:
            self._store.write(self._folder + SIGNS, signs)
        self._read_last = signs, rest
        return rest

    def _page(self) -> str:
        return render_page(self.branch or "no branch", self.seen)

    def _read(self, waiting: str | None) -> Run:
        """What is kept; damaged files are set aside, and the run goes on with what can be read."""
        texts = self._store.read(self._folder + SIGNS), waiting
        if texts != self._read_last:
            self._run, self._read_last = self._joined(*texts), texts
        return self._run

    def _joined(self, signs: str | None, waiting: str | None) -> Run:
        run = Run(self.branch)
        if signs is not None:
            tell = partial(self._set_aside, SIGNS)
            run = Run.parse(signs, self.branch, self.rules, tell) or run
        if waiting is not None:
            run = run.with_waiting(waiting, self.rules, partial(self._set_aside, WAITING))
        return run

    def _set_aside(self, name: str, why: str) -> None:
        logger.warning("%s is damaged: %s", self._folder + name, why)
        self._store.set_aside(self._folder + name)


def open_runs(store: Store) -> list[Run]:
    """The runs that have seen a failure and are not closed, by the names of their folders."""
    found = []
    for name in store.keys("run/"):
        text = store.read(name) if name.endswith(f"/{SIGNS}") else None
        if text is None:
            continue
        run = Run.parse(text, None, left_out=partial(_left, name))
        if run is None:
            continue
        if folder_of(run.branch) == name.removesuffix(SIGNS):
            found.append(run)
        else:
            _left(name, f"it says that it is of {run.branch!r}")
    return found


def _left(name: str, why: str) -> None:
    logger.warning("%s: left as it is: %s", name, why)
