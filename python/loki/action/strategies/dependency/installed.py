"""What is installed where a project's checks run.

Nothing of the project is executed; the interpreter is asked once, in a folder that holds nothing of it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from loki.action.processes import process
from loki.action.processes.command_line import find_program, leading_assignments
from loki.action.processes.sandbox import read_only
from loki.action.strategies.dependency.manifest_requirements import (
    Ecosystem,
    Requirement,
    ecosystems,
    plain_name,
    same_name,
)
from loki.base import codec
from loki.base.error import LokiError
from loki.base.toml import tomllib
from loki.recognition.fix import program_name

# --- The Python that a project's checks run in --------------------------------------------------------

SECONDS = 10.0
"""Until an interpreter that does not answer is given up; chosen, not measured."""

_ASK = """
import json, os, pkgutil, sys
path = [p for p in sys.path if p]
found = {m.name for m in pkgutil.iter_modules(path)} | set(sys.builtin_module_names)
found.update(getattr(sys, "stdlib_module_names", ()))
for folder in filter(os.path.isdir, path):
    found.update(n for n in os.listdir(folder) if n.isidentifier())
for name in [n for n in sys.modules if n.startswith("__editable__")]:
    found.update(module.split(".")[0] for module in getattr(sys.modules[name], "MAPPING", ()))
known = ("_frozen_importlib", "_virtualenv", "_distutils_hack", "__editable__")
finders = [getattr(f, "__module__", "") or type(f).__module__ for f in sys.meta_path]
whole = all(f.startswith(known) for f in finders)
print(json.dumps({"path": path, "modules": sorted(found), "is_whole": whole}))
"""
"""No module is imported for it but those of the standard library; what ``.pth`` files of the environment
say has been done when it begins. Finders of setuptools' editable installs list what they have."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an interpreter says of itself.

    Attributes:
        path: where it looks for modules.
        modules: the top-level names that are there, and its own.
        is_whole: nothing hides what else may be there (import hooks of editable installs).
    """

    path: tuple[str, ...]
    modules: tuple[str, ...]
    is_whole: bool


def interpreter_of_project(root: Path) -> str | None:
    """The program that a project's checks would run as ``python``; None where there is none.

    Of the project's own environment, else of the one that is active, else the one on the ``PATH``.
    """
    on_path = (found for name in _python().interpreters if (found := find_program(name, root)))
    return own_interpreter(root) or next(on_path, None)


def own_interpreter(root: Path) -> str | None:
    """That of the project's own environment, or of the one that is active; None: there is neither."""
    active = os.environ.get("VIRTUAL_ENV")
    places = [
        *(root / name for name in _python().environments),
        *([Path(active)] if active else []),
    ]
    whole = (place for place in places if (place / "pyvenv.cfg").is_file())
    folders = (place / folder for place in whole for folder in ("bin", "Scripts"))
    return next((program for folder in folders for program in interpreter_beside(folder)), None)


def interpreter_beside(folder: Path) -> Iterator[str]:
    """The interpreters in a folder."""
    paths = (folder / name for name in _python().interpreters)
    return (str(path) for path in paths if path.is_file())


def ask_interpreter(program: str) -> Answer | None:
    """What an interpreter says of itself, asked again where its folders changed; None: no answer."""
    kept = _answers.get(program)
    if kept is not None and kept[0] == _stamps(program, kept[1]):
        return kept[1]
    try:
        said = _ask(program)
    except TimeoutError:  # of a machine at load: the next one may have its answer
        return None
    _answers[program] = _stamps(program, said), said
    return said


_answers: dict[str, tuple[tuple[float, ...], Answer | None]] = {}


def _stamps(program: str, said: Answer | None) -> tuple[float, ...]:
    return tuple(map(_changed_at, (program, *(said.path if said else ()))))


def _changed_at(path: str) -> float:
    """When a file or folder was changed; 0 where it is not there."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _ask(program: str) -> Answer | None:
    # PYTHONPATH counts, as it does for checks; the current folder does not.
    try:
        # It runs what stands in the project's environment, which a test may have written.
        box = read_only()
        finished = process.run((program, "-c", _ASK), cwd="/", timeout=SECONDS, box=box)
        said = codec.parse(Answer, json.loads(finished.stdout)) if finished.is_success else None
    except (LokiError, ValueError, OSError):
        return None
    if finished.timed_out:
        raise TimeoutError
    return said


@cache
def _python() -> Ecosystem:
    return next(known for known in ecosystems() if known.interpreters)


# --- Which modules it can import ----------------------------------------------------------------------


@dataclass(frozen=True)
class PythonEnvironment:
    """What can be imported.

    Attributes:
        interpreter: the program.
        modules: top-level names that are there.
        is_whole: nothing hides what else may be there (import hooks of editable installs).
        is_own: the project's own, or the one that is active; not just any on the ``PATH``.
    """

    interpreter: str
    modules: frozenset[str]
    is_whole: bool
    is_own: bool = True

    def may_have(self, module: str) -> bool:
        """Whether a dotted module is there, or nobody can tell.

        Below a top-level package nothing is called missing: it may extend its path, or make modules
        when it runs.
        """
        return not self.is_whole or module.split(".", maxsplit=1)[0] in self.modules


def environment(root: Path) -> PythonEnvironment | None:
    """What the project's checks can import; None where no interpreter answers."""
    program = interpreter_of_project(root)
    said = ask_interpreter(program) if program else None
    if program is None or said is None:
        return None
    is_own = own_interpreter(root) is not None
    return PythonEnvironment(program, frozenset(said.modules), said.is_whole, is_own)


# --- Which packages are installed, and in which versions ----------------------------------------------

MAX_DISTRIBUTIONS = 5_000
MAX_LOCK_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Environment:
    """Where a check finds its packages.

    Args:
        known: the ecosystem.
        root: the project's folder.
        command: the check's words; () where none ran.
        near: a file of the project that needs the package, or None.
    """

    known: Ecosystem
    root: Path
    command: tuple[str, ...] = ()
    near: str | None = None

    @property
    def name(self) -> str:
        """What to call it."""
        if self.known.interpreters:
            return self.interpreter or "no interpreter"
        return _PLACES.get(self.known.name, "the environment")

    def version(self, package: str) -> str | None:
        """The version of a package that is installed; "" where it has none; None where it is not."""
        look = {
            "python": self._of_python,
            "npm": self._of_npm,
            "cargo": self._of_cargo,
            "go": self._of_go,
        }
        return look[self.known.name](package)

    def fits(self, version: str, requirement: Requirement) -> bool | None:
        """Whether an installed version is what a manifest requires; None where nobody can tell.

        Only Python's are compared: other languages' tools tell of such conflicts themselves.
        """
        try:
            return SpecifierSet(requirement.wanted).contains(version, prereleases=True)
        except (InvalidSpecifier, InvalidVersion):
            return None

    # --- Python ---

    @cached_property
    def interpreter(self) -> str | None:
        """The interpreter that the check runs in, else the project's, else that of the machine."""
        words = leading_assignments(self.command)[1]
        program = find_program(words[0], self.root) if words else None
        if program and program_name(program) in map(program_name, self.known.interpreters):
            return program
        found = next(interpreter_beside(Path(program).parent), None) if program else None
        return found or interpreter_of_project(self.root)

    @cached_property
    def distributions(self) -> dict[str, importlib.metadata.Distribution]:
        """Installed distributions by their plain name."""
        said = ask_interpreter(self.interpreter) if self.interpreter else None
        folders = list(said.path) if said else []
        found: dict[str, importlib.metadata.Distribution] = {}
        for distribution in importlib.metadata.distributions(path=folders):
            name = distribution.metadata["Name"]
            if name and len(found) < MAX_DISTRIBUTIONS:
                found.setdefault(plain_name(name, "python"), distribution)
        return found

    def provider(self, module: str) -> str | None:
        """The installed distribution that has a module, by its own files; None where none has."""
        top = module.split(".", maxsplit=1)[0]
        for distribution in self.distributions.values():
            said = distribution.read_text("top_level.txt")
            if top in (said or "").split():
                return str(distribution.metadata["Name"])
        for distribution in self.distributions.values():
            files = distribution.read_text("RECORD") or ""
            if re.search(rf"^{re.escape(top)}(?:/|\.(?:py|pyi|so|\w+\.so),)", files, re.MULTILINE):
                return str(distribution.metadata["Name"])
        return None

    def _of_python(self, package: str) -> str | None:
        found = self.distributions.get(plain_name(package, "python"))
        return None if found is None else str(found.version or "")

    # --- Others ---

    def _of_npm(self, package: str) -> str | None:
        folder = (self.root / self.near).parent if self.near else self.root
        for place in (folder, *folder.parents):
            manifest = place / "node_modules" / package / "package.json"
            if manifest.is_file():
                return _version_in(manifest)
            if place == self.root:
                break
        return None

    def _of_cargo(self, package: str) -> str | None:
        text = _text(self.root / "Cargo.lock")
        try:
            packages = tomllib.loads(text).get("package") or []
        except ValueError:
            return None
        versions = (
            str(p.get("version", "")) for p in packages if same_name(p["name"], package, "cargo")
        )
        return next(versions, None)

    def _of_go(self, package: str) -> str | None:
        """The version that go.sum has a hash of."""
        line = rf"^{re.escape(package)} (\S+?)(?:/go\.mod)? "
        versions = re.findall(line, _text(self.root / "go.sum"), re.MULTILINE)
        return versions[-1] if versions else None


_PLACES = {"npm": "node_modules", "cargo": "Cargo.lock", "go": "go.sum"}


def _version_in(manifest: Path) -> str:
    try:
        return str(json.loads(_text(manifest)).get("version") or "")
    except (ValueError, AttributeError, RecursionError):
        return ""


def _text(path: Path) -> str:
    try:
        if os.path.getsize(path) > MAX_LOCK_BYTES:
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
