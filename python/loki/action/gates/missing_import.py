"""Whether what an import names outside of the project is absent; in doubt it is not."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from loki.action.checks.imports import Files, Import
from loki.action.checks.imports.node_resolution import package_of
from loki.action.checks.imports.project_files import above
from loki.action.gates import yaml_model
from loki.action.gates.python_environment import PythonEnvironment, environment

MAX_ALIAS_FILES = 200
"""Configurations in which a name is looked up; chosen, not measured."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Python(_Model):
    manifests: tuple[str, ...]
    packages: Mapping[str, str]
    always: frozenset[str]


class _JavaScript(_Model):
    builtin: frozenset[str]
    aliases: tuple[str, ...]
    other_systems: tuple[str, ...]


class _Knowledge(_Model):
    version: int
    built: tuple[str, ...]
    generated: tuple[str, ...]
    build_folders: frozenset[str]
    python: _Python
    javascript: _JavaScript


@cache
def knowledge() -> _Knowledge:
    """What this release knows; ``import-check.yml``."""
    path = Path(__file__).with_name("import-check.yml")
    return yaml_model.read(path.read_bytes(), path.name, _Knowledge)


@dataclass(frozen=True, slots=True)
class Absent:
    """Something that is imported and not there.

    Attributes:
        description: what is not there, and where it was looked for.
        suggested_fix: what to do about it.
        is_certain: the import fails in the environment that the checks use.
    """

    description: str
    suggested_fix: str
    is_certain: bool = True


class Absence:
    """Tells what is absent.

    Args:
        files: the project as the proposal would leave it.
        root: the project's folder.
    """

    def __init__(self, files: Files, root: Path) -> None:
        self.files, self.root = files, root

    def of(self, language: str, import_: Import, importer: str) -> Absent | None:
        """What is absent of an import that names nothing in the project; None: nothing is, or unknown."""
        if language == "python":
            return self._python(import_)
        if language == "javascript":
            return self._javascript(import_, importer)
        return self._go(import_, importer)

    # --- Python ------------------------------------------------------------------------------------------

    def _python(self, import_: Import) -> Absent | None:
        first, know = import_.module.split(".")[0], knowledge().python
        if first in know.always or self._environment is None:
            return None
        if self._environment.may_have(import_.module):
            return None
        names = {first, know.packages.get(first, first)}
        if any(_word(name).search(self._manifests) for name in names):
            return None
        place = self._environment.interpreter
        shown = place.removeprefix(f"{self.root}/")
        return Absent(
            f"no module named {first!r}: not in the project, and not where {shown} looks",
            f"import something that is there, or add {know.packages.get(first, first)!r} to the project's "
            "dependencies and install it",
            self._environment.is_own,
        )

    @functools.cached_property
    def _environment(self) -> PythonEnvironment | None:
        return environment(self.root)

    @functools.cached_property
    def _manifests(self) -> str:
        return _text(self.files, knowledge().python.manifests)

    # --- JavaScript --------------------------------------------------------------------------------------

    def _javascript(self, import_: Import, importer: str) -> Absent | None:
        know, name = knowledge().javascript, import_.module.split("?")[0]
        package = package_of(name)
        if ":" in name or "!" in name or package in know.builtin or not _PACKAGE.fullmatch(package):
            return None
        if any(system in self.files for system in know.other_systems):
            return None
        manifests = [
            m for f in above(importer) if (m := f"{f}/package.json".lstrip("/")) in self.files
        ]
        if (
            not manifests
            or self._is_declared(package, manifests)
            or self._is_installed(package, importer)
        ):
            return None
        if package in self._aliases or (
            package.startswith("@") and package.split("/")[0] + "/*" in self._aliases
        ):
            return None
        return Absent(
            f"no package {package!r}: not in {manifests[0]}, and not in node_modules",
            f"import something that is there, or add {package!r} to the dependencies in {manifests[0]}",
            not import_.is_type_only and self._has_node_modules(importer),
        )

    def _has_node_modules(self, importer: str) -> bool:
        """Whether packages are installed at all: else what others bring along is not known."""
        return any((self.root / folder / "node_modules").is_dir() for folder in above(importer))

    def _is_declared(self, package: str, manifests: Iterable[str]) -> bool:
        types = "@types/" + package.removeprefix("@").replace("/", "__")
        for manifest in manifests:
            said = self.files.json(manifest)
            if not said or said.get("name") == package:
                return True  # one that cannot be read may declare anything
            for key, names in said.items():
                is_list = key.endswith("ependencies") or key in {
                    "imports",
                    "browser",
                    "alias",
                    "_moduleAliases",
                }
                if (
                    is_list
                    and isinstance(names, (dict, list))
                    and (package in names or types in names)
                ):
                    return True
        return False

    def _is_installed(self, package: str, importer: str) -> bool:
        types = "@types/" + package.removeprefix("@").replace("/", "__")
        folders = [*(self.root / folder for folder in above(importer)), *self.root.parents]
        return any(
            (folder / "node_modules" / name).exists()
            for folder in folders
            for name in (package, types)
        )

    @functools.cached_property
    def _aliases(self) -> str:
        return _text(self.files, knowledge().javascript.aliases)

    # --- Go ------------------------------------------------------------------------------------------------

    def _go(self, import_: Import, importer: str) -> Absent | None:
        module = import_.module
        manifest = self.files.nearest("go.mod", importer)
        # A path of the standard library has no dot in its first part; which ones there are knows Go.
        if manifest is None or "." not in module.split("/")[0] or self.files.called("go.work"):
            return None
        folder = manifest.rpartition("/")[0]
        vendored = f"{folder}/vendor/{module}".lstrip("/")
        text = (self.files.read(manifest) or b"").decode("utf-8", "replace")
        required = _REQUIRED.findall(text)
        if self.files.is_folder(vendored) or (self.root / vendored).is_dir():
            return None
        if any(module == path or module.startswith(path + "/") for path in required):
            return None
        return Absent(
            f"no required module provides package {module!r}: it is not in {manifest}",
            f"import something that is there, or run `go get {module}`",
        )


_PACKAGE = re.compile(r"(?:@[a-z0-9-][a-z0-9._~-]*/)?[a-z0-9-][a-z0-9._~-]*")
_REQUIRED = re.compile(
    r"^[ \t]*(?:require[ \t]+|replace[ \t]+)?\"?([\w.-]+\.[\w./~-]+)\"?[ \t]+(?:v\d|=>)",
    re.MULTILINE,
)


def _word(name: str) -> re.Pattern[str]:
    """A package's name in a manifest: case, dashes, underscores and dots make no difference (PEP 503)."""
    parts = [re.escape(part) for part in re.split(r"[-_.]+", name) if part]
    return re.compile(r"(?<![A-Za-z0-9])(?:python-|py-?)?" + "[-_.]?".join(parts), re.IGNORECASE)


def _text(files: Files, globs: Iterable[str]) -> str:
    """The text of all files that fit one of the globs, by path or by name."""
    globs = tuple(globs)
    fitting = sorted(
        path
        for path in files.paths
        if any(fnmatchcase(path, g) or fnmatchcase(path.rpartition("/")[2], g) for g in globs)
    )
    contents = (files.read(path) or b"" for path in fitting[:MAX_ALIAS_FILES])
    return "\n".join(content[:1_000_000].decode("utf-8", "replace") for content in contents)
