"""Joins models and agents with a workspace's breakers, budgets and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loki.base.error import ConfigError, UsageError

if TYPE_CHECKING:
    from loki.action.llm_protocol import LLM
    from loki.action.loop.agent_call import AnyAgent
    from loki.agents.endpoint import Ways
    from loki.agents.fallback_agent import FallbackAgent
    from loki.agents.model_agent import ModelAgent
    from loki.agents.resilient_llm import ResilientLLM
    from loki.base.time import Duration
    from loki.decision.breakers import Breakers
    from loki.settings import AgentConfig
    from loki.workspace import Workspace


def breakers(
    workspace: Workspace, calls: Mapping[str, Any] | None = None, **knobs: Any
) -> Breakers:
    """The circuit breakers of a project.

    Args:
        workspace: the project.
        calls: arguments of those of models and tools, beside the configuration's.
        knobs: as `loki.Breakers` takes them, for all of them in place of the configuration's.

    Raises:
        ConfigError: what the configuration says of them contradicts itself.
    """
    from loki.decision.breaker_log_line import listens, tell
    from loki.decision.breaker_presets import for_calls
    from loki.decision.breakers import Breakers

    path = workspace.folder / "state" / "circuit-breakers.json"
    if not knobs:
        said = workspace.config.breakers
        own = {name: one.arguments for name, one in said.named.items()}
        knobs = {"named": for_calls({**said.arguments, **(calls or {})}, own)}
    try:
        breakers = Breakers(path, clock=workspace.clock, **knobs)
    except ValueError as error:
        if "named" not in knobs or calls:
            raise
        raise ConfigError(
            f"[breakers]: {error}", file=str(workspace.folder / "config.toml")
        ) from error
    if listens():
        breakers.listen(tell)
    return breakers


def ways(workspace: Workspace) -> Ways:
    """How models and agents of a workspace are asked: as its configuration says."""
    from loki.agents.endpoint import Ways
    from loki.decision.backoff import Backoff
    from loki.decision.price import Price, Prices
    from loki.memory.call_log import Calls

    config = workspace.config
    own = {model: Price(**said.model_dump()) for model, said in config.prices.items()}
    return Ways(
        workspace.breakers(),
        workspace.clock,
        Backoff(config.loop.backoff, cap=config.loop.backoff_cap),
        config.loop.infrastructure_retries,
        Prices(own),
        Calls(workspace.store),
        hedge=config.models.hedge,
        parallel=config.models.parallel,
        wait=config.models.wait,
    )


def llm(workspace: Workspace, llms: Sequence[LLM]) -> ResilientLLM:
    """Models as one that survives what their services do; a workspace's own breakers and records."""
    from loki.agents.resilient_llm import ResilientLLM

    return ResilientLLM(*llms, ways=workspace.ways)


def chain(workspace: Workspace, given: Any) -> AnyAgent:
    """An agent of whatever stands for one.

    Args:
        workspace: the project.
        given: an agent, a function, a model, or a name as for `Workspace.agent`; or several of them,
            the preferred one first.

    Raises:
        UsageError: it is nothing of the kind, or there is none in a list.
    """
    if isinstance(given, str):
        return workspace.agent(given)
    if not isinstance(given, (list, tuple)):
        return _agent_of(workspace, [given]) if _is_llm(given) else given
    if not given:
        raise UsageError("found an empty list of agents: expected one or more")
    if len(given) == 1:
        return chain(workspace, given[0])
    if all(isinstance(one, str) for one in given):
        return workspace.agent(", ".join(given))
    found = [_llm_named(workspace, one) for one in given]
    if all(map(_is_llm, found)):
        return _agent_of(workspace, found)
    return _fallback(workspace, [chain(workspace, one) for one in found])


def chained(
    workspace: Workspace,
    name: str,
    said: AgentConfig,
    timeout: Duration | None,
    *,
    reflect: bool,
    pass_environment: Sequence[str] = (),
) -> ModelAgent | FallbackAgent:
    """An agent and those who stand in for it, as the configuration says."""
    from loki.execution import assembly

    alone = said.model_copy(update={"fallback": ()})
    others = [assembly.agent_config(workspace, other) for other in said.fallback]
    if all(one.model and not one.fallback for one in (alone, *others)):
        limit = workspace.config.loop.agent_timeout if said.timeout is None else said.timeout
        return model_agent(workspace, [alone, *others], name, timeout or limit, reflect=reflect)
    first = name.split(",", maxsplit=1)[0].strip()
    agents = [
        assembly.agent(
            workspace, one, timeout, reflect=reflect, pass_environment=pass_environment, said=config
        )
        for one, config in zip((first, *said.fallback), (alone, *others), strict=True)
    ]
    return _fallback(workspace, agents, name, name)


def model_agent(
    workspace: Workspace,
    said: Sequence[AgentConfig],
    name: str,
    timeout: Duration,
    *,
    reflect: bool,
) -> ModelAgent:
    """An agent made of the models that a configuration names, the preferred one first."""
    from loki.action.llm_protocol import MAX_TOKENS
    from loki.agents.model_agent import ModelAgent
    from loki.agents.model_context import FILES_TOKENS

    return ModelAgent(
        llm(workspace, [_llm_of(one) for one in said]),
        name=name,
        max_tokens=said[0].max_tokens or MAX_TOKENS,
        files_tokens=FILES_TOKENS if said[0].files_tokens is None else said[0].files_tokens,
        timeout=timeout,
        reflect=reflect,
        reference=name,
    )


def _llm_of(said: AgentConfig) -> LLM:
    from loki.agents.providers import llm_of

    assert said.model is not None
    found = llm_of(
        said.model,
        base_url=said.base_url,
        api=said.api,
        api_key_variable=said.api_key_variable,
        temperature=said.temperature,
        effort=said.effort,
        headers=said.headers,
    )
    found.breaker = said.breaker or found.breaker
    return found


def _llm_named(workspace: Workspace, given: Any) -> Any:
    """The model that a name stands for; anything else as it is."""
    from loki.agents.providers import is_model
    from loki.settings import AgentConfig

    if not isinstance(given, str):
        return given
    said = workspace.config.agents.get(given) or (
        AgentConfig(model=given) if is_model(given) else None
    )
    return _llm_of(said) if said is not None and said.model and not said.fallback else given


def _agent_of(workspace: Workspace, llms: Sequence[Any]) -> ModelAgent:
    from loki.action.loop.agent_call import is_resilient
    from loki.agents.model_agent import ModelAgent

    one = llms[0] if len(llms) == 1 and is_resilient(llms[0]) else llm(workspace, llms)
    return ModelAgent(one)


def _fallback(
    workspace: Workspace,
    agents: Sequence[AnyAgent],
    name: str | None = None,
    reference: str | None = None,
) -> FallbackAgent:
    from loki.agents.fallback_agent import FallbackAgent

    return FallbackAgent(agents, workspace.ways, name, reference)


def _is_llm(given: Any) -> bool:
    return callable(getattr(given, "complete", None)) and hasattr(given, "breaker")
