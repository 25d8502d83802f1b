"""What tsconfig.json (or jsconfig.json) says about where imports lead.

https://www.typescriptlang.org/tsconfig: ``extends``, ``references``, ``baseUrl``, ``paths``, ``rootDirs``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from loki.action.checks.imports.project_files import Files, above, join

MAX_CONFIGS = 50
"""Configurations that one leads to; chosen, not measured. Cycles end here at the latest."""


@dataclass
class Paths:
    """Where names lead.

    Attributes:
        bases: folders that ``baseUrl`` makes names begin in.
        patterns: pattern of ``paths`` to the paths it stands for, each with at most one ``*``,
            relative to the project.
        is_whole: every configuration it is built on could be read.
    """

    bases: list[str] = field(default_factory=list)
    patterns: dict[str, list[str]] = field(default_factory=dict)
    is_whole: bool = True

    def candidates(self, name: str) -> list[str]:
        """The paths that a name stands for by the longest pattern that fits it."""
        best: tuple[int, str, str] | None = None
        for pattern in self.patterns:
            head, star, tail = pattern.partition("*")
            fits = name.startswith(head) and name.endswith(tail) and len(name) >= len(head + tail)
            if (fits if star else name == pattern) and (best is None or len(head) > best[0]):
                best = len(head), pattern, name[len(head) : len(name) - len(tail)] if star else ""
        return [p.replace("*", best[2], 1) for p in self.patterns[best[1]]] if best else []


def paths_for(importer: str, files: Files) -> Paths:
    """What the closest configurations above a file say; other names for the same are joined."""
    found = Paths()
    for folder in above(importer):
        for name in ("tsconfig.json", "jsconfig.json"):
            path = f"{folder}/{name}".lstrip("/")
            if path in files:
                near: Paths = files.keep("tsconfig", path, functools.partial(_read, path, files))
                found.bases += [base for base in near.bases if base not in found.bases]
                found.patterns = {**near.patterns, **found.patterns}
                found.is_whole = found.is_whole and near.is_whole
    return found


def _read(path: str, files: Files) -> Paths:
    found, seen = Paths(), set[str]()
    queue = [path]
    while queue and len(seen) < MAX_CONFIGS:
        path = queue.pop(0)
        if path in seen:
            continue
        seen.add(path)
        folder = path.rpartition("/")[0]
        config = files.json(path)
        found.is_whole = found.is_whole and bool(config)
        _take(config.get("compilerOptions"), folder, found)
        for name, always in _others(config):
            other = _config(folder, name, files)
            if other is not None:
                queue.append(other)
            elif always:
                found.is_whole = False
    return found


def _take(options: object, folder: str, found: Paths) -> None:
    """Add what one configuration says; what was read before wins."""
    if not isinstance(options, dict):
        return
    base, base_url = folder, options.get("baseUrl")
    if isinstance(base_url, str):
        inside = join(folder, base_url)
        if inside is None or "${" in base_url:
            found.is_whole = False
        else:
            base = inside
            found.bases.append(inside)
    paths = options.get("paths")
    for pattern, targets in paths.items() if isinstance(paths, dict) else ():
        inside_project = [
            target
            for text in targets
            if isinstance(targets, list) and isinstance(text, str)
            if (target := join(base, text)) is not None
        ]
        found.patterns.setdefault(pattern, inside_project)


def _others(config: object) -> Iterator[tuple[str, bool]]:
    """(name of another configuration, whether it must be one of the project's)."""
    if not isinstance(config, dict):
        return
    extends = config.get("extends")
    for name in extends if isinstance(extends, list) else [extends]:
        if isinstance(name, str):
            yield name, True
    references = config.get("references")
    for reference in references if isinstance(references, list) else []:
        if isinstance(reference, dict) and isinstance(reference.get("path"), str):
            yield "./" + reference["path"], False


def _config(folder: str, name: str, files: Files) -> str | None:
    if not name.startswith("."):
        return None  # of a package
    base = join(folder, name)
    if base is None:
        return None
    candidates = (base, base + ".json", f"{base}/tsconfig.json".lstrip("/"))
    return next((path for path in candidates if path in files), None)
