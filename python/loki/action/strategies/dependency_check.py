"""``dependency_check``: why a module cannot be found, or which requirements exclude each other.

In order: a conflict that the tool itself tells; the project's own module under another path; a name
that is misspelt; what the manifests require and what is installed. What is missing is installed where
``[execute] allow_commands`` lets it, else the command is told for a person.
"""

from __future__ import annotations

import difflib
import fnmatch
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loki.action.loop.loop_events import StrategyResult
from loki.action.processes.command_line import why_not_runnable
from loki.action.strategies.code_excerpts import BUDGET
from loki.action.strategies.dependency.ecosystem import (
    Ecosystem,
    Install,
    Missing,
    conflicts_in,
    missing_in,
    of_language,
)
from loki.action.strategies.dependency.installed import Environment
from loki.action.strategies.dependency.manifest_requirements import (
    Requirement,
    manifests,
    plain_name,
    requirements,
    same_name,
)
from loki.action.strategies.similar_module import similar_modules
from loki.action.strategies.strategy_context import StrategyContext, StrategyNotApplicable

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
    return _Case(
        situation, known, found, requirements(known, project.paths, project.read), environment
    )


# --- a conflict -----------------------------------------------------------------------------------


def _conflict(case: _Case, sides: Sequence[tuple[str, str]]) -> StrategyResult:
    lines = ["these requirements exclude each other:"]
    for who, what in sides[:MAX_SIDES]:
        lines.append(f"- {who} wants {what}" if who and what else f"- {who or what}")
    told = " ".join(f"{who} {what}" for who, what in sides)
    lines += [_required(r) for r in case.required if r.name.lower() in told.lower()]
    lines.append("change the requirement of one side, so that both can be met")
    return StrategyResult("dependency_check", "compared what is required", _cut(lines))


# --- a module that is missing ---------------------------------------------------------------------


def _missing(case: _Case) -> StrategyResult:
    own = (
        similar_modules(case.missing, case.known.name, case.situation)
        if case.missing.module
        else []
    )
    if own:
        name = f"{case.missing.name} in " if case.missing.name else ""
        lines = [f"missing: {name}{case.module}, which is the project's own:", *own]
        return StrategyResult(
            "dependency_check", f"looked for {case.module} in the project", _cut(lines)
        )
    package = _package(case)
    required = [r for r in case.required if _is_of(r.name, package, case)]
    lines = [
        f"missing: {case.module}" + (f" (package {package})" if package != case.module else "")
    ]
    lines += [_required(requirement) for requirement in required]
    if not required:
        looked = ", ".join(path for _, path in _manifests(case)) or "none found"
        lines.append(f"required nowhere; manifests looked in: {looked}")
        lines += _misspelt(case, package)
    version = case.environment.version(package)
    there = f"version {version}" if version else "yes" if version is not None else "no"
    lines.append(f"installed in {case.environment.name}: {there}")
    if version is not None:
        lines += _although_installed(case, package, version, required)
        return StrategyResult("dependency_check", f"looked {case.module} up", _cut(lines))
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
            "so: required and installed; this version may not have that module, or the check runs "
            "in another environment"
        )


def _install(
    case: _Case, package: str, required: Sequence[Requirement], lines: list[str]
) -> StrategyResult:
    situation = case.situation
    forms = _forms(case, package, required)
    words, shown = forms[0], shlex.join(forms[-1])
    if refusal := _refusal(case, package, forms, lines if not required else ()):
        lines.append(f"so: loki does not install it, as {refusal}; a person could run: {shown}")
        return StrategyResult("dependency_check", f"looked {case.module} up", _cut(lines))
    finished, files = situation.run_fix(words)
    if not finished.is_success:
        said = finished.output.decode("utf-8", "replace").strip().splitlines()[-6:]
        lines += [f"`{shown}` failed:", *(f"  {line}" for line in said)]
        return StrategyResult(
            "dependency_check", f"tried `{shown}`, which failed", _cut(lines), files
        )
    cured = situation.check is not None and situation.passes_now(situation.check)
    lines.append(f"installed with `{shown}`")
    if not required:
        lines.append(f"no manifest requires it yet: add {package} to one")
    done = f"ran `{shown}`; the check {'passes now' if cured else 'still fails'}"
    return StrategyResult("dependency_check", done, _cut(lines), files, acted=True)


def _forms(case: _Case, package: str, required: Sequence[Requirement]) -> list[tuple[str, ...]]:
    """The command that installs it, and how else it may be written; the last is for people."""
    how = _way(case)
    words = how.declared if required and how.declared else how.command
    python_requires = required and case.known.name == "python"
    values = {
        "{package}": package,
        "{requirement}": str(required[0]) if python_requires else package,
        "{python}": case.environment.interpreter or "python3",
    }
    forms = [words, *([how.also] if how.also else [])]
    return [tuple(values.get(word, word) for word in form) for form in forms]


def _way(case: _Case) -> Install:
    paths = set(case.situation.project.paths)
    return next(way for way in case.known.install if not way.file or way.file in paths)


def _refusal(
    case: _Case, package: str, forms: Sequence[tuple[str, ...]], lines: Sequence[str]
) -> str:
    """Why loki does not run the command itself, or ""."""
    # The name comes from what a tool printed: it must not be an option, an address or a path.
    if not case.known.names.fullmatch(package):
        return "that is no name of a package"
    if any(line.startswith(_MISSPELT) for line in lines):
        return "the name may be misspelt"
    shown = [shlex.join(form) for form in forms]
    if not any(
        fnmatch.fnmatchcase(form, glob) for form in shown for glob in case.situation.allowed
    ):
        return "`allow_commands` does not have it"
    if problem := why_not_runnable(forms[0], case.situation.root):
        return problem
    return ""


# --- names ----------------------------------------------------------------------------------------


def _package(case: _Case) -> str:
    """The package that has the missing module."""
    known, module = case.known, case.module
    if case.missing.package:
        return case.missing.package
    if known.name == "python":
        dotted = module.split(".")
        tops = [".".join(dotted[:count]) for count in range(len(dotted), 0, -1)]
        listed = next((known.packages[name] for name in tops if name in known.packages), None)
        declared = next(
            (r.name for r in case.required if same_name(r.name, dotted[0], "python")), None
        )
        return declared or case.environment.provider(dotted[0]) or listed or dotted[0]
    if known.name == "npm":
        parts = module.split("/")
        name = "/".join(parts[:2] if module.startswith("@") else parts[:1])
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


def _manifests(case: _Case) -> list[tuple[str, str]]:
    return manifests(case.known, case.situation.project.paths)


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


def _cut(lines: Sequence[str]) -> str:
    """The lines that there is room for, the first first."""
    kept: list[str] = []
    room = BUDGET
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(kept)
