"""What manifests require, each format as its tools write it."""

from __future__ import annotations

import pytest

from loki.action.strategies.dependency.manifest_requirements import (
    READERS,
    Requirement,
    ecosystems,
    requirements,
    same_name,
)

BY_NAME = {known.name: known for known in ecosystems()}


def read(ecosystem: str, files: dict[str, str]) -> list[Requirement]:
    return requirements(BY_NAME[ecosystem], list(files), files.__getitem__)


def shown(found: list[Requirement]) -> list[str]:
    return [f"{r.path}:{r.line} {r} ({r.section})" for r in found]


def test_pyproject() -> None:
    text = """\
[project]
name = "shop"
dependencies = [
  "Requests[socks]>=2,<3; python_version > '3.8'",
  "PyYAML",
]
[project.optional-dependencies]
test = ["pytest>=8"]
[dependency-groups]
dev = [{include-group = "test"}, "ruff"]
[tool.poetry.dependencies]
python = "^3.10"
flask = {version = "^3", extras = ["async"]}
own = {path = "../own"}
[build-system]
requires = ["setuptools>=61"]
"""
    assert shown(read("python", {"pyproject.toml": text})) == [
        "pyproject.toml:4 Requests<3,>=2 (dependencies)",
        "pyproject.toml:5 PyYAML (dependencies)",
        "pyproject.toml:8 pytest>=8 (optional-dependencies.test)",
        "pyproject.toml:10 ruff (dependency-groups.dev)",
        "pyproject.toml:13 flask ^3 (dependencies)",
        "pyproject.toml:14 own path: ../own (dependencies)",
        "pyproject.toml:16 setuptools>=61 (build-system)",
    ]


def test_requirements_txt_and_setup_cfg() -> None:
    files = {
        "requirements-dev.txt": "-r requirements.txt\n# no\npytest==8.0 \\\n  --hash=sha256:abc\nmypy>=1  # why\n-e .\n",
        "setup.cfg": "[options]\ninstall_requires =\n  attrs>=20\n[options.extras_require]\ntest =\n  tox\n",
    }
    assert shown(read("python", files)) == [
        "requirements-dev.txt:3 pytest==8.0 (requirements)",
        "requirements-dev.txt:5 mypy>=1 (requirements)",
        "setup.cfg:3 attrs>=20 (install_requires)",
        "setup.cfg:6 tox (extras_require.test)",
    ]


def test_package_json() -> None:
    text = """\
{
  "name": "shop",
  "dependencies": {"@scope/pad": "^1.0.0", "left-pad": "github:x/y"},
  "devDependencies": {"vitest": "~1.2"},
  "peerDependencies": {"react": ">=17"}
}
"""
    assert shown(read("npm", {"package.json": text, "packages/a/package.json": "{}"})) == [
        "package.json:3 @scope/pad ^1.0.0 (dependencies)",
        "package.json:3 left-pad github:x/y (dependencies)",
        "package.json:4 vitest ~1.2 (devDependencies)",
        "package.json:5 react>=17 (peerDependencies)",
    ]


def test_go_mod() -> None:
    text = """\
module example.com/shop

go 1.22

require example.com/one v1.2.3
require (
	example.com/two/v2 v2.0.0 // indirect
	example.com/three v0.1.0
)
replace example.com/one => ../one
"""
    assert shown(read("go", {"go.mod": text})) == [
        "go.mod:5 example.com/one v1.2.3 (require)",
        "go.mod:7 example.com/two/v2 v2.0.0 (indirect)",
        "go.mod:8 example.com/three v0.1.0 (require)",
    ]


def test_cargo_toml() -> None:
    text = """\
[package]
name = "shop"
[dependencies]
serde = { version = "1", features = ["derive"] }
rand = "0.8"
[dev-dependencies]
own = { path = "../own" }
[target.'cfg(unix)'.dependencies]
libc = "0.2"
"""
    assert shown(read("cargo", {"Cargo.toml": text})) == [
        "Cargo.toml:4 serde 1 (dependencies)",
        "Cargo.toml:5 rand 0.8 (dependencies)",
        "Cargo.toml:7 own path: ../own (dev-dependencies)",
        "Cargo.toml:9 libc 0.2 (dependencies)",
    ]


@pytest.mark.parametrize("text", ["", "{", "[[[", "\x00", '{"dependencies": 3}', "[project]\ndependencies = 3\n",
                                  '[project]\noptional-dependencies = "x"\n', "[tool]\npoetry = 1\n", "[" * 50_000])  # fmt: skip
@pytest.mark.parametrize("format_", READERS)
def test_a_broken_manifest_requires_nothing(format_: str, text: str) -> None:
    for known in ecosystems():
        for manifest in known.manifests:
            if manifest.format == format_ and "*" not in manifest.file:
                assert requirements(known, [manifest.file], lambda _: text) == []


def test_names_that_mean_one_package() -> None:
    assert same_name("ruamel_yaml", "Ruamel.Yaml", "python")
    assert not same_name("Left-Pad", "left-pad", "npm")
