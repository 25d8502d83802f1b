"""How dead letters are told of on the command line, for people and for programs."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from loki.base.text_format import amount, line
from loki.memory import dead_letter_page

if TYPE_CHECKING:
    from loki.jobs.dead_letters.dead_letters import Reviewed
    from loki.workspace import Workspace

WIDTH = 100
"""Characters of what others said in one line; chosen to fit a screen."""

_ACTIONS = {
    "retry": ("green", "can be queued again", "queued again", "next    loki work"),
    "simplify": (
        "green",
        "a simpler task can be queued",
        "a simpler task was queued",
        "next    loki work does {new}; this one stays until that is completed",
    ),
    "abandon": (
        "red",
        "to be abandoned",
        "abandoned",
        "kept    its attempts, pages and edits; loki undo {id} restores the files",
    ),
    "escalate": (
        "yellow",
        "needs a person",
        "waits for a person",
        "next    read the page; then loki dead-letters retry {id} or abandon {id} --reason …",
    ),
    "stay": (None, "stays", "stays", ""),
}
"""By what was decided: a color, how it is said before and after it is done, and what to do next."""


def in_short(one: Reviewed, *, decided: bool = False) -> str:
    """A dead letter in a few lines: what it is, what becomes of it and why, what to do.

    Args:
        one: it.
        decided: a review was carried out; else it was only looked at.
    """
    letter, decision = one.letter, one.decision
    color, would, done, next_ = _ACTIONS[decision.action]
    what = done if decided else would
    if decided and not one.done:
        what = "is no dead letter any more: somebody else was quicker"
    head = f"{typer.style(line(one.task_id), bold=True)}: {typer.style(what, fg=color)}"
    last = f", last {line(letter.last_failure[:16])}" if letter.last_failure else ""
    summary = line(letter.error_summary or "not told", WIDTH)
    lines = [
        f"{head}: {line(decision.reason, WIDTH)}",
        f"  what    {line(letter.title, WIDTH)}",
        f"  failed  {amount(letter.total_attempts, 'attempt')}{last}: {summary}",
    ]
    lines += [f"  because {line(text, WIDTH)}" for text in decision.evidence if text]
    if one.page:
        lines.append(f"  page    .loki/{line(one.page)}")
    if next_ and decided and one.done:
        lines.append("  " + next_.format(id=shlex.quote(one.task_id), new=one.new_task))
    return "\n".join(lines)


def echo(one: Reviewed) -> None:
    """Tell of a dead letter that was reviewed beside other work, on stderr."""
    typer.echo(in_short(one, decided=True), err=True)


def in_full(one: Reviewed, workspace: Workspace) -> str:
    """Everything that is known of a dead letter.

    Args:
        one: it.
        workspace: the project.
    """
    letter, facts = one.letter, one.facts
    recovery, back = letter.recovery_strategy or "not told", amount(letter.requeues, "time")
    lines = [in_short(one), f"  recover {line(recovery)}; brought back {back} before"]
    lines += [
        f"  needs   {line(needed.name)}: {needed.state}: {line(needed.evidence)}"
        for needed in facts.dependencies
    ]
    lines += [
        f"  commit  {commit.commit[:12]} {line(commit.subject, WIDTH)}: {line(commit.why)}"
        for commit in facts.commits
    ]
    if letter.simpler_task:
        lines.append(f"  simpler {line(letter.simpler_task)}: {facts.simpler_state or 'gone'}")
    for tried in letter.attempts:
        head = f"attempt {tried.attempt_number}  {line(tried.timestamp)}  {line(tried.error_type)}"
        lines.append(f"\n{head}{tried.agent_id and f'  by {line(tried.agent_id)}'}")
        lines.append(f"  did     {line(tried.approach or 'not told', 200)}")
        lines.append(f"  error   {line(tried.error_message or 'not told', 300)}")
    page = dead_letter_page.name(one.task_id)
    if workspace.store.get(page) is not None:
        lines.append(f"\npage: {workspace.folder / page}")
    id_ = shlex.quote(one.task_id)
    lines.append(f'\nGo on: loki dead-letters retry {id_} --approach "…"')
    lines.append(f'   or: loki dead-letters abandon {id_} --reason "…"')
    return "\n".join(lines)


def as_data(one: Reviewed, *, whole: bool = False) -> dict[str, Any]:
    """A dead letter for programs.

    Args:
        one: it.
        whole: with all that stands in the file.
    """
    letter, decision = one.letter, one.decision
    data: dict[str, Any] = {
        "task_id": one.task_id,
        "title": letter.title,
        "failure_count": letter.failure_count,
        "total_attempts": letter.total_attempts,
        "last_failure": letter.last_failure or None,
        "error_summary": letter.error_summary,
        "recovery_strategy": letter.recovery_strategy or None,
        "decision": decision.action,
        "rule": decision.rule or None,
        "reason": decision.reason,
        "evidence": list(decision.evidence),
        "commit": decision.commit or None,
        "new_task": one.new_task or None,
        "page": one.page or None,
        "done": one.done,
    }
    if whole:
        data["dependencies"] = [asdict(needed) for needed in one.facts.dependencies]
        data["commits"] = [asdict(commit) for commit in one.facts.commits]
        data["entry"] = dict(one.task.raw)
    return data
