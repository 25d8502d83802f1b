"""The import check: imports that a change adds or breaks and that lead nowhere, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.checks import imports
from loki.action.gates import import_check
from loki.action.gates.gate import ADVISORY, BLOCKING, Subject, Violation
from loki.action.strategies.dependency.installed import environment, interpreter_of_project

Edits = dict[str, "str | bytes | None"]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def check(root: Path, files: Edits, commands: tuple[str, ...] = ()) -> list[Violation]:
    tree = Tree.scan(root)
    return import_check.import_check(
        Subject(Change.write(files, commands).based_on(tree), root, tree)
    )


def told(found: list[Violation]) -> list[tuple[str, str | None, int | None, int | None]]:
    return [(v.severity, v.file, v.line, v.column) for v in found]


def make_venv(root: Path, modules: tuple[str, ...] = ("installed",), pth: str = "") -> None:
    """An environment of the project's own, without pip: a link to this Python and a folder."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = root / ".venv" / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (root / ".venv" / "bin").mkdir()
    base = Path(sys.base_prefix) / "bin" / version
    (root / ".venv" / "bin" / "python3").symlink_to(base if base.exists() else sys.executable)
    (root / ".venv" / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\n"
    )
    for module in modules:
        (packages / module).mkdir()
    if pth:
        (packages / "x.pth").write_text(pth)


# --- Python -----------------------------------------------------------------------------------------------


@pytest.fixture
def python_project(project: Path) -> Path:
    write(
        project,
        {
            "pkg/__init__.py": "",
            "pkg/helper.py": "def help(): ...\n",
            "pkg/app.py": "from pkg.helper import help\n",
            "tests/test_app.py": "from pkg import helper\n",
            "pyproject.toml": '[project]\nname = "pkg"\ndependencies = ["Py-Yet_Uninstalled", "pillow"]\n',
        },
    )
    make_venv(project)
    return project


def test_a_module_of_the_project_that_is_not_there(python_project: Path) -> None:
    text = "import os\nfrom pkg.helpr import help\nfrom . import helper\nfrom .gone import x\n"
    found = check(python_project, {"pkg/new.py": text})
    assert told(found) == [(BLOCKING, "pkg/new.py", 2, 6), (BLOCKING, "pkg/new.py", 4, 6)]
    first, second = found
    assert first.description == (
        "cannot find 'pkg.helpr': there is no pkg/helpr.py or pkg/helpr/__init__.py"
    )
    assert first.suggested_fix == "did you mean pkg/helper.py?"
    assert second.suggested_fix.startswith("create pkg/gone.py in the same change")


def test_a_module_that_the_environment_has_not(python_project: Path) -> None:
    (violation,) = check(
        python_project, {"pkg/new.py": "import installed.deep, json\nimport nope.x\n"}
    )
    assert told([violation]) == [(BLOCKING, "pkg/new.py", 2, 8)]
    assert violation.description == (
        "no module named 'nope': not in the project, and not where .venv/bin/python3 looks"
    )
    assert "'nope'" in violation.suggested_fix


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import nope\nexcept ImportError:\n    nope = None\n",
        "if TYPE_CHECKING:\n    import nope\n",
        "import yet_uninstalled\n",
        "import PIL.Image\n",
        "import sys, _typeshed, setuptools\n",
        "import tests.test_app\n",
        "import importlib\nimportlib.import_module('nope')\n",
    ],
)
def test_what_may_be_there_is_left_alone(python_project: Path, text: str) -> None:
    assert check(python_project, {"pkg/new.py": text}) == []


def test_what_the_same_change_brings_is_there(python_project: Path) -> None:
    toml = '[project]\nname = "pkg"\ndependencies = ["nope"]\n'
    assert check(python_project, {"pkg/new.py": "import nope\n", "pyproject.toml": toml}) == []
    assert check(python_project, {"pkg/new.py": "import pkg.late\n", "pkg/late.py": ""}) == []
    assert check(python_project, {"pkg/new.py": "import nope\n"}, ("pip install nope",)) == []


def test_what_was_there_before_is_none_of_the_changes(python_project: Path) -> None:
    write(python_project, {"pkg/old.py": "import nope\nfrom .gone import x\n"})
    assert (
        check(python_project, {"pkg/old.py": "import nope\nfrom .gone import x, y\nz = 1\n"}) == []
    )


def test_without_an_environment_of_its_own_nothing_outside_is_certain(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python3"
    python.write_text("""#!/bin/sh\necho '{"path": [], "modules": ["os"], "is_whole": true}'\n""")
    python.chmod(0o755)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (violation,) = check(project, {"a.py": "import surely_not_installed_anywhere\n"})
    assert violation.severity == ADVISORY


def test_code_in_pth_files_hides_what_is_there(project: Path) -> None:
    make_venv(project, pth="import some_hook\n")
    (site,) = (project / ".venv").rglob("site-packages")
    (site / "some_hook.py").write_text(
        "import sys\nclass Hook:\n    find_spec = lambda *_: None\nsys.meta_path.append(Hook)\n"
    )
    assert check(project, {"a.py": "import nope\n"}) == []


def test_folders_in_pth_files_are_looked_into(project: Path) -> None:
    write(project, {"elsewhere/module.py": ""})
    make_venv(project, pth=f"{project}/elsewhere\n# nothing\n")
    found = environment(project)
    assert found is not None
    assert found.may_have("module.x")
    assert not found.may_have("nope")


def test_the_finder_of_an_editable_install_lists_its_modules(project: Path) -> None:
    make_venv(project, pth="import __editable___x_finder; __editable___x_finder.install()\n")
    (site,) = (project / ".venv").rglob("site-packages")
    (site / "__editable___x_finder.py").write_text(
        "MAPPING: dict[str, str] = {'edited': '/x'}\ndef install() -> None: ...\n"
    )
    found = environment(project)
    assert found is not None
    assert found.may_have("edited")
    assert not found.may_have("nope")


def test_the_active_environment_counts_where_the_project_has_none(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_venv(tmp_path)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / ".venv"))
    assert interpreter_of_project(project) == str(tmp_path / ".venv" / "bin" / "python3")
    make_venv(project)
    assert interpreter_of_project(project) == str(project / ".venv" / "bin" / "python3")


def test_a_file_that_git_ignores_is_there(project: Path) -> None:
    write(project, {"pkg/__init__.py": "", ".gitignore": "made.py\n"})
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    found = check(
        project, {"pkg/a.py": "from . import x\nfrom .made import y\nfrom .gone import z\n"}
    )
    assert [v.line for v in found] == [3]


# --- deletions --------------------------------------------------------------------------------------------


def test_a_module_that_others_import_may_not_go(python_project: Path) -> None:
    found = check(python_project, {"pkg/helper.py": None})
    assert told(found) == [(BLOCKING, "pkg/app.py", 1, 6), (BLOCKING, "tests/test_app.py", 1, 6)]
    assert found[0].description == "'pkg.helper' leads to pkg/helper.py, which the change deletes"


def test_a_renamed_module_whose_importers_follow_is_fine(python_project: Path) -> None:
    edits: Edits = {
        "pkg/helper.py": None,
        "pkg/helpers.py": "def help(): ...\n",
        "pkg/app.py": "from pkg.helpers import help\n",
        "tests/test_app.py": "from pkg import helpers\n",
    }
    assert check(python_project, edits) == []


@pytest.mark.parametrize(
    "edits",
    [
        {"pkg/helper.py": None, "pkg/helper/__init__.py": "def help(): ...\n"},
        {"pkg/helper.py": None, "pkg/__init__.py": "helper = object()\n", "pkg/app.py": ""},
        {"pkg/helper.py": None, "pkg/app.py": None, "tests/test_app.py": None},
    ],
)
def test_what_takes_its_place_is_found(python_project: Path, edits: Edits) -> None:
    assert check(python_project, edits) == []


def test_deleting_what_javascript_or_go_imports(project: Path) -> None:
    write(
        project,
        {
            "src/a.ts": "import { b } from './b.js';\nexport type { T } from './types';\n",
            "src/b.ts": "export const b = 1;\n",
            "src/types.ts": "export type T = 1;\n",
            "go.mod": "module example.com/x\n",
            "main.go": 'package main\n\nimport "example.com/x/db"\n',
            "db/db.go": "package db\n",
        },
    )
    found = check(project, {"src/b.ts": None, "src/types.ts": None, "db/db.go": None})
    assert told(found) == [
        (BLOCKING, "main.go", 3, 8),
        (BLOCKING, "src/a.ts", 1, 19),
        (BLOCKING, "src/a.ts", 2, 24),
    ]
    assert check(project, {"db/db.go": None, "db/other.go": "package db\n"}) == []


def test_without_their_grammars_they_are_not_checked_and_that_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"pkg/__init__.py": "", "src/a.ts": "import './b.js';\n", "src/b.ts": ""})
    monkeypatch.setattr(imports, "is_installed", lambda _grammar: False)
    edits: Edits = {"src/b.ts": None, "main.go": 'package main\n\nimport "./db"\n'}
    tree = Tree.scan(project)
    subject = Subject(Change.write(edits).based_on(tree), project, tree)
    assert import_check.import_check(subject) == []
    assert [w.split(" files")[0] for w in subject.warnings] == [
        "import_check: .ts",
        "import_check: .go",
    ]
    assert all("pip install 'loki-core[gates]'" in w for w in subject.warnings)
    (python,) = check(project, {**edits, "pkg/a.py": "from .gone import x\n"})
    assert python.file == "pkg/a.py"


# --- JavaScript, TypeScript -------------------------------------------------------------------------------


@pytest.fixture
def node_project(project: Path) -> Path:
    write(
        project,
        {
            "package.json": '{"name": "app", "dependencies": {"declared": "1"}, "devDependencies": {"@types/estree": "1"}}',
            "src/util.ts": "",
            "vite.config.ts": "export default { resolve: { alias: { aliased: './src' } } }\n",
            "node_modules/installed/package.json": "{}",
            "node_modules/.package-lock.json": "{}",
            ".gitignore": "node_modules\n",
        },
    )
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    return project


def test_modules_and_packages_that_are_not_there(node_project: Path) -> None:
    text = "import a from './utl';\nimport b from 'nope/x';\nimport type { C } from 'types-nope';\n"
    found = check(node_project, {"src/a.ts": text})
    assert told(found) == [
        (BLOCKING, "src/a.ts", 1, 15),
        (BLOCKING, "src/a.ts", 2, 15),
        (ADVISORY, "src/a.ts", 3, 24),
    ]
    assert found[0].suggested_fix == "did you mean src/util.ts?"
    assert found[1].description == "no package 'nope': not in package.json, and not in node_modules"


@pytest.mark.parametrize(
    "name",
    [
        "./util", "./util.js", "declared", "declared/deep", "installed", "app", "fs", "fs/promises", "node:test",
        "estree", "aliased/x", "virtual:pwa", "@/components/x", "~/x", "$lib/x", "#internal", "./dist/made.js",
        "https://esm.sh/x", "raw-loader!./x",
    ],
)  # fmt: skip
def test_what_is_or_may_be_there_in_javascript(node_project: Path, name: str) -> None:
    assert check(node_project, {"src/a.ts": f"import x from '{name}';\n"}) == []


def test_what_may_never_run_in_javascript(node_project: Path) -> None:
    text = "try { require('nope') } catch {}\nconst a = () => import('nope');\n"
    assert check(node_project, {"src/a.js": text}) == []


def test_without_installed_packages_nothing_outside_is_certain(project: Path) -> None:
    write(project, {"package.json": '{"name": "a"}'})
    assert [v.severity for v in check(project, {"a.js": "import 'nope';\n"})] == [ADVISORY]


def test_without_a_manifest_or_with_another_system_nothing_is_said(node_project: Path) -> None:
    os.remove(node_project / "package.json")
    assert check(node_project, {"a.js": "import 'nope';\n"}) == []
    write(node_project, {"package.json": "{}", "deno.json": "{}"})
    assert check(node_project, {"a.js": "import 'nope';\n"}) == []


# --- Go ---------------------------------------------------------------------------------------------------

GO_MOD = "module example.com/x\n\ngo 1.22\n\nrequire (\n\tgithub.com/a/b v1.2.3\n\tgopkg.in/yaml.v3 v3.0.1 // indirect\n)\n"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("github.com/a/b/sub", []),
        ("gopkg.in/yaml.v3", []),
        ("fmt", []),
        ("example.com/x", []),
        ("example.com/x/gone", [3]),
        ("github.com/a/bc", [3]),
        ("github.com/v/vendored", []),
    ],
)
def test_go(project: Path, name: str, lines: list[int]) -> None:
    write(
        project,
        {
            "go.mod": GO_MOD,
            "main.go": "package x\n",
            "vendor/github.com/v/vendored/a.go": "package a\n",
        },
    )
    found = check(project, {"a.go": f'package x\n\nimport "{name}"\n'})
    assert [(v.line, v.column, v.severity) for v in found] == [
        (line, 8, BLOCKING) for line in lines
    ]
