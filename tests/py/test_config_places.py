"""Settings: what is wrong is told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.base.error import ConfigError
from loki.config import Config, load


def read(path: Path, text: str) -> Config:
    file = path / "config.toml"
    file.write_text(text)
    return load(file)


def test_signs_and_briefing(tmp_path: Path) -> None:
    text = """
[signs]
threshold = 3
exempt = ["curl *", "gh run watch*"]

[signs.thresholds]
test-failure = 4

[briefing]
budget_tokens = 2000
"""
    config = read(tmp_path, text)
    assert config.signs.threshold == 3
    assert config.signs.thresholds == {"test-failure": 4}
    assert config.signs.exempt == ("curl *", "gh run watch*")
    assert config.briefing.budget_tokens == 2000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[signs]\nthreshold = 1\n", ":2:1: signs.threshold: found 1, expected"),
        (
            "[loop]\n\n[signs.thresholds]\nlint-error = 2\ntest-failure = 1\n",
            ":5:1: signs.thresholds.test-failure: found 1, expected 2 or more",
        ),
        (
            "[signs]\nthresholds.x = 'many'\n",
            ":2:12: signs.thresholds.x: found 'many', expected a whole number",
        ),
        ("[signs]\nexcept = []\n", ":2:1: unknown setting signs.except: expected one of threshold"),
        ("[briefing]\nbudget_tokens = 0\n", ":2:1: briefing.budget_tokens"),
    ],
)
def test_a_wrong_setting_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert told in str(error.value)
