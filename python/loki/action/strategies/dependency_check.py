"""``dependency_check``: why a module cannot be found, or which requirements exclude each other.

In order: a conflict that the tool itself tells; the project's own module under another path; a name
that is misspelt; what the manifests require and what is installed. What is missing is installed where
``[execute] allow_commands`` lets it, else the command is told for a person.
"""

from __future__ import annotations

import difflib
import fnmatch
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loki.action.checks.imports.node_resolution import package_of
from loki.action.loop.loop_events import StrategyResult
from loki.action.processes.command_line import why_not_runnable
from loki.action.strategies.context_expand import BUDGET, defined_in
from loki.action.strategies.dependency.installed import Environment
from loki.action.strategies.dependency.manifest_requirements import (
    Ecosystem,
    Missing,
    Requirement,
    conflicts_in,
    manifests,
    missing_in,
    of_language,
    plain_name,
    requirements,
    same_name,
)
from loki.action.strategies.strategy_context import Project, StrategyContext, StrategyNotApplicable

# --- The strategy -------------------------------------------------------------------------------------

NEAR = 0.8
"""How alike two names must be, of difflib's 0 to 1, for one to be the other misspelt; chosen, not
measured."""

MAX_SIDES = 8

_MISSPELT = "misspelt?"


@dataclass(frozen=True)
class _Case:
    """What is missing, in which ecosystem, for which project."""

    situation: StrategyContext
    known: Ecosystem
    missing: Missing
    required: Sequence[Requirement]
    environment: Environment

    @property
    def module(self) -> str:
        return self.missing.module or self.missing.package


def dependency_check(situation: StrategyContext) -> StrategyResult:
    """Find out why a dependency fails, and install it where that is allowed.

    Raises:
        StrategyNotApplicable: the error names no module, and no conflict.
    """
    failure = situation.failure
    for known in of_language(failure.language):
        found = missing_in((failure.message, failure.excerpt), known)
        if found is not None:
            return _missing(_case(situation, known, found))
    for known in of_language(None):
        sides = conflicts_in(situation.output or failure.excerpt, known)
        sides = sides or conflicts_in(f"{failure.message}\n{failure.excerpt}", known)
        if sides:
            return _conflict(_case(situation, known, Missing()), sides)
    raise StrategyNotApplicable("the error names no module and no conflict of versions")


def _case(situation: StrategyContext, known: Ecosystem, found: Missing) -> _Case:
    project = situation.project
    command = situation.check.command if situation.check else ()
    path = situation.failure.path
    near = path if path and path in project else None
    environment = Environment(known, situation.root, command, near)
    required = requirements(known, project.paths, project.read)
    return _Case(situation, known, found, required, environment)


# --- A conflict ---------------------------------------------------------------------------------------


def _conflict(case: _Case, sides: Sequence[tuple[str, str]]) -> StrategyResult:
    lines = ["these requirements exclude each other:"]
    for who, what in sides[:MAX_SIDES]:
        lines.append(f"- {who} wants {what}" if who and what else f"- {who or what}")
    told = " ".join(f"{who} {what}" for who, what in sides)
    lines += [_required(r) for r in case.required if r.name.lower() in told.lower()]
    lines.append("change the requirement of one side, so that both can be met")
    return _result("compared what is required", lines)


# --- A module that is missing -------------------------------------------------------------------------


def _missing(case: _Case) -> StrategyResult:
    project = case.situation.project
    if case.missing.module and (own := _in_project(case)):
        name = f"{case.missing.name} in " if case.missing.name else ""
        lines = [f"missing: {name}{case.module}, which is the project's own:", *own]
        return _result(f"looked for {case.module} in the project", lines)
    package = _package(case)
    required = [r for r in case.required if _is_of(r.name, package, case)]
    by_package = f" (package {package})" if package != case.module else ""
    lines = [f"missing: {case.module}{by_package}", *map(_required, required)]
    if not required:
        looked = ", ".join(path for _, path in manifests(case.known, project.paths)) or "none found"
        lines.append(f"required nowhere; manifests looked in: {looked}")
        lines += _misspelt(case, package)
    version = case.environment.version(package)
    there = f"version {version}" if version else "yes" if version is not None else "no"
    lines.append(f"installed in {case.environment.name}: {there}")
    if version is not None:
        lines += _although_installed(case, package, version, required)
        return _result(f"looked {case.module} up", lines)
    return _install(case, package, required, lines)


def _although_installed(
    case: _Case, package: str, version: str, required: Sequence[Requirement]
) -> Iterator[str]:
    unmet = [r for r in required if case.environment.fits(version, r) is False]
    for requirement in unmet:
        yield (
            f"conflict: {requirement.path}:{requirement.line} wants {requirement}, installed is "
            f"{version}"
        )
    if not unmet and not required:
        yield f"so: installed, but no manifest requires it; add {package} to one"
    elif not unmet:
        yield (
            "so: required and installed; this version may not fit or not have that module, or the check "
            "runs in another environment"
        )


def _install(
    case: _Case, package: str, required: Sequence[Requirement], lines: list[str]
) -> StrategyResult:
    situation = case.situation
    forms = _forms(case, package, required)
    words, shown = forms[0], shlex.join(forms[-1])
    if refusal := _refusal(case, package, forms, lines if not required else ()):
        lines.append(f"so: loki does not install it, as {refusal}; a person could run: {shown}")
        return _result(f"looked {case.module} up", lines)
    finished, files = situation.run_fix(words)
    if not finished.is_success:
        said = finished.output.decode("utf-8", "replace").strip().splitlines()[-6:]
        lines += [f"`{shown}` failed:", *(f"  {line}" for line in said)]
        return _result(f"tried `{shown}`, which failed", lines, files)
    cured = situation.check is not None and situation.passes_now(situation.check)
    lines.append(f"installed with `{shown}`")
    if not required:
        lines.append(f"no manifest requires it yet: add {package} to one")
    done = f"ran `{shown}`; the check {'passes now' if cured else 'still fails'}"
    return _result(done, lines, files, acted=True)


def _forms(case: _Case, package: str, required: Sequence[Requirement]) -> list[tuple[str, ...]]:
    """The command that installs it, and how else it may be written; the last is for people."""
    paths = set(case.situation.project.paths)
    how = next(way for way in case.known.install if not way.file or way.file in paths)
    words = (required and how.declared) or how.command
    python_requires = required and case.known.name == "python"
    values = {
        "{package}": package,
        "{requirement}": str(required[0]) if python_requires else package,
        "{python}": case.environment.interpreter or "python3",
    }
    forms = [words, *([how.also] if how.also else [])]
    return [tuple(values.get(word, word) for word in form) for form in forms]


def _refusal(
    case: _Case, package: str, forms: Sequence[tuple[str, ...]], lines: Sequence[str]
) -> str:
    """Why loki does not run the command itself, or ""."""
    # The name comes from what a tool printed: it must not be an option, an address or a path.
    if not case.known.names.fullmatch(package):
        return "that is no name of a package"
    if any(line.startswith(_MISSPELT) for line in lines):
        return "the name may be misspelt"
    shown, allowed = [shlex.join(form) for form in forms], case.situation.allowed
    if not any(fnmatch.fnmatchcase(form, glob) for form in shown for glob in allowed):
        return "`allow_commands` does not have it"
    return why_not_runnable(forms[0], case.situation.root) or ""


# --- What a project has instead of a module that is not where it was looked for -----------------------

LIKE = 0.6
"""How alike a name must be, of difflib's 0 to 1, to be pointed at; chosen, not measured."""

MAX_SHOWN = 3


def _in_project(case: _Case) -> list[str]:
    """What the project has in place of a module of its own; nothing where it is a package."""
    known, missing, project = case.known, case.missing, case.situation.project
    parts = re.split(r"[./:]+", missing.module.strip("./:"))
    whole, last = re.compile(rf"(?:^|/){'/'.join(map(re.escape, parts))}[./]"), parts[-1]
    sources = [path for path in reversed(project.paths) if path.endswith(known.sources)]
    # Of files that are called alike the one that is meant comes last, else the first one.
    stems = {_stem(path): path for path in sorted(sources, key=lambda p: bool(whole.search(p)))}
    if not _is_own(known, missing.module, stems, project):
        return []
    if missing.name and last in stems:
        return _about_name(missing.name, stems[last], project)
    close = difflib.get_close_matches(last, stems, MAX_SHOWN, LIKE)
    shown = [f"- there is {stems[stem]}; that is not where it is looked for" for stem in close]
    return shown or ["- nothing of the project is called so"]


def _is_own(known: Ecosystem, module: str, stems: Mapping[str, str], project: Project) -> bool:
    """Whether a module is the project's own, by how it is written and what is there."""
    if known.name == "python":
        first = module.split(".", maxsplit=1)[0]
        return first in stems or any(
            path.removeprefix("src/").startswith(f"{first}/") and path.endswith(known.sources)
            for path in project.paths
        )
    if known.name == "go":
        lines = project.read("go.mod").splitlines()
        own = next((line.split()[1] for line in lines if line.startswith("module ")), "")
        return bool(own) and f"{module}/".startswith(f"{own}/")
    return module.startswith((".", "crate::", "self::", "super::"))


def _stem(path: str) -> str:
    """What a file is called where it is imported: a package by its folder."""
    folder, name = posixpath.split(path)
    stem = name.split(".", maxsplit=1)[0]
    return posixpath.basename(folder) if stem in {"__init__", "index", "mod"} else stem


def _about_name(name: str, path: str, project: Project) -> list[str]:
    names = defined_in(project.read(path))
    if name in names:
        return [f"- {path} defines {name}: do two files import each other?"]
    close = difflib.get_close_matches(name, names, MAX_SHOWN, LIKE) or names[:8]
    return [f"- {path} has no {name}; it has: {', '.join(close) or 'nothing'}"]


# --- Names --------------------------------------------------------------------------------------------


def _package(case: _Case) -> str:
    """The package that has the missing module."""
    known, module = case.known, case.module
    if case.missing.package:
        return case.missing.package
    if known.name == "python":
        dotted = module.split(".")
        tops = [".".join(dotted[:count]) for count in range(len(dotted), 0, -1)]
        listed = next((known.packages[name] for name in tops if name in known.packages), None)
        declared = next((r.name for r in case.required if _is_of(r.name, dotted[0], case)), None)
        return declared or case.environment.provider(dotted[0]) or listed or dotted[0]
    if known.name == "npm":
        name = package_of(module)
        is_typed = "declaration file" in case.situation.failure.message
        return known.types.format(package=name.lstrip("@").replace("/", "__")) if is_typed else name
    if known.name == "cargo":
        return module.split("::")[0]
    required = [r.name for r in case.required if f"{module}/".startswith(f"{r.name}/")]
    return max(required, key=len, default=module)


def _is_of(name: str, package: str, case: _Case) -> bool:
    return same_name(name, package, case.known.name)


def _required(requirement: Requirement) -> str:
    return f"{requirement.path}:{requirement.line} requires {requirement} ({requirement.section})"


def _misspelt(case: _Case, package: str) -> list[str]:
    """Names of what is required or installed that this one may have been meant to be."""
    names = {r.name: f"{r.path}:{r.line}" for r in case.required}
    if case.known.name == "python":
        for distribution in case.environment.distributions.values():
            name = str(distribution.metadata["Name"])
            if not any(_is_of(known, name, case) for known in names):
                names[name] = "installed"
    by_plain = {plain_name(name, case.known.name): name for name in names}
    wanted = plain_name(package, case.known.name)
    close = difflib.get_close_matches(wanted, [n for n in by_plain if n != wanted], 3, NEAR)
    return [f"{_MISSPELT} there is {by_plain[n]} ({names[by_plain[n]]})" for n in close]


def _result(
    done: str, lines: Sequence[str], files: tuple[str, ...] = (), *, acted: bool = False
) -> StrategyResult:
    """With the lines that there is room for, the first first."""
    kept: list[str] = []
    room = BUDGET
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return StrategyResult("dependency_check", done, "\n".join(kept), files, acted=acted)
