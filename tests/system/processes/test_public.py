"""Every public name, called twice in random order: none depends on what was called before it: with processes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from support.public_calls import calls


def test_called_twice_in_random_order_each_gives_the_same(tmp_path: Path) -> None:
    uses = calls(tmp_path)
    order = [*uses, *uses]
    random.shuffle(order)
    answers: dict[str, Any] = {}
    for name in order:
        answer = uses[name]()
        assert answer == answers.setdefault(name, answer), name
