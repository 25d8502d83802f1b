"""What manifests look like, as far as every tool agrees: wrong types and missing keys, no opinions.

package.json: https://docs.npmjs.com/cli/configuring-npm/package-json ; tsconfig.json:
https://www.typescriptlang.org/tsconfig ; pyproject.toml:
https://packaging.python.org/specifications/pyproject-toml/ and dependency-groups. Keys that are not
listed are left alone, as tools add their own, but for the table ``project``, whose keys are fixed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    model_validator,
)

Texts: TypeAlias = Mapping[str, StrictStr]

_NPM_NAME = re.compile(r"(?:@[^/@\s]+/)?[^@\s._][^@\s]*")  # inner manifests hold "tool/part"
_PEP_508_NAME = re.compile(r"[A-Z0-9](?:[A-Z0-9._-]*[A-Z0-9])?", re.IGNORECASE)
_REQUIREMENT = re.compile(r"\s*[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\]\s*)?(?:$|[@(;<>=!~])")
_SPECIFIERS = re.compile(r"\s*(?:(?:===|~=|==|!=|<=|>=|<|>)\s*[\w.*+!-]+\s*,?\s*)*")


def _npm_name(name: str) -> str:
    if name and not _NPM_NAME.fullmatch(name):
        raise ValueError(f"found {name!r}, expected a package's name like 'tool' or '@scope/tool'")
    return name


def _python_name(name: str) -> str:
    if not _PEP_508_NAME.fullmatch(name):
        raise ValueError(f"found {name!r}, expected letters, digits, '.', '_' and '-'")
    return name


def _requirement(text: str) -> str:
    if not _REQUIREMENT.match(text):
        raise ValueError(f"found {text!r}, expected a requirement like 'requests>=2'")
    return text


def _specifiers(text: str) -> str:
    if not _SPECIFIERS.fullmatch(text):
        raise ValueError(f"found {text!r}, expected versions like '>=3.10'")
    return text


Requirement = Annotated[StrictStr, AfterValidator(_requirement)]


class _Open(BaseModel):
    model_config = ConfigDict(extra="ignore")


class PackageJson(_Open):
    """package.json."""

    name: Annotated[StrictStr, AfterValidator(_npm_name)] | None = None
    version: StrictStr | None = None
    description: StrictStr | None = None
    main: StrictStr | Literal[False] | None = None
    type: Literal["module", "commonjs"] | None = None
    scripts: Texts | None = None
    bin: StrictStr | Texts | None = None
    files: list[StrictStr] | None = None
    dependencies: Texts | None = None
    devDependencies: Texts | None = None  # noqa: N815 - the file's own name
    peerDependencies: Texts | None = None  # noqa: N815
    optionalDependencies: Texts | None = None  # noqa: N815
    exports: StrictStr | dict[str, Any] | list[Any] | None = None
    workspaces: list[StrictStr] | dict[str, Any] | None = None


class _CompilerOptions(_Open):
    target: StrictStr | None = None
    module: StrictStr | None = None
    lib: list[StrictStr] | None = None
    strict: StrictBool | None = None
    baseUrl: StrictStr | None = None  # noqa: N815
    paths: Mapping[str, list[StrictStr]] | None = None
    outDir: StrictStr | None = None  # noqa: N815
    rootDir: StrictStr | None = None  # noqa: N815
    types: list[StrictStr] | None = None
    typeRoots: list[StrictStr] | None = None  # noqa: N815
    noEmit: StrictBool | None = None  # noqa: N815
    esModuleInterop: StrictBool | None = None  # noqa: N815
    skipLibCheck: StrictBool | None = None  # noqa: N815


class _Reference(_Open):
    path: StrictStr


class TsConfig(_Open):
    """tsconfig.json."""

    compilerOptions: _CompilerOptions | None = None  # noqa: N815
    extends: StrictStr | list[StrictStr] | None = None
    include: list[StrictStr] | None = None
    exclude: list[StrictStr] | None = None
    files: list[StrictStr] | None = None
    references: list[_Reference] | None = None


class _Person(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: StrictStr | None = None
    email: StrictStr | None = None


class _Project(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: Annotated[StrictStr, AfterValidator(_python_name)]
    version: StrictStr | None = None
    dynamic: list[StrictStr] = []
    description: StrictStr | None = None
    readme: StrictStr | dict[str, Any] | None = None
    requires_python: Annotated[StrictStr, AfterValidator(_specifiers)] | None = Field(
        None, alias="requires-python"
    )
    license: StrictStr | dict[str, Any] | None = None
    license_files: list[StrictStr] | dict[str, Any] | None = Field(None, alias="license-files")
    authors: list[_Person] | None = None
    maintainers: list[_Person] | None = None
    keywords: list[StrictStr] | None = None
    classifiers: list[StrictStr] | None = None
    urls: Texts | None = None
    scripts: Texts | None = None
    gui_scripts: Texts | None = Field(None, alias="gui-scripts")
    entry_points: Mapping[str, Texts] | None = Field(None, alias="entry-points")
    dependencies: list[Requirement] | None = None
    optional_dependencies: Mapping[str, list[Requirement]] | None = Field(
        None, alias="optional-dependencies"
    )
    import_names: list[StrictStr] | None = Field(None, alias="import-names")
    import_namespaces: list[StrictStr] | None = Field(None, alias="import-namespaces")

    @model_validator(mode="after")
    def _has_version(self) -> _Project:
        if self.version is None and "version" not in self.dynamic:
            raise ValueError("found neither 'version' nor 'dynamic = [\"version\"]', expected one")
        return self


class _BuildSystem(BaseModel):
    model_config = ConfigDict(extra="forbid")

    requires: list[Requirement]
    build_backend: StrictStr | None = Field(None, alias="build-backend")
    backend_path: list[StrictStr] | None = Field(None, alias="backend-path")


class PyProject(BaseModel):
    """pyproject.toml."""

    model_config = ConfigDict(extra="forbid")

    project: _Project | None = None
    build_system: _BuildSystem | None = Field(None, alias="build-system")
    tool: Mapping[str, Any] | None = None
    dependency_groups: Mapping[str, list[Requirement | dict[str, StrictStr]]] | None = Field(
        None, alias="dependency-groups"
    )
