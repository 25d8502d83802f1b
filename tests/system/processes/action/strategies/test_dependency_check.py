"""dependency_check: real environments, manifests of each language, conflicts, and what may be installed: with processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from loki.action.strategies.dependency_check import dependency_check
from support.strategy import situation, write

MANIFEST = '[project]\nname = "x"\nversion = "1"\ndependencies = [\n  "nosuchthing>=1",\n  "pytest<1",\n  "PyYAML>=5",\n]\n'


# --- Python ---------------------------------------------------------------------------------------


def test_required_and_not_installed(tmp_path: Path) -> None:
    write(tmp_path, pyproject_dot_toml=MANIFEST, app_dot_py="import nosuchthing\n")
    helped = dependency_check(situation(tmp_path, f"{sys.executable} app.py"))
    assert "pyproject.toml:5 requires nosuchthing>=1 (dependencies)" in helped.context
    assert f"installed in {sys.executable}: no" in helped.context
    assert "a person could run: pip install 'nosuchthing>=1'" in helped.context
    assert (helped.files, helped.acted) == ((), False)


def test_installed_in_a_version_that_does_not_fit(tmp_path: Path) -> None:
    write(tmp_path, pyproject_dot_toml=MANIFEST, app_dot_py="import pytest.nothing\n")
    helped = dependency_check(situation(tmp_path, f"{sys.executable} app.py"))
    installed = pytest.__version__
    assert f"conflict: pyproject.toml:6 wants pytest<1, installed is {installed}" in helped.context


def test_installed_metadata_tell_the_package(tmp_path: Path) -> None:
    """_pytest is of pytest, as its own files say."""
    write(tmp_path, app_dot_py="import _pytest.nothing\n")
    helped = dependency_check(situation(tmp_path, f"{sys.executable} app.py"))
    assert helped.context.startswith("missing: _pytest.nothing (package pytest)")
    assert "no manifest requires it; add pytest to one" in helped.context


def test_a_misspelt_name_is_pointed_at_and_not_installed(tmp_path: Path) -> None:
    write(tmp_path, pyproject_dot_toml=MANIFEST, app_dot_py="import nosuchthng\n")
    helped = dependency_check(
        situation(tmp_path, f"{sys.executable} app.py", allowed=["pip install *"])
    )
    assert "misspelt? there is nosuchthing (pyproject.toml:5)" in helped.context
    assert "loki does not install it, as the name may be misspelt" in helped.context
    assert not helped.acted


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import shop.carts", "- there is shop/cart.py; that is not where it is looked for"),
        ("from shop.cart import totl", "missing: totl in shop.cart, which is the project's own:\n- shop/cart.py has no totl; it has: total"),
        ("import helpers", "- there is shop/helpers.py; that is not where it is looked for"),
    ],
)  # fmt: skip
def test_the_projects_own_module(tmp_path: Path, line: str, said: str) -> None:
    write(
        tmp_path,
        app_dot_py=f"{line}\n",
        shop____init___dot_py="",
        shop__cart_dot_py="def total():\n    pass\n",
        shop__helpers_dot_py="",
    )
    helped = dependency_check(situation(tmp_path, f"{sys.executable} app.py"))
    assert said in helped.context


def test_modules_that_import_each_other(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_dot_py="from b import two\n\none = 1\n",
        b_dot_py="from a import one\n\ntwo = 2\n",
        app_dot_py="import a\n",
    )
    helped = dependency_check(situation(tmp_path, f"{sys.executable} app.py"))
    assert "a.py defines one: do two files import each other?" in helped.context


@pytest.fixture
def fake_pip(tmp_path: Path) -> Path:
    """A package that pip installs without a network: a folder of the machine, named by a script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    site = tmp_path / "site"
    script = (
        f'#!/bin/sh\nif [ "$2" = pip ]; then mkdir -p {site}; echo "x = 1" > {site}/nosuchthing.py; '
        f'echo "$@" >> {tmp_path}/ran; exit 0; fi\nPYTHONPATH={site} exec {sys.executable} "$@"\n'
    )
    (folder / "python3").write_text(script)
    (folder / "python3").chmod(0o755)
    return folder / "python3"


def test_what_is_allowed_is_installed_and_the_check_run_again(
    tmp_path: Path, fake_pip: Path
) -> None:
    root = tmp_path / "project"
    write(root, pyproject_dot_toml=MANIFEST, app_dot_py="import nosuchthing\n")
    helped = dependency_check(situation(root, f"{fake_pip} app.py", allowed=["pip install *"]))
    assert helped.done == "ran `pip install 'nosuchthing>=1'`; the check passes now"
    assert helped.acted
    assert (tmp_path / "ran").read_text() == "-m pip install nosuchthing>=1\n"


def test_an_install_that_fails_is_told(tmp_path: Path, fake_pip: Path) -> None:
    root = tmp_path / "project"
    write(root, pyproject_dot_toml=MANIFEST, app_dot_py="import nosuchthing\n")
    text = fake_pip.read_text().replace("exit 0", "echo no such version; exit 1")
    fake_pip.write_text(text)
    helped = dependency_check(situation(root, f"{fake_pip} app.py", allowed=["pip install *"]))
    assert "failed:\n  no such version" in helped.context
    assert not helped.acted


def test_nothing_of_the_project_is_executed(tmp_path: Path) -> None:
    """A module of the project named like one of the interpreter's own is not imported."""
    write(tmp_path, json_dot_py="open('executed', 'w')\n", app_dot_py="import nosuchthing\n")
    dependency_check(situation(tmp_path, f"{sys.executable} app.py"))
    assert not os.path.exists(tmp_path / "executed")


def missing_python(root: Path, module: str) -> str:
    return (
        f'Traceback (most recent call last):\n  File "{root}/app.py", line 1, in <module>\n'
        f"    import {module}\nModuleNotFoundError: No module named '{module}'\n"
    )


def test_the_package_has_another_name_than_the_module(tmp_path: Path) -> None:
    write(tmp_path, pyproject_dot_toml=MANIFEST, app_dot_py="import cv2\n")
    helped = dependency_check(situation(tmp_path, output=missing_python(tmp_path, "cv2")))
    assert helped.context.startswith("missing: cv2 (package opencv-python)\n")


def test_a_folder_without_code_is_no_module_of_the_projects_own(tmp_path: Path) -> None:
    write(tmp_path, docker__Dockerfile="FROM scratch", requirements_dot_txt="docker\n")
    output = "ModuleNotFoundError: No module named 'docker'\n"
    helped = dependency_check(situation(tmp_path, output=output, command="python -m app"))
    assert "the project's own" not in helped.context
    assert "requirements.txt:1 requires docker" in helped.context
