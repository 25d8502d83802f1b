"""The places that a check's output names, as tools write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.strategies.context_expand import locations
from support.strategy import situation, write


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("src/a.ts(3,7): error TS2322: no\nsrc/b.ts(9,1): error TS2304: no\n", [("src/a.ts", 3), ("src/b.ts", 9)]),
        ("src/a.ts:3:7 - error TS2322: no\n", [("src/a.ts", 3)]),
        ('Traceback (most recent call last):\n  File "app.py", line 2, in <module>\n    f()\n  File "lib.py", line 5, in f\n    1/0\nZeroDivisionError: no\n', [("lib.py", 5), ("app.py", 2)]),
        ("error[E0308]: mismatched types\n --> src/main.rs:4:9\n  |\n\nerror[E0425]: no\n --> src/lib.rs:7:1\n", [("src/main.rs", 4), ("src/lib.rs", 7)]),
        ("\nsrc/a.js\n  3:5  error  'x' is unused  no-unused-vars\n  8:1  error  no  semi\n\n✖ 2 problems (2 errors, 0 warnings)\n", [("src/a.js", 3), ("src/a.js", 8)]),
        ("nowhere/x.py:3: error\n", []),
        ("", []),
    ],
)  # fmt: skip
def test_places_in_output(output: str, expected: list[tuple[str, int]], tmp_path: Path) -> None:
    names = ["src/a.ts", "src/b.ts", "app.py", "lib.py", "src/main.rs", "src/lib.rs", "src/a.js"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n" * 20)
    assert locations(situation(tmp_path, output=output)) == expected


def test_absolute_paths_are_the_projects(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py="x\n" * 9)
    assert locations(situation(tmp_path, output=f"{tmp_path}/a.py:4: error: no [x]\n")) == [
        ("a.py", 4)
    ]


def test_hostile_output_is_searched_quickly(tmp_path: Path) -> None:
    """Without a bound on lines one of these takes 12 seconds."""
    write(tmp_path, a_dot_py="x\n" * 9)
    for text in ("a" * 500_000, "a." * 250_000, "a.b:" * 120_000, "x/" * 250_000, "\t.a" * 150_000):
        assert locations(situation(tmp_path, output=f"a.py:1: error: no\n{text}"))[0] == ("a.py", 1)


def test_a_huge_output_is_searched_in_part(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py="x\n" * 9, b_dot_py="x\n" * 9)
    output = "a.py:1: error: no\n" + "nothing here\n" * 200_000 + "b.py:2: error: no\n"
    assert ("b.py", 2) in locations(situation(tmp_path, output=output))
