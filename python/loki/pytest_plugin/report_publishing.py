"""Writes what a run came to where others read it: reports, and GitHub."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki.decision.suites.suite_summary import SuiteSummary

Warn = Callable[[str], None]


def write_reports(summary: SuiteSummary, paths: Iterable[Path], warn: Warn) -> None:
    """Write each report; one that cannot be written is a line of warning.

    Args:
        summary: what the run showed.
        paths: where to; the form is their suffix's.
        warn: told of what could not be written.
    """
    from loki.pytest_plugin import report_file

    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(report_file.render(summary, path.suffix), "utf-8", "backslashreplace")
        except OSError as error:
            warn(f"could not write the report {path}: {error.strerror or error}")


def tell_github(summary: SuiteSummary, environment: Mapping[str, str], warn: Warn) -> None:
    """Annotations and a step summary, where this is a step of GitHub Actions and something failed.

    Args:
        summary: what the run showed.
        environment: the process's variables.
        warn: told of what could not be written.
    """
    if environment.get("GITHUB_ACTIONS") != "true" or not (summary.causes or summary.rescued):
        return
    from loki.pytest_plugin import github

    for line in github.annotate(summary):
        sys.stdout.write(f"\n{line}" if line.startswith("::") else line)
    sys.stdout.write("\n")
    file = environment.get("GITHUB_STEP_SUMMARY")
    if not file:
        return
    try:
        with open(file, "a", encoding="utf-8", errors="backslashreplace") as step:
            step.write(github.step_summary(summary))
    except OSError as error:
        warn(f"could not write the step summary {file}: {error.strerror or error}")
