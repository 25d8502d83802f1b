"""auto_fix runs what mends such a failure, in order, until the check passes: with processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from loki.action.strategies.auto_fix import auto_fix
from loki.action.strategies.strategy_context import StrategyNotApplicable
from support.strategy import situation, write
from support.toolchain import need

RUFF = f"{sys.executable} -m ruff"
UNUSED = "import os\nimport sys\n\nprint(sys.argv)\n"


def test_a_real_fix_cures_the_check(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py=UNUSED)
    helped = auto_fix(situation(tmp_path, f"{RUFF} check ."))
    assert helped.files == ("a.py",)
    assert helped.done.endswith("changed a.py; the check passes now")
    assert "import os" not in (tmp_path / "a.py").read_text()


def test_what_only_looks_is_left_out_of_the_fix(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py="x = {  'a':1 }\n")
    helped = auto_fix(situation(tmp_path, f"{RUFF} format --check ."))
    assert (tmp_path / "a.py").read_text() == 'x = {"a": 1}\n'
    assert "--check" not in helped.done


def test_it_goes_on_where_a_fix_did_not_cure(tmp_path: Path) -> None:
    """The project's own command is no use here; the tool's is."""
    write(tmp_path, a_dot_py=UNUSED)
    write(tmp_path, Makefile="fix:\n\ttouch junk.txt\n")
    helped = auto_fix(situation(tmp_path, f"{RUFF} check ."))
    assert helped.files == ("junk.txt", "a.py")
    assert "the check passes now" in helped.done


def test_it_stops_where_the_check_passes(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py=UNUSED)
    write(tmp_path, Makefile="fix:\n\tsed -i '/import os/d' a.py\n")
    helped = auto_fix(situation(tmp_path, f"{RUFF} check ."))
    assert "--fix" not in helped.done
    assert "the check passes now" in helped.done


def test_a_check_that_is_a_script_is_mended_by_what_it_runs(tmp_path: Path) -> None:
    need("npm")
    write(tmp_path, package_dot_json='{"scripts": {"lint": "eslint src"}}')
    program = tmp_path / "node_modules/.bin/eslint"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "a rule is broken"\ncase "$*" in *--fix*) touch fixed;; esac\n'
                       "test -e fixed\n")  # fmt: skip
    program.chmod(0o755)
    helped = auto_fix(situation(tmp_path, "npm run lint"))
    ran = "ran `./node_modules/.bin/eslint --fix src`: changed fixed; the check passes now"
    assert helped.done == ran


def test_another_version_takes_another_option(tmp_path: Path) -> None:
    """Biome before 1.8 knows no --write; what it knows instead is tried next."""
    write(
        tmp_path, biome='#!/bin/sh\ncase "$*" in *--apply*) touch fixed;; *) test -e fixed;; esac\n'
    )
    (tmp_path / "biome").chmod(0o755)
    helped = auto_fix(situation(tmp_path, "./biome check src"))
    assert helped.done == "ran `./biome check --apply src`: changed fixed; the check passes now"


def test_what_cannot_be_mended_is_said(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py="print(undefined_name)\n")
    with pytest.raises(StrategyNotApplicable, match="changed nothing"):
        auto_fix(situation(tmp_path, f"{RUFF} check ."))


def test_what_is_half_mended_is_kept(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py="import os\n\nprint(undefined_name)\n")
    helped = auto_fix(situation(tmp_path, f"{RUFF} check ."))
    assert helped.files == ("a.py",)
    assert helped.done.endswith("the check still fails")
