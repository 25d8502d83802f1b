"""Signs: bindings "this led nowhere, do not do it again", armed by the second same failure of a run.

A run is all work on one git branch until it is closed; every branch has its own signs. Pure: state
in, state out; `Signs` joins it with a store.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from loki.memory.store import Store
from loki.recognition.failure import Failure
from loki.recognition.similarity import same_failure

ARMED = 2
"""Sightings of the same failure that arm a sign."""

ADVICE = 3
"""Sightings after which another strategy, or a person, is recommended."""

NO_BRANCH = "no-branch"
"""Stands for the branch where there is none: outside git, or a detached head."""

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Sighting:
    """A failure that was seen in this run, and what led to it.

    Attributes:
        failure: the first of its kind that was seen; it represents the others.
        count: how often it was seen.
        approaches: what was tried each time, oldest first, without repetitions.
        tasks: ids of the tasks that it was seen in.
    """

    failure: Failure
    count: int = 1
    approaches: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @property
    def is_sign(self) -> bool:
        """Seen often enough to bind."""
        return self.count >= ARMED

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "failure": self.failure.to_dict(),
            "count": self.count,
            "approaches": list(self.approaches),
            "tasks": list(self.tasks),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sighting:
        """What `to_dict` gave."""
        return cls(
            Failure.from_dict(data["failure"]),
            int(data["count"]),
            tuple(data["approaches"]),
            tuple(data["tasks"]),
        )


def observe(
    sightings: Sequence[Sighting], failure: Failure, approach: str, task_id: str
) -> tuple[tuple[Sighting, ...], Sighting]:
    """All sightings after one more, and the one that it belongs to.

    Repetition of any period counts: A-B-A-B arms both. An unspecific failure is not remembered: it
    could be anything, and a false merge is worse than a false split.
    """
    if not failure.is_specific:
        return tuple(sightings), Sighting(failure, 0)
    for index, sighting in enumerate(sightings):
        if same_failure(sighting.failure, failure):
            more = replace(
                sighting,
                count=sighting.count + 1,
                approaches=_with(sighting.approaches, approach),
                tasks=_with(sighting.tasks, task_id),
            )
            return (*sightings[:index], more, *sightings[index + 1 :]), more
    new = Sighting(failure, 1, _with((), approach), _with((), task_id))
    return (*sightings, new), new


def _with(values: tuple[str, ...], value: str) -> tuple[str, ...]:
    return values if not value or value in values else (*values, value)


def render_sign(sighting: Sighting) -> str:
    """A sign as an agent reads it: the failure, how often, what led there, what it forbids."""
    failure = sighting.failure
    where = f" ({failure.path}:{failure.line})" if failure.path and failure.line else ""
    lines = [f"- Seen {sighting.count} times: {failure.message}{where}"]
    lines += [f"  - led there: {' '.join(approach.split())}" for approach in sighting.approaches]
    lines.append("  - Do not do any of these again for this failure. Go about it another way.")
    if sighting.count >= ADVICE:
        lines.append("  - Seen this often, change the strategy or ask a person.")
    return "\n".join(lines)


def render_page(branch: str, sightings: Sequence[Sighting]) -> str:
    """The page ``anti-repeat.md``."""
    signs = [sighting for sighting in sightings if sighting.is_sign]
    body = "\n".join(render_sign(sign) for sign in signs) or "None yet."
    return (
        f"# Signs on {branch}\n\n"
        "These failures came back. What led to them led nowhere; it binds every later attempt.\n\n"
        f"{body}\n"
    )


@dataclass
class Signs:
    """The signs of one branch, joined with a store.

    Args:
        store: where they are kept.
        branch: name of the git branch, or None.
    """

    store: Store
    branch: str | None
    _sightings: tuple[Sighting, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        """Read what is kept; a damaged file is reported and begun anew."""
        text = self.store.get(self._document("signs.json"))
        if text is None:
            return
        try:
            self._sightings = tuple(Sighting.from_dict(s) for s in json.loads(text)["sightings"])
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("%s is damaged (%s); begun anew", self._document("signs.json"), error)

    @property
    def armed(self) -> tuple[Sighting, ...]:
        """The signs that bind now."""
        return tuple(sighting for sighting in self._sightings if sighting.is_sign)

    def observe(self, failure: Failure, approach: str, task_id: str) -> Sighting:
        """Remember a failure and what led to it; the sighting tells whether it is a sign now."""
        self._sightings, sighting = observe(self._sightings, failure, approach, task_id)
        data = {"version": 1, "sightings": [s.to_dict() for s in self._sightings]}
        self.store.put(self._document("signs.json"), json.dumps(data, indent=1) + "\n")
        if sighting.is_sign:
            page = render_page(self.branch or NO_BRANCH, self._sightings)
            self.store.put(self._document("anti-repeat.md"), page)
        return sighting

    def _document(self, name: str) -> str:
        return f"run/{quote(self.branch or NO_BRANCH, safe='')}/{name}"
