"""What is read from the journal of a run that died, whatever state it is in."""

from __future__ import annotations

import pytest

from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
from loki.memory.suites.suite_journal import journal_line, opening, timeouts_of, unfinished
from loki.recognition.failure import Failure

BAD = SuiteFailure("test_a.py::test_x", "call", "failed", Failure.of("assert 1 == 2"))
RUN = SuiteRun(id="a", started_at="2026-04-04T12:00:00Z")


def test_tests_follow_one_another() -> None:
    lines = [
        opening(RUN, began=1.5, has_workers=False),
        journal_line("collect", "test_a.py"),
        journal_line("code", {"branch": "main", "commit": "c", "tree": "t"}),
        journal_line("start", "test_a.py::test_x"),
        journal_line("fail", BAD.to_dict()),
        journal_line("start", "test_a.py::test_y"),
        journal_line("timeout", {"test": "test_a.py::test_y", "text": "too long"}),
    ]
    found = unfinished(lines)
    assert found is not None
    assert (found.running, found.collecting, found.began) == (("test_a.py::test_y",), "", 1.5)
    assert found.run.failures == (BAD,)
    assert (found.run.id, found.run.commit, found.run.interrupted) == ("a", "c", True)
    assert found.timeouts == timeouts_of(lines) == {"test_a.py::test_y": "too long"}


def test_side_by_side_each_ends_by_itself() -> None:
    lines = [
        opening(RUN, began=0, has_workers=True),
        *(journal_line("start", name) for name in "abc"),
        journal_line("end", "b"),
    ]
    found = unfinished(lines)
    assert found is not None
    assert found.running == ("a", "c")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff",
        b"[" * 9999,
        b'{"sta',
        b'{"fail": {"test": 1}}',
        b'{"code": 1}',
        b'{"timeout": 2}',
    ],
)
def test_a_damaged_line_is_left_out(line: bytes) -> None:
    found = unfinished([opening(RUN, began=0, has_workers=False), line, b'{"start": "a"}', line])
    assert found is not None
    assert found.running == ("a",)
    assert unfinished([line]) is None


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 1"):
        unfinished([b'{"run": {"id": "a", "version": 2}}'])
