"""An agent worked in the project itself instead of in its copy."""

from __future__ import annotations

from collections.abc import Sequence

from loki.base.error import AgentError

SHOWN = 5
"""Files that a message names. Chosen, not measured."""


class ProjectTouched(AgentError):
    """The project itself changed while the agent worked in its copy.

    Attributes:
        paths: the files.
    """

    ends_chain = True

    def __init__(self, name: str, paths: Sequence[str], output: str = "") -> None:
        """Args: name: of the agent; paths: the files; output: what it printed."""
        self.paths = tuple(paths)
        rest = len(paths) - SHOWN
        shown = ", ".join(paths[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
        super().__init__(
            f"files of the project itself changed while {name} worked: {shown}; "
            "agents change only their copy, and what changed is left as it is",
            retryable=False,
            output=output,
        )
