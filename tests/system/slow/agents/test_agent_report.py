"""What agents print is read whatever it is, wherever it is cut, and in a few megabytes of memory: what takes its time."""

from __future__ import annotations

import pytest

from loki.agents.agent_report import FORMS, LINES, LONGEST_TEXT, Reader, Report


def reader(form: str) -> Reader:
    return Reader(FORMS[form], LINES.get(form))


def read(form: str, *chunks: bytes, errors: bytes = b"") -> Report:
    found = reader(form)
    for chunk in chunks:
        found.feed(chunk)
    return found.close(errors)


@pytest.mark.parametrize("joined", [True, False])
def test_many_short_messages_are_not_kept(joined: bool) -> None:
    report = Report()
    for _ in range(LONGEST_TEXT * 2):
        report.say("x", joined=joined)
    kept = sum(map(len, report.pieces))
    assert LONGEST_TEXT <= kept <= LONGEST_TEXT + 3
    assert kept == report.size


def test_a_document_is_not_looked_for_for_ever() -> None:
    report = read("gemini", b"{\n" * 200_000)
    assert not report.is_whole
