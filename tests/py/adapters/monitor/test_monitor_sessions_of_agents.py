"""Sessions as coding agents have them, in files that a person can read: who gets on hears nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki import Monitor
from support.tool_calls import Made, bash, edit
from support.transcripts import parsed, reactions

HERE = Path(__file__).parent
SESSIONS = {**parsed(HERE / "healthy.txt"), **parsed(HERE / "unhealthy.txt")}
RED = "FAILED t.py::test_a - KeyError: 'x'\n1 failed, 2 passed\n"


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_hears_what_is_noted_beside_it_and_nothing_else(
    tmp_path: Path, name: str
) -> None:
    wrong = [
        f"{line.made.call.line or line.made.call.name}: {reaction.kind}: {reaction.text}"
        for line, reaction in reactions(tmp_path, SESSIONS[name])
        if reaction.kind != line.expected
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (bash("pytest -q 2>&1 | tail -3", RED), "refuse"),
        (bash("pytest -q 2>&1 | tail -1", "1 failed in 2.01s\n"), "refuse"),
        (bash("pytest -q || true", RED), "refuse"),
        (bash("bash -lc 'pytest -q | tail -3'", RED), "refuse"),
        (bash("pytest -q 2>&1 | tail -3", "3 passed\n"), "none"),
        (bash("pytest -q && echo fine", "3 passed, 0 failed\nfine\n"), "none"),
    ],
)
def test_what_a_piped_check_printed_bears_out_a_claim(
    tmp_path: Path, made: Made, kind: str
) -> None:
    monitor = Monitor(tmp_path)
    for one in (edit("app.py"), made):
        monitor.after(one.call, one.output, **one.how)
    assert monitor.ending("All tests pass.").kind == kind


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("sed -i s/a/b/ app.py", "refuse"),
        ("git apply fix.diff", "refuse"),
        ("sed -i s/a/b/ README.md", "none"),
        ("git commit -am x", "none"),
    ],
)
def test_sources_that_a_command_edits_are_to_be_checked_again(
    tmp_path: Path, command: str, kind: str
) -> None:
    monitor = Monitor(tmp_path)
    for one in (bash("pytest -q", "3 passed\n"), bash(command)):
        monitor.after(one.call, one.output, **one.how)
    assert monitor.ending("All tests pass.").kind == kind
