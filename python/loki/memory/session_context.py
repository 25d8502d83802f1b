"""What one session carries to the next: ledgers and handoffs, as they are kept and read.

Other programs write in the same folders, in whatever Markdown they like: a page that names no other
task is read for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.base.token_estimate import clip_to_tokens, tokens
from loki.memory import handoff, ledger
from loki.memory.front_matter import parse
from loki.memory.handoff import Handoff
from loki.memory.ledger import DONE, Ledger

if TYPE_CHECKING:
    from loki.memory.store import Store

LEDGER_TOKENS, HANDOFF_TOKENS = 700, 300
"""Most tokens of ledgers, and of each handoff, in a briefing. Chosen, not measured."""

RECENT = 2
"""Handoffs that a session begins with. Chosen, not measured."""

KEPT = 20
"""Handoffs of one task that stay; older ones are removed. Chosen, not measured."""

LONGEST = 200_000
"""Characters of a page that are looked at. Chosen, not measured."""

SUFFIXES = (".md", ".markdown", ".mdx", ".txt")


@dataclass(frozen=True, slots=True)
class SessionNote:
    """A ledger or handoff, whoever wrote it.

    Attributes:
        document: its name in the store.
        kind: ledger or handoff.
        task_id: of the task that it is about; "" where it does not say.
        at: when it was written, as far as it says; its name else, which sorts likewise.
        state: of the task, as a ledger of ours says.
        text: Markdown, without the head.
    """

    document: str
    kind: str
    task_id: str
    at: str
    state: str
    text: str


def read(document: str, text: str) -> SessionNote | None:
    """A page as a note; None where it says nothing.

    Args:
        document: its name in the store.
        text: what it holds: Markdown, with or without a head that can be read.

    Example:
        >>> note = read("memory/handoffs/monday.md", "# Monday\\n\\nThe login is next.\\n")
        >>> note.kind, note.task_id, note.text
        ('handoff', '', '# Monday\\n\\nThe login is next.')
    """
    text = text[:LONGEST].lstrip("\ufeff")
    try:
        fields, body = parse(text) if text.startswith("---") else ({}, text)
    except (ValueError, RecursionError):
        fields, body = {}, text
    if not body.strip():
        return None
    name = document.rpartition("/")[2]
    said = next((fields[key] for key in ("task_id", "task", "taskId") if fields.get(key)), "")
    at = next(
        (
            str(fields[k])
            for k in ("updated_at", "created_at", "timestamp", "date")
            if fields.get(k)
        ),
        "",
    )
    kind = "ledger" if document.startswith(ledger.FOLDER) else "handoff"
    return SessionNote(
        document, kind, str(said), at or name, str(fields.get("state") or ""), body.strip()
    )


def is_for(note: SessionNote, task: str) -> bool:
    """Whether a note is for a task: its own, or one that names none."""
    if note.task_id:
        return note.task_id == task
    # Others name the file for the task, and say no more.
    return True


def context_text(ledgers: list[SessionNote], handoffs: list[SessionNote]) -> str:
    """What a briefing tells of them, the ledgers first; "" where there is none."""
    parts = []
    room = LEDGER_TOKENS
    for note in ledgers:
        if room > 0:
            parts.append(clip_to_tokens(note.text, room))
            room -= tokens(note.text)
    parts += [clip_to_tokens(note.text, HANDOFF_TOKENS) for note in handoffs]
    return "\n\n".join(parts)


class SessionContext:
    """The ledger and the handoffs of a task.

    Args:
        store: where they are kept.
        task: id of the task.
    """

    def __init__(self, store: Store, task: str) -> None:
        self._store = store
        self._task = task

    def keep(self, kept: Ledger, said: Handoff) -> None:
        """Keep the ledger, and a handoff beside the earlier ones."""
        self._store.put(kept.document, ledger.render(kept))
        self._store.put(said.document, handoff.render(said))
        self._prune()

    def keep_ledger(self, kept: Ledger) -> None:
        """Keep the ledger alone: nobody has to go on."""
        self._store.put(kept.document, ledger.render(kept))

    def load(self) -> str:
        """What a session begins with: the ledger and the recent handoffs; "" where there is none."""
        ledgers = [n for n in self._notes(ledger.FOLDER) if n.state not in DONE]
        ledgers.sort(key=lambda note: (note.task_id != self._task, note.document))
        handoffs = sorted(self._notes(handoff.FOLDER), key=lambda note: (note.at, note.document))
        return context_text(ledgers, handoffs[-RECENT:])

    def _notes(self, folder: str) -> list[SessionNote]:
        found = []
        for name in self._store.names(folder):
            if name.endswith(SUFFIXES):
                note = read(name, self._store.get(name) or "")
                if note is not None and is_for(note, self._task):
                    found.append(note)
        return found

    def _prune(self) -> None:
        """Remove the oldest handoffs of the task that loki wrote."""
        mine = f"-{self._task}.md"
        own = [name for name in self._store.names(handoff.FOLDER) if name.endswith(mine)]
        for name in own[:-KEPT]:
            self._store.update(name, lambda _old: None)
