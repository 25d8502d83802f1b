"""The page by which a person is asked: one form for whatever asks.

It tells what happened, what is asked of whom, the ways to answer with the command for each, and what
exactly the person must decide. What it quotes is hostile and stays in its place.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from loki.base.markdown import bullets, code, fence, inline, quotation
from loki.people.request import Option, id_of, yes_or_no
from loki.people.review_trigger import is_about_done

if TYPE_CHECKING:
    from loki.people.human_review import HumanReview

AWAITING = "### Awaiting"
"""The last heading of a page that nobody has answered yet."""


def page(
    heading: str,
    facts: Iterable[tuple[str, str]],
    sections: Iterable[tuple[str, str]],
    options: str,
    decide: str,
) -> str:
    """A page.

    Args:
        heading: its title; facts: names and values below it, a line each.
        sections: headings and bodies.
        options: the ways to answer; see `ways`.
        decide: what exactly the person must decide.

    Every text is Markdown: what is hostile comes through `loki.base.markdown`.

    Example:
        >>> print(page("Escalation: a", [("Task ID", "t")], [], "1. **Go on.**", "Decide."))
        ## Escalation: a
        <BLANKLINE>
        **Task ID:** t
        <BLANKLINE>
        ### Recommended Options
        <BLANKLINE>
        1. **Go on.**
        <BLANKLINE>
        ### Awaiting
        <BLANKLINE>
        Decide.
        <BLANKLINE>
    """
    top = f"## {heading}\n\n" + "\n".join(f"**{name}:** {value}" for name, value in facts)
    parts = [
        f"### {name}\n\n{body}" for name, body in (*sections, ("Recommended Options", options))
    ]
    return "\n\n".join([top, *parts, f"{AWAITING}\n\n{decide}\n"])


def ways(options: Iterable[Option], first: int = 1) -> str:
    """The ways to answer as a list, with what follows of each."""
    return "\n".join(
        f"{number}. **{inline(one.name[:1].upper() + one.name[1:])}.**"
        f"{f' {code(one.command)}' if one.command else ''}\n   {one.follows}"
        for number, one in enumerate(options, first)
    )


def options_of(review: HumanReview, *, can_end: bool = True) -> tuple[Option, ...]:
    """How a request for a decision is answered.

    Args:
        review: the request.
        can_end: there is work of its task that can be undone.
    """
    yes, no = f"loki approve {shlex.quote(review.id)}", f"loki reject {shlex.quote(review.id)}"
    more = Option("say more", f'{yes} --context "…"', "The agent is told, and proposes anew.")
    end = Option("give up", f"{no} --abort", "The task's files are restored as they were.")
    return (
        Option("approve", yes, "The task goes on with exactly what is shown."),
        Option("reject", f'{no} --note "why"', "The agent is told why, and looks for another way."),
        *(() if is_about_done(review) else (more,)),
        *((end,) if can_end else ()),
    )


def review_page(review: HumanReview, title: str, files: Sequence[str], diff: str = "") -> str:
    """The page of a request for a decision before work goes on.

    Args:
        review: the request.
        title: of the task.
        files: paths that the task has changed so far.
        diff: of a change that is kept from being made, "" where there is none.

    Example:
        >>> from loki.people.human_review import HumanReview
        >>> review = HumanReview("review-1", "2026-04-04T10:00:00.000Z", "cost_limit", "t", "Go on?")
        >>> print(review_page(review, "fix it", ["a.py"]).splitlines()[0])
        ## Human review: fix it
    """
    asked = inline(review.asked)
    if review.alternatives_considered:
        asked += f"\n\nInstead:\n\n{bullets(map(inline, review.alternatives_considered))}"
    changed = f"Files changed so far, left as they are:\n\n{bullets(map(code, files))}"
    if diff:
        changed = f"The change, which is not made:\n\n{fence(diff.rstrip(), 'diff')}\n\n{changed}"
    facts = {
        "Request": review.id,
        "Task ID": review.task_id,
        "Trigger": f"human_review: {review.reason}",
        "Severity": review.severity,
        "Asked at": review.timestamp + (f" by {review.agent}" if review.agent else ""),
    }
    return page(
        f"Human review: {inline(title)}",
        [(name, inline(value)) for name, value in facts.items()],
        [("What is asked", asked), ("What was changed", changed)],
        ways(options_of(review)),
        "Decide what is asked above; then take one of the options. The task does not go on before that. "
        "If\nnobody answers within the time that `loki inbox` shows, it becomes a dead letter.",
    )


def approval_page(
    task_id: str,
    title: str,
    criteria: Sequence[tuple[str, str]],
    files: Sequence[str],
    diff: str,
    digest: str,
) -> str:
    """The page of criteria that wait for a person: what to approve, of which change, and how.

    Args:
        task_id, title: the task.
        criteria: (name, what has to hold) of each.
        files: paths changed.
        diff: the change, in the unified format.
        digest: of what the task has made of the project: what an approval is about.
    """
    asked = [
        f"**{inline(name)}**" + (f": {inline(said)}" if said != name else "")
        for name, said in criteria
    ]
    options = [
        replace(one, name=f"{one.name}: {name}")
        for name, _ in criteria
        for one in criterion_options(task_id, name)
    ]
    changed = f"{bullets(map(code, files))}\n\n{fence(diff.rstrip(), 'diff')}"
    trigger = "approval: every other check passes; these criteria wait for a person"
    undo = Option("give up", f"loki undo {task_id}", "The files are restored as they were.")
    return page(
        f"Approval: {inline(title)}",
        [("Task ID", inline(task_id)), ("Trigger", trigger)],
        [("What has to hold", bullets(asked)), ("What was changed", changed)],
        ways([*options, undo]),
        f"Look at the change, then say yes or no to each; {code(f'loki resume {task_id}')} goes on. An "
        f"approval is of exactly this change ({code(digest[:12])}): once\nanything of it is different, it "
        "is asked for again.",
    )


def criterion_options(task_id: str, criterion: str) -> tuple[Option, ...]:
    """How a criterion of a task is answered that only a person can approve."""
    yes, no = yes_or_no(id_of("approval", task_id, criterion), "approve", "reject")
    return replace(yes, follows="It holds."), replace(
        no, follows="The agent is told, and works on."
    )


def stage_page(
    run: str,
    pipeline: str,
    stage: str,
    task_id: str,
    agent: str,
    mode: str,
    description: str,
    may: Sequence[str],
    done: Sequence[str],
    inputs: Sequence[str],
) -> str:
    """The page by which a person is asked whether a stage of a pipeline may begin.

    Args:
        run: id of the run; pipeline: name of the pipeline.
        stage: id of the stage; task_id: of the task in which it would work.
        agent, mode, description: of the stage.
        may: what it would be allowed to do, in sentences, Markdown.
        done: what earlier stages did, a line each.
        inputs: files of what it is given.
    """
    command = f"loki pipeline resume {shlex.quote(run)}"
    trigger = f"the pipeline {inline(pipeline)} asks for a person's leave before this stage"
    would = f"Agent {inline(agent)}, mode {inline(mode)}:\n\n{quotation(description)}"
    may = may or ["It may do nothing else."]
    yes = "The stage begins; the leave is for this stage of this run alone, and is void if it is edited."
    no = "The run ends as failed; nothing of this stage has run, and what earlier stages changed stays."
    edit = "Edit the pipeline or what the stage is given; the same command goes on."
    return page(
        f"Approval: stage {inline(stage)} of {inline(run)}",
        [("Task ID", inline(task_id)), ("Failure Count", "0"), ("Trigger", f"approval: {trigger}")],
        [
            ("What would be done", f"{would}\n\n{bullets(may)}"),
            ("What has been done so far", bullets(map(inline, done))),
            ("What it is given", bullets(map(code, inputs))),
        ],
        ways(
            [
                Option("approve", f"{command} --approve", yes),
                Option("change it first", "", edit),
                Option("reject", f'{command} --reject --note "why"', no),
            ]
        ),
        f"Decide whether stage {code(stage)} may begin.",
    )
