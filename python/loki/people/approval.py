"""What a person approved or rejected of a task, and which commands need that.

Commands that no undo reaches, as loki restores a project's files and nothing else, are data:
``irreversible.yml``. Words are compared, no pattern is searched for: what an agent proposes is hostile. It
is a net, not a wall: a program may do anything, so that commands run only where the configuration or a
person allows them.

A decision (``tasks/<id>/approvals.jsonl``) is about one criterion and about one content: what the task
had made of the project then. Where the content is another one, the decision says nothing any more.
A command that is not on the list (``[execute] allow_commands``) is not run. It is kept that it was
asked for (``tasks/<id>/commands.jsonl``); whoever approves it, approves exactly these words, for this task.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from loki.base import codec
from loki.base.documents import readable
from loki.base.error import UsageError
from loki.base.yaml_text import load_file
from loki.memory.store import Store
from loki.recognition.shell_line import commands_of

# --- Commands that no undo reaches --------------------------------------------------------------------

FILE = Path(__file__).with_name("irreversible.yml")

LONGEST = 10_000
"""Words of a command that are looked at; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that cannot be taken back; the file says what each field means."""

    id: str
    why: str
    programs: tuple[str, ...]
    words: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    outside: bool = False

    def is_(self, program: str, arguments: Sequence[str], root: str) -> bool:
        """Whether a command is this."""
        if not any_of(self.programs, (program,)):
            return False
        if self.unless and any_of(self.unless, arguments):
            return False
        if self.any and not any_of(self.any, arguments):
            return False
        if self.text and not _says(arguments, self.text):
            return False
        if self.outside and not any(_leads_out(word, root) for word in arguments):
            return False
        rest = iter(arguments)
        return all(any(fnmatchcase(word, wanted) for word in rest) for wanted in self.words)


def any_of(globs: Iterable[str], words: Sequence[str]) -> bool:
    """Whether one of the words is what one of the globs describes."""
    return any(fnmatchcase(word, glob) for glob in globs for word in words)


def irreversible(command: Sequence[str], root: str = "") -> Operation | None:
    """What a command does that cannot be taken back; None: nothing that is known of.

    Args:
        command: its words.
        root: the project's folder, absolute; "" where it is not known.

    Example:
        >>> irreversible(["git", "push", "--force"]).id
        'force-push'
        >>> irreversible(["sudo", "sh", "-c", "cd x && npm publish"]).id
        'publish'
        >>> irreversible(["npm", "publish", "--dry-run"]) is irreversible(["rm", "-rf", "build"])
        True
    """
    return next(
        (
            operation
            for one in commands_of(command[:LONGEST])
            for operation in _operations()
            if operation.is_(one.program, one.arguments, root)
        ),
        None,
    )


@dataclass(frozen=True, slots=True)
class _File:
    operations: tuple[Operation, ...]


@cache
def _operations() -> tuple[Operation, ...]:
    return codec.parse(_File, load_file(FILE)).operations


def _says(arguments: Sequence[str], texts: Sequence[str]) -> bool:
    said = " ".join(" ".join(arguments).split()).casefold()
    return any(text in said for text in texts)


def _leads_out(word: str, root: str) -> bool:
    if word.startswith(("~", "$")):
        return True
    if word.startswith("-"):
        return False
    base = root or "/project"
    path = posixpath.normpath(posixpath.join(base, word))
    return not path.startswith(f"{base.rstrip('/')}/")


# --- What a person approved or rejected ---------------------------------------------------------------

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
