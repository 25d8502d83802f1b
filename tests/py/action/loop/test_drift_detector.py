"""What a change does, as drift is told from it; and what others say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.loop.conversation_context import DriftDetector, touched
from loki.action.loop.loop_events import ReportDrift
from loki.action.task import TaskSpec
from loki.config import DriftConfig
from loki.decision.drift import Touched
from loki.people.signals import Signals
from loki.stores.file_store import FileStore
from loki.testing import ManualClock

TASK = TaskSpec("t", "fix the login", scope=("app/",))
FAR = {f"game/{n}.py": "draw()\n" * 90 for n in "ab"}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for path, text in {
        "app/login.py": "from app import session\n\n\ndef login():\n    return None\n",
        "app/session.py": "x = 1\n",
        "game/a.py": "a = 1\n",
        "logo.png": "\0\0",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return Tree.scan(tmp_path)


def proposal(files: Any, *commands: str) -> Proposal:
    return Proposal(Change.write(files, commands=commands), agent="ann")


def test_kinds_of_edits(tree: Tree) -> None:
    edits = {
        "new.py": "x = 1\n",
        "app/login.py": None,
        "auth/login.py": "from app import session\n\n\ndef login():\n    return 1\n",
        "app/session.py": "x = 2\ny = 1\n",
        "logo.png": b"\0\1",
    }
    found = {one.path: one for one in touched(Change.write(edits), tree)}
    assert "app/login.py" not in found
    assert found["auth/login.py"] == Touched("auth/login.py", "renamed", 1, "app/login.py", True)
    assert found["new.py"] == Touched("new.py", lines=1, is_new=True)
    assert found["app/session.py"] == Touched("app/session.py", lines=2)
    assert found["logo.png"] == Touched("logo.png", lines=1)
    (gone,) = touched(Change.write({"app/session.py": None}), tree)
    assert gone == Touched("app/session.py", "deleted", 1)


def test_a_proposal_is_looked_at_once(tree: Tree) -> None:
    watch = DriftDetector(TASK)
    one = proposal(FAR)
    drifted = watch.look(one, tree)
    assert drifted is not None
    assert (drifted.count, watch.count) == (1, 1)
    assert watch.look(one, tree) is None
    assert [d.kind for d in watch.reported()] == ["outside-scope"]
    assert watch.reported() == ()


def test_settings(tree: Tree) -> None:
    assert DriftDetector(TASK, settings=DriftConfig(detect=False)).look(proposal(FAR), tree) is None
    small = proposal({"game/a.py": "a = 2\n"})
    assert DriftDetector(TASK).look(small, tree) is None


def test_lines_of_others_count_once_and_own_lines_never(tree: Tree, tmp_path: Path) -> None:
    signals = Signals(FileStore(tmp_path / ".loki"), ManualClock())
    old = {"task_id": "t", "detected_drift": "long ago"}
    signals.emit("DRIFT_DETECTED", data=old)
    watch = DriftDetector(TASK, signals)
    good = {"app/login.py": "def login():\n    return 1\n"}
    assert watch.look(proposal(good), tree) is None
    for severity in ("critical", "medium"):
        said = {"task_id": "t", "detected_drift": "x", "severity": severity, "drift_distance": 4}
        signals.emit("DRIFT_DETECTED", data=said)
    signals.emit("DRIFT_DETECTED", data={"task_id": "other", "detected_drift": "x"})
    drifted = watch.look(proposal(good), tree)
    assert drifted is not None
    assert [one.severity for one in drifted.drifts] == ["critical", "medium"]
    assert drifted.count == 2
    assert watch.look(proposal(good), tree) is None
    watch.report(ReportDrift(drifted.drifts, "ann"))
    own = watch.look(proposal(FAR), tree)
    assert own is not None
    watch.report(ReportDrift(own.drifts, "ann"))
    assert watch.look(proposal(good), tree) is None
    assert len(signals.pending("DRIFT_DETECTED")) == 5
