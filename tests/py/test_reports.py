"""Reports of tests reach whoever collects them, whatever the tests have logged."""

from __future__ import annotations

import pytest


def test_a_report_with_a_lone_surrogate_can_be_sent(pytestconfig: pytest.Config) -> None:
    report = pytest.TestReport(
        "a",
        ("a.py", 1, "a"),
        {},
        "failed",
        "E  \ud800",
        "call",
        [("Captured log call", "a \udcff")],
    )
    data = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=report)
    assert data["longrepr"] == "E  \\ud800"
    assert data["sections"] == [("Captured log call", "a \\udcff")]
