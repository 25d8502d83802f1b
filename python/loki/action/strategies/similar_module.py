"""What a project has instead of a module of its own that is not where it was looked for."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Callable, Iterator, Mapping

from loki.action.strategies.definition_search import defined_in
from loki.action.strategies.dependency.ecosystem import Missing
from loki.action.strategies.strategy_context import Project, StrategyContext

LIKE = 0.6
"""How alike a name must be, of difflib's 0 to 1, to be pointed at; chosen, not measured."""

MAX_SHOWN = 3


def similar_modules(missing: Missing, ecosystem: str, situation: StrategyContext) -> list[str]:
    """What to look at instead, a line each; none where the module is not the project's own.

    Args:
        missing: what the tool misses, and, where it says so, which name in it.
        ecosystem: python, npm, go or cargo.
        situation: the failure and the project.
    """
    project, importer = situation.project, situation.failure.path or ""
    return list(OWN[ecosystem](missing, importer, project))


def _python(missing: Missing, importer: str, project: Project) -> Iterator[str]:
    dotted = missing.module.split(".")
    modules = {_python_module(path): path for path in project.paths if path.endswith(".py")}
    if missing.module in modules:
        yield from _found(missing, modules[missing.module], importer, project)
        return
    same = [name for name in modules if name.split(".")[-1] == dotted[-1]]
    if dotted[0] not in {name.split(".")[0] for name in modules}:
        yield from (
            f"- there is {name} ({modules[name]}); it is not where it is looked for"
            for name in same[:MAX_SHOWN]
        )
        return
    close = difflib.get_close_matches(missing.module, list(modules), MAX_SHOWN, LIKE)
    for name in dict.fromkeys((*same[:MAX_SHOWN], *close)):
        yield f"- there is {name} ({modules[name]})"
    if not close and not same:
        yield f"- {dotted[0]} is there, and has no {'.'.join(dotted[1:]) or 'such name'}"


def _found(missing: Missing, path: str, importer: str, project: Project) -> Iterator[str]:
    if not missing.name:
        yield f"- {path} is that module: it is not looked for there (sys.path, pythonpath)"
        return
    names = defined_in(project.read(path))
    if missing.name in names:
        yield f"- {path} defines {missing.name}: is it imported while it is still being read?"
        if importer:
            yield f"- {path} and {importer} may import each other"
        return
    close = difflib.get_close_matches(missing.name, names, MAX_SHOWN, LIKE)
    told = ", ".join(close or names[:8]) or "nothing"
    yield f"- {path} has no {missing.name}; {'close to it' if close else 'it defines'}: {told}"


def _python_module(path: str) -> str:
    name = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


def _relative(missing: Missing, importer: str, project: Project) -> Iterator[str]:
    module = missing.module
    if not module.startswith("."):
        return
    start = posixpath.dirname(importer)
    folder = posixpath.normpath(posixpath.join(start, posixpath.dirname(module)))
    folder = "" if folder == "." else folder
    wanted = _stem(module)
    stems = {_stem(p): p for p in project.paths if posixpath.dirname(p) == folder}
    close = difflib.get_close_matches(wanted, list(stems), MAX_SHOWN, LIKE)
    named = [path for path in project.paths if _stem(path) == wanted]
    for path in dict.fromkeys((*(stems[name] for name in close), *named[:MAX_SHOWN])):
        relative = posixpath.relpath(path, start or ".")
        shown = relative if relative.startswith(".") else f"./{relative}"
        yield f"- there is {path}: from {importer or 'the top folder'} it is {shown}"
    if not close and not named:
        has = ", ".join(sorted(stems)[:8]) or "no file"
        yield f"- {folder or 'the top folder'} has no such file; it has: {has}"


def _stem(path: str) -> str:
    return posixpath.basename(path).split(".", maxsplit=1)[0]


def _go(missing: Missing, _importer: str, project: Project) -> Iterator[str]:
    text = project.read("go.mod")
    own = next((line.split()[1] for line in text.splitlines() if line.startswith("module ")), "")
    if not own or not f"{missing.module}/".startswith(f"{own}/"):
        return
    folders = {posixpath.dirname(path) for path in project.paths if path.endswith(".go")} - {""}
    inside = missing.module.removeprefix(own).strip("/")
    close = difflib.get_close_matches(inside, sorted(folders), MAX_SHOWN, LIKE)
    yield from (f"- there is {folder}: import {own}/{folder}" for folder in close)
    if not close:
        yield f"- the project has no folder {inside} with Go files"


def _rust(missing: Missing, _importer: str, project: Project) -> Iterator[str]:
    first, *rest = missing.module.split("::")
    if first not in {"crate", "self", "super"}:
        return
    stems = {_stem(path): path for path in project.paths if path.endswith(".rs")}
    wanted = rest[0] if rest else ""
    close = difflib.get_close_matches(wanted, list(stems), MAX_SHOWN, LIKE)
    yield from (f"- there is {stems[name]}" for name in close)
    if wanted in stems:
        yield f"- is `mod {wanted};` declared where its parent is?"
    if not close:
        yield "- the project has no such module"


OWN: Mapping[str, Callable[[Missing, str, Project], Iterator[str]]] = {
    "python": _python,
    "npm": _relative,
    "go": _go,
    "cargo": _rust,
}
