"""What many tests need: failures and patterns made to measure."""

from __future__ import annotations

import logging
import os
import platform
import re
import signal
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from loki.recognition.failure import Failure
from loki.recognition.pattern import Match, Pattern
from support import toolchain
from support.claude_session import ClaudeSession
from support.examples import examples
from support.loop import MakeFailure, MakePattern

# A shell that starts the tests in the background has them ignore SIGQUIT; children would inherit it.
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# How long an example takes says how busy the machine is.
settings.register_profile(
    "loki",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(100),
)
settings.load_profile("loki")

# Tests edit a project's files by hand, more than once a second: Python takes cached bytecode for
# current where size and whole second are equal. What loki edits itself is told apart, and tested.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

# What a make that runs the tests tells those below it: a make that tests run would say less than a user's.
for _name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(_name, None)

# Clients of services tell them the machine, which Python asks a program for, once a process.
platform.processor()

# Hundreds of tests run pytest as a check; what comes with a framework and is used by none costs each a second.
os.environ["PYTEST_ADDOPTS"] = "-p no:langsmith_plugin -p no:anyio"


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """What tests print and log of hostile data may hold lone surrogates, which workers cannot send."""
    return sendable((yield))


def sendable(value: Any) -> Any:
    """Data of reports in which every text can be encoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {sendable(key): sendable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(sendable, value))
    return value


@pytest.fixture(autouse=True)
def _own_log_and_signals() -> None:
    """A command or a hook that is called in this process takes both for good; the next test is another's.

    Before each test, not after: what a fixture of a whole module calls is done by then.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logger = logging.getLogger("loki")
    logger.handlers[:], logger.propagate = [], True
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def make_pattern() -> MakePattern:
    """A pattern; every attribute can be said, and has a plain default."""

    def make(id_: str = "type-error", **attributes: Any) -> Pattern:
        plain: dict[str, Any] = {
            "id": id_,
            "kind": id_,
            "strategy": "context_expand",
            "description": "a test's pattern",
            "max_auto_retries": 3,
        }
        return Pattern(**{**plain, **attributes})

    return make


@pytest.fixture
def make_failure() -> MakeFailure:
    """A specific failure, matched by a pattern at a given confidence where one is given."""

    def make(
        message: str = "Property 'theme' does not exist on type 'Preferences'",
        pattern: Pattern | None = None,
        confidence: float = 0.9,
        **fields: Any,
    ) -> Failure:
        known: dict[str, Any] = {"path": "src/preferences.ts", "line": 4, "error_code": "TS2339"}
        failure = Failure.of(message, **{**known, **fields})
        if pattern is None:
            return replace(failure, match=None, matches=())
        match = Match(pattern.id, pattern.kind, confidence, "high", 1.0, pattern.strategy)
        return replace(failure, match=match, matches=(match,))

    return make


_FOLDERS: Counter[str] = Counter()


def _folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """A new one. pytest's own number is found by listing all that are there: minutes in this suite."""
    while True:
        folder = factory.getbasetemp() / f"{name}{_FOLDERS[name]}"
        _FOLDERS[name] += 1
        with suppress(FileExistsError):  # of a test whose own name ends in a digit
            folder.mkdir(mode=0o700)
            return folder


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own, called as pytest's fixture of this name calls it."""
    return _folder(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30])


@pytest.fixture(autouse=True)
def _home_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test reads or writes the developer's own settings."""
    home = _folder(tmp_path_factory, "home")
    monkeypatch.setenv("HOME", str(home))
    for name, value in toolchain.environment().items():
        monkeypatch.setenv(name, value)
    for name in ("NO_PROXY", "no_proxy"):  # services of tests are on this machine
        monkeypatch.setenv(name, ",".join(filter(None, [os.environ.get(name), "127.0.0.1"])))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # The pytest of a project under test has the plugins that it asks for: ours take seconds a start.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty folder for a project."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def session(tmp_path: Path) -> ClaudeSession:
    """A session of Claude Code that has begun, in a project in git."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    made = ClaudeSession(root)
    made.start()
    return made
