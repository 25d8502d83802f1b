"""What a run was asked for, on the command line and in the configuration."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUFFIXES = (".json", ".md", ".markdown")
"""What a report's name may end with; `loki.pytest_plugin.report_file` writes these."""


@dataclass(frozen=True)
class Options:
    """What a run was asked for.

    Attributes:
        reports: files to write.
        fail_on: labels of failures that make the run fail; empty: all do.
        quarantine: known flaky tests do not make it fail.
    """

    reports: tuple[Path, ...] = ()
    fail_on: tuple[str, ...] = ()
    quarantine: bool = False


def options_of(config: pytest.Config, said: Mapping[str, object]) -> Options:
    """What a run was asked for.

    Args:
        config: pytest's.
        said: options of its command line, by name.

    Raises:
        pytest.UsageError: a report's name has another ending, or there is no such label.
    """
    wanted = said.get("loki_fail_on") or config.getini("loki_fail_on")
    quarantine = said.get("loki_quarantine")
    return Options(
        tuple(_reports(config, said)),
        _labels(str(wanted)),
        bool(config.getini("loki_quarantine") if quarantine is None else quarantine),
    )


def _labels(said: str) -> tuple[str, ...]:
    wanted = tuple(name.strip() for name in said.split(",") if name.strip())
    if wanted:
        from loki.decision.suites.suite_labels import LABELS

        for name in wanted:
            if name not in LABELS:
                raise pytest.UsageError(
                    f"--loki-fail-on: found {name!r}, expected one or more of {', '.join(LABELS)}"
                )
    return wanted


def _reports(config: pytest.Config, said: Mapping[str, object]) -> list[Path]:
    """Files on the command line are relative to where pytest was started, others to its root."""
    started = config.invocation_params.dir
    names = cast("Sequence[str]", said.get("loki_report") or ())
    typed = [started / os.path.expanduser(name) for name in names]
    reports = typed or [config.rootpath / name for name in config.getini("loki_report")]
    for path in reports:
        if path.suffix.lower() not in SUFFIXES:
            raise pytest.UsageError(
                f"--loki-report: {path.name} should end with one of {', '.join(SUFFIXES)}"
            )
    return reports
