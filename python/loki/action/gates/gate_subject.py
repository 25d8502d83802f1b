"""What a gate judges: a proposal, the project it is meant for, and what the configuration says."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loki.action.changes.change import Change, Edit
from loki.action.changes.tree import Tree
from loki.action.checks.imports.project_files import Files
from loki.action.gates.gate_config import GateSetting
from loki.base import glob


@dataclass
class Subject:
    """A proposal under judgement by one gate.

    Attributes:
        change: the proposal.
        root: the project's folder.
        tree: the project as it is.
        setting: what the configuration says of the gate.
        scope: globs of the files that the task is about; none: not said.
        warnings: why something was not looked at, and how to have it looked at.
        cancelled: ends what the gate runs when set.
    """

    change: Change
    root: Path
    tree: Tree
    setting: GateSetting = field(default_factory=GateSetting)
    scope: Sequence[str] = ()
    cancelled: threading.Event = field(default_factory=threading.Event)
    warnings: list[str] = field(default_factory=list)

    @property
    def written(self) -> list[Edit]:
        """The edits that give a file a content and are not excluded."""
        return [
            edit
            for edit in self.change.edits
            if edit.after is not None
            and edit.mode != "symlink"
            and not glob.matches(edit.path, self.setting.exclude)
        ]

    @functools.cached_property
    def before(self) -> Files:
        """The project as it is."""
        return Files.of(self.tree)

    @functools.cached_property
    def after(self) -> Files:
        """The project as the proposal would leave it."""
        return Files.of(self.tree, self.change)

    def content_before(self, path: str) -> bytes | None:
        """What a file holds now; None where there is none, or it is no plain file."""
        entry = self.tree.entries.get(path)
        return None if entry is None or entry.is_symlink else self.before.read(path)

    def warn(self, sentence: str) -> None:
        """Say once why something was not looked at."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)
