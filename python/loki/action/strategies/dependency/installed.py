"""What is installed where a project's checks run.

Nothing of the project is executed; the interpreter is asked once, in a folder that holds nothing of it.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

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
    satisfies,
)
from loki.base.error import LokiError
from loki.base.toml import tomllib
from loki.recognition.fix import program_name

# --- The Python that a project's checks run in --------------------------------------------------------

SECONDS = 10.0
"""Until an interpreter that does not answer is given up; chosen, not measured."""

_ASK = """
import json, sys
print(json.dumps({
    "path": [p for p in sys.path if p],
    "builtin": sorted(set(sys.builtin_module_names) | set(getattr(sys, "stdlib_module_names", ()))),
    "version": list(sys.version_info[:2]),
}))
"""


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


def ask_interpreter(program: str) -> dict[str, Any] | None:
    """An interpreter's ``path``, ``builtin`` modules and ``version``; None where it does not answer."""
    with suppress(TimeoutError):  # of a machine at load: the next one may have its answer
        return _ask(program, _changed_at(program))
    return None


def _changed_at(path: str) -> float:
    """When a file or folder was changed; 0 where it is not there."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


@lru_cache(maxsize=8)
def _ask(program: str, _stamp: float) -> dict[str, Any] | None:
    # PYTHONPATH counts, as it does for checks; the current folder does not.
    try:
        # It runs what stands in the project's environment, which a test may have written.
        box = read_only()
        finished = process.run((program, "-c", _ASK), cwd="/", timeout=SECONDS, box=box)
        said = json.loads(finished.stdout) if finished.is_success else None
    except (LokiError, ValueError, OSError):
        return None
    if finished.timed_out:
        raise TimeoutError
    return said if isinstance(said, dict) else None


@cache
def _python() -> Ecosystem:
    return next(known for known in ecosystems() if known.interpreters)


# --- Which modules it can import ----------------------------------------------------------------------
#
# They are found as files on its path: `importlib.machinery.PathFinder` would run ``.pth`` lines.


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
    folders = tuple(folder for folder in said["path"] if os.path.isdir(folder))
    modules, is_whole = _known(folders, tuple(map(_changed_at, folders)))
    is_own = own_interpreter(root) is not None
    return PythonEnvironment(program, modules.union(said["builtin"]), is_whole, is_own)


@lru_cache(maxsize=8)
def _known(folders: tuple[str, ...], _stamps: tuple[float, ...]) -> tuple[frozenset[str], bool]:
    return _modules(folders)


def _modules(folders: Iterable[str]) -> tuple[frozenset[str], bool]:
    found: set[str] = set()
    is_whole = True
    for folder in folders:
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            name = entry.name
            if name.endswith(".pth"):
                is_whole = is_whole and not _adds_hook(entry.path, found)
            elif name.endswith((".py", ".so", ".pyd", ".pyc")):
                found.add(name.split(".")[0])
            elif "." not in name and name.isidentifier():
                found.add(name)
            elif name.endswith(".egg-link"):
                is_whole = False
    return frozenset(found), is_whole


def _adds_hook(path: str, found: set[str]) -> bool:
    """Read a ``.pth`` file: folders are looked into; a line that runs code may do anything."""
    try:
        lines = Path(path).read_text("utf-8", "replace").splitlines()[:1000]
    except OSError:
        return False
    runs = False
    for line in lines:
        if line.startswith(("import ", "import\t")):
            is_harmless = any(known in line for known in _HARMLESS)
            runs = runs or not (is_harmless or _is_mapping(path, line, found))
        elif line.strip() and not line.startswith("#"):
            folder = os.path.join(os.path.dirname(path), line.strip())
            names, whole = _modules([folder]) if os.path.isdir(folder) else (frozenset(), True)
            found |= names
            runs = runs or not whole
    return runs


def _is_mapping(path: str, line: str, found: set[str]) -> bool:
    """Take the names from setuptools' finder of an editable install, which lists them."""
    name = line.removeprefix("import ").split(";")[0].strip()
    try:
        text = Path(os.path.dirname(path), name + ".py").read_text("utf-8")
        match = _MAPPING.search(text)
        mapping = ast.literal_eval(match[1]) if match else None
    except (OSError, ValueError, SyntaxError):
        return False
    if not isinstance(mapping, dict):
        return False
    found |= {str(module).split(".")[0] for module in mapping}
    return True


_MAPPING = re.compile(r"^MAPPING[^=]*= (\{.*\})$", re.MULTILINE)
_HARMLESS = ("_virtualenv", "distutils-precedence", "_distutils_hack", "coverage")
"""Code in ``.pth`` files that makes no module importable."""


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
        """Whether an installed version is what a manifest requires; None where nobody can tell."""
        if self.known.name == "python":
            try:
                return SpecifierSet(requirement.wanted).contains(version, prereleases=True)
            except (InvalidSpecifier, InvalidVersion):
                return _poetry(version, requirement.wanted)
        if self.known.name in {"npm", "cargo"}:
            bare = "^" if self.known.name == "cargo" else "="
            return satisfies(version, requirement.wanted, bare=bare)
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
        folders = said["path"] if said else []
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


def _poetry(version: str, wanted: str) -> bool | None:
    """Carets and tildes, which Poetry has and Python's own standard does not."""
    if not re.search(r"[\^~*]", wanted):
        return None
    numbers = [*version.split("+", maxsplit=1)[0].split("."), "0", "0"][:3]
    return satisfies(".".join(numbers), wanted)


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
