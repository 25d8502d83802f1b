"""Detection: a project's own commands, found where it says them, in a known order."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.checks.command_detection import KINDS, Command, detect, find_all, knowledge
from loki.action.checks.imports import Files


def project(texts: Mapping[str, str | Mapping[str, object]]) -> Files:
    def read(path: str) -> bytes:
        text = texts[path]
        return (text if isinstance(text, str) else json.dumps(text)).encode()

    return Files(texts, read)


def found(texts: Mapping[str, str | Mapping[str, object]]) -> dict[str, str]:
    return {kind: " ".join(command.words) for kind, command in detect(project(texts)).items()}


SCRIPTS = {
    "lint": "eslint .",
    "lint:fix": "eslint . --fix",
    "typecheck": "tsc --noEmit",
    "test": "vitest run",
    "build": "tsc -b && vite build",
    "format": "prettier --write .",
    "start": "node .",
}


@pytest.mark.parametrize(
    ("beside", "runner"),
    [
        ({}, "npm run"),
        ({"package-lock.json": ""}, "npm run"),
        ({"yarn.lock": ""}, "yarn run"),
        ({"pnpm-lock.yaml": ""}, "pnpm run"),
        ({"bun.lock": ""}, "bun run"),
    ],
)
def test_scripts_of_package_json(beside: dict[str, str], runner: str) -> None:
    assert found({"package.json": {"scripts": SCRIPTS}, **beside}) == {
        "lint": f"{runner} lint",
        "type": f"{runner} typecheck",
        "test": f"{runner} test",
        "build": f"{runner} build",
        "lint_fix": f"{runner} lint:fix",
        "format_fix": f"{runner} format",
    }


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        ({"test": 'echo "Error: no test specified" && exit 1'}, {}),
        ({"test": "jest --watch", "test:unit": "jest"}, {"test": "npm run test:unit"}),
        ({"lint": "eslint . --fix"}, {"lint_fix": "npm run lint"}),
        ({"format": "prettier --check ."}, {}),
        ({"test": 5}, {}),
    ],
)
def test_a_script_whose_text_says_otherwise(
    scripts: dict[str, object], expected: dict[str, str]
) -> None:
    assert found({"package.json": {"scripts": scripts}}) == expected


def test_targets_of_a_makefile() -> None:
    makefile = (
        "CC := gcc\ntest := 1\n.PHONY: lint test\nall: build\n\n"
        "lint typecheck: deps\n\tlint: no\ncheck:\n\ttrue\nbuild:: x.o\nformat :\n"
    )
    assert found({"Makefile": makefile}) == {
        "lint": "make lint",
        "type": "make typecheck",
        "test": "make check",
        "build": "make build",
        "format_fix": "make format",
    }


def test_recipes_of_a_justfile() -> None:
    justfile = 'set shell := ["sh"]\nname := "x"\n@lint:\n  ruff\ntest *args: build\n  pytest\nbuild target:\n  x\nfmt a="b":\n'
    assert found({"justfile": justfile}) == {
        "lint": "just lint",
        "test": "just test",
        "format_fix": "just fmt",
    }


PYPROJECT = """
[build-system]
requires = []
[tool.ruff.format]
[tool.mypy]
strict = true
[tool.pytest.ini_options]
[tool.poe.tasks]
lint = "ruff check"
"""


def test_tables_of_pyproject() -> None:
    assert found({"pyproject.toml": PYPROJECT}) == {
        "lint": "poe lint",
        "type": "mypy .",
        "test": "pytest",
        "build": "python -m build",
        "lint_fix": "ruff check --fix",
        "format_fix": "ruff format",
    }
    assert found({"pyproject.toml": '[tool.mypy]\nfiles = ["src"]\n'}) == {"type": "mypy"}
    assert found({"pyproject.toml": "[tool.mypy"}) == {}


WORKFLOW = """\
name: CI
on: push
jobs:
  check:
    steps:
      - uses: actions/checkout@v4
      - name: Install
        run: pip install -e .
      - run: |
          echo "pytest"
          uv run ruff check src
          mypy --strict src && echo fine
          CI=1 python -m pytest -q
      - run: go test ./...
        working-directory: go
      - run: tox -e ${{ matrix.env }}
      - run: npm run verify
"""


def test_what_ci_runs() -> None:
    commands = find_all(project({".github/workflows/ci.yml": WORKFLOW}))
    assert commands == (
        Command("lint", ("uv", "run", "ruff", "check", "src"), ".github/workflows/ci.yml:11"),
        Command(
            "lint_fix",
            ("uv", "run", "ruff", "check", "--fix", "src"),
            ".github/workflows/ci.yml:11",
        ),
        Command("test", ("CI=1", "python", "-m", "pytest", "-q"), ".github/workflows/ci.yml:13"),
    )


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (".travis.yml", "language: go\nscript: go test ./...\n", {"test": "go test ./..."}),
        (".travis.yml", "script:\n  - ruff check\n", {"lint": "ruff check", "lint_fix": "ruff check --fix"}),
        (".gitlab-ci.yml", "unit:\n  script:\n    - cargo test\n", {"test": "cargo test"}),
        (".gitlab-ci.yml", "unit:\n  script: !reference [a, b]\n", {}),
        (".travis.yml", "script: [", {}),
        (".travis.yml", "script: bash -c 'pytest -q'", {"test": "bash -c pytest -q"}),
        (".travis.yml", "script: sudo make check", {}),
        (".travis.yml", "script: bash -c 'sudo make check'", {}),
        (".travis.yml", "script: docker compose exec app pytest", {}),
    ],
)  # fmt: skip
def test_other_ci_systems(path: str, text: str, expected: dict[str, str]) -> None:
    assert found({path: text}) == expected


def test_ci_that_runs_the_projects_own_scripts() -> None:
    texts: dict[str, str | Mapping[str, object]] = {
        "package.json": {"scripts": {"test": "jest"}},
        ".travis.yml": "script:\n  - npm run test\n  - npm run other\n",
    }
    commands = [(c.kind, c.source) for c in find_all(project(texts))]
    assert commands == [("test", "package.json: scripts.test"), ("test", ".travis.yml:2")]


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("go.mod", {"lint", "test", "build", "format_fix"}),
        ("Cargo.toml", {"lint", "type", "test", "build", "lint_fix", "format_fix"}),
        ("eslint.config.mjs", {"lint", "lint_fix"}),
        ("tsconfig.json", {"type"}),
        ("sub/tsconfig.json", set()),
    ],
)
def test_files_that_a_tool_is_known_by(path: str, kinds: set[str]) -> None:
    assert set(found({path: ""})) == kinds


def test_the_order_of_places() -> None:
    texts: dict[str, str | Mapping[str, object]] = {
        "package.json": {"scripts": {"lint": "eslint"}},
        "Makefile": "lint:\ntest:\n",
        "justfile": "test:\nbuild:\n",
        "pyproject.toml": "[build-system]\n[tool.mypy]\n",
        ".travis.yml": "script: [mypy src, cargo build]\n",
        "Cargo.toml": "",
    }
    assert found(texts) == {
        "lint": "npm run lint",
        "type": "mypy .",
        "test": "make test",
        "build": "just build",
        "lint_fix": "cargo clippy --fix --allow-dirty --allow-staged",
        "format_fix": "cargo fmt",
    }


def test_a_person_has_the_last_word() -> None:
    files = project({"Makefile": "lint:\ntest:\n"})
    commands = detect(files, {"lint": ("sh", "lint.sh")})
    assert commands["lint"].words == ("sh", "lint.sh")
    assert commands["test"].words == ("make", "test")


def test_what_is_known_speaks_of_known_kinds() -> None:
    know = knowledge()
    tools = [kind for tool in (*know.tool_tables, *know.files) for kind in tool.commands]
    assert {*know.names, *know.unless, *know.commands, *tools} <= set(KINDS)


_PATHS = ["package.json", "Makefile", "justfile", "pyproject.toml", ".travis.yml", ".gitlab-ci.yml"]


@given(
    st.sampled_from(_PATHS),
    st.one_of(st.text(max_size=80), st.sampled_from(["a: &a [*a]", "[" * 500])),
)
def test_any_text_is_survived(path: str, text: str) -> None:
    assert set(found({path: text})) <= set(KINDS)
