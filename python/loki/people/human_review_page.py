"""The page by which a person is asked to decide before work goes on."""

from __future__ import annotations

from collections.abc import Sequence

from loki.base.markdown import bullets, code, fence, inline
from loki.people.human_review import HumanReview


def render(review: HumanReview, title: str, files: Sequence[str], diff: str = "") -> str:
    """The page: what is asked, of what, and how to answer.

    Args:
        review: the request.
        title: of the task.
        files: paths that the task has changed so far.
        diff: of a change that is kept from being made, "" where there is none.

    Example:
        >>> review = HumanReview("review-1", "2026-04-04T10:00:00.000Z", "cost_limit", "t", "Go on?")
        >>> print(render(review, "fix it", ["a.py"]).splitlines()[0])
        ## Human review: fix it
    """
    answer = f"loki approve {review.id}"
    resume = f"loki resume {review.task_id}"
    reject = f"loki reject {review.id}"
    withheld = (
        f"\n### The change, which is not made\n\n{fence(diff.rstrip(), 'diff')}\n" if diff else ""
    )
    others = review.alternatives_considered
    considered = f"\nInstead:\n\n{bullets(map(inline, others))}\n" if others else ""
    return f"""\
## Human review: {inline(title)}

**Request:** {inline(review.id)}
**Task ID:** {inline(review.task_id)}
**Trigger:** human_review: {inline(review.reason)}
**Severity:** {inline(review.severity)}
**Asked at:** {inline(review.timestamp)}{f" by {inline(review.agent)}" if review.agent else ""}

### What is asked

{inline(review.asked)}
{considered}{withheld}
Files changed so far, left as they are:

{bullets(map(code, files))}

### Recommended Options

1. **Approve.** {code(answer)}. The task goes on with {code(resume)}; with `--resume` at
   once.
2. **Say more.** {code(f'{answer} --context "…"')}. The agent is told in every later briefing, and proposes
   anew.
3. **Reject.** {code(f'{reject} --note "why"')}. The agent is told why, and looks for another
   way.
4. **Give up.** {code(f"{reject} --abort")}. The task's files are restored as they were.

### Awaiting

Decide what is asked above; then take one of the options. The task does not go on before that. If
nobody answers within the time that `loki status` shows, it becomes a dead letter.
"""
