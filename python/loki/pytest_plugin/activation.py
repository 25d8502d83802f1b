"""Puts the rooms together where somebody asked for loki."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.pytest_plugin import failure_recognition
from loki.pytest_plugin.error_guard import Guard
from loki.pytest_plugin.options import ProjectRoot, options_of, project_root_of

if TYPE_CHECKING:
    import pytest


def activate(config: pytest.Config) -> None:
    """Register what listens to the run: the controller's side, or that of a worker of pytest-xdist."""
    guard = Guard()
    place = place_in(config)
    plugin: object
    if hasattr(config, "workerinput"):
        from loki.pytest_plugin.run_journal import PATH, Journal, TimerWatch
        from loki.pytest_plugin.xdist_worker import Worker

        plugin = Worker(config, guard, place)
        path = str(config.workerinput.get(PATH, ""))
        config.pluginmanager.register(TimerWatch(place, Journal(), path), "loki-trace")
    else:
        from loki.pytest_plugin.controller import Controller

        plugin = Controller(config, guard, place, options_of(config, vars(config.option)))
    config.pluginmanager.register(plugin, "loki-run")
    failure_recognition.register_traceback_text(config, guard)


def place_in(config: pytest.Config) -> ProjectRoot:
    """The place of the run that pytest was configured for."""
    return project_root_of(
        config.rootpath,
        is_configured=config.inipath is not None,
        started_in=config.invocation_params.dir,
    )
