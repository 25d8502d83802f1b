"""auto_fix runs what mends such a failure, in order, until the check passes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from loki.action.checks.check import Check
from loki.action.processes.process import Finished
from loki.action.strategies.auto_fix import auto_fix
from loki.action.strategies.strategy_context import CannotHelp, Situation
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet
from support.strategy import situation, write
from support.toolchain import need

RUFF = f"{sys.executable} -m ruff"
UNUSED = "import os\nimport sys\n\nprint(sys.argv)\n"


def ran(
    check: str, path: str | None, root: Path, language: str | None = None
) -> list[tuple[str, ...]]:
    """The fix commands that are run for a check that fails whatever is done."""
    commands = []

    def run(command: tuple[str, ...]) -> tuple[Finished, tuple[str, ...]]:
        commands.append(command)
        return Finished(0), ("changed",)

    for program in ("eslint", "ruff"):
        (root / program).write_text("#!/bin/sh\n")
        (root / program).chmod(0o755)
    failure = Failure(message="a rule is broken", path=path, language=language)
    patterns = PatternSet.default()
    auto_fix(Situation(root, failure, Check.of(check), patterns, run, lambda _: False))
    return commands


def test_the_projects_own_command_comes_before_the_tools(tmp_path: Path) -> None:
    write(tmp_path, Makefile="fix:\n\ttrue\n")
    assert ran("./ruff check src", "src/cart.py", tmp_path) == [
        ("make", "fix"),
        ("./ruff", "check", "--fix", "src"),
    ]


@pytest.mark.parametrize("language", ["javascript", "python"])
def test_the_projects_own_command_is_for_its_own_language(tmp_path: Path, language: str) -> None:
    write(tmp_path, package_dot_json='{"scripts": {"lint:fix": "eslint --fix ."}}')
    (tmp_path / "npm").write_text("#!/bin/sh\n")
    commands = ran("./ruff check src", "src/cart.py", tmp_path, language)
    own = [command for command in commands if "lint:fix" in command]
    assert bool(own) is (language == "javascript" and shutil.which("npm") is not None)


def test_a_fix_is_for_the_files_of_the_check(tmp_path: Path) -> None:
    commands = ran("./eslint src test", "src/my cart.js", tmp_path)
    assert commands == [("./eslint", "--fix", "src", "test")]


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
    with pytest.raises(CannotHelp, match="changed nothing"):
        auto_fix(situation(tmp_path, f"{RUFF} check ."))


def test_what_is_half_mended_is_kept(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py="import os\n\nprint(undefined_name)\n")
    helped = auto_fix(situation(tmp_path, f"{RUFF} check ."))
    assert helped.files == ("a.py",)
    assert helped.done.endswith("the check still fails")


def test_without_the_file_that_it_needs_it_is_not_run(tmp_path: Path) -> None:
    patterns = PatternSet.loads(
        "version: 2\npatterns:\n  - {id: style, description: d, strategy: auto_fix,\n"
        "     fix_command: 'touch {file}', signals: [{literal: a rule is broken}]}\n"
    )
    failure = Failure.of("a rule is broken", pattern="style", patterns=patterns)
    made = Situation(tmp_path, failure, None, patterns, lambda _: (Finished(0), ()), lambda _: True)
    with pytest.raises(CannotHelp, match="needs a file"):
        auto_fix(made)


def test_a_missing_program_is_no_fix(tmp_path: Path) -> None:
    write(tmp_path, justfile="fix:\n  true\n")
    if shutil.which("just"):
        pytest.skip("just is installed here: it would be run")
    with pytest.raises(CannotHelp, match="cannot run 'just'"):
        auto_fix(situation(tmp_path, output="it is broken"))
