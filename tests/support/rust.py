"""Rust in a test whose home is not the developer's."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest


def use_rust(monkeypatch: pytest.MonkeyPatch, target: Path) -> None:
    """The toolchain of the user, and a folder for what it builds."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    for name, folder in (("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")):
        if name not in os.environ:
            monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setenv("CARGO_TARGET_DIR", str(target))
