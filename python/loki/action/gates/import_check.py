"""The import check: what a proposal imports is there, and what it takes away nobody imports any more.

Only what the change adds or breaks counts, and where it cannot be known nothing is said: imports under
a condition, modules made by a build, packages that a manifest names and nobody has installed yet.
"""

from __future__ import annotations

import difflib
import functools
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from loki.action.changes.git import git
from loki.action.checks.imports import (
    FOUND,
    MISSING,
    Files,
    Import,
    Location,
    imports_of,
    language_of,
    locate,
    unread,
)
from loki.action.checks.imports.node_resolution import package_of
from loki.action.checks.imports.project_files import above
from loki.action.gates.gate import ADVISORY, BLOCKING, Subject, Violation
from loki.action.strategies.dependency.installed import PythonEnvironment, environment
from loki.action.strategies.dependency.manifest_requirements import of_language
from loki.base import glob
from loki.base.grammar import INSTALL
from loki.base.yaml_document import Strict, read_beside

# --- Whether what an import names outside of the project is absent ------------------------------------

MAX_ALIAS_FILES = 200
"""Configurations in which a name is looked up; chosen, not measured."""


class _Python(Strict):
    manifests: tuple[str, ...]
    always: frozenset[str]


class _JavaScript(Strict):
    builtin: frozenset[str]
    aliases: tuple[str, ...]
    other_systems: tuple[str, ...]


class _Knowledge(Strict):
    version: int
    built: tuple[str, ...]
    generated: tuple[str, ...]
    build_folders: frozenset[str]
    python: _Python
    javascript: _JavaScript


@cache
def knowledge() -> _Knowledge:
    """What this release knows; ``import-check.yml``."""
    return read_beside(__file__, "import-check.yml", _Knowledge)


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

    # --- Python ---

    def _python(self, import_: Import) -> Absent | None:
        first, know = import_.module.split(".")[0], knowledge().python
        if first in know.always or self._environment is None:
            return None
        if self._environment.may_have(import_.module):
            return None
        package = of_language("python")[0].packages.get(first, first)
        names = {first, package}
        if any(_word(name).search(self._manifests) for name in names):
            return None
        place = self._environment.interpreter
        shown = place.removeprefix(f"{self.root}/")
        return Absent(
            f"no module named {first!r}: not in the project, and not where {shown} looks",
            f"import something that is there, or add {package!r} to the project's "
            "dependencies and install it",
            self._environment.is_own,
        )

    @functools.cached_property
    def _environment(self) -> PythonEnvironment | None:
        return environment(self.root)

    @functools.cached_property
    def _manifests(self) -> str:
        return _text(self.files, knowledge().python.manifests)

    # --- JavaScript ---

    def _javascript(self, import_: Import, importer: str) -> Absent | None:
        know, name = knowledge().javascript, import_.module.split("?")[0]
        package = package_of(name)
        if ":" in name or "!" in name or package in know.builtin or not _PACKAGE.fullmatch(package):
            return None
        if any(system in self.files for system in know.other_systems):
            return None
        paths = (posixpath.join(folder, "package.json") for folder in above(importer))
        manifests = [path for path in paths if path in self.files]
        names = {package, "@types/" + package.removeprefix("@").replace("/", "__")}
        if not manifests or any(self._declares(manifest, package, names) for manifest in manifests):
            return None
        if self._is_installed(names, importer):
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

    def _declares(self, manifest: str, package: str, names: set[str]) -> bool:
        said = self.files.json(manifest)
        if not said or said.get("name") == package:
            return True  # one that cannot be read may declare anything
        return any(
            isinstance(declared, (dict, list)) and any(name in declared for name in names)
            for key, declared in said.items()
            if key.endswith("ependencies") or key in _DECLARE
        )

    def _is_installed(self, names: set[str], importer: str) -> bool:
        folders = [*(self.root / folder for folder in above(importer)), *self.root.parents]
        return any((f / "node_modules" / name).exists() for f in folders for name in names)

    @functools.cached_property
    def _aliases(self) -> str:
        return _text(self.files, knowledge().javascript.aliases)

    # --- Go ---

    def _go(self, import_: Import, importer: str) -> Absent | None:
        module = import_.module
        manifest = self.files.nearest("go.mod", importer)
        # A path of the standard library has no dot in its first part; which ones there are knows Go.
        if manifest is None or "." not in module.split("/")[0] or self.files.called("go.work"):
            return None
        folder = manifest.rpartition("/")[0]
        vendored = posixpath.join(folder, "vendor", module)
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


_DECLARE = frozenset({"imports", "browser", "alias", "_moduleAliases"})
"""Keys of package.json that name packages, beside its dependencies."""

_PACKAGE = re.compile(r"(?:@[a-z0-9-][a-z0-9._~-]*/)?[a-z0-9-][a-z0-9._~-]*")
_REQUIRED = re.compile(
    r"^[ \t]*(?:require[ \t]+|replace[ \t]+)?\"?([\w.-]+\.[\w./~-]+)\"?[ \t]+(?:v\d|=>)",
    re.MULTILINE,
)


def _word(name: str) -> re.Pattern[str]:
    """A package's name in a manifest: case, dashes, underscores and dots make no difference (PEP 503)."""
    parts = [re.escape(part) for part in re.split(r"[-_.]+", name) if part]
    return re.compile(r"(?<![A-Za-z0-9])(?:python-|py-?)?" + "[-_.]?".join(parts), re.IGNORECASE)


def _text(files: Files, globs: Sequence[str]) -> str:
    """The text of all files that fit one of the globs, by path or by name."""
    fitting = sorted(
        path
        for path in files.paths
        if any(fnmatchcase(path, g) or fnmatchcase(path.rpartition("/")[2], g) for g in globs)
    )
    contents = (files.read(path) or b"" for path in fitting[:MAX_ALIAS_FILES])
    return "\n".join(content[:1_000_000].decode("utf-8", "replace") for content in contents)


# --- The check ----------------------------------------------------------------------------------------

GATE = "import_check"

MAX_IMPORTERS = 20_000
"""Files that are looked at for what a deletion breaks; chosen, not measured."""


def import_check(subject: Subject) -> list[Violation]:
    """Find imports, added or broken by the change, that lead nowhere."""
    check = _Check(subject, Absence(subject.after, subject.root))
    for edit in subject.change.edits:
        if unread(edit.path):
            kind = posixpath.splitext(edit.path)[1]
            subject.warn(
                f"{GATE}: {kind} files are not checked: their grammar is not here; install it: {INSTALL}"
            )
    found = list(check.broken_importers())
    for edit in subject.written:
        found += check.added(edit.path, edit.after or b"")
    return found


@dataclass
class _Check:
    subject: Subject
    absence: Absence

    def added(self, path: str, content: bytes) -> Iterator[Violation]:
        """What is wrong with the imports that a proposed file has and did not have."""
        language = language_of(path)
        if language is None or glob.matches(path, knowledge().built):
            return
        before = self.subject.content_before(path)
        known = {i.written for i in imports_of(path, before)} if before is not None else set()
        for import_ in imports_of(path, content):
            if import_.written in known or import_.is_optional:
                continue
            location = locate(import_, path, self.subject.after)
            if location.state == MISSING:
                if not self._may_be_made(location):
                    yield self._missing(path, import_, location)
            # What a command installs afterwards cannot be known now.
            elif location.state != FOUND and not self.subject.change.commands:
                absent = self.absence.of(language, import_, path)
                if absent is not None and not (language == "python" and import_.is_type_only):
                    severity = BLOCKING if absent.is_certain else ADVISORY
                    fix = absent.suggested_fix
                    yield _violation(path, import_, severity, absent.description, fix)

    def _missing(self, path: str, import_: Import, location: Location) -> Violation:
        expected = location.expected
        description = f"cannot find {location.missing!r}"
        if expected:
            more = f" or {expected[1]}" if len(expected) > 1 else ""
            description += f": there is no {expected[0]}{more}"
        return _violation(path, import_, BLOCKING, description, self._nearest(location))

    def _nearest(self, location: Location) -> str:
        """The file that may have been meant."""
        if not location.expected:
            return ""
        folder, _, name = location.expected[0].rpartition("/")
        stems = {posixpath.splitext(n)[0]: n for n in sorted(self.subject.after.names(folder))}
        close = difflib.get_close_matches(posixpath.splitext(name)[0], stems, n=1)
        if close:
            return f"did you mean {posixpath.join(folder, stems[close[0]])}?"
        return f"create {location.expected[0]} in the same change, or import what is there"

    def _may_be_made(self, location: Location) -> bool:
        """Whether what is missing may be there all the same: ignored by git, or made by a build."""
        names = [path for path in location.expected if "*" not in path]
        root = self.subject.root
        if any(os.path.lexists(root / name) and name not in self._deleted for name in names):
            return True
        if any(self._is_build_folder(folder) for folder in above(location.expected[0])):
            return True
        if glob.matches(location.expected[0], knowledge().generated):
            return True
        is_git = self.subject.tree.is_git
        return is_git and bool(names) and bool(git(str(root), "check-ignore", "--", *names))

    def _is_build_folder(self, folder: str) -> bool:
        name = folder.rpartition("/")[2]
        return name in knowledge().build_folders and not self.subject.before.is_folder(folder)

    # --- What a deletion breaks ---

    @functools.cached_property
    def _deleted(self) -> dict[str, str]:
        """Deleted paths to the word by which others would import them."""
        words = {}
        for edit in self.subject.change.edits:
            language = language_of(edit.path)
            if edit.after is None and language and edit.path in self.subject.tree.entries:
                folder, name = posixpath.split(edit.path)
                stem = name.split(".")[0]
                is_folder = language == "go" or stem in {"index", "__init__"}
                words[edit.path] = posixpath.basename(folder) if is_folder else stem
        return words

    def broken_importers(self) -> Iterator[Violation]:
        """Imports, in files that the change leaves, of modules that it takes away."""
        deleted = self._deleted
        if not deleted:
            return
        languages = {language_of(path) for path in deleted}
        words = [word.encode() for word in set(deleted.values())]
        importers = sorted(p for p in self.subject.after.paths if language_of(p) in languages)
        if len(importers) > MAX_IMPORTERS:
            self.subject.warn(
                f"{GATE}: {len(importers)} files are too many to look for importers in"
            )
        for path in importers[:MAX_IMPORTERS]:
            content = self.subject.after.read(path)
            if content is not None and any(word in content for word in words):
                yield from self._broken(path, content, deleted)

    def _broken(self, path: str, content: bytes, deleted: dict[str, str]) -> Iterator[Violation]:
        for import_ in imports_of(path, content):
            was = locate(import_, path, self.subject.before)
            gone = [p for p in was.paths if p in deleted]
            if not gone or import_.is_optional or path not in self.subject.before:
                continue
            now = locate(import_, path, self.subject.after)
            is_there = now.state == FOUND and (now.paths or not import_.names)
            if is_there and not self._lost(import_, path, was, now):
                continue
            description = f"{import_.written!r} leads to {gone[0]}, which the change deletes"
            fix = f"change the import in {path} too, or keep {gone[0]}"
            yield _violation(path, import_, BLOCKING, description, fix)

    def _lost(self, import_: Import, path: str, was: Location, now: Location) -> bool:
        """Whether a name was the deleted module's, and nothing that is left speaks of it."""
        package = locate(replace(import_, names=()), path, self.subject.after).paths
        if not set(now.paths) <= {*was.paths, *package}:
            return False  # another module has taken its place
        texts = [self.subject.after.read(path) or b"" for path in now.paths]
        names = [self._deleted[p] for p in was.paths if p in self._deleted]
        lost = [name.encode() for name in names if name in import_.names]
        return any(not any(name in text for text in texts) for name in lost)


def _violation(path: str, import_: Import, severity: str, description: str, fix: str) -> Violation:
    return Violation(GATE, severity, path, description, import_.line, import_.column, fix)
