"""Sessions that processes share: real processes, crashes, torn files, bounded in number and size: what takes its time."""

from __future__ import annotations

from pathlib import Path

from loki import Monitor
from loki.adapters.monitor.monitor import (
    LARGEST,
    document_of,
)
from support.tool_calls import bash, edit, pytest_fails


def test_long_commands_do_not_make_counts_begin_anew(tmp_path: Path) -> None:
    """Each look keeps what ran: sixteen programs of seven kilobytes each, of failures in turn."""
    kinds = []
    for turn in range(4):
        for name in "abcdef":
            for part in range(16 if turn == 0 else 1):
                code = f"# {name}{part} " + "x" * 7_000
                said = pytest_fails(f"test_{name}", f"KeyError: 'the key {name} of {name * 9}'")
                check = bash(f"python -c '{code}' && pytest -q", said, 1)
                monitor = Monitor(tmp_path, session="s")
                kinds.append(monitor.after(check.call, check.output, **check.how).kind)
        Monitor(tmp_path, session="s").after(edit("app.py", str(turn)).call, "ok", ok=True)
    assert kinds[-6:] == ["nudge"] * 6
    assert (tmp_path / ".loki" / document_of("s")).stat().st_size < LARGEST
