"""The signs of a run, joined with a store that many processes share.

A run is all work on one git branch until it is closed; every branch has its own signs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from loki.base.secret import masked
from loki.memory.sign import (
    DEFAULT_RULES,
    PAGE,
    Seen,
    Sighting,
    SignRules,
    mend,
    observe,
    render_page,
    render_signs,
)
from loki.memory.store import Masked, Store
from loki.recognition.failure import Failure, as_failure
from loki.recognition.similarity import same_failure

if TYPE_CHECKING:
    from loki.recognition.text import Text

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
    ) -> Run:
        """What `dump` gave, as far as it can be read.

        Args:
            text: that.
            branch: the run's, where the text does not say.
            rules: what arms a sign.
            left_out: is told what cannot be read.

        Raises:
            ValueError: nothing of it can.
        """
        data, kept = _parsed(text, rules, left_out)
        said, start = data.get("branch", branch), data.get("start") or {}
        if not isinstance(said, str | None) or not isinstance(start, dict):
            left_out("found another branch or start than loki writes")
            said, start = branch, {}
        return cls(said, Seen(kept), start)

    def with_waiting(
        self, text: str, rules: SignRules = DEFAULT_RULES, left_out: Told = _ignored
    ) -> Run:
        """The run, and what `dump_waiting` gave, as far as that can be read.

        Raises:
            ValueError: nothing of it can.
        """
        data, waiting = _parsed(text, rules, left_out)
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
) -> tuple[Mapping[str, Any], tuple[Sighting, ...]]:
    """What a file says, and the sightings in it: one that cannot be read spoils only itself.

    Raises:
        ValueError: there are none.
    """
    try:
        data = json.loads(text)
        sightings = list(data["sightings"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
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
        return self._read(self._store.get(self._folder + WAITING)).seen

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
        current = self._read(self._store.get(self._folder + WAITING))
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
            self._store.put(self._folder + SIGNS, signs)
        self._read_last = signs, rest
        return rest

    def _page(self) -> str:
        return render_page(self.branch or "no branch", self.seen)

    def _read(self, waiting: str | None) -> Run:
        """What is kept; damaged files are set aside, and the run goes on with what can be read."""
        texts = self._store.get(self._folder + SIGNS), waiting
        if texts != self._read_last:
            self._run, self._read_last = self._joined(*texts), texts
        return self._run

    def _joined(self, signs: str | None, waiting: str | None) -> Run:
        run = Run(self.branch)
        if signs is not None:
            tell = partial(self._set_aside, SIGNS)
            try:
                run = Run.parse(signs, self.branch, self.rules, tell)
            except ValueError as error:
                tell(str(error))
        if waiting is not None:
            tell = partial(self._set_aside, WAITING)
            try:
                return run.with_waiting(waiting, self.rules, tell)
            except ValueError as error:  # as a machine that went down may leave it
                tell(str(error))
        return run

    def _set_aside(self, name: str, why: str) -> None:
        logger.warning("%s is damaged: %s", self._folder + name, why)
        self._store.set_aside(self._folder + name)
