"""What a person approved or rejected of a task, and which commands it asks for.

A decision (``tasks/<id>/approvals.jsonl``) is about one criterion and about one content: what the task
had made of the project then. Where the content is another one, the decision says nothing any more.
A command that is not on the list (``[execute] allow_commands``) is not run. It is kept that it was
asked for (``tasks/<id>/commands.jsonl``); whoever approves it, approves exactly these words, for this task.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loki.base import codec
from loki.base.error import UsageError
from loki.memory.store import Store, readable

PREFIX = "command: "
"""What the name of a command has before it where criteria are named, ``loki resume --approve``."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One person's decision about one criterion.

    Attributes:
        criterion: name of the criterion: what is approved.
        approved: approved, or rejected.
        by: who decided.
        at: when, ISO 8601 UTC.
        digest: of what the task had made of the project then; of nothing else is this a decision.
        note: why, in the person's words; the next attempt is told why something was rejected.
    """

    criterion: str
    approved: bool
    by: str
    at: str
    digest: str
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a decision that nobody made, or about nothing."""
        for name in ("criterion", "by", "digest"):
            if not getattr(self, name).strip():
                raise UsageError(f"an approval needs {name!r}: who approves what, of which content")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Approval:
        """A decision from a record.

        Raises:
            ValueError: a field is missing or of another kind.
        """
        try:
            return codec.parse(cls, data, "approval")
        except UsageError as error:
            raise ValueError(f"no approval: {error}") from error


def named(words: Sequence[str]) -> str:
    """What a command is approved by.

    Example:
        >>> named(["pip", "install", "left pad"])
        "command: pip install 'left pad'"
    """
    return PREFIX + shlex.join(words)


def digest(words: Sequence[str]) -> str:
    """Of exactly these words; where one of them is different, nobody has approved that command."""
    return hashlib.sha256(json.dumps(list(words)).encode("utf-8", "surrogatepass")).hexdigest()


class Approvals:
    """The decisions about one task, oldest first, and the commands that it asks for.

    Args:
        store: where memory is kept.
        task_id: the task.

    Example:
        >>> from loki.stores.memory_store import MemoryStore
        >>> approvals = Approvals(MemoryStore(), "t")
        >>> approvals.add(Approval("the text reads well", True, "ann", "2026-04-04T10:00:00Z", "d1"))
        >>> approvals.current("the text reads well", "d1").by
        'ann'
        >>> approvals.current("the text reads well", "d2") is None
        True
        >>> approvals.ask(["make", "install"])
        >>> approvals.undecided()
        ['command: make install']
        >>> approvals.decide(["make", "install"], True, "ann", "2026-04-04T10:00:00Z").approved
        True
        >>> approvals.of_command(["make", "install", "-k"]) is None
        True
    """

    def __init__(self, store: Store, task_id: str) -> None:
        self._store = store
        self._task_id = task_id
        self._log = f"tasks/{task_id}/approvals.jsonl"
        self._commands = f"tasks/{task_id}/commands.jsonl"

    def add(self, approval: Approval) -> None:
        """Keep a decision; a later one about the same takes its place.

        Raises:
            StoreError: it could not be kept.
        """
        self._store.append(self._log, codec.fields_of(approval))

    def all(self) -> list[Approval]:
        """Every decision, oldest first; a damaged record is left out with a warning."""
        return list(readable(self._log, self._store.records(self._log), Approval.from_dict))

    def current(self, criterion: str, digest: str) -> Approval | None:
        """The last decision about a criterion that is about this content; None where there is none.

        Args:
            criterion: its name.
            digest: of what the task has made of the project now.
        """
        about = [a for a in self.all() if a.criterion == criterion and a.digest == digest]
        return about[-1] if about else None

    # --- Commands -----------------------------------------------------------------------------------

    def ask(self, words: Sequence[str]) -> None:
        """Keep that a proposal wants to run this."""
        if digest(words) not in self._asked():
            self._store.append(self._commands, {"command": named(words), "digest": digest(words)})

    def asked(self) -> list[str]:
        """The commands that were asked for, first asked first; as approvals name them, secrets masked."""
        return list(self._asked().values())

    def undecided(self) -> list[str]:
        """Those of them that nobody has decided on."""
        asked = self._asked()
        decided = {one.digest for one in self.all()} if asked else ()
        return [name for one, name in asked.items() if one not in decided]

    def words(self, name: str) -> tuple[str, ...]:
        """The words of a command that was asked for.

        Args:
            name: as approvals name it.

        Raises:
            UsageError: the task did not ask for exactly these words.
        """
        try:
            words = tuple(shlex.split(name.removeprefix(PREFIX)))
        except ValueError:
            words = ()
        if digest(words) not in self._asked():
            asked = ", ".join(map(repr, self.asked())) or "none"
            raise UsageError(
                f"task {self._task_id} does not ask to run {name!r}: expected one of the commands that "
                f"it asked for, word by word: {asked}"
            )
        return words

    def decide(
        self, words: Sequence[str], approved: bool, by: str, at: str, note: str = ""
    ) -> Approval:
        """Keep a person's decision about exactly these words.

        Args:
            words: the command's.
            approved: yes or no.
            by: who decides.
            at: when, ISO 8601 UTC.
            note: why; where it is a no, the agent is told.

        Raises:
            StoreError: it could not be kept.
        """
        approval = Approval(named(words), approved, by, at, digest(words), note)
        self.add(approval)
        return approval

    def of_command(self, words: Sequence[str]) -> Approval | None:
        """The last decision about exactly these words; None where there is none."""
        return {one.digest: one for one in self.all()}.get(digest(words))

    def told(self, since: str) -> str:
        """What the agent is told of commands that a person approved; "" where there is none.

        Args:
            since: only of decisions at or after this, ISO 8601 UTC.
        """
        last = {one.digest: one for one in self.all()}
        names = [
            name.removeprefix(PREFIX)
            for one, name in self._asked().items()
            if one in last and last[one].approved and last[one].at >= since
        ]
        said = (
            "A person approved this command, for exactly these words; propose it where you need it"
        )
        return "\n".join(f"{said}: {name}" for name in names)

    def _asked(self) -> dict[str, str]:
        records = self._store.records(self._commands)
        return {str(one.get("digest", "")): str(one.get("command", "")) for one in records}
