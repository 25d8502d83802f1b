"""A workspace's settings: ``.loki/config.toml``, every one of them optional."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from loki.base.error import ConfigError
from loki.base.text_format import did_you_mean
from loki.base.time import seconds
from loki.base.toml import mistake, place_of, tomllib
from loki.base.validation import known_keys, sentence

# --- The tables, each with its settings and their defaults --------------------------------------------


def _duration(value: Any) -> float:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit: expected text like '90s' or '5m'")
    return seconds(value)


Seconds = Annotated[float, BeforeValidator(_duration)]


class _Table(BaseModel):
    """A table: what is no setting of it is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LoopConfig(_Table):
    """``[loop]``: how often and how long."""

    max_retries: int = Field(default=3, ge=0)
    infrastructure_retries: int = Field(default=5, ge=0)
    backoff: Seconds = 5.0
    backoff_cap: Seconds = 300.0
    check_timeout: Seconds = 600.0
    agent_timeout: Seconds = 1800.0
    command_timeout: Seconds = 600.0
    pass_environment: tuple[str, ...] = ()
    """Variables, or globs of their names, that checks get although they look like secrets."""
    test_reports: tuple[str, ...] = ()
    """Globs of JUnit reports that the project's own checks write, relative to it."""


class LimitsConfig(_Table):
    """``[limits]``: what one run of a task may take; it ends with exit code 5 once that is spent."""

    attempts: int | None = Field(default=None, ge=1)
    time: Seconds | None = None
    tokens: int | None = Field(default=None, ge=1)
    cost: float | None = Field(default=None, gt=0)
    """US dollars."""


class ExecuteConfig(_Table):
    """``[execute]``: what a proposal may run."""

    allow_commands: tuple[str, ...] = ()
    """Globs of whole commands, like ``pip install *``; none is allowed by itself."""


class SandboxConfig(_Table):
    """``[sandbox]``: the box that commands of agents and checks run in."""

    mode: Literal["auto", "off", "required"] = "auto"
    """In one where the machine has any; in none; or not at all where it has none."""
    write: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Further paths that they may write, like ``~/.terraform.d``; relative ones are the project's."""
    secret: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Paths that they may not read, like ``~/.ssh``."""
    network: bool = True
    """Whether checks and commands may use the network; agents always may, as they call their service."""


class AgentConfig(_Table):
    """``[agents.<name>]``: an agent that pipelines and ``--agent`` call by its name."""

    command: str | None = Field(default=None, min_length=1)
    """As for ``loki run --agent-command``; this, ``preset`` or both, or ``model``."""
    preset: Literal["claude", "codex", "gemini", "aider"] | None = None
    """Adds what the command lacks; without a command the program itself."""
    pass_environment: tuple[str, ...] | None = None
    """Names, or globs, of variables that a command gets although they look like secrets."""
    model: str | None = Field(default=None, min_length=1)
    """``provider:model``, like ``anthropic:claude-opus-4-5``."""
    base_url: str | None = Field(default=None, min_length=1)
    """Of the model's service; None: its provider's."""
    api_key_variable: str | None = Field(default=None, min_length=1)
    """The environment variable of the key; None: the provider's own."""
    api: Literal["responses", "chat"] | None = None
    """Which of OpenAI's; None: ``responses`` at OpenAI's, ``chat`` elsewhere."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Of the model; None: its own."""
    effort: str | None = Field(default=None, min_length=1)
    """How hard the model thinks, as its service names it; None: its own."""
    headers: dict[str, str] | None = None
    """Sent with each request to the model's service. For keys there is ``api_key_variable``."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Of one answer of the model."""
    files_tokens: int | None = Field(default=None, ge=0)
    """Of the project's files that the model is shown; less for models of a small context."""
    fallback: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Who is asked in its place, in this order, where it cannot be: ``provider:model``, or other names."""
    breaker: str | None = Field(default=None, min_length=1)
    timeout: Seconds | None = None
    """For one answer; ``[loop] agent_timeout`` where nothing is said."""
    briefing: Literal["stdin", "argument"] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> AgentConfig:
        is_command = self.command is not None or self.preset is not None
        if is_command == (self.model is not None):
            raise ValueError("expected either `command` or `model` (or `preset`)")
        of_model = ("base_url", "api_key_variable", "api", "max_tokens", "files_tokens",
                    "temperature", "effort", "headers")  # fmt: skip
        wrong = of_model if is_command else ("briefing", "pass_environment")
        for name in wrong:
            if getattr(self, name) is not None:
                raise ValueError(
                    f"`{name}` is for agents with a `{'model' if is_command else 'command'}`"
                )
        return self


class ModelsConfig(_Table):
    """``[models]``: how models are asked; how often and how long stands in ``[loop]``."""

    parallel: int = Field(default=5, ge=1, le=1000)
    """Calls to one model at a time; fewer while it recovers from an outage."""
    wait: Seconds = 300.0
    """How long a call waits, all pauses together, where no model may be asked before a time."""


class BreakerConfig(_Table):
    """Arguments of `loki.Breaker` that are other than usual."""

    threshold: int | None = Field(default=None, ge=1)
    """Failures within the window that trip it, in place of their share."""
    failure_rate: float | None = Field(default=None, gt=0, le=1)
    minimum_calls: int | None = Field(default=None, ge=1)
    window_calls: int | None = Field(default=None, ge=1)
    window: Seconds | None = Field(default=None, gt=0)
    cooldown: Seconds | None = None
    cooldown_multiplier: float | None = Field(default=None, ge=1, allow_inf_nan=False)
    cooldown_cap: Seconds | None = None
    half_open_interval: Seconds | None = None
    recovery_threshold: int | None = Field(default=None, ge=1)
    probe_lease: Seconds | None = Field(default=None, gt=0)

    @property
    def arguments(self) -> dict[str, Any]:
        """What is said."""
        return self.model_dump(exclude_none=True, exclude={"named"})


class BreakersConfig(BreakerConfig):
    """``[breakers]``: circuit breakers of calls of models and tools."""

    named: dict[str, BreakerConfig] = {}
    """``[breakers.named."api/claude"]``: of single ones, or of globs of names; also of whole agents'."""


class WorkConfig(_Table):
    """``[work]``: how ``loki work`` goes about the queue."""

    parallel: int = Field(default=5, ge=1, le=1000)
    """Tasks at a time; fewer while a circuit breaker is open, and for a while afterwards."""


class PriceConfig(_Table):
    """``[prices."<model>"]``: US dollars for a million tokens, instead of the built-in table's."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cache_read: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Of input out of the provider's cache; ``input`` where nothing is said."""
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Of input into it; ``input`` where nothing is said."""


class SignsConfig(_Table):
    """``[signs]``: how often a failure comes back before it binds, and what never does."""

    threshold: int = Field(default=2, ge=2)
    thresholds: dict[str, Annotated[int, Field(ge=2)]] = {}
    """By kind of failure, or by pattern, like ``test-failure = 3``."""
    exempt: tuple[str, ...] = ()
    """Globs of whole commands that poll, like ``curl *``."""
    max_age: Seconds = 604800.0
    """How old a run gets on the branch that others are merged into, or where there is none."""


class RecurrenceConfig(_Table):
    """``[recurrence]``: tasks that come round again, and what becomes of their failures."""

    triage_threshold: int = Field(default=3, ge=1)
    """Failures in a row after which a triage agent looks at a task."""
    triage_cooldown: Seconds = 86400.0
    """From one triage of a task to the next."""
    triage_agent: str | None = Field(default=None, min_length=1)
    """Who looks: a name as for ``--agent``; the failing task's own agent where nothing is said."""
    failure_backoff_multiplier: float = Field(default=2.0, ge=1, allow_inf_nan=False)
    failure_backoff_max_delay: Seconds = 86400.0
    parallel: int = Field(default=4, ge=1, le=64)
    """Runs at a time; agents that work in the project wait for each other anyway."""


class SignalsConfig(_Table):
    """``[signals]``: what is done about signals without a person."""

    merge: Literal["ask", "auto"] = "ask"
    """Whether a branch whose tests passed is merged by loki, where that is clean and the tests still
    pass; else a person merges it."""


class DriftConfig(_Table):
    """``[drift]``: what happens where work leaves its task."""

    detect: bool = True
    """loki looks for drift itself."""
    signals: bool = True
    """Lines about a task in ``.loki/signals/DRIFT_DETECTED`` count, whoever writes them."""


class BriefingConfig(_Table):
    """``[briefing]``: how long it may be."""

    budget_tokens: int = Field(default=6000, ge=1)


class ReviewConfig(_Table):
    """``[review]``: what a person is asked about before work goes on; each can be switched off."""

    low_confidence: bool = True
    """Where an agent is unsure of a critical decision."""
    min_confidence: float = Field(default=0.40, ge=0, le=1)
    security: bool = True
    """Before the change of a task of kind security counts as done."""
    feature: bool = True
    """Before a feature counts as done that neither a check nor a new test shows to be there."""
    irreversible: bool = True
    """Before a command runs that no undo reaches."""
    changed_tests: bool = True
    """Before work counts as done that touches a test that failed, or what judges it."""
    failed_runs: int = Field(default=3, ge=0)
    """After so many failed runs of a task in a row; 0: never."""
    ambiguity: bool = True
    """Where an agent asks something."""
    cost_per_hour: float = Field(default=100.0, ge=0, allow_inf_nan=False)
    """US dollars that agents may take in an hour, in all tasks together; 0: any."""
    timeout: Seconds = 86_400.0
    """After which nobody is waited for, and the task is a dead letter."""


NotificationKind: TypeAlias = Literal[
    "human_review",
    "human_review_expired",
    "escalation",
    "dead_letter",
    "recurring_paused",
    "recurring_stopped",
]
"""What people are told of."""


class NotifyConfig(_Table):
    """``[notify]``: how people are told that something waits for them."""

    command: str | None = Field(default=None, min_length=1)
    """A program that reads the notification, JSON, on its standard input."""
    webhook: str | None = Field(default=None, pattern=r"^https?://[^/\s]")
    """A URL that it is posted to; it is never shown."""
    kinds: tuple[NotificationKind, ...] = get_args(NotificationKind)
    """Of what; all where nothing is said."""
    timeout: Seconds = 10.0

    @field_validator("command")
    @classmethod
    def _is_a_command(cls, command: str | None) -> str | None:
        if command is not None and not shlex.split(command):
            raise ValueError("expected a program and its arguments")
        return command


# --- The whole file -----------------------------------------------------------------------------------


class Config(_Table):
    """Everything in ``.loki/config.toml``."""

    loop: LoopConfig = LoopConfig()
    limits: LimitsConfig = LimitsConfig()
    execute: ExecuteConfig = ExecuteConfig()
    sandbox: SandboxConfig = SandboxConfig()
    agents: Mapping[str, AgentConfig] = Field(default_factory=dict)
    models: ModelsConfig = ModelsConfig()
    breakers: BreakersConfig = BreakersConfig()
    work: WorkConfig = WorkConfig()
    prices: Mapping[str, PriceConfig] = Field(default_factory=dict)
    signs: SignsConfig = SignsConfig()
    signals: SignalsConfig = SignalsConfig()
    briefing: BriefingConfig = BriefingConfig()
    recurrence: RecurrenceConfig = RecurrenceConfig()
    drift: DriftConfig = DriftConfig()
    review: ReviewConfig = ReviewConfig()
    notify: NotifyConfig = NotifyConfig()

    @field_validator("agents")
    @classmethod
    def _end_somewhere(cls, agents: Mapping[str, AgentConfig]) -> Mapping[str, AgentConfig]:
        for name in agents:
            if circle := _circle(agents, (name,)):
                raise ValueError(
                    f"the fallback of {name!r} leads back to it ({' → '.join(circle)}): "
                    "expected a chain that ends"
                )
        return agents


def _circle(agents: Mapping[str, AgentConfig], way: tuple[str, ...]) -> tuple[str, ...]:
    """The way from an agent by its fallbacks back to itself, or ()."""
    for following in agents[way[-1]].fallback:
        if following == way[0]:
            return (*way, following)
        is_new = following in agents and following not in way
        if is_new and (found := _circle(agents, (*way, following))):
            return found
    return ()


def load(path: Path) -> Config:
    """The settings in a file; the defaults where there is none.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or says something that is no setting.
    """
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Config()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error}", file=str(path)) from error
    return loads(content, str(path))


def loads(content: bytes, path: str) -> Config:
    """The settings in the bytes of a file.

    Raises:
        ConfigError: they are no TOML, or say something that is no setting.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot be read: {error}", file=path) from error
    try:
        return Config.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason, line, column = mistake(error)
        raise ConfigError(
            f"{reason}: expected TOML", file=path, line=line, column=column
        ) from error
    except ValidationError as error:
        raise _explain(error, text, path) from error


def _explain(error: ValidationError, text: str, path: str) -> ConfigError:
    """The first problem, at the line of its key."""
    problem = error.errors()[0]
    keys = [str(key) for key in problem["loc"]]
    line, column = place_of(text, keys)
    if problem["type"] == "extra_forbidden":
        names = known_keys(Config, keys[:-1])
        known = f"expected one of {', '.join(names)}{did_you_mean(keys[-1], names)}"
        reason = f"unknown setting {'.'.join(keys)}: {known}"
    else:
        reason = sentence(problem)
    return ConfigError(reason, file=path, line=line, column=column)
