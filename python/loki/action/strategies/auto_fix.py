"""``auto_fix``: run the commands that mend such a failure by themselves, and the check once more.

In order: the pattern's own command, the project's, those of the tool that failed; until the check
passes. What they change is recorded and can be undone.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from loki.action.checks.command_detection import Invocation, detect
from loki.action.loop.loop_events import StrategyResult
from loki.action.processes.command_line import why_not_runnable
from loki.action.strategies.dependency.manifest_requirements import ecosystems
from loki.action.strategies.strategy_context import StrategyContext, StrategyNotApplicable
from loki.recognition.fix import fixes_for, fixes_of

FIX_KINDS = ("lint_fix", "format_fix")

MAX_COMMANDS = 3
"""Commands that are run for one failure, at most; chosen, not measured."""


def auto_fix(situation: StrategyContext) -> StrategyResult:
    """Run fix commands until the check passes.

    Raises:
        StrategyNotApplicable: no command is known, or none did anything.
    """
    if situation.draft is not None:
        raise StrategyNotApplicable(
            "nothing of what was proposed is in the project: there is nothing to mend"
        )
    told: list[str] = []
    files: tuple[str, ...] = ()
    cured = False
    refused: list[str] = []
    for command in _runnable(situation, refused):
        finished, touched = situation.run_fix(command)
        files = tuple(dict.fromkeys((*files, *touched)))
        shown = shlex.join(command)
        if finished.exit_code is None:
            refused.append(f"{shown} was ended before it was done")
        elif touched or finished.is_success:
            told.append(f"ran `{shown}`: changed {', '.join(touched) or 'nothing'}")
        else:
            refused.append(f"{shown} ended with exit code {finished.exit_code} and changed nothing")
        cured = situation.check is not None and situation.passes_now(situation.check)
        if cured or len(told) >= MAX_COMMANDS:
            break
    if not files and not cured:
        raise StrategyNotApplicable(
            "; ".join((*refused, *told)) or "no fix command is known for this check"
        )
    result = "the check passes now" if cured else "the check still fails"
    return StrategyResult("auto_fix", f"{'; '.join(told)}; {result}", files=files)


def _runnable(situation: StrategyContext, refused: list[str]) -> Iterator[tuple[str, ...]]:
    """The commands that can be run, each once; why the others cannot joins ``refused``."""
    seen: set[tuple[str, ...]] = set()
    path = situation.failure.path
    for words in _commands(situation):
        if not path and any("{file}" in word for word in words):
            refused.append(f"{shlex.join(words)} needs a file, and the error names none")
            continue
        command = tuple(word.replace("{file}", path or "") for word in words)
        if command in seen:
            continue
        seen.add(command)
        if problem := why_not_runnable(command, situation.root):
            refused.append(problem)
        else:
            yield command


def _commands(situation: StrategyContext) -> Iterator[tuple[str, ...]]:
    match = situation.failure.match
    pattern = situation.patterns.patterns.get(match.pattern) if match else None
    if pattern is not None and pattern.fix_command:
        yield tuple(shlex.split(pattern.fix_command))
    yield from _of_project(situation)
    if situation.check is not None:
        yield from fixes_for(situation.check.command)
        yield from _of_script(situation, situation.check.command)
    if situation.failure.tool:
        yield from fixes_of(situation.failure.tool)


def _of_script(situation: StrategyContext, command: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The commands for what a script of the project runs, where the check is such a script."""
    invocation = Invocation.of(command, situation.root)
    if invocation.start is not None:
        return
    for words in fixes_for(invocation.program):
        yield (_program(situation, words[0]), *words[1:])


def _program(situation: StrategyContext, name: str) -> str:
    """A program as a script of the project finds it: of its own dependencies, else by its name."""
    folders = (folder for known in ecosystems() for folder in known.programs)
    own = (f"{folder}/{name}" for folder in folders)
    return next((f"./{path}" for path in own if (situation.root / path).is_file()), name)


def _of_project(situation: StrategyContext) -> Iterator[tuple[str, ...]]:
    """The commands by which the project mends itself, but for those of another language."""
    found = detect(situation.project.files)
    language = situation.failure.language
    for kind in FIX_KINDS:
        command = found.get(kind)
        if command is not None and _is_for(language, command.source.partition(":")[0]):
            yield command.words


def _is_for(language: str | None, source: str) -> bool:
    """Whether a manifest's own commands may be for a language; a Makefile's are for any."""
    of = [e for e in ecosystems() if any(source == manifest.file for manifest in e.manifests)]
    return not of or language is None or any(language in known.languages for known in of)
