"""Whoever is told learns of the project, also where the work is done in a copy of it."""

from __future__ import annotations

from pathlib import Path

import loki
from loki.execution.notify_channels import NotifyCommand, notifier


def test_a_copy_is_not_what_people_are_told_of(tmp_path: Path) -> None:
    project, copy = tmp_path / "p", tmp_path / "copy"
    (project / ".loki").mkdir(parents=True)
    (project / ".loki/config.toml").write_text('[notify]\ncommand = "true"\n')
    copy.mkdir()
    told = notifier(loki.Workspace(copy, folder=project / ".loki"))
    assert told.project == str(project)
    (channel,) = told.channels
    assert isinstance(channel, NotifyCommand)
    assert channel.root == project
