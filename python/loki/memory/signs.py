"""The signs of a run, joined with a store that many processes share.

A run is all work on one git branch until it is closed; every branch has its own signs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from loki.memory.sign import (
    DEFAULT_RULES,
    Seen,
    Sighting,
    SignRules,
    observe,
    render_page,
    render_signs,
)
from loki.memory.store import Masked, masked
from loki.recognition.failure import Failure, as_failure

if TYPE_CHECKING:
    from loki.memory.store import Store
    from loki.recognition.text import Text

NO_BRANCH = "@no-branch"
"""The folder where there is no branch: outside git, or a detached head. No branch is encoded so."""

LONGEST_NAME = 200
"""Bytes of a folder's name; file systems allow 255. Chosen, not measured."""

SIGNS, PAGE = "signs.json", "anti-repeat.md"

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Run:
    """All that is kept of a run.

    Attributes:
        branch: its git branch, or None.
        seen: what was seen in it.
        start: how git stood when the first failure was kept; see `loki.action.branch`.
    """

    branch: str | None
    seen: Seen = field(default_factory=Seen)
    start: Mapping[str, Any] = field(default_factory=dict)

    def dump(self) -> Masked:
        """As JSON, a sighting a line, secrets masked."""
        head = {
            "version": 1,
            "branch": self.branch,
            "start": dict(self.start),
            "recent": list(self.seen.recent),
        }
        lines = ",\n".join(sighting.line for sighting in self.seen.sightings)
        return Masked(f'{json.dumps(masked(head))[:-1]}, "sightings": [\n{lines}\n]}}\n')

    @classmethod
    def parse(cls, text: str, branch: str | None, rules: SignRules = DEFAULT_RULES) -> Run:
        """What `dump` gave.

        Raises:
            ValueError: it is something else.
        """
        try:
            data = json.loads(text)
            sightings = tuple(Sighting.from_dict(s, rules) for s in data["sightings"])
            kept = tuple(s for s in sightings if not rules.ignores(s.failure))
            recent = tuple(map(str, data.get("recent", ())))
            return cls(
                data.get("branch", branch), Seen(kept, recent), dict(data.get("start") or {})
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


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
        >>> import tempfile, pathlib
        >>> from loki.stores.files import FileStore
        >>> signs = Signs(FileStore(pathlib.Path(tempfile.mkdtemp())), "main")
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
        self._text: str | None = None
        self._run = Run(branch)

    @property
    def armed(self) -> tuple[Sighting, ...]:
        """The signs that bind now, newest first."""
        return self.seen.signs

    @property
    def seen(self) -> Seen:
        """All that was seen in the run, by whichever process."""
        return self._read(self._store.get(self._folder + SIGNS)).seen

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
    ) -> Sighting:
        """Remember a failure and what led to it.

        Args:
            failure: what failed: a `loki.Failure`, or the output that tells.
            approach: what was tried, in a few words.
            task: id of the task, where there is one.
            command: what was run, for the exemptions of tools that poll.

        Returns:
            The sighting: its ``advice`` says whether to go on, to avoid ``approaches``, or to change
            the strategy or ask a person. An infrastructure failure, an unspecific one and an exempt
            one are not remembered: their count is 0.
        """
        known = as_failure(failure)
        if self.rules.ignores(known, command):
            return Sighting(known, 0, threshold=self.rules.threshold_for(known))
        # git is asked before the lock is held, and only where the run begins.
        current = self._read(self._store.get(self._folder + SIGNS))
        start = current.start if current.seen.sightings else self._start()
        found: list[Sighting] = []

        def change(text: str | None) -> str:
            run = self._read(text)
            seen, sighting = observe(
                run.seen, known, approach, task, self.rules, is_open=self._is_open
            )
            found[:] = [sighting]
            self._run = Run(self.branch, seen, run.start or start)
            self._text = self._run.dump()
            return self._text

        # A failure that binds nobody yet is also in the attempts: the disk need not be waited for.
        # The page of a sign stands in the same folder, so what brings it to the disk brings both.
        self._store.update(self._folder + SIGNS, change, durable=False)
        (sighting,) = found
        if sighting.is_sign:
            self._store.update(self._folder + PAGE, lambda _old: self._page())
        return sighting

    def _page(self) -> str:
        return render_page(self.branch or "no branch", self.seen)

    def _read(self, text: str | None) -> Run:
        """What is kept; a damaged file is put aside and the run begun anew."""
        if text is None:
            return Run(self.branch)
        if text != self._text:
            try:
                self._run = Run.parse(text, self.branch, self.rules)
            except ValueError as error:
                aside = f"{self._folder}{SIGNS}.damaged"
                logger.warning(
                    "%s is damaged (%s): kept as %s and begun anew",
                    self._folder + SIGNS,
                    error,
                    aside,
                )
                self._store.put(aside, text)
                self._run = Run(self.branch)
            self._text = text
        return self._run
