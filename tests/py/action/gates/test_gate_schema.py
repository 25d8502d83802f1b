"""The schema check: manifests that no tool would take, at the exact place; silent on everything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates import schema_check
from loki.action.gates.gate import ADVISORY, BLOCKING, Subject, Violation
from support.paths import ROOT


def check(root: Path, files: dict[str, str | bytes | None]) -> list[Violation]:
    tree = Tree.scan(root)
    return schema_check.schema_check(Subject(Change.write(files).based_on(tree), root, tree))


@pytest.mark.parametrize(
    ("path", "text", "place", "description"),
    [
        ("package.json", '{\n  "name": "a b"\n}', (2, 11), "name: found 'a b', expected a package's name like"),
        ("package.json", '{\n\t"scripts": {\n\t\t"test": ["x"]\n\t}\n}', (3, 11), "scripts.test: found a list, expected text"),
        ("web/package.json", '{"dependencies": {"a": 1}}', (1, 24), "dependencies.a: found 1, expected text"),
        ("package.json", '{"type": "modul"}', (1, 10), "type: found 'modul', expected one of module, commonjs"),
        ("package.json", "[1]", (1, 1), "the file: found a list, expected a mapping"),
        ("tsconfig.json", '// shared\n{"compilerOptions": {"strict": "yes",}}', (2, 32), "compilerOptions.strict: found 'yes', expected true or false"),
        ("tsconfig.app.json", '{"compilerOptions": {"paths": {"@/*": "src/*"}}}', (1, 39), "compilerOptions.paths.@/*: found 'src/*', expected a list"),
        ("tsconfig.json", '{"references": [{}]}', (1, 17), "found no 'references.0.path', expected one"),
        ("pyproject.toml", '[project]\nversion = "1"\n', (1, 2), "found no 'project.name', expected one"),
        ("pyproject.toml", '# x\n[project]\nname = "a"\n', (2, 2), "project: found neither 'version' nor"),
        ("pyproject.toml", '[project]\nname = "a"\nversion = "1"\nrequires-python = "3.10+"\n', (4, 1), "project.requires-python: found '3.10+', expected versions like"),
        ("pyproject.toml", '[project]\nname = "-a"\nversion = "1"\n', (2, 1), "project.name: found '-a', expected letters"),
        ("pyproject.toml", '[project]\nname = "a"\nversion = "1"\ndependencies = [\n  "a>=1",\n  "b b",\n]\n', (4, 1), "project.dependencies.1: found 'b b', expected a requirement"),
        ("pyproject.toml", '[build-system]\nbuild-backend = "x"\n', (1, 2), "found no 'build-system.requires', expected one"),
        ("pyproject.toml", "[project.scripts]\na = 1\n[tool.x]\n[project]\nname = 'a'\nversion = '1'\n", (2, 1), "project.scripts.a: found 1, expected text"),
        ("pyproject.toml", "[dependency-groups]\ndev = 'pytest'\n", (2, 1), "dependency-groups.dev: found 'pytest', expected a list"),
        (".loki/config.toml", "[loop]\nmax_retries = -1\n", (2, 1), "loop.max_retries:"),
        (".loki/verification-gates.yml", "version: 1\nextend: global\n", (2, 1), "found unknown key 'extend', expected"),
        (".loki/failure-patterns.yml", "version: 7\n", (1, 10), "found 7"),
    ],
)  # fmt: skip
def test_what_no_tool_would_take(
    project: Path, path: str, text: str, place: tuple[int, int], description: str
) -> None:
    (violation,) = check(project, {path: text})
    assert (violation.gate, violation.severity, violation.file) == ("schema_check", BLOCKING, path)
    assert violation.description.startswith(description)
    assert (violation.line, violation.column) == place


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package.json", "{}"),
        ("package.json", '{"name": "@a/b", "version": "1.0.0", "private": "true", "bin": {"a": "./a"}, "own": 1}'),
        ("package.json", '{"type": "module", "exports": {".": {"import": "./a.js"}}, "workspaces": {"packages": ["a"]}}'),
        ("tsconfig.json", ""),
        ("tsconfig.json", '{"extends": ["a", "b"], "compilerOptions": {"lib": ["ES2022"], "plugins": [{}]}, /* */ }'),
        ("pyproject.toml", '[tool.poetry]\nname = "a"\n'),
        ("pyproject.toml", '[project]\nname = "a"\ndynamic = ["version"]\nrequires-python = ">=3.10,<4,!=3.11.*"\ndependencies = ["a", "b[x,y] >=1; python_version<\'3.11\'", "c @ https://x/y"]\n'),
        ("pyproject.toml", '[dependency-groups]\ndev = ["a", {include-group = "b"}]\n'),
        ("pyproject.toml", "[project"),
        ("package.json", "{"),
        ("verification-gates.yml", "nothing: of loki's"),
    ],
)  # fmt: skip
def test_what_is_right_or_none_of_ours_passes(project: Path, path: str, text: str) -> None:
    assert check(project, {path: text}) == []


def test_a_key_that_is_not_known_is_only_pointed_out(project: Path) -> None:
    text = '[project]\nname = "a"\nversion = "1"\nhomepage = "x"\n'
    (violation,) = check(project, {"pyproject.toml": text})
    assert (violation.severity, violation.line) == (ADVISORY, 4)
    assert violation.description == "found 'project.homepage', which is no key there"


def test_what_was_wrong_before_is_only_pointed_out(project: Path) -> None:
    (project / "package.json").write_text('{"name": "a b"}')
    found = check(project, {"package.json": '{"name": "a b", "type": "x"}'})
    assert [(v.severity, v.description.split(":")[0]) for v in found] == [
        (ADVISORY, "name"),
        (BLOCKING, "type"),
    ]


def test_this_projects_own_manifests_pass(project: Path) -> None:
    root = ROOT
    files: dict[str, str | bytes | None] = {
        name: (root / name).read_bytes() for name in ("pyproject.toml", "tests/node/package.json")
    }
    assert check(project, files) == []


_FILES = [
    "package.json",
    "tsconfig.json",
    "pyproject.toml",
    ".loki/config.toml",
    ".loki/verification-gates.yml",
]
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "scripts", "project", "paths", "compilerOptions", "x"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(
    st.sampled_from(_FILES),
    st.one_of(st.binary(max_size=80), _VALUES.map(lambda v: repr(v).encode())),
)
def test_any_bytes_are_survived(path: str, content: bytes) -> None:
    root = Path("/nowhere")
    edit = Change.write({path: content})
    for violation in schema_check.schema_check(Subject(edit, root, Tree(root, {}))):
        assert violation.line is None or violation.line >= 1
