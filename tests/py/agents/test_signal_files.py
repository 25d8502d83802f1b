"""What a program leaves among the signals of its copy is read, and nothing beyond it."""

from __future__ import annotations

import os
from pathlib import Path

from loki.action.changes.change import Change
from loki.agents.command_agent import MOST, with_signals
from loki.people.signal import MAX_SIZE


def found(scratch: Path) -> dict[str, bytes | None]:
    return {e.path: e.after for e in with_signals(Change.nothing(), scratch).edits}


def test_signals_are_edits_and_other_files_of_loki_are_not(tmp_path: Path) -> None:
    folder = tmp_path / ".loki/signals"
    (folder / "HUMAN_REVIEW_NEEDED.d").mkdir(parents=True)
    (tmp_path / ".loki/config.toml").write_text("[execute]")
    (folder / "DOCS_NEEDED").write_bytes(b"why")
    (folder / "DRIFT_DETECTED.lock").touch()
    (folder / "HUMAN_REVIEW_NEEDED.d/a.json").write_bytes(b"{}")
    (folder / "HUMAN_APPROVED").write_bytes(b"{}")
    assert found(tmp_path) == {
        ".loki/signals/DOCS_NEEDED": b"why",
        ".loki/signals/HUMAN_APPROVED": b"{}",
        ".loki/signals/HUMAN_REVIEW_NEEDED.d/a.json": b"{}",
    }
    assert found(tmp_path / "none") == {}


def test_no_link_leads_out_and_nothing_blocks(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    (secret / "signals").mkdir(parents=True)
    for folder in (secret, secret / "signals"):
        (folder / "DOCS_NEEDED").write_text("secret")
    first, second, third = (tmp_path / name for name in ("loki", "signals", "file"))
    first.mkdir()
    (first / ".loki").symlink_to(secret)
    (second / ".loki").mkdir(parents=True)
    (second / ".loki/signals").symlink_to(secret)
    (third / ".loki/signals").mkdir(parents=True)
    (third / ".loki/signals/DOCS_NEEDED").symlink_to(secret / "DOCS_NEEDED")
    (third / ".loki/signals/HUMAN_REVIEW_NEEDED.d").symlink_to(secret)
    os.mkfifo(third / ".loki/signals/FEATURE_READY_x")
    assert [found(copy) for copy in (first, second, third)] == [{}, {}, {}]


def test_what_is_read_is_bounded(tmp_path: Path) -> None:
    folder = tmp_path / ".loki/signals"
    folder.mkdir(parents=True)
    with open(folder / "DOCS_NEEDED", "wb") as file:
        file.truncate(10**12)  # holds nothing, and would fill the memory
    for n in range(MOST + 50):
        (folder / f"FEATURE_READY_{n:03}").touch()
    edits = found(tmp_path)
    assert len(edits) == MOST
    assert len(edits[".loki/signals/DOCS_NEEDED"] or b"") == MAX_SIZE + 1
