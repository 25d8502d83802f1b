"""What becomes of an escalation's page once a person, or what happened since, has answered it.

Pure: a page in, a page out. The page of several tasks stays open until each of them is answered.
"""

from __future__ import annotations

import re

from loki.base.markdown import inline, quotation
from loki.memory.intervention import ABORT, Intervention
from loki.people.escalation import ALSO, TASK
from loki.people.request_page import AWAITING

ANSWERED = "### Answered"
DONE = "**Answered Task ID:** "
"""What the line of a task that is answered begins with, where others of its page are not."""


def answer_sentence(intervention: Intervention) -> str:
    """A person's answer as the page has it, Markdown."""
    if intervention.kind == ABORT:
        what = "a person aborted the task; its changes were undone"
        return answer_text(intervention.at, what, intervention.context)
    return answer_text(intervention.at, "a person resumed the task", intervention.context)


def answer_text(at: str, what: str, words: str = "") -> str:
    """What was done at a moment, and what was said with it, Markdown.

    Args:
        at: when, ISO 8601 UTC.
        what: what was done, a clause of ours.
        words: what somebody said, or "".

    Example:
        >>> answer_text("2026-01-25T10:30:00.000Z", "a person retried the task")
        '2026-01-25T10:30:00.000Z: a person retried the task.'
    """
    if not words.strip():
        return f"{inline(at)}: {what}."
    return f"{inline(at)}: {what}, and said:\n\n{quotation(words)}"


def is_open(page: str) -> bool:
    """Whether a page still awaits an answer; what a tool printed into it counts for nothing.

    The last heading of the two is ours: what comes behind it is quoted, and no line of it is one.
    """
    last = re.findall(rf"^({AWAITING}|{ANSWERED})$", page, re.MULTILINE)
    return bool(last) and last[-1] == AWAITING


def open_tasks(page: str) -> list[str]:
    """The tasks of a page that await an answer, as the page writes them."""
    return [line.partition("** ")[2].strip() for line in head(page) if _names_open(line)]


def with_answer(page: str, answer: str, task_id: str | None = None) -> str:
    """The page after somebody answered it: what it awaited is answered.

    Args:
        page: what `loki.people.escalation.render` gave.
        answer: Markdown; see `sentence` and `said`.
        task_id: the task that is answered; None: all of them.

    Example:
        >>> page = "## Escalation: a\\n\\n**Task ID:** t\\n\\n### Awaiting\\n\\nDecide."
        >>> is_open(with_answer(page, answer_text("2026-01-25T10:30:00.000Z", "a person retried it"), "t"))
        False
    """
    left = open_tasks(page)
    if task_id is not None and inline(task_id) in left and len(left) > 1:
        return _partly(page, inline(task_id), answer)
    # The last one: what a tool printed may look like one.
    before, asked, _ = page.rpartition(f"\n{AWAITING}\n")
    before = (before if asked else page).rstrip()
    return f"{before}\n\n{ANSWERED}\n\n{answer}\n"


def with_task(page: str, task_id: str) -> str:
    """The page that asks about one more task, too."""
    lines = page.split("\n")
    last = max(i for i, line in enumerate(head(page)) if _names_open(line))
    return "\n".join([*lines[: last + 1], f"**{ALSO}:** {inline(task_id)}", *lines[last + 1 :]])


def _partly(page: str, shown: str, answer: str) -> str:
    """One of several tasks is answered: its line says so, and the answer stands before the question."""
    lines = page.split("\n")
    for index, line in enumerate(head(page)):
        if _names_open(line) and line.partition("** ")[2].strip() == shown:
            lines[index] = f"{DONE}{shown}"
    before, asked, question = "\n".join(lines).rpartition(f"\n{AWAITING}\n")
    return f"{before.rstrip()}\n\n### About {shown}\n\n{answer}\n{asked}{question}"


def head(page: str) -> list[str]:
    """The lines before the first section: nothing of a tool's stands there."""
    return page.partition("\n### ")[0].split("\n")


def _names_open(line: str) -> bool:
    return line.startswith((f"**{TASK}:** ", f"**{ALSO}:** "))
