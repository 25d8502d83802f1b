"""Who works on a stage: agents by the names that pipelines give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from loki.action.loop.agent_call import AnyAgent
from loki.base.error import UsageError
from loki.execution.resolve import named_agent
from loki.recognition.definition_file import did_you_mean

if TYPE_CHECKING:
    from loki.action.pipelines.pipeline_spec import StageSpec
    from loki.workspace import Workspace

EVERY_OTHER = "*"
"""Stands, among the names of agents, for all that are not named."""

Agents: TypeAlias = "Mapping[str, AnyAgent] | AnyAgent"
"""Agents by name (``"*"`` for every other), or one for all stages."""


def agent_of(stage: StageSpec, agents: Agents | None, workspace: Workspace) -> AnyAgent:
    """Who works on a stage.

    Raises:
        UsageError: nobody is known by that name.
    """
    if agents is not None and not isinstance(agents, Mapping):
        return agents
    named: Mapping[str, AnyAgent] = agents or {}
    found = named.get(stage.agent) or named.get(EVERY_OTHER)
    if found is not None:
        return found
    try:
        return named_agent(workspace, stage.agent)
    except UsageError as error:
        known = [name for name in named if name != EVERY_OTHER]
        also = f"; given are: {', '.join(known)}{did_you_mean(stage.agent, known)}" if known else ""
        raise UsageError(f"stage {stage.id}: {error}{also}") from None
