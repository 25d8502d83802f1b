"""analyze_then_fix shows every place of the failing check, and what was expected against what came."""

from __future__ import annotations

import sys
from pathlib import Path

from loki.action.strategies.analyze_then_fix import analyze_then_fix
from loki.action.strategies.context_expand import BUDGET
from support.strategy import situation, write

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


def test_every_failing_test_not_only_the_first(tmp_path: Path) -> None:
    write(
        tmp_path,
        calc_dot_py="def add(a, b):\n    return a - b\n",
        test_calc_dot_py="from calc import add\n\n\ndef test_one():\n    assert add(2, 3) == 5\n"
        + "\n# nothing\n" * 9
        + "\n\ndef test_two():\n    assert add(1, 1) == 2\n",
    )
    helped = analyze_then_fix(situation(tmp_path, PYTEST))
    # Whichever test ran first.
    assert "expected: 5\nactual:   -1\n" in helped.context
    assert "expected: 2\nactual:   0\n" in helped.context
    assert ">    5     assert add(2, 3) == 5" in helped.context
    assert ">   27     assert add(1, 1) == 2" in helped.context


def test_the_stack_is_shown_too(tmp_path: Path) -> None:
    write(
        tmp_path,
        lib_dot_py="def half(x):\n    return x / 0\n",
        app_dot_py="from lib import half\n\nprint(half(1))\n",
    )
    helped = analyze_then_fix(situation(tmp_path, f"{sys.executable} app.py"))
    assert helped.context.index("lib.py:2") < helped.context.index("app.py:3")


def test_fifty_lines_are_looked_at_and_the_nearest_shown(tmp_path: Path) -> None:
    lines = [f"line_{number} = {number}  # {'x' * 60}" for number in range(1, 200)]
    lines[99] = "raise ValueError('broken')"
    write(tmp_path, app_dot_py="\n".join(lines) + "\n")
    helped = analyze_then_fix(situation(tmp_path, f"{sys.executable} app.py"))
    assert ">  100 raise ValueError('broken')" in helped.context
    assert "line_99" in helped.context
    assert "line_49 " not in helped.context
    assert len(helped.context) <= BUDGET


def test_an_error_without_a_place_is_still_worth_an_analysis(tmp_path: Path) -> None:
    helped = analyze_then_fix(situation(tmp_path, output="it is broken"))
    assert (helped.done, helped.context, helped.error) == ("", "", "")
