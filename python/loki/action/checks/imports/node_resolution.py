"""Which files of the project a JavaScript or TypeScript import names.

tsconfig.json: https://www.typescriptlang.org/tsconfig (``extends``, ``references``, ``baseUrl``, ``paths``).
Node.js: https://nodejs.org/api/esm.html#resolution-algorithm-specification and modules.html; TypeScript
and bundlers add extensions, ``paths`` and folders' index files. Packages of the same repository count
as the project's, also where what they publish has not been built.
"""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from loki.action.checks.imports.import_location import EXTERNAL, FOUND, MISSING, Location
from loki.action.checks.imports.project_files import Files, Import, above, join

# --- What tsconfig.json (or jsconfig.json) says -------------------------------------------------------

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
                near = files.keep("tsconfig", path, functools.partial(_read, path, files))
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
    base = join(folder, name) if name.startswith(".") else None
    if base is None:  # of a package, or out of the project
        return None
    candidates = (base, base + ".json", f"{base}/tsconfig.json".lstrip("/"))
    return next((path for path in candidates if path in files), None)


# --- Where an import leads ----------------------------------------------------------------------------

EXTENSIONS = (
    ".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs",
    ".json", ".node", ".vue", ".svelte", ".astro", ".wasm",
)  # fmt: skip
"""What may be left out, TypeScript's first as its compiler has it."""

WRITTEN_AS = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx", ".d.ts"),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
    ".ts": (".d.ts",),
    ".mts": (".d.mts",),
    ".cts": (".d.cts",),
}
"""TypeScript's files are imported under the name that they are compiled to."""

BUILT = ("dist", "build", "lib", "out", "esm", "cjs", "es", "types")
"""Folders that hold what is compiled from ``src``; usual names, chosen."""


def package_of(name: str) -> str:
    """The package that a bare name belongs to.

    Example:
        >>> package_of("@scope/pkg/sub"), package_of("lodash/fp")
        ('@scope/pkg', 'lodash')
    """
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])


def locate(import_: Import, importer: str, files: Files) -> Location:
    """Where a JavaScript or TypeScript import leads."""
    name = import_.module.split("?")[0]
    folder = importer.rpartition("/")[0]
    if name.startswith("/") or ":" in name or "!" in name:  # a URL, what a bundler's loader makes
        return Location(EXTERNAL)
    if name in {".", ".."} or name.startswith(("./", "../")):
        return _relative(import_, folder, name, files)
    if name.startswith("#"):
        own = _own_imports(name, importer, files)
        if own is not None:
            return own
    return _bare(import_, importer, name, files)


def _relative(import_: Import, folder: str, name: str, files: Files) -> Location:
    base = join(folder, name)
    if base is None:
        return Location(EXTERNAL)
    found = _file(base, files, is_folder=name.endswith(("/", "."))) or _file(base, files)
    if found:
        return Location(FOUND, found)
    return Location(MISSING, (), import_.module, _expected(base))


def _bare(import_: Import, importer: str, name: str, files: Files) -> Location:
    paths = paths_for(importer, files)
    aliased = paths.candidates(name)
    for base in (*aliased, *(joined for b in paths.bases if (joined := join(b, name)))):
        if found := _file(base, files):
            return Location(FOUND, found)
    package = package_of(name)
    packages = files.keep("node", "packages", lambda: _packages(files))
    for manifest in packages.get(package, ()):
        if found := _in_package(manifest, name[len(package) + 1 :], files):
            return Location(FOUND, found)
    # A pattern that fits everything says nothing of where one name belongs.
    if aliased and paths.is_whole and not paths.patterns.keys() & {"*", name}:
        return Location(MISSING, (), import_.module, _expected(aliased[0]))
    return Location(EXTERNAL)


def _file(base: str, files: Files, *, is_folder: bool = False) -> tuple[str, ...]:
    """The file that a path without, with, or with another extension names."""
    if not is_folder:
        if base in files:
            return (base,)
        stem, extension = posixpath.splitext(base)
        for other in WRITTEN_AS.get(extension, ()):
            if stem + other in files:
                return (stem + other,)
        if found := _extended(base, files):
            return found
    manifest = posixpath.join(base, "package.json")
    if manifest in files and (found := _entry(manifest, files)):
        return found
    return _extended(posixpath.join(base, "index"), files)


def _extended(base: str, files: Files) -> tuple[str, ...]:
    """The file of a path without its extension."""
    paths = (base + extension for extension in EXTENSIONS)
    return next(((path,) for path in paths if path in files), ())


def _expected(base: str) -> tuple[str, ...]:
    """Where the file of a missing module could be."""
    stem, extension = posixpath.splitext(base)
    if extension in {*EXTENSIONS, *WRITTEN_AS}:
        return (base, *(stem + other for other in WRITTEN_AS.get(extension, ())))
    names = [base + e for e in EXTENSIONS] + [f"{base}/index{e}" for e in EXTENSIONS]
    return (base, *names) if extension else (*names, base)


# --- Packages of this repository ----------------------------------------------------------------------


def _packages(files: Files) -> dict[str, list[str]]:
    """Manifests by the name of the package."""
    found: dict[str, list[str]] = {}
    for path in files.called("package.json"):
        name = files.json(path).get("name")
        if isinstance(name, str) and "node_modules/" not in path:
            found.setdefault(name, []).append(path)
    return found


def _in_package(manifest: str, inside: str, files: Files) -> tuple[str, ...]:
    folder = manifest.rpartition("/")[0]
    if not inside:
        return _entry(manifest, files)
    for target in _targets(files.json(manifest).get("exports"), "./" + inside):
        if found := _source(folder, target, files):
            return found
    for base in (posixpath.join(folder, inside), posixpath.join(folder, "src", inside)):
        if found := _file(base, files):
            return found
    return ()


def _entry(manifest: str, files: Files) -> tuple[str, ...]:
    """What the package itself stands for."""
    folder, said = manifest.rpartition("/")[0], files.json(manifest)
    named = [said.get(key) for key in ("source", "types", "typings", "module", "main")]
    for target in (*_targets(said.get("exports"), "."), *named):
        if isinstance(target, str) and (found := _source(folder, target, files)):
            return found
    index = _extended(posixpath.join(folder, "src/index"), files)
    return index or _extended(posixpath.join(folder, "index"), files)


def _source(folder: str, target: str, files: Files) -> tuple[str, ...]:
    """The file that a manifest names or, where it has not been built, what it is built from."""
    base = join(folder, target)
    if base is None:
        return ()
    if base in files:
        return (base,)
    first, _, rest = target.removeprefix("./").partition("/")
    stem = rest.removesuffix(".d.ts")
    if first in BUILT and rest:
        source = join(folder, f"src/{posixpath.splitext(stem)[0]}")
        return _file(source, files) if source else ()
    return _file(base, files) if base != folder else ()


def _own_imports(name: str, importer: str, files: Files) -> Location | None:
    """Where ``#name`` leads by the ``imports`` of the closest manifest; None: it says nothing."""
    manifest = files.nearest("package.json", importer)
    said = files.json(manifest).get("imports") if manifest else None
    if manifest is None or not isinstance(said, dict):
        return None
    folder = manifest.rpartition("/")[0]
    targets = list(_targets(said, name))
    inside = [target for target in targets if target.startswith("./")]
    for target in inside:
        if found := _source(folder, target, files):
            return Location(FOUND, found)
    if targets and len(inside) == len(targets) and (expected := join(folder, inside[0])):
        return Location(MISSING, (), name, (expected,))
    return Location(EXTERNAL) if targets else None


def _targets(mapping: Any, key: str) -> Iterator[str]:
    """Every target of a key in ``exports`` or ``imports``, whatever the conditions."""
    if isinstance(mapping, dict) and any(str(k).startswith((".", "#")) for k in mapping):
        if key in mapping:
            yield from _leaves(mapping[key])
            return
        for pattern, value in mapping.items():
            head, star, tail = str(pattern).partition("*")
            if star and key.startswith(head) and key.endswith(tail) and len(key) > len(head + tail):
                part = key[len(head) : len(key) - len(tail)]
                yield from (leaf.replace("*", part) for leaf in _leaves(value))
    elif key == ".":
        yield from _leaves(mapping)


def _leaves(value: Any) -> Iterable[str]:
    stack, found = [value], list[str]()
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            stack += reversed(list(value.values()))
        elif isinstance(value, list):
            stack += reversed(value)
    return found
