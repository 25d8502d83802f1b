"""`.loki/config.toml`: what it may say of agents, and where its errors stand."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.config import load

AGENTS = """\
[loop]
max_retries = 1

[agents.tech-lead]
command = "claude -p"
breaker = "api/claude"
timeout = "20m"

[agents."the architect"]
command = "codex exec {briefing}"
briefing = "argument"
"""


def config(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    return path


def test_agents_by_name(tmp_path: Path) -> None:
    found = load(config(tmp_path, AGENTS)).agents
    assert list(found) == ["tech-lead", "the architect"]
    lead = found["tech-lead"]
    assert (lead.command, lead.breaker, lead.timeout) == ("claude -p", "api/claude", 1200)
    assert found["the architect"].briefing == "argument"
    assert load(tmp_path / "missing.toml").agents == {}


@pytest.mark.parametrize(
    ("old", "new", "place", "reason"),
    [
        (
            "timeout = ",
            "time_out = ",
            "7:1",
            "unknown setting agents.tech-lead.time_out: expected one",
        ),
        ('"20m"', "20", "7:1", "agents.tech-lead.timeout: 20 has no unit"),
        (
            '"claude -p"',
            '""',
            "5:1",
            "agents.tech-lead.command: found '', expected text of 1 character",
        ),
        (
            'command = "claude -p"',
            "",
            "4:9",
            "agents.tech-lead: expected either `command` or `model` (or `preset`)",
        ),
        ('briefing = "argument"', 'briefing = "file"', "11:1", "agents.the architect.briefing"),
        (
            "max_retries",
            "max_retrys",
            "2:1",
            "unknown setting loop.max_retrys: expected one of max_",
        ),
        (
            'timeout = "20m"',
            'base_url = "http://x"',
            "4:9",
            "agents.tech-lead: `base_url` is for agents with a `model`",
        ),
        (
            'command = "codex exec {briefing}"',
            'model = "openai:m"',
            "9:9",
            "agents.the architect: `briefing` is for agents with a `command`",
        ),
        ("[loop]", "[lop]", "1:2", "unknown setting lop: expected one of loop"),
    ],
)
def test_each_error_stands_where_it_is(
    tmp_path: Path, old: str, new: str, place: str, reason: str
) -> None:
    assert old in AGENTS
    with pytest.raises(loki.ConfigError) as error:
        load(config(tmp_path, AGENTS.replace(old, new, 1)))
    assert error.value.reason.startswith(reason)
    assert f"{error.value.line}:{error.value.column}" == place, str(error.value)


def test_what_is_nested_deeper_than_the_parser_goes_is_an_error_like_others(tmp_path: Path) -> None:
    with pytest.raises(loki.ConfigError, match="expected TOML"):
        load(config(tmp_path, "x = " + "[" * 100_000))
