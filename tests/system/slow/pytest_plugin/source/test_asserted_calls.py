"""The text of a failing test says whose result it asserts on, or nothing is said: what takes its time."""

from __future__ import annotations

import pytest

from support.asserted import read


@pytest.mark.parametrize("first", ["slugify('a')", "1", "re.compile('a')"])
def test_names_that_double_are_given_up(first: str) -> None:
    """Each name is made of two: what it comes of cannot be read one by one."""
    doubled = "".join(f"x{n + 1} = [x{n}, x{n}]\n" for n in range(60))
    assert read(f"x0 = {first}\n{doubled}assert x60.index(1)") is None
