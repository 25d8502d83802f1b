"""The import check: what a proposal imports is there, and what it takes away nobody imports any more.

Only what the change adds or breaks counts, and where it cannot be known nothing is said: imports under
a condition, modules made by a build, packages that a manifest names and nobody has installed yet.
"""

from __future__ import annotations

import difflib
import functools
import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace

from loki.action.changes.git import git
from loki.action.checks.imports import (
    FOUND,
    MISSING,
    Import,
    Location,
    imports_of,
    language_of,
    locate,
)
from loki.action.checks.imports.project_files import above
from loki.action.gates.gate import ADVISORY, BLOCKING, Violation
from loki.action.gates.gate_subject import Subject
from loki.action.gates.missing_import import Absence, knowledge
from loki.base import glob

GATE = "import_check"

MAX_IMPORTERS = 20_000
"""Files that are looked at for what a deletion breaks; chosen, not measured."""


def import_check(subject: Subject) -> list[Violation]:
    """Find imports, added or broken by the change, that lead nowhere."""
    check = _Check(subject, Absence(subject.after, subject.root))
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
                    yield _violation(
                        path, import_, severity, absent.description, absent.suggested_fix
                    )

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
        for path in location.expected:
            if (
                "*" not in path
                and os.path.lexists(self.subject.root / path)
                and path not in self._deleted
            ):
                return True
        if any(self._is_build_folder(folder) for folder in above(location.expected[0])):
            return True
        if glob.matches(location.expected[0], knowledge().generated):
            return True
        names = [path for path in location.expected if "*" not in path]
        if not self.subject.tree.is_git or not names:
            return False
        ignored = git(str(self.subject.root), "check-ignore", "--", *names)
        return bool(ignored)

    def _is_build_folder(self, folder: str) -> bool:
        name = folder.rpartition("/")[2]
        return name in knowledge().build_folders and not self.subject.before.is_folder(folder)

    # --- what a deletion breaks ---------------------------------------------------------------------------

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
            if (
                now.state == FOUND
                and (now.paths or not import_.names)
                and not self._lost(import_, path, was, now)
            ):
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
