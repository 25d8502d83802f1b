"""``pytest --loki``: failures grouped by root cause, and what is known of each.

pytest imports this module in every project where loki is installed, so it imports nothing itself:
what it does is in the rooms beside it, which are loaded where a run asks for them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_IDLE = (
    "collectonly",
    "help",
    "setuponly",
    "setupplan",
    "showfixtures",
    "show_fixtures_per_test",
    "version",
)
"""Options with which pytest runs no test: there is nothing to know of such a run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name the options, on the command line and in the configuration."""
    group = parser.getgroup(
        "loki", "loki: failures grouped by root cause, and what is known of each"
    )
    group.addoption(
        "--loki",
        dest="loki",
        action="store_const",
        const=True,
        default=None,
        help="group failures by root cause, say which are new, recurring, flaky, infrastructure or "
        "broken, and remember the run in .loki/; a run without failures looks as before",
    )
    group.addoption(
        "--no-loki",
        dest="loki",
        action="store_const",
        const=False,
        help="switch it off for this run, whatever the configuration says",
    )
    group.addoption(
        "--loki-report",
        metavar="FILE",
        action="append",
        default=[],
        help="also write what was found to FILE: JSON where its name ends with .json, Markdown where "
        "it ends with .md (may be said several times; switches loki on)",
    )
    group.addoption(
        "--loki-fail-on",
        metavar="LABELS",
        default=None,
        help="only failures with these labels make the run fail: 'new' for those that this project "
        "has not had before, or several, separated by commas, of new, recurring, flaky, "
        "infrastructure, broken (default: all, as without loki; switches loki on)",
    )
    group.addoption(
        "--loki-quarantine",
        action="store_true",
        default=None,
        help="tests that are known to be flaky are still run and shown, but do not make the run "
        "fail (default: they do; switches loki on)",
    )
    parser.addini(
        "loki", "Group failures by root cause, as --loki does", type="bool", default=False
    )
    parser.addini(
        "loki_report", "Files to write, as --loki-report does", type="linelist", default=[]
    )
    parser.addini("loki_fail_on", "Which failures make a run fail, as --loki-fail-on", default="")
    parser.addini(
        "loki_quarantine", "Known flaky tests do not fail a run", type="bool", default=False
    )


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, None]:
    """Tell of a conftest.py that cannot be imported: pytest gives up, and configures nobody."""
    loaded = yield
    error = getattr(loaded, "exception", None)  # pluggy before 1.1 has none
    if isinstance(error, Exception):
        with suppress(Exception):  # what pytest has to say of it comes first
            said: Mapping[str, object] = vars(early_config.known_args_namespace)
            if _is_wanted(early_config, said):
                from loki.pytest_plugin import startup_failure

                startup_failure.report_startup_failure(early_config, said, error)


def pytest_configure(config: pytest.Config) -> None:
    """Switch it on where somebody asked for it."""
    if not _is_wanted(config, vars(config.option)):
        return
    from loki.pytest_plugin import activation

    activation.activate(config)


def _is_wanted(config: pytest.Config, options: Mapping[str, object]) -> bool:
    if options.get("loki") is False or any(options.get(name) for name in _IDLE):
        return False
    asked = ("loki", "loki_report", "loki_fail_on", "loki_quarantine")
    return any(options.get(name) for name in asked) or bool(config.getini("loki"))
