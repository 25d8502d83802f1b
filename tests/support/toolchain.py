"""Other languages' tools: tests that need one are skipped where it is not there, except in CI."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from support.paths import ROOT

NODE_MODULES = ROOT / "build" / "node" / "node_modules"
"""Where `make node` puts the JavaScript tools that tests run."""


HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)
"""The developer's own, whatever the variable says: a test has one of its own."""

KEPT = {
    "CARGO_HOME": HOME / ".cargo",
    "GOCACHE": HOME / ".cache" / "go-build",
    "GOPATH": HOME / "go",
    "RUSTUP_HOME": HOME / ".rustup",
}
"""What toolchains keep at home and take long to make anew: by the variable that says where it is."""


def environment() -> dict[str, str]:
    """Variables that lead toolchains back to what they keep, in a test with a home of its own."""
    return {name: str(path) for name, path in KEPT.items() if name not in os.environ}


def need(*programs: str) -> None:
    """Go on only where these programs are installed.

    Skips the test where one is missing; fails it where the environment variable ``CI`` is set, as
    there all of them must be.
    """
    for program in programs:
        if not _runs(program):
            missing(f"{program} is not installed, or does not run")


ASKED = {"cargo": "--version", "go": "version", "rustc": "--version"}
"""What may be there and be none, a proxy that finds no toolchain to hand over to, and what it is asked."""


@cache
def _runs(program: str) -> bool:
    if program not in ASKED:
        return shutil.which(program) is not None
    kept = {**os.environ, **environment()}
    try:
        asked = [program, ASKED[program]]
        return subprocess.run(asked, env=kept, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def need_node_modules(*packages: str) -> Path:
    """The folder of JavaScript packages, for a project's ``node_modules`` to link to."""
    need("node", "npm")
    for package in packages or ("typescript",):
        if not (NODE_MODULES / package).is_dir():
            missing(f"{package} is not installed: run `make node`")
    return NODE_MODULES


def missing(reason: str) -> None:
    """Skip the test, or fail it where the environment variable ``CI`` is set."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; CI must have it")
    pytest.skip(reason)
