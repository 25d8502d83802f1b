"""context_expand shows what an error names: its places, definitions, and uses of what changed: with processes."""

from __future__ import annotations

import sys
from pathlib import Path

from loki.action.strategies.context_expand import context_expand
from support.strategy import situation, write

MYPY = f"{sys.executable} -m mypy --no-error-summary --cache-dir=/dev/null"


def test_a_type_error_shows_the_type(tmp_path: Path) -> None:
    write(
        tmp_path,
        models_dot_py="class Session:\n    token: str = ''\n\n\nclass Unrelated:\n    pass\n",
        auth_dot_py="from models import Session\n\n\ndef name(session: Session) -> str:\n    return session.user\n",
    )
    helped = context_expand(situation(tmp_path, f"{MYPY} auth.py"))
    assert helped.context.startswith("auth.py:5\n")
    assert (
        "models.py:1 (defines Session)\n>    1 class Session:\n     2     token: str = ''"
        in helped.context
    )
    assert "Unrelated" not in helped.context
    assert helped.done == "read auth.py, models.py"
