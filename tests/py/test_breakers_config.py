"""``[breakers]``: what breakers are made with, by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.testing import ManualClock


def workspace(tmp_path: Path, text: str = "") -> loki.Workspace:
    folder = tmp_path / ".loki"
    folder.mkdir()
    (folder / "config.toml").write_text(text, "utf-8")
    return loki.Workspace(tmp_path, clock=ManualClock())


def failures_to_trip(breakers: loki.Breakers, name: str) -> int:
    count = 0
    while (permit := breakers[name].try_acquire()) is not None and count < 50:
        permit.failure("down")
        count += 1
    return count


@pytest.mark.parametrize(
    ("name", "trips", "pause"),
    [
        ("api/openai/gpt-5", 3, 7.5),
        ("tool/api.example.com", 3, 7.5),
        ("agent/writer", 3, 300),
        ("api/claude", 3, 300),
    ],
)
def test_calls_and_agents(tmp_path: Path, name: str, trips: int, pause: float) -> None:
    breakers = workspace(tmp_path).breakers()
    assert failures_to_trip(breakers, name) == trips
    assert breakers[name].snapshot().retry_after == pytest.approx(pause)


def test_a_share_counts_for_calls_and_a_number_for_agents(tmp_path: Path) -> None:
    breakers = workspace(tmp_path).breakers()
    for name in ("api/openai/gpt-5", "agent/writer"):
        for number in range(30):
            permit = breakers[name].try_acquire()
            if permit is None:
                break
            permit.failure("503") if number % 3 == 2 else permit.success()
    assert breakers["api/openai/gpt-5"].snapshot().state == "CLOSED"
    assert breakers["agent/writer"].snapshot().state == "OPEN"


def test_the_configuration_says_otherwise(tmp_path: Path) -> None:
    text = """
[breakers]
cooldown = "20s"
cooldown_cap = "1m"

[breakers.named."api/openai/*"]
threshold = 5

[breakers.named."api/claude"]
cooldown = "1m"
"""
    breakers = workspace(tmp_path, text).breakers()
    assert failures_to_trip(breakers, "tool/x") == 3
    assert breakers["tool/x"].snapshot().retry_after == pytest.approx(20)
    assert failures_to_trip(breakers, "api/openai/gpt-5") == 5
    assert breakers["api/openai/gpt-5"].snapshot().retry_after == pytest.approx(20)
    assert failures_to_trip(breakers, "api/claude") == 3
    assert breakers["api/claude"].snapshot().retry_after == pytest.approx(60)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[breakers]\ncooldown = 5", "has no unit"),
        ("[breakers]\nfailure_rate = 2", "failure_rate"),
        ("[breakers]\npause = '5s'", "pause"),
        ("[breakers]\nminimum_calls = 50", "minimum_calls above window_calls"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(loki.ConfigError, match=said):
        workspace(tmp_path, text).breakers()
