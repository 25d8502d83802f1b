"""A workspace's settings: ``.loki/config.toml``, every one of them optional."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from loki.base.error import ConfigError
from loki.settings import (
    AgentConfig,
    BreakersConfig,
    BriefingConfig,
    ContextConfig,
    DriftConfig,
    ExecuteConfig,
    LimitsConfig,
    LoopConfig,
    ModelsConfig,
    NotifyConfig,
    PriceConfig,
    RecurrenceConfig,
    ReviewConfig,
    SandboxConfig,
    SignalsConfig,
    SignsConfig,
    WorkConfig,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Config(BaseModel):
    """Everything in ``.loki/config.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    context: ContextConfig = ContextConfig()
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
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(at[1]), int(at[2])) if at else (0, 0)
        reason = re.sub(r" \(at .*\)$", "", str(error))
        raise ConfigError(
            f"{reason}: expected TOML", file=path, line=line, column=column
        ) from error
    except ValidationError as error:
        raise _explain(error, text, path) from error


def _explain(error: ValidationError, text: str, path: str) -> ConfigError:
    """The first problem, at the line of its key."""
    problem = error.errors()[0]
    keys = [str(key) for key in problem["loc"]]
    line, column = _find(text, keys)
    if problem["type"] == "extra_forbidden":
        names: tuple[str, ...] = _settings(keys[:-1])
        reason = f"unknown setting {'.'.join(keys)}: expected one of {', '.join(names)}"
    else:
        reason = f"{'.'.join(keys)}: {problem['msg'].removeprefix('Value error, ')}"
    return ConfigError(reason, file=path, line=line, column=column)


def _settings(keys: list[str]) -> tuple[str, ...]:
    """The settings that there are below a key."""
    found: Any = Config
    for key in keys:
        is_table_of_tables = not isinstance(found, type)  # agents.<name>
        found = get_args(found)[1] if is_table_of_tables else found.model_fields[key].annotation
    return tuple(found.model_fields)


def _find(text: str, keys: list[str]) -> tuple[int, int]:
    """Line and column of a key, or of the nearest one above it; 0, 0 where there is none."""
    best, place, table = 0, (0, 0), list[str]()
    for number, content in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+([^]]*)", content)
        said = header or re.match(r"([^=#]+)=", content)
        if said is None:
            continue
        parts = list(_KEY.finditer(content, said.start(1), said.end(1)))
        names = [part[1] or part[2] or part[0] for part in parts]
        path = names if header else [*table, *names]
        table = names if header else table
        if path == keys[: len(path)] and len(path) > best:
            best, place = len(path), (number, parts[-1].start() + 1)
    return place


_KEY = re.compile(r"\"([^\"]*)\"|'([^']*)'|[^.\s\"']+")
