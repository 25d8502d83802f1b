"""Signals joined with those who act on them: what `loki signals`, `loki work` and `loki tick` run.

`signal_handling` finds what waits, calls the one consumer of each kind, and says at once when there is
something new. Why it is so: ``docs/design/signals.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki.people.signals import Signals
    from loki.workspace import Workspace


def signals_of(workspace: Workspace) -> Signals:
    """The signals of a project, on the branch that is checked out now.

    Not in the store that goes on in memory: a signal that nobody else sees is none.

    Args:
        workspace: the project.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> signals = signals_of(Workspace(tempfile.mkdtemp()))
        >>> signals.emit("DOCS_NEEDED", data={"description": "the API"}).label
        'DOCS_NEEDED'
    """
    from loki.people.signals import Signals

    return Signals(workspace.strict_store, workspace.clock, branch=workspace.position()[0])
