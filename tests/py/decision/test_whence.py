"""Whether a failure may come of a change."""

from __future__ import annotations

import pytest

from loki.decision.tool_call import ToolCall, known
from loki.decision.whence import may_touch, names_of, says_whence
from loki.recognition.failure import recognize

CLOCK = recognize(
    "E   KeyError: 'zone'\napp/clock.py:9: KeyError\n"
    "FAILED tests/test_zone.py::test_a - KeyError: 'zone'\n",
    command="pytest",
)
BARE = recognize("FAILED tests/test_zone.py::test_a - KeyError: 'zone'\n", command="pytest")


@pytest.mark.parametrize(
    ("tool", "arguments", "may"),
    [
        ("Edit", {"file_path": "/w/app/clock.py"}, True),
        ("Edit", {"file_path": "app/zone.py"}, True),
        ("Edit", {"file_path": "app\\clock.py"}, True),
        ("Edit", {"file_path": "app/cart.py"}, False),
        ("Bash", {"command": "git checkout ."}, True),
    ],
)
def test_a_change_of_a_file_that_it_names_may_be_why(
    tool: str, arguments: dict[str, str], may: bool
) -> None:
    assert may_touch(known(ToolCall(tool, arguments)), names_of(CLOCK)) is may


def test_a_failure_that_names_tests_alone_may_come_of_anything() -> None:
    assert says_whence(CLOCK)
    assert not says_whence(BARE)
