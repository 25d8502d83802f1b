"""The escalations of a workspace: which pages await a person, and what answers them.

There is no index beside the pages: a page is open while it awaits an answer, whoever wrote it, and
so nothing can say otherwise than what a person reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from loki.base.markup import inline
from loki.base.time import Clock, isoformat
from loki.memory.store import Store
from loki.people.escalation import (
    Escalation,
    answer_text,
    file_name,
    head,
    is_open,
    open_tasks,
    render,
    with_answer,
    with_task,
)
from loki.people.request import AWAITING

FOLDER = "escalations/"

TITLE = "## Escalation: "


@dataclass(frozen=True, slots=True)
class OpenEscalation:
    """A page that awaits a person.

    Attributes:
        page: its name below ``.loki/``.
        title: of the task.
        tasks: ids of the tasks that await an answer; the first one is the page's own.
        failure_count: how often it failed.
        trigger: short name of what made loki ask.
        reason: one sentence.
        asks: what the person must decide.
    """

    page: str
    title: str
    tasks: tuple[str, ...]
    failure_count: int
    trigger: str
    reason: str
    asks: str

    def names(self, task_id: str) -> bool:
        """Whether it asks about a task."""
        return _plain(inline(task_id)) in self.tasks


class Escalations:
    """The escalations of a workspace.

    Args:
        store: where the pages are kept.
        clock: tells when one is asked or answered.

    Example:
        >>> from loki.testing import ManualClock, MemoryStore
        >>> escalations = Escalations(MemoryStore(), ManualClock())
        >>> page = escalations.ask(Escalation("t", "Fix it", "stopped", "a gate", None, (), ()))
        >>> escalations.of("t").page == page
        True
        >>> escalations.answer("t", "a person retried it") == [page]
        True
        >>> escalations.open()
        []
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def open(self) -> list[OpenEscalation]:
        """The pages that await a person, oldest first; also those that other programs wrote."""
        return list(self._open())

    def of(self, task_id: str) -> OpenEscalation | None:
        """The open escalation of a task, the newest; None where there is none."""
        return next((one for one in reversed(self.open()) if one.names(task_id)), None)

    def ask(self, escalation: Escalation) -> str:
        """Ask a person about a task, and those that share its cause, unless one is asked already.

        Returns:
            The name of the page that is open now: a new one, or the one that there was; that one
            asks about the further tasks, too, from then on.

        Raises:
            StoreError: it could not be kept.
        """
        page = file_name(isoformat(self._clock.now()), escalation.task_id)
        found = page

        def write(text: str | None) -> str | None:
            # All updates of a workspace pass one lock: nobody else asks meanwhile.
            nonlocal found
            there = self.of(escalation.task_id)
            found = there.page if there else page
            return text if there else render(escalation)

        self._store.update(page, write)
        if found != page:
            self._add(found, escalation.others)
        self._settle_others(found, (escalation.task_id, *escalation.others))
        return found

    def put(self, page: str, escalation: Escalation) -> None:
        """Write the page by which the loop stops a task; it takes the place of the task's older ones.

        Raises:
            StoreError: it could not be kept.
        """
        self._store.put(page, render(escalation))
        self._settle_others(page, (escalation.task_id,))

    def answer(self, task_id: str, what: str, words: str = "") -> list[str]:
        """Mark the open escalations of a task as answered.

        Args:
            task_id: the task.
            what: what was done, a clause.
            words: what the person said, or "".

        Returns:
            The pages; none where nothing was asked.

        Raises:
            StoreError: an answer could not be kept.
        """
        return self.answer_with(task_id, answer_text(isoformat(self._clock.now()), what, words))

    def answer_with(self, task_id: str, answer: str) -> list[str]:
        """The same with an answer as the page is to have it, Markdown."""
        pages = [one.page for one in self.open() if one.names(task_id)]
        for page in pages:
            self._rewrite(page, partial(_answered, task_id=task_id, answer=answer))
        return pages

    def _settle_others(self, page: str, tasks: Sequence[str]) -> None:
        """One open escalation to a task: what older ones ask about these tasks is asked here now."""
        what = answer_text(isoformat(self._clock.now()), f"asked anew, in {page}")
        for task_id in tasks:
            for one in self.open():
                if one.page != page and one.names(task_id):
                    self._rewrite(one.page, partial(_answered, task_id=task_id, answer=what))

    def _add(self, page: str, tasks: Sequence[str]) -> None:
        for task_id in tasks:
            self._rewrite(page, partial(_joined, task_id=task_id))

    def _rewrite(self, page: str, change: Callable[[str], str]) -> None:
        self._store.update(page, lambda text: change(text) if text else text)

    def _open(self) -> Iterator[OpenEscalation]:
        for name in self._store.names(FOLDER):
            text = self._store.get(name) if name.endswith(".md") else None
            found = read(name, text) if text else None
            if found is not None:
                yield found


def read(name: str, page: str) -> OpenEscalation | None:
    """What an open page asks; None where it is answered, or no escalation.

    Args:
        name: the page's name below ``.loki/``.
        page: its text; hostile.

    Example:
        >>> page = "## Escalation: a\\n\\n**Task ID:** t\\n**Trigger:** stopped: b\\n\\n### Awaiting\\n\\nDo."
        >>> read("escalations/x.md", page).asks
        'Do.'
    """
    title, *rest = head(page)
    if not title.startswith(TITLE) or not is_open(page) or not open_tasks(page):
        return None
    lines = dict(_field(line) for line in rest if ":** " in line)
    trigger, colon, reason = lines.get("Trigger", "").partition(": ")
    count = lines.get("Failure Count", "")
    return OpenEscalation(
        name,
        _plain(title.removeprefix(TITLE).strip()),
        tuple(map(_plain, open_tasks(page))),
        int(count) if count.isascii() and count.isdigit() and len(count) < 10 else 0,  # noqa: PLR2004
        _plain(trigger if colon else ""),
        _plain(reason if colon else trigger),
        page.rpartition(f"\n{AWAITING}\n")[2].strip(),
    )


def _answered(page: str, task_id: str, answer: str) -> str:
    """The page with an answer; one that somebody else answered meanwhile stays as it is."""
    awaits = is_open(page) and inline(task_id) in open_tasks(page)
    return with_answer(page, answer, task_id) if awaits else page


def _joined(page: str, task_id: str) -> str:
    known = inline(task_id) in open_tasks(page)
    return page if known or not is_open(page) else with_task(page, task_id)


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.strip().removeprefix("**").partition(":** ")
    return name, value.strip()


def _plain(shown: str) -> str:
    """The text that `loki.base.markup.inline` wrote so."""
    return re.sub(r"\\([^\w\s]|_)", r"\1", shown)
