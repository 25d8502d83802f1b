"""A triage agent's answer: what its verdict is, whatever stands round it: what takes its time."""

from __future__ import annotations

import pytest

from loki.jobs.triage.triage_verdict import LONGEST, parse
from support.growth import assert_linear


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"a":',
        "VERDICT=\n",
        " ",
        "*",
        "\n{",
        '\n{"a": [',
        "VERDICT=PAUSE ",
        "|\n",
        "PAUSE ",
        ";",
        " ,",
        "~",
        "x EVIDENCE",
    ],
)
def test_it_takes_linear_time(piece: str) -> None:

    def work(length: int) -> None:
        text = piece * (length // len(piece))
        parse(text, text)

    assert_linear(work, LONGEST)
