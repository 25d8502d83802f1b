"""What a person lets a proposal run: commands that no setting allows, word by word.

A command that is not on the list (``[execute] allow_commands``) is not run. It is kept that it was
asked for, in ``tasks/<id>/commands.jsonl``; whoever approves it, approves exactly these words, for
this task. The decision stands beside those about criteria, in ``tasks/<id>/approvals.jsonl``.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from loki.base.error import UsageError
from loki.memory.store import Store
from loki.people.approval import Approval, Approvals

PREFIX = "command: "
"""What the name of a command has before it where criteria are named, ``loki resume --approve``."""


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


@dataclass(frozen=True, slots=True)
class CommandApprovals:
    """Which commands a task asked for, and what people said of them.

    Args:
        store: where memory is kept.
        task_id: the task.

    Example:
        >>> from loki.testing import MemoryStore
        >>> approvals = CommandApprovals(MemoryStore(), "t")
        >>> approvals.ask(["make", "install"])
        >>> approvals.asked()
        ['command: make install']
        >>> approvals.decide(["make", "install"], True, "ann", "2026-04-04T10:00:00Z").approved
        True
        >>> approvals.standing(["make", "install", "-k"]) is None
        True
    """

    store: Store
    task_id: str

    def ask(self, words: Sequence[str]) -> None:
        """Keep that a proposal wants to run this."""
        if digest(words) not in self._asked():
            self.store.append(self._log, {"command": named(words), "digest": digest(words)})

    def asked(self) -> list[str]:
        """What was asked for, first asked first; as approvals name it, secrets masked."""
        return list(self._asked().values())

    def undecided(self) -> list[str]:
        """Those of them that nobody has decided on."""
        decided = {one.digest for one in Approvals(self.store, self.task_id).all()}
        return [name for one, name in self._asked().items() if one not in decided]

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
                f"task {self.task_id} does not ask to run {name!r}: expected one of the commands that "
                f"it asked for, word by word: {asked}"
            )
        return words

    def told(self, since: str) -> str:
        """What the agent is told of commands that a person approved; "" where there is none.

        Args:
            since: only of decisions at or after this, ISO 8601 UTC.
        """
        last = {one.digest: one for one in Approvals(self.store, self.task_id).all()}
        names = [
            name.removeprefix(PREFIX)
            for one, name in self._asked().items()
            if one in last and last[one].approved and last[one].at >= since
        ]
        said = (
            "A person approved this command, for exactly these words; propose it where you need it"
        )
        return "\n".join(f"{said}: {name}" for name in names)

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
        Approvals(self.store, self.task_id).add(approval)
        return approval

    def standing(self, words: Sequence[str]) -> Approval | None:
        """The last decision about exactly these words; None where there is none."""
        wanted = digest(words)
        about = [one for one in Approvals(self.store, self.task_id).all() if one.digest == wanted]
        return about[-1] if about else None

    def _asked(self) -> dict[str, str]:
        records = self.store.records(self._log)
        return {str(one.get("digest", "")): str(one.get("command", "")) for one in records}

    @property
    def _log(self) -> str:
        return f"tasks/{self.task_id}/commands.jsonl"
