"""The traceback of a failing test in pytest's own long form, where ``--tb`` asks for another one.

What is recognized must not depend on what a person wants to read: with ``--tb=no`` there is no stack,
with ``--tb=short`` no sign of which line raised. Where the tests run, loki has pytest write it once
more, for failing tests only.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from loki.pytest_plugin.error_guard import Guard

_SUFFICES = frozenset({"auto", "long"})
"""Styles that say all that recognition reads."""

_TEXT = "_loki_traceback"


def register(config: pytest.Config, guard: Guard) -> None:
    """Have tracebacks written in full beside what pytest was told to print.

    Args:
        config: pytest's.
        guard: what keeps errors from the run.
    """
    if config.getoption("tbstyle", "auto") not in _SUFFICES:
        config.pluginmanager.register(_Writer(guard), "loki-tracebacks")


def taken(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The full traceback of a report, which goes no further with it; "" where it has none."""
    return str(vars(report).pop(_TEXT, ""))


class _Writer:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        """The report is made, by whomever."""
        result = yield
        if call.excinfo is not None and result.excinfo is None:
            self._guard(_attach, item, call.excinfo, result.get_result())


def _attach(
    item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], report: pytest.TestReport
) -> None:
    """Texts that pytest writes alike in every style, those without a stack, are left to it."""
    has_stack = getattr(excinfo.value, "pytrace", True) and not isinstance(
        excinfo.value, pytest.FixtureLookupError
    )
    if has_stack and report.outcome not in {"passed", "skipped"}:
        cut = getattr(item, "_traceback_filter", True)  # frames of pytest's own; no public name
        setattr(report, _TEXT, str(excinfo.getrepr(style="long", funcargs=True, tbfilter=cut)))
