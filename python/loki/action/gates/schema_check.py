"""The schema check: manifests and loki's own files hold what their readers expect.

package.json: https://docs.npmjs.com/cli/configuring-npm/package-json ; tsconfig.json:
https://www.typescriptlang.org/tsconfig ; pyproject.toml:
https://packaging.python.org/specifications/pyproject-toml/ and dependency-groups. Keys that are not
listed are left alone, as tools add their own, but for the table ``project``, whose keys are fixed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from packaging import requirements
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name, is_normalized_name
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    ValidationError,
    model_validator,
)

from loki import config
from loki.action.gates import data_parsers, gate
from loki.action.gates.gate import ADVISORY, BLOCKING, Subject, Violation
from loki.base.error import ConfigError
from loki.base.toml import place_of, tomllib
from loki.base.validation import complaint
from loki.base.yaml_document import Document, Strict, node_at
from loki.recognition.pattern import PatternSet

# --- What manifests look like, as far as every tool agrees --------------------------------------------

Texts: TypeAlias = Mapping[str, StrictStr]

_NPM_NAME = re.compile(r"(?:@[^/@\s]+/)?[^@\s._][^@\s]*")  # inner manifests hold "tool/part"


def _npm_name(name: str) -> str:
    if name and not _NPM_NAME.fullmatch(name):
        raise ValueError(f"found {name!r}, expected a package's name like 'tool' or '@scope/tool'")
    return name


def _python_name(name: str) -> str:
    if not is_normalized_name(canonicalize_name(name)):
        raise ValueError(f"found {name!r}, expected letters, digits, '.', '_' and '-'")
    return name


def _requirement(text: str) -> str:
    try:
        requirements.Requirement(text)
    except requirements.InvalidRequirement:
        reason = f"found {text!r}, expected a requirement like 'requests>=2'"
        raise ValueError(reason) from None
    return text


def _specifiers(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"found {text!r}, expected versions like '>=3.10'") from None
    return text


Requirement = Annotated[StrictStr, AfterValidator(_requirement)]


class PackageJson(BaseModel):
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


class _CompilerOptions(BaseModel):
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


class _Reference(BaseModel):
    path: StrictStr


class TsConfig(BaseModel):
    """tsconfig.json."""

    compilerOptions: _CompilerOptions | None = None  # noqa: N815
    extends: StrictStr | list[StrictStr] | None = None
    include: list[StrictStr] | None = None
    exclude: list[StrictStr] | None = None
    files: list[StrictStr] | None = None
    references: list[_Reference] | None = None


class _Person(Strict):
    name: StrictStr | None = None
    email: StrictStr | None = None


class _Project(Strict):
    model_config = ConfigDict(populate_by_name=True)

    name: Annotated[StrictStr, AfterValidator(_python_name)]
    version: StrictStr | None = None
    dynamic: tuple[StrictStr, ...] = ()
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


class _BuildSystem(Strict):
    requires: list[Requirement]
    build_backend: StrictStr | None = Field(None, alias="build-backend")
    backend_path: list[StrictStr] | None = Field(None, alias="backend-path")


class PyProject(Strict):
    """pyproject.toml."""

    project: _Project | None = None
    build_system: _BuildSystem | None = Field(None, alias="build-system")
    tool: Mapping[str, Any] | None = None
    dependency_groups: Mapping[str, list[Requirement | dict[str, StrictStr]]] | None = Field(
        None, alias="dependency-groups"
    )


# --- The check ----------------------------------------------------------------------------------------

GATE = "schema_check"

MAX_PROBLEMS = 20
"""Violations of one file that are told; chosen, not measured."""


def schema_check(subject: Subject) -> list[Violation]:
    """Find what is wrong in the shape of files whose shape is known.

    What was wrong in the same way before is only pointed out.
    """
    found = []
    for edit in subject.written:
        check = _check_for(edit.path)
        if check is None:
            continue
        before = subject.content_before(edit.path)
        known = {v.description for v in check(edit.path, before)} if before is not None else set()
        for violation in check(edit.path, edit.after or b"")[:MAX_PROBLEMS]:
            is_old = violation.description in known
            found.append(replace(violation, severity=ADVISORY) if is_old else violation)
    return found


_Check = Callable[[str, bytes], "list[Violation]"]


def _check_for(path: str) -> _Check | None:
    folder, _, name = path.rpartition("/")
    in_loki = f"/{folder}".endswith("/.loki")
    for pattern, check in _CHECKS.items():
        if fnmatchcase(f".loki/{name}" if in_loki else name, pattern):
            return check
    return None


# --- Manifests ----------------------------------------------------------------------------------------


Keys = tuple["str | int", ...]
Place = tuple["int | None", "int | None"]


def _by_model(
    model: type[BaseModel],
    parse: Callable[[str], Any],
    place: Callable[[str, Keys], Place],
    path: str,
    content: bytes,
) -> list[Violation]:
    try:
        text = content.decode("utf-8-sig")
        said = parse(text)
    except (ValueError, RecursionError):
        return []  # whether it parses is syntax_check's
    try:
        model.model_validate(said)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        found = {_keys(problem["loc"], said): problem for problem in reversed(problems)}
        return [_violation(path, text, keys, found[keys], place) for keys in reversed(found)]
    return []


def _violation(
    path: str, text: str, keys: Keys, problem: Any, place: Callable[[str, Keys], Place]
) -> Violation:
    where = ".".join(str(key) for key in keys)
    if problem["type"] == "missing":
        description = f"found no {where!r}, expected one"
    elif problem["type"] == "extra_forbidden":
        description = f"found {where!r}, which is no key there"
    else:
        description = f"{where or 'the file'}: {complaint(problem)}"
    # A key that is not known may be newer than this release.
    severity = ADVISORY if problem["type"] == "extra_forbidden" else BLOCKING
    return Violation(GATE, severity, path, description, *place(text, keys))


def _keys(location: tuple[int | str, ...], said: Any) -> Keys:
    """The part of a problem's location that is in the file; pydantic adds names of alternatives."""
    keys: list[str | int] = []
    for index, key in enumerate(location):
        is_last = index == len(location) - 1
        if isinstance(said, dict) and (key in said or is_last):
            said = said.get(key)
        elif isinstance(said, list) and isinstance(key, int) and key < len(said):
            said = said[key]
        else:
            continue
        keys.append(key)
    return tuple(keys)


def _json(text: str) -> Any:
    return json.loads(data_parsers.plain_json(text)) if text.strip() else {}


def _place_in_json(text: str, keys: Keys) -> Place:
    """Line and column of a value; JSON is YAML's flow style, but for tabs."""
    try:
        node = Document(data_parsers.plain_json(text).replace("\t", " "), "").root
    except ConfigError:
        return None, None
    node = node_at(node, keys)
    return node.start_mark.line + 1, node.start_mark.column + 1


def _place_in_toml(text: str, keys: Keys) -> Place:
    line, column = place_of(text, [key for key in keys if isinstance(key, str)])
    return line or 1, column or 1


# --- loki's own files ---------------------------------------------------------------------------------


def _own(read: Callable[[bytes, str], object], path: str, content: bytes) -> list[Violation]:
    try:
        read(content, path)
    except ConfigError as error:
        place = (error.line or None, error.column or None)
        return [Violation(GATE, BLOCKING, path, error.reason, *place)]
    return []


_CHECKS: Mapping[str, _Check] = {
    "package.json": partial(_by_model, PackageJson, _json, _place_in_json),
    "tsconfig*.json": partial(_by_model, TsConfig, _json, _place_in_json),
    "pyproject.toml": partial(_by_model, PyProject, tomllib.loads, _place_in_toml),
    ".loki/config.toml": partial(_own, config.loads),
    ".loki/failure-patterns.yml": partial(_own, PatternSet.loads),
    ".loki/learned-patterns.yml": partial(_own, PatternSet.loads),
    ".loki/verification-gates.yml": partial(_own, gate.read_gates),
}
