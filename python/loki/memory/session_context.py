"""What one session carries to the next: ledgers and handoffs, as they are kept and read.

A ledger says where a task stands, one page a task in ``.loki/memory/ledgers/``; a handoff what one session
says to the next, in ``.loki/memory/handoffs/``. Both are made of what is on record. Other programs write in
the same folders, in whatever Markdown they like: a page that names no other task is read for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from loki.base.markup import inline
from loki.base.tokens import clip_to_tokens, tokens
from loki.base.yaml_text import entity, page, parse
from loki.memory.attempt import DRIFT, MOST, Approach, Attempt, AttemptSummary
from loki.memory.quote import one_line, quoted, whole
from loki.memory.reflection import Reflection
from loki.memory.task_record import DONE

if TYPE_CHECKING:
    from loki.memory.store import Store


# --- The course of a task so far, in bounded memory ---------------------------------------------------

MOST_DRIFTS = 3
"""Drifts that are told of, the newest. Chosen, not measured."""

MOST_FILES = 1000
"""Paths that are known by name, the first. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The attempts of a task's life, summed up.

    Attributes:
        tried: its approaches.
        decisions: why which strategy was chosen, the newest, oldest first.
        error: of the last attempt that had one, or None.
        strategy: the last that was chosen, or None.
        drifts: how work left the task, the newest, oldest first.
        files: paths that attempts changed; a dict for its order.
        last: the last attempt, or None.

    Example:
        >>> course = TaskProgress.of(Attempt(n, "", "guard", "failed", f"E{n}") for n in (1, 2, 3))
        >>> course.tried.attempts, course.error, course.last.attempt
        (3, 'E3', 3)
    """

    tried: AttemptSummary = field(default_factory=AttemptSummary)
    decisions: tuple[str, ...] = ()
    error: str | None = None
    strategy: str | None = None
    drifts: tuple[str, ...] = ()
    files: dict[str, None] = field(default_factory=dict)
    last: Attempt | None = None

    def after(self, attempt: Attempt) -> TaskProgress:
        """The same after one more attempt."""
        decision = attempt.decision or {}
        decided = self.decisions
        if decision.get("reason"):
            chosen = attempt.strategy_used or decision.get("action")
            line = f"attempt {attempt.attempt}: {chosen}: {decision['reason']}"
            decided = (*decided, line)[-MOST:]
        drifts = self.drifts
        if attempt.result == DRIFT and attempt.error:
            drifts = (*drifts, attempt.error)[-MOST_DRIFTS:]
        files = self.files
        new = [path for path in attempt.files_modified if path not in files]
        if new and len(files) < MOST_FILES:
            files = {**files, **dict.fromkeys(new)}
        return replace(
            self,
            tried=self.tried.after(attempt),
            decisions=decided,
            error=attempt.error or self.error,
            strategy=attempt.strategy_used or self.strategy,
            drifts=drifts,
            files=files,
            last=attempt,
        )

    @classmethod
    def of(cls, attempts: Iterable[Attempt]) -> TaskProgress:
        """A summary of attempts, oldest first."""
        progress = cls()
        for attempt in attempts:
            progress = progress.after(attempt)
        return progress


# --- The ledger of a task -----------------------------------------------------------------------------

LEDGERS = "memory/ledgers/"

FILES = 20
"""Files that a ledger names; the others are counted. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where a task stands.

    Attributes:
        task_id, goal: the task, its title.
        state: running, or how it ended last; reason: why, a sentence.
        updated_at: ISO 8601 UTC.
        said: what people decided or added.
        decisions: why which strategy was chosen, oldest first.
        tried: earlier approaches, each with what came of it.
        attempts: how many there were.
        files: that differ from before the task.
        questions: what is not known.
        next_step: what to do now.
    """

    task_id: str
    goal: str
    state: str = "running"
    reason: str = ""
    updated_at: str = ""
    said: Sequence[str] = ()
    decisions: Sequence[str] = ()
    tried: Sequence[Approach] = ()
    attempts: int = 0
    files: Sequence[str] = ()
    questions: Sequence[str] = ()
    next_step: str = ""

    @property
    def document(self) -> str:
        """Name of its page."""
        return f"{LEDGERS}{self.task_id}.md"


def ledger_of(
    task_id: str,
    goal: str,
    progress: TaskProgress,
    *,
    state: str = "running",
    reason: str = "",
    at: str = "",
    said: Sequence[str] = (),
    files: Sequence[str] = (),
    reflections: Sequence[Reflection] = (),
) -> Ledger:
    """A ledger from what is on record.

    Args:
        task_id, goal, state, reason, said, files: as of `Ledger`.
        progress: the attempts of the task's life, summed up.
        at: when it is written, ISO 8601 UTC.
        reflections: notes on the last attempts, oldest first.
    """
    last = reflections[-1] if reflections else None
    questions = (
        [f"Not mended yet: {progress.error}"] if progress.error and state not in DONE else []
    )
    if last is not None and last.why:
        questions.append(f"Likely why, unproven: {last.why}")
    approaches = progress.tried.approaches
    otherwise = f"go about it by {progress.strategy}" if progress.strategy else ""
    return Ledger(
        task_id,
        goal,
        state,
        reason,
        at,
        tuple(said),
        progress.decisions[-len(approaches) or None :],
        approaches,
        progress.tried.attempts,
        tuple(files),
        tuple(questions),
        (last.instead if last else "") or otherwise,
    )


def render_ledger(ledger: Ledger) -> str:
    """The page of a ledger; whatever its fields hold, they stay data.

    Example:
        >>> print(render_ledger(Ledger("t1", "fix the login", next_step="look at the session")))
        ---
        entity_name: memory.ledgers.t1
        namespace: memory.ledgers
        category: ledger
        task_id: t1
        state: running
        updated_at: null
        tags:
        - ledger
        ---
        <BLANKLINE>
        # Ledger
        <BLANKLINE>
        ## Goal
        <BLANKLINE>
        ```text
        fix the login
        ```
        <BLANKLINE>
        ## State
        <BLANKLINE>
        running; 0 attempts so far.
        <BLANKLINE>
        ## Next step
        <BLANKLINE>
        - `look at the session`
        <BLANKLINE>
    """
    fields = {
        **entity("memory.ledgers", ledger.task_id, "ledger"),
        "task_id": ledger.task_id,
        "state": ledger.state,
        "updated_at": ledger.updated_at or None,
        "tags": ["ledger"],
    }
    why = f" Why: {quoted(ledger.reason)}." if ledger.reason else ""
    more = [f"and {len(ledger.files) - FILES} more"] if len(ledger.files) > FILES else []
    parts = ["# Ledger", f"## Goal\n\n{whole(ledger.goal)}"]
    parts.append(f"## State\n\n{inline(ledger.state)}; {ledger.attempts} attempts so far.{why}")
    for title, lines in (
        ("What people said", ledger.said),
        ("Decisions", ledger.decisions),
        ("Tried", tuple(map(_approach, ledger.tried))),
        ("Files changed", (*ledger.files[:FILES], *more)),
        ("Open questions", ledger.questions),
        ("Next step", (ledger.next_step,) if ledger.next_step else ()),
    ):
        if lines:
            parts.append(f"## {title}\n\n" + "\n".join(f"- {quoted(line, 300)}" for line in lines))
    return page(fields, parts)


def _approach(one: Approach) -> str:
    times = f" ({one.times} times)" if one.times > 1 else ""
    what = one_line(one.action, 150) or "nothing was proposed"
    return f"attempt {one.attempt}{times}: {what} → {one_line(one.error, 100)}"


# --- A handoff ----------------------------------------------------------------------------------------

HANDOFFS = "memory/handoffs/"


@dataclass(frozen=True, slots=True)
class Handoff:
    """What one session hands to the next.

    Attributes:
        task_id, goal: the task, its title.
        at: when, ISO 8601 UTC.
        why: why the session ended: a context clear, or how the task stopped.
        by: who worked on it, or "".
        drifts: how the work left the task, each a sentence.
        last: what was done last, and what came of it.
        next_step: what to do now.
    """

    task_id: str
    goal: str
    at: str
    why: str
    by: str = ""
    drifts: Sequence[str] = ()
    last: str = ""
    next_step: str = ""

    @property
    def document(self) -> str:
        """Name of its page: sorted by it, the newest is the last of its task."""
        at = "".join(c for c in self.at if c.isalnum())
        return f"{HANDOFFS}{at}-{self.task_id}.md"


def render_handoff(handoff: Handoff) -> str:
    """The page of a handoff; whatever its fields hold, they stay data.

    Example:
        >>> page = render_handoff(Handoff("t1", "fix it", "2026-04-04T12:00:00Z", "interrupted", last="a.py"))
        >>> print(page.split("---")[2].strip())
        # Handoff
        <BLANKLINE>
        ```text
        fix it
        ```
        <BLANKLINE>
        - Why the session ended: `interrupted`
        - Done last: `a.py`
    """
    fields = {
        **entity("memory.handoffs", handoff.task_id, "handoff"),
        "task_id": handoff.task_id,
        "created_at": handoff.at,
        "agent": handoff.by or None,
        "tags": ["handoff"],
    }
    rows = [
        ("Why the session ended", handoff.why),
        *(("Left the task", drift) for drift in handoff.drifts),
        ("Done last", handoff.last),
        ("Next", handoff.next_step),
    ]
    lines = "\n".join(f"- {name}: {quoted(text, 300)}" for name, text in rows if text)
    return page(fields, ["# Handoff", whole(handoff.goal), lines])


# --- Ledgers and handoffs as they are kept and read ---------------------------------------------------

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
    task = _first(fields, "task_id", "task", "taskId")
    at = _first(fields, "updated_at", "created_at", "timestamp", "date")
    kind = "ledger" if document.startswith(LEDGERS) else "handoff"
    return SessionNote(document, kind, task, at or name, _first(fields, "state"), body.strip())


def _first(fields: Mapping[str, Any], *names: str) -> str:
    """The first of some fields that says something, as text."""
    return next((str(fields[name]) for name in names if fields.get(name)), "")


def is_for(note: SessionNote, task: str) -> bool:
    """Whether a note is for a task: its own, or one that names none, as others write them."""
    return note.task_id in {"", task}


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
        self.keep_ledger(kept)
        self._store.write(said.document, render_handoff(said))
        self._prune()

    def keep_ledger(self, kept: Ledger) -> None:
        """Keep the ledger alone: nobody has to go on."""
        self._store.write(kept.document, render_ledger(kept))

    def load(self) -> str:
        """What a session begins with: the ledger and the recent handoffs; "" where there is none."""
        ledgers = [n for n in self._notes(LEDGERS) if n.state not in DONE]
        ledgers.sort(key=lambda note: (note.task_id != self._task, note.document))
        handoffs = sorted(self._notes(HANDOFFS), key=lambda note: (note.at, note.document))
        return context_text(ledgers, handoffs[-RECENT:])

    def _notes(self, folder: str) -> list[SessionNote]:
        found = []
        for name in self._store.keys(folder):
            if name.endswith(SUFFIXES):
                note = read(name, self._store.read(name) or "")
                if note is not None and is_for(note, self._task):
                    found.append(note)
        return found

    def _prune(self) -> None:
        """Remove the oldest handoffs of the task that loki wrote."""
        mine = f"-{self._task}.md"
        own = [name for name in self._store.keys(HANDOFFS) if name.endswith(mine)]
        for name in own[:-KEPT]:
            self._store.update(name, lambda _old: None)
