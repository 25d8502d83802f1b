"""What takes a claim back, in every language that claims are known in; and hostile messages: what takes its time."""

from __future__ import annotations

import pytest

from loki.decision.monitor.completion_check import LONGEST_MESSAGE, _forms, objection
from loki.decision.monitor.monitor_state import Evidence, MonitorState
from support.growth import assert_linear

CHANGED = MonitorState(evidence=Evidence(edits=1))


HOSTILE = [
    *(
        "1",
        "1,",
        "1/",
        "-",
        "- ",
        ",",
        " ",
        "a",
        "a ",
        "\n",
        "*",
        ":",
        ": ",
        ".",
        "1 ",
        "not ",
        "\t",
    ),
    *(
        "fails ",
        "error ",
        "fixed ",
        "24/24 ",
        "1 a ",
        "all ",
        "tests ",
        "# ",
        "**",
        "…",
        "测试",
        "所有",
    ),
    *(
        "- all tests pass\n",
        "All tests passed. ",
        "all tests pass: ",
        "。",
        "`",
        "[",
        "in a",
        "in ./",
    ),
]


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_messages_are_read_in_time(part: str) -> None:
    unit = "The unit tests in module pass "

    def work(size: int) -> None:
        for head in ("", unit, "All tests passed ", "all ", "1/2 ", "full "):
            for tail in ("", "x"):
                text = (head + part * size)[: size - len(tail)] + tail
                for form in _forms().values():
                    form.search(text)
        for text in (part * size, unit + part * size):
            objection(CHANGED, text[: size - 20] + "\n\nAll tests pass.")

    assert_linear(work, LONGEST_MESSAGE)
