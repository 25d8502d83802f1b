"""The JSON of jest, which vitest writes as well: https://jestjs.io/docs/cli#--json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from loki.action.checks.results.suite_results import (
    FAILED,
    PASSED,
    SKIPPED,
    Collected,
    Results,
    relative,
)

_OUTCOMES = {"passed": PASSED, "failed": FAILED}
"""Anything else did not run: pending, skipped, todo, disabled."""


def read(content: bytes, root: str) -> Results | None:
    """Outcome by test; ids are ``file > title > title``, a file's that could not be loaded its path.

    Args:
        content: the report.
        root: the project's folder.
    """
    try:
        data = json.loads(content)
        return _read(data["testResults"], root)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # cut short, or of another tool


def _read(suites: list[Mapping[str, Any]], root: str) -> Results:
    collected = Collected()
    for suite in suites:
        file = relative(str(suite["name"]), root)
        tests = suite["assertionResults"]
        for test in tests:
            titles = (file, *test["ancestorTitles"], test["title"])
            outcome = _OUTCOMES.get(test["status"], SKIPPED)
            collected.add(" > ".join(map(str, titles)), outcome, file)
        failed_itself = not any(test["status"] == "failed" for test in tests)
        if suite["status"] == "failed" and failed_itself:
            collected.add(file, FAILED, file)
    return collected.results()
