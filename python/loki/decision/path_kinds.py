"""What the path of a file says of it, and whether a task's declared scope holds it; pure.

The one notion of a task's scope: self-review points out what is outside, drift sends back what works there
(`loki.decision.drift`). The knowledge is data, in ``path-kinds.yml``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from loki.base import glob
from loki.base.yaml_text import load_file

_FILE = Path(__file__).with_name("path-kinds.yml")
_TEST_AFFIX = re.compile(r"^tests?[_.-]|[_.-](?:tests?|spec)$|(?<=[a-z0-9])(?:Tests?|Spec)$")


@dataclass(frozen=True, slots=True)
class PathKind:
    """A kind of place: the folders and file names that belong to it."""

    name: str
    folders: frozenset[str]
    names: re.Pattern[str]


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = load_file(_FILE)
    return data


@cache
def _places() -> tuple[PathKind, ...]:
    return tuple(
        PathKind(name, frozenset(said.get("folders", ())), any_glob(said.get("names") or ["(?!)"]))
        for name, said in _data()["places"].items()
    )


@cache
def path_kinds() -> dict[str, re.Pattern[str]]:
    """Kinds of files by their name: companions, leftovers, copies, licences."""
    return {name: any_glob(said) for name, said in _data()["scope"].items()}


def any_glob(said: str | Sequence[str]) -> re.Pattern[str]:
    """One expression for several; flags of each hold for it alone."""
    texts = [said] if isinstance(said, str) else said
    # Flags may only stand at the very beginning of an expression.
    parts = [re.sub(r"^\(\?i\)(.*)$", r"(?i:\1)", text) for text in texts]
    return re.compile("|".join(parts), re.MULTILINE)


def kinds_of_path(path: str) -> frozenset[str]:
    """The kinds of place in which a file stands, by its path alone.

    Example:
        >>> sorted(kinds_of_path("tests/data/vendor/run.min.js"))
        ['test', 'test_data', 'vendored']
    """
    name = PurePosixPath(path)
    folders = {part.lower() for part in name.parts[:-1]}
    return frozenset(
        place.name
        for place in _places()
        if folders & place.folders or place.names.search(name.name)
    )


def stem_of(path: str) -> str:
    """The name of what a file is about: its own, or of what it tests; a package's is its folder's.

    Example:
        >>> stem_of("src/cart/price.test.ts"), stem_of("tests/test_cart.py"), stem_of("cart/__init__.py")
        ('price', 'cart', 'cart')
    """
    name = PurePosixPath(path)
    stem = name.name.lstrip(".").split(".")[0]
    if stem in {"__init__", "index", "mod"} and name.parent.name:
        return name.parent.name
    return _TEST_AFFIX.sub("", stem) or stem


def in_scope(path: str, scope: Sequence[str]) -> bool:
    """Whether a task is about a file.

    Args:
        path: relative to the project.
        scope: files, folders and globs (`loki.base.glob`) that it names. Tests of a file that it
            names, and the project's list of changes, belong to it.

    Example:
        >>> in_scope("tests/test_money.py", ["shop/money.py"]), in_scope("shop/tax.py", ["shop/money.py"])
        (True, False)
    """
    if glob.matches(path, scope) or any(path.startswith(s.rstrip("/") + "/") for s in scope):
        return True
    if path_kinds()["companions"].search(PurePosixPath(path).name):
        return True
    if "test" not in kinds_of_path(path):
        return False
    return any(stem_of(path) == PurePosixPath(pattern).stem for pattern in scope)
