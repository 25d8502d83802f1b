"""What a command starts in the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loki.action.checks.command_detection import Invocation
from loki.action.processes.command_line import split_command_line

SCRIPTS = {
    "test": "jest --ci",
    "unit": "npm run inner",
    "inner": "tsc && cross-env CI=1 vitest run",
    "given": "npm run inner -- --silent",
    "piped": "jest | tee log",
    "either": "jest || true",
    "loop": "npm run loop",
    "lint": "eslint .",
}


@pytest.fixture
def manifest(project: Path) -> Path:
    (project / "package.json").write_text(json.dumps({"scripts": SCRIPTS}))
    return project


@pytest.mark.parametrize(
    ("command", "program", "appended"),
    [
        ("jest -i", "jest -i", "jest -i --json"),
        ("CI=1 npx --no-install jest", "jest", "CI=1 npx --no-install jest --json"),
        ("npm test", "jest --ci", "npm test -- --json"),
        ("npm test -- --coverage", "jest --ci --coverage", "npm test -- --coverage --json"),
        ("npm run -s unit", "vitest run", "npm run -s unit -- -- --json"),
        ("npm run given", "vitest run --silent", "npm run given -- --json"),
        ("yarn test", "jest --ci", "yarn test --json"),
        ("yarn jest", "jest", "yarn jest --json"),
        ("pnpm run test", "jest --ci", "pnpm run test --json"),
        ("pnpm exec vitest", "vitest", "pnpm exec vitest --json"),
        ("poetry run pytest -q", "pytest -q", "poetry run pytest -q --json"),
    ],
)
def test_what_runs_and_how_it_gets_arguments(
    manifest: Path, command: str, program: str, appended: str
) -> None:
    invocation = Invocation.of(split_command_line(command), manifest)
    assert " ".join(invocation.program) == program
    assert " ".join(invocation.with_appended(["--json"])) == appended


@pytest.mark.parametrize("name", ["piped", "either", "missing"])
def test_what_is_not_plain_is_left_alone(manifest: Path, name: str) -> None:
    words = ("npm", "run", name)
    assert Invocation.of(words, manifest).program == words


def test_a_script_that_runs_itself_ends(manifest: Path) -> None:
    assert Invocation.of(("npm", "run", "loop"), manifest).program[0] == "npm"


def test_words_are_inserted_behind_the_lead_where_it_is_in_reach(manifest: Path) -> None:
    direct = Invocation.of(("A=1", "go", "test", "./..."), manifest)
    lead = direct.begins_with([("go",), ("go", "test"), ("go", "vet")])
    assert lead == ("go", "test")
    assert direct.with_inserted(lead, ["-json"]) == ("A=1", "go", "test", "-json", "./...")
    script = Invocation.of(("npm", "test", "--", "a.js"), manifest)
    assert script.with_inserted(("jest",), ["-x"]) == ("npm", "test", "--", "-x", "a.js")
    bare = Invocation.of(("npm", "test"), manifest)
    assert bare.with_inserted(("jest",), ["-x"]) == ("npm", "test", "--", "-x")
    assert (
        Invocation.of(("npm", "run", "lint"), manifest).with_inserted(("eslint",), ["-x"]) is None
    )


@pytest.mark.parametrize("content", ["", "[]", "{", '{"scripts": {"test": 3}}', '{"scripts": []}'])
def test_a_manifest_that_says_nothing(project: Path, content: str) -> None:
    (project / "package.json").write_text(content)
    assert Invocation.of(("npm", "test"), project).program == ("npm", "test")
