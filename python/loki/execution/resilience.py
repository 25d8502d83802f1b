"""Joins models and agents with a workspace's breakers, budgets and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loki.base.error import ConfigError

if TYPE_CHECKING:
    from loki.action.agent_protocol import LLM
    from loki.agents.fallback_chain import ChainOptions
    from loki.agents.resilient_llm import ResilientLLM
    from loki.decision.breakers import Breakers
    from loki.workspace import Workspace


def breakers(
    workspace: Workspace, calls: Mapping[str, Any] | None = None, **settings: Any
) -> Breakers:
    """The circuit breakers of a project.

    Args:
        workspace: the project.
        calls: arguments of those of models and tools, beside the configuration's.
        settings: as `loki.Breakers` takes them, for all of them in place of the configuration's.

    Raises:
        ConfigError: what the configuration says of them contradicts itself.
    """
    from loki.decision.breaker import for_calls
    from loki.decision.breakers import Breakers
    from loki.decision.breakers_file import listens, tell

    path = workspace.folder / "state" / "circuit-breakers.json"
    if not settings:
        said = workspace.config.breakers
        own = {name: one.arguments for name, one in said.named.items()}
        settings = {"named": for_calls({**said.arguments, **(calls or {})}, own)}
    try:
        breakers = Breakers(path, clock=workspace.clock, **settings)
    except ValueError as error:
        if "named" not in settings or calls:
            raise
        raise ConfigError(
            f"[breakers]: {error}", file=str(workspace.folder / "config.toml")
        ) from error
    if listens():
        breakers.listen(tell)
    return breakers


def ways(workspace: Workspace) -> ChainOptions:
    """How models and agents of a workspace are asked: as its configuration says."""
    from loki.agents.fallback_chain import ChainOptions
    from loki.decision.backoff import Backoff
    from loki.decision.price import Price, Prices
    from loki.memory.call_log import Calls

    config = workspace.config
    own = {model: Price(**said.model_dump()) for model, said in config.prices.items()}
    return ChainOptions(
        breakers(workspace),
        workspace.clock,
        Backoff(config.loop.backoff, cap=config.loop.backoff_cap),
        config.loop.infrastructure_retries,
        Prices(own),
        Calls(workspace.store),
        parallel=config.models.parallel,
        wait=config.models.wait,
    )


def llm(workspace: Workspace, llms: Sequence[LLM]) -> ResilientLLM:
    """Models as one that survives what their services do; a workspace's own breakers and records."""
    from loki.agents.resilient_llm import ResilientLLM

    return ResilientLLM(*llms, ways=workspace.once(ways))
