"""The page by which a person is asked whether a stage of a pipeline may begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loki.base.markdown import code, inline, quotation


@dataclass(frozen=True, slots=True)
class StageApproval:
    """A stage that waits for a person's leave.

    Attributes:
        run: id of the run; pipeline: name of the pipeline.
        stage: id of the stage; task_id: of the task in which it would work.
        agent, mode, description: of the stage.
        may: what it would be allowed to do, in sentences, Markdown.
        done: what earlier stages did, a line each.
        inputs: files of what it is given.
        command: how to answer, up to the answer itself.
    """

    run: str
    pipeline: str
    stage: str
    task_id: str
    agent: str
    mode: str
    description: str
    may: Sequence[str]
    done: Sequence[str]
    inputs: Sequence[str]
    command: str


def render(asked: StageApproval) -> str:
    """The page: what would happen, what has happened, the options, and what is to be decided.

    Example:
        >>> asked = StageApproval("ship-1", "ship", "deploy", "ship-1.deploy", "ops", "agent",
        ...     "Deploy it.", [], ["plan: success"], [], "loki pipeline resume ship-1")
        >>> render(asked).splitlines()[0]
        '## Approval: stage deploy of ship-1'
    """
    return f"""\
## Approval: stage {inline(asked.stage)} of {inline(asked.run)}

**Task ID:** {inline(asked.task_id)}
**Failure Count:** 0
**Trigger:** approval: the pipeline {inline(asked.pipeline)} asks for a person's leave before this stage

### What would be done

Agent {inline(asked.agent)}, mode {inline(asked.mode)}:

{quotation(asked.description)}

{_list(asked.may, "It may do nothing else.")}

### What has been done so far

{_list([inline(line) for line in asked.done], "Nothing: this is the first stage.")}

### What it is given

{_list([code(path) for path in asked.inputs], "Nothing.")}

### Recommended Options

1. **Approve.** {code(f"{asked.command} --approve")}. The stage begins; the leave is for this stage of this
   run alone, and is void if the stage is edited.
2. **Change it first.** Edit the pipeline or what the stage is given; the same command goes on.
3. **Reject.** {code(f'{asked.command} --reject --note "why"')}. The run ends as failed; nothing of this
   stage has run, and what earlier stages changed stays.

### Awaiting

Decide whether stage {code(asked.stage)} may begin.
"""


def _list(lines: Sequence[str], otherwise: str) -> str:
    return "\n".join(f"- {line}" for line in lines) or otherwise
