"""The Python that a project's checks run in: which interpreter, and which modules it can import.

Nothing of the project is executed. The interpreter is asked for its version and its path; modules are
then found as files on that path (`importlib.machinery.PathFinder` would run ``.pth`` lines, so folders
are read instead).
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from loki.action.strategies.dependency import interpreter


@dataclass(frozen=True)
class PythonEnvironment:
    """What can be imported.

    Attributes:
        interpreter: the program.
        folders: where modules are looked for.
        modules: top-level names that are there.
        is_whole: nothing hides what else may be there (import hooks of editable installs).
        is_own: the project's own, or the one that is active; not just any on the ``PATH``.
    """

    interpreter: str
    folders: tuple[str, ...]
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
    program = interpreter.of_project(root)
    if program is None:
        return None
    said = interpreter.ask(program)
    if said is None:
        return None
    folders = tuple(folder for folder in said["path"] if os.path.isdir(folder))
    modules, is_whole = _known(folders, tuple(interpreter.stamp(folder) for folder in folders))
    names = frozenset(said["builtin"]) | modules
    return PythonEnvironment(program, folders, names, is_whole, interpreter.own(root) is not None)


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
            runs = runs or not (_is_harmless(line) or _is_mapping(path, line, found))
        elif line.strip() and not line.startswith("#"):
            folder = os.path.join(os.path.dirname(path), line.strip())
            names, whole = _modules([folder]) if os.path.isdir(folder) else (frozenset(), True)
            found |= names
            runs = runs or not whole
    return runs


def _is_harmless(line: str) -> bool:
    return any(known in line for known in _HARMLESS)


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
_HARMLESS = ("_virtualenv", "distutils-precedence", "_distutils_hack", "coverage", "a1_coverage")
"""Code in ``.pth`` files that makes no module importable."""
