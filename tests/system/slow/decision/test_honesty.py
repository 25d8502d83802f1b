"""Rationalizations and red flags: every rule's examples, the labelled messages, hostile input: what takes its time."""

from __future__ import annotations

import pytest

from loki.decision.honesty import scan_message
from support.growth import assert_linear


@pytest.mark.parametrize(
    "unit",
    [
        "probably ",
        "It is probably fine. ",
        "`",
        "` `` ",
        '"',
        "“",
        "'",
        ".",
        "\n> ",
        "\n- ",
        "    x\n",
        "```\n",
        "i think ",
        "`a\n\n",
        "tests ",
        "fail ",
    ],
)
def test_time_grows_with_the_message_alone(unit: str) -> None:
    assert_linear(lambda size: scan_message((unit * (size // len(unit) + 1))[:size]), 80_000)
