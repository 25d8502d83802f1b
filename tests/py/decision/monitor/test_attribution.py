"""Whether a failure may come of a change."""

from __future__ import annotations

import pytest

from loki.decision.monitor.repeated_action import (
    TRIED,
    attempts_to_fix,
    changes_of_call,
    is_touched,
    names_in_failure,
)
from loki.decision.monitor.tool_call import ToolCall, known
from loki.recognition.failure import recognize

CLOCK = recognize(
    "E   KeyError: 'zone'\napp/clock.py:9: KeyError\n"
    "FAILED tests/test_zone.py::test_a - KeyError: 'zone'\n",
    command="pytest",
)


@pytest.mark.parametrize(
    ("tool", "arguments", "may"),
    [
        ("Edit", {"file_path": "/w/app/clock.py"}, True),
        ("Edit", {"file_path": "app/zone.py"}, True),
        ("Edit", {"file_path": "app\\clock.py"}, True),
        ("Edit", {"file_path": "app/cart.py"}, False),
        ("Bash", {"command": "pip install x"}, True),
    ],
)
def test_a_change_of_a_file_that_it_names_may_be_why(
    tool: str, arguments: dict[str, str], may: bool
) -> None:
    made = (changes_of_call(known(ToolCall(tool, arguments)), 1),)
    assert is_touched(made, names_in_failure(CLOCK)) is may
    assert is_touched(made, frozenset())


@pytest.mark.parametrize(
    ("path", "strength"),
    [
        ("app/clock.py", TRIED),
        ("tests/test_zone.py", 1),
        ("reproduce.py", 1),
        ("app/cart.py", TRIED),
    ],
)
def test_what_could_have_mended_it(path: str, strength: int) -> None:
    call = known(ToolCall("Bash", {"command": "python reproduce.py"}))
    made = (changes_of_call(known(ToolCall("Edit", {"file_path": path})), 1),)
    assert attempts_to_fix(made, 0, call, CLOCK) == strength
    assert attempts_to_fix(made, 1, call, CLOCK) == 0


STACK = (
    'Traceback (most recent call last):\n  File "build.py", line 3, in go\n    x()\nKeyError: 1\n'
)


def test_a_program_is_mended_where_it_fails() -> None:
    call = known(ToolCall("Bash", {"command": "python build.py"}))
    made = (changes_of_call(known(ToolCall("Edit", {"file_path": "/w/build.py"})), 1),)
    assert attempts_to_fix(made, 0, call, recognize(STACK)) == TRIED
    assert attempts_to_fix(made, 0, call) == 1, "it printed something: nobody knows of what"
