"""Whose signs a conversation is told: its own, those of a user, or those of the project.

A sign quotes a failure, and a failure may quote what a person asked for. So an agent that serves many
tells each conversation of its own failures alone, if its owner says nothing else. Signs of conversations
and users are kept in memory, of this process, and never written.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from loki.base.secret import mask_secrets
from loki.memory.sign import Seen, Sighting, SignRules, mend, observe
from loki.memory.sign_text import render_signs
from loki.memory.signs import Signs
from loki.recognition.failure import Failure, as_failure
from loki.recognition.similarity import same_failure

if TYPE_CHECKING:
    from loki.recognition.text import Text

C = TypeVar("C")
Scope: TypeAlias = str | Callable[[C], str]
"""``conversation``, ``project``, the name of a user, or what tells that from a run's context."""

CONVERSATION, PROJECT = "conversation", "project"

MOST_SCOPES = 512
"""Conversations and users whose signs are kept, those asked for last. Chosen, not measured."""


def name_of(scope: Scope[Any], conversation: str, context: Any = None) -> str | None:
    """The name of what shares signs; None: the project.

    Args:
        scope: as the caller says.
        conversation: what tells it from others.
        context: the run's, for a scope that is told from it. What is told so is a user's name, whatever
            it is; "" or None: nobody is known, and the conversation is alone.

    Example:
        >>> name_of("conversation", "7"), name_of("ada", "7"), name_of("project", "7")
        ('conversation 7', 'user ada', None)
        >>> name_of(lambda user: user, "7", "project"), name_of(lambda user: user, "7", "")
        ('user project', 'conversation 7')
    """
    if scope == PROJECT:
        return None
    user = "" if scope == CONVERSATION else scope if isinstance(scope, str) else scope(context)
    return f"user {user}" if user else f"conversation {conversation}"


NOBODYS = name_of(CONVERSATION, "")
"""The name of conversations of which nobody knows which one each is."""


class Held:
    """What was seen in one scope; several monitors share it."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.lock = Lock()


class ScopeSigns(Signs):
    """The signs of one scope: those of a branch as to what they do, but in memory.

    Args:
        held: what was seen.
        name: of the scope, as `name_of` gives it.
        rules: what arms a sign.
    """

    def __init__(self, held: Held, name: str, rules: SignRules) -> None:  # no store: not the base's
        self.branch, self.rules, self._held = name, rules, held

    @property
    def seen(self) -> Seen:
        """All that was seen in the scope."""
        return self._held.seen

    def __str__(self) -> str:
        """The signs as an agent is to read them, secrets masked; "" where there are none."""
        seen = self._held.seen
        return mask_secrets(render_signs(seen.signs, seen.cycle)) if seen.signs else ""

    def observe(
        self,
        failure: Failure | Text,
        approach: str = "",
        task: str = "",
        *,
        command: str = "",
        only_new: bool = False,
    ) -> Sighting:
        """Remember a failure and what led to it; as the base."""
        failed = as_failure(failure)
        if self.rules.ignores(failed, command):
            return Sighting(failed, 0, threshold=self.rules.threshold_for(failed))
        with self._held.lock:
            if only_new:
                for one in self._held.seen.sightings:
                    if same_failure(one.failure, failed):
                        return one
            self._held.seen, sighting = observe(self._held.seen, failed, approach, task, self.rules)
            return sighting

    def mend(self, failures: Sequence[Failure]) -> None:
        """Take back the signs of failures whose checks have passed; as the base."""
        with self._held.lock:
            self._held.seen = mend(self._held.seen, failures)


class Scopes:
    """Signs in memory, by project and by whom they are of."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Held] = OrderedDict()
        self._lock = Lock()

    def signs(self, project: Path, name: str, rules: SignRules) -> Signs:
        """The signs of one scope.

        Args:
            project: its folder.
            name: as `name_of` gives it.
            rules: what arms a sign.
        """
        with self._lock:
            key = str(project), name
            held = self._known.setdefault(key, Held())
            self._known.move_to_end(key)
            while len(self._known) > MOST_SCOPES:
                self._known.popitem(last=False)
        return ScopeSigns(held, name, rules)

    def close(self, project: Path, names: Collection[str]) -> None:
        """Forget the signs of these scopes, also where somebody has them at hand."""
        with self._lock:
            gone = [self._known.pop((str(project), name), None) for name in names]
        for held in filter(None, gone):
            with held.lock:
                held.seen = Seen()


SCOPES = Scopes()
"""Those of this process: an agent may be made anew for each request."""


def close(of: str, project: str | Path = ".") -> None:
    """Close the signs of a user or of a conversation in this process: nobody is told of them any more.

    Args:
        of: the user's name, or the conversation's id.
        project: its folder.
    """
    SCOPES.close(Path(project).resolve(), {f"user {of}", f"conversation {of}"})
