"""Sessions as coding agents have them, in files that a person can read: who gets on hears nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.transcripts import Line, parsed, reactions

HERE = Path(__file__).parent
HEALTHY = parsed(HERE / "healthy.txt")


@pytest.mark.parametrize("name", HEALTHY)
def test_who_gets_on_hears_nothing(tmp_path: Path, name: str) -> None:
    check(tmp_path, HEALTHY[name])


def check(workspace: Path, lines: list[Line]) -> None:
    wrong = [
        f"{line.made.call.line or line.made.call.name}: {reaction.kind}: {reaction.text}"
        for line, reaction in reactions(workspace, lines)
        if reaction.kind != line.expected
    ]
    assert not wrong, "\n".join(wrong)
