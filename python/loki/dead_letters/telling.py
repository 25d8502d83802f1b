"""People are told of what a review found, as the project's ``[notify]`` says.

Of a loop's own end they are told where it ends (`loki.waiting.reviews.ended`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from loki.waiting.escalated import id_for
from loki.waiting.notify import notifier

if TYPE_CHECKING:
    from loki.settings import NotificationKind
    from loki.workspace import Workspace


def notify(
    workspace: Workspace, kind: NotificationKind, text: str, task_id: str, page: str = ""
) -> None:
    """Tell people; who cannot be told finds it in ``loki status`` all the same.

    Args:
        workspace: the project.
        kind: escalation or dead_letter.
        text: what happened, one sentence.
        task_id: the task.
        page: of the escalation, below ``.loki/``.
    """
    about = id_for(page, task_id) if kind == "escalation" else task_id
    answer = (
        "loki status" if kind == "escalation" else f"loki dead-letters show {shlex.quote(task_id)}"
    )
    notifier(workspace).notify(kind, text, task_id=task_id, id=about, answer=answer)
