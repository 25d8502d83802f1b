"""Who works and who reviews: the one place that turns names, commands and models into whom loki asks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from loki.base.error import ConfigError, UsageError
from loki.base.text_format import did_you_mean

if TYPE_CHECKING:
    from loki.action.agent_protocol import LLM
    from loki.action.loop.agent_call import AnyAgent
    from loki.agents.command_agent import CommandAgent, CommandReviewer
    from loki.agents.fallback_agent import FallbackAgent
    from loki.agents.fallback_chain import ChainOptions
    from loki.agents.model_agent import ModelAgent
    from loki.agents.resilient_llm import ResilientLLM
    from loki.base.time import Duration
    from loki.config import AgentConfig
    from loki.decision.breakers import Breakers
    from loki.workspace import Workspace


# --- Breakers, budgets and records of whom loki asks --------------------------------------------------


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


# --- Who works, and who reviews -----------------------------------------------------------------------


def agent(workspace: Workspace, given: Any) -> AnyAgent:
    """An agent of whatever stands for one.

    Args:
        workspace: the project.
        given: an agent, a function, a model, or a name as for `Workspace.agent`; or several of them,
            the preferred one first.

    Raises:
        UsageError: it is nothing of the kind, or there is none in a list.
    """
    if isinstance(given, str):
        return named_agent(workspace, given)
    if not isinstance(given, (list, tuple)):
        return _agent_of(workspace, [given]) if _is_llm(given) else given
    if not given:
        raise UsageError("found an empty list of agents: expected one or more")
    if len(given) == 1:
        return agent(workspace, given[0])
    if all(isinstance(one, str) for one in given):
        return named_agent(workspace, ", ".join(given))
    found = [_llm_named(workspace, one) for one in given]
    if all(map(_is_llm, found)):
        return _agent_of(workspace, found)
    return _fallback(workspace, [agent(workspace, one) for one in found])


def named_agent(
    workspace: Workspace,
    name: str,
    timeout: Duration | None = None,
    *,
    reflect: bool = False,
    pass_environment: Sequence[str] = (),
) -> CommandAgent | ModelAgent | FallbackAgent:
    """An agent by its name; `Workspace.agent` says more.

    Args:
        workspace: the project.
        name, timeout, reflect: as there.
        pass_environment: more variables that a program gets although they look like secrets.
    """
    said = _config(workspace, name)
    if not said.fallback:
        return _configured(workspace, name, said, timeout, reflect, pass_environment)
    alone = said.model_copy(update={"fallback": ()})
    others = [_config(workspace, other) for other in said.fallback]
    if all(one.model and not one.fallback for one in (alone, *others)):
        return _model_agent(workspace, [alone, *others], name, timeout, reflect=reflect)
    first = name.split(",", maxsplit=1)[0].strip()
    agents = [
        _configured(workspace, first, alone, timeout, reflect, pass_environment),
        *(
            named_agent(workspace, one, timeout, reflect=reflect, pass_environment=pass_environment)
            for one in said.fallback
        ),
    ]
    return _fallback(workspace, agents, name)


def program(
    workspace: Workspace,
    command: str | Sequence[str],
    timeout: Duration | None = None,
    *,
    name: str | None = None,
    preset: str | None = None,
    briefing: Literal["stdin", "argument"] | None = None,
    breaker: str | None = None,
    reflect: bool = False,
    pass_environment: Sequence[str] | None = None,
) -> CommandAgent:
    """An agent that is a program, which exists.

    Args:
        workspace: the project.
        command: its words, or text that is split as a shell would; () for a preset's own.
        timeout: for one answer; None: as the configuration says.
        name, preset, briefing, breaker, reflect, pass_environment: as of `CommandAgent`.

    Raises:
        UsageError: its program does not exist, or the command names none.
    """
    from loki.agents.command_agent import CommandAgent

    found = CommandAgent(
        command,
        preset=preset,
        timeout=workspace.config.loop.agent_timeout if timeout is None else timeout,
        briefing=briefing,
        name=name,
        breaker=breaker,
        reflect=reflect,
        pass_environment=pass_environment,
    )
    return _existing(workspace, found, f"agent {name}" if name else "unknown agent")


def kept_agent(workspace: Workspace, kept: Mapping[str, Any]) -> AnyAgent:
    """The agent that worked on a task before, as its record tells.

    Raises:
        UsageError: its command is not known, holds a secret, or does not exist.
    """
    from loki.agents.command_agent import CommandAgent

    if kept.get("agent"):
        return named_agent(workspace, str(kept["agent"]), reflect=bool(kept.get("reflect")))
    return _existing(workspace, CommandAgent.from_dict(kept), "unknown agent")


def reviewer(
    workspace: Workspace, command: str | Sequence[str] | None, timeout: Duration | None = None
) -> CommandReviewer | None:
    """The reviewer that a command is; None where there is no command.

    Args:
        workspace: the project.
        command: its words, or text that is split as a shell would.
        timeout: for one answer; None: as the configuration says.

    Raises:
        UsageError: its program does not exist, or the command names none.
    """
    if not command:
        return None
    from loki.action.processes.command_line import why_not_runnable
    from loki.agents.command_agent import CommandReviewer

    found = CommandReviewer(command, timeout=timeout or workspace.config.loop.agent_timeout)
    if problem := why_not_runnable(found.command, workspace.root, may_come=False):
        raise UsageError(f"unknown reviewer: {problem}")
    return found


def _existing(workspace: Workspace, found: CommandAgent, who: str) -> CommandAgent:
    from loki.action.processes.command_line import why_not_runnable
    from loki.agents.preset import presets

    if problem := why_not_runnable(found.command, workspace.root, may_come=False):
        known = presets().get(found.preset or "")
        raise UsageError(f"{who}: {problem}{f'; install it: {known.install}' if known else ''}")
    return found


def _configured(
    workspace: Workspace,
    name: str,
    said: AgentConfig,
    timeout: Duration | None,
    reflect: bool,
    pass_environment: Sequence[str],
) -> CommandAgent | ModelAgent:
    """One that nobody stands in for."""
    if said.model is not None:
        return _model_agent(workspace, [said], name, timeout, reflect=reflect)
    own = said.pass_environment
    return program(
        workspace,
        said.command or (),
        said.timeout if timeout is None else timeout,
        name=name,
        preset=said.preset,
        briefing=said.briefing,
        breaker=said.breaker,
        reflect=reflect,
        pass_environment=(*(own or ()), *pass_environment) if own or pass_environment else own,
    )


def _config(workspace: Workspace, name: str) -> AgentConfig:
    """What an agent's name stands for.

    Raises:
        UsageError: there is none of that name.
    """
    from loki.agents.preset import presets
    from loki.agents.providers import EXAMPLES, PROVIDERS, is_model
    from loki.config import AgentConfig

    known = workspace.config.agents
    names = [one.strip() for one in name.split(",")]
    if name in known:
        return known[name]
    if len(names) > 1:
        said = [_config(workspace, one) for one in names]
        return said[0].model_copy(update={"fallback": (*said[0].fallback, *names[1:])})
    if is_model(name):
        return AgentConfig(model=name)
    if name in presets():
        return AgentConfig.model_validate({"preset": name})
    provider = name.rstrip(":")
    if provider in PROVIDERS:
        raise UsageError(f"agent {name!r}: expected a model of it, like '{EXAMPLES[provider]}'")
    there = f"there are: {', '.join(known)}" if known else "there is none"
    add = "say one before and after each comma"
    if re.search(r"[^\w.:-]", name):
        add = "a command is said by --agent-command, or as [agents.NAME] with `command = …` there"
    elif name:
        add = (
            f"add [agents.{name}] there, with `command = …` or `model = …` "
            f"(a pipeline takes --agent {name}=COMMAND, too)"
        )
    raise UsageError(
        f"unknown agent {name!r}: expected {', '.join(presets())}, a model like "
        f"'{EXAMPLES['anthropic']}', or a name of [agents.NAME] in .loki/config.toml ({there})"
        f"{did_you_mean(name, [*known, *presets()])}; {add}"
    )


def _model_agent(
    workspace: Workspace,
    said: Sequence[AgentConfig],
    name: str,
    timeout: Duration | None,
    *,
    reflect: bool,
) -> ModelAgent:
    """An agent made of the models that a configuration names, the preferred one first."""
    from loki.action.agent_protocol import MAX_TOKENS
    from loki.agents.model_agent import FILES_TOKENS, ModelAgent

    if timeout is None:
        own = said[0].timeout
        timeout = workspace.config.loop.agent_timeout if own is None else own
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
    from loki.config import AgentConfig

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
    workspace: Workspace, agents: Sequence[AnyAgent], name: str | None = None
) -> FallbackAgent:
    from loki.agents.fallback_agent import FallbackAgent

    return FallbackAgent(agents, workspace.once(ways), name, name)


def _is_llm(given: Any) -> bool:
    return callable(getattr(given, "complete", None)) and hasattr(given, "breaker")
