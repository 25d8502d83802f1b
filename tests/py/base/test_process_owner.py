"""Whose file it is, told from its name: a process that lives, one that has ended, a stranger's."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.base import locks
from loki.base.atomic_file import temporary_name


def test_a_number_that_is_given_anew_is_another_process(tmp_path: Path) -> None:
    """Same number, begun at another time."""
    where, number, began = locks.mark().split(".")
    assert locks.has_ended(f".loki-{where}.{number}.{int(began) - 1}-00.tmp") is True


def test_of_another_machine_container_or_boot_nobody_can_tell(tmp_path: Path) -> None:
    where, number, began = locks.mark().split(".")
    strangers = "0" * 8 if where != "0" * 8 else "1" * 8
    for mark in (f"{strangers}.{number}.{began}", f"{where}.{number}.0", "5d41402abc4b2a76"):
        assert locks.has_ended(f".loki-{mark}-00.tmp") is None


def test_a_process_that_is_not_shown_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    name = temporary_name()
    monkeypatch.setattr(locks, "_read", lambda _: "0")
    assert locks.has_ended(name) is False
