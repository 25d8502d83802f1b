"""What pytest would print of one failing report: the text that recognition reads.

Where it stands in the terminal does not matter to it, whatever ``-q``, ``--show-capture`` or
``-p no:terminal`` leave out.
"""

from __future__ import annotations

import re

import pytest

from loki.pytest_plugin.traceback_text import taken

REPORT = 1_000_000
"""Characters of a traceback that are read: head and tail of a longer one. Chosen, not measured."""

SECTION = 20_000
"""Characters of each captured output that are read, its last ones. Chosen, not measured."""

_ERROR = re.compile("^E  ", re.MULTILINE)
_TYPE = re.compile(r"[\w.]+")
_WORKER = re.compile(r"worker '\w+' crashed")
_RULER = 12  # dashes at each side of a title

CRASHED = "???"
"""What pytest-xdist gives as phase of a test whose worker died."""


def text_of(report: pytest.TestReport | pytest.CollectReport, test: str) -> str:
    """What pytest prints of a failing report: its section, what was captured, its summary line.

    Args:
        report: of a test's phase or of a collector, failed.
        test: its node id, as the summary line says it.
    """
    when = getattr(report, "when", None)
    heading = "FAILURES" if when == "call" else "ERRORS"
    parts = [
        _title("=", heading),
        _title("_", _head(report, when, test)),
        _said(report, when),
    ]
    for name, content in report.sections:
        parts += [_title("-", name), content[-SECTION:].rstrip("\n")]
    parts += [_title("=", "short test summary info"), _last_line(report, when, test)]
    return "\n".join(parts) + "\n"


def crashed_text(test: str) -> str:
    """What pytest would print of a test that its process died in, as pytest-xdist does of a worker's.

    Args:
        test: its node id, or the path of a file that was being collected.
    """
    return (
        f"{_title('=', 'ERRORS')}\n{_title('_', test)}\nprocess crashed while running {test!r}\n"
        f"{_title('=', 'short test summary info')}\nFAILED {test}\n"
    )


def _said(report: pytest.TestReport | pytest.CollectReport, when: str | None) -> str:
    """The traceback, with what ``--tb=no``, ``--tb=line`` and ``pytrace=False`` leave out of it."""
    text = _cut(taken(report) or report.longreprtext)
    if when == CRASHED:  # which worker it was differs from run to run, and says nothing of the test
        return _WORKER.sub("worker crashed", text)
    crash = getattr(report.longrepr, "reprcrash", None)
    error = first_line(report)
    if crash is None or not error:
        return text
    if not _ERROR.search(text):
        text = f"{text}\nE   {error}"
    if f":{crash.lineno}: " not in text:
        kind = error.partition(":")[0]
        kind = kind if _TYPE.fullmatch(kind) else "AssertionError"  # pytest leaves it out of these
        text = f"{text}\n\n{crash.path}:{crash.lineno}: {kind}"
    return text


def _head(report: pytest.TestReport | pytest.CollectReport, when: str | None, test: str) -> str:
    head = report.head_line or test
    if when == "collect":
        return f"ERROR collecting {head}"
    return f"ERROR at {when} of {head}" if when in {"setup", "teardown"} else head


def _last_line(
    report: pytest.TestReport | pytest.CollectReport, when: str | None, test: str
) -> str:
    word = "FAILED" if when in {"call", CRASHED} else "ERROR"
    said = first_line(report)
    return f"{word} {test} - {said}" if said else f"{word} {test}"


def first_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The first line of what the report says went wrong; "" where it does not."""
    crash = getattr(report.longrepr, "reprcrash", None)
    message = str(getattr(crash, "message", "") or "")
    return message.strip().split("\n", 1)[0]


def _title(ruler: str, text: str) -> str:
    return f"{ruler * _RULER} {text} {ruler * _RULER}"


def _cut(text: str) -> str:
    if len(text) <= REPORT:
        return text
    return f"{text[: REPORT // 2]}\n...\n{text[-REPORT // 2 :]}"
