"""Whether a failure may come of a change, of waiting, and whether a check shows that it is gone. Pure.

A test that was red before an agent began is often not its task; ``docs/design/monitor.md`` says why.
"""

from __future__ import annotations

from loki.decision.monitor_state import Look
from loki.decision.tool_call import Effect, Known
from loki.decision.tool_knowledge import knowledge
from loki.recognition.failure import Failure

NOT_YOURS = (
    "It was there before your first change, and none of your changes is in a file that it names. If it "
    "is not your task, leave it as it is, go on, and say so at the end."
)
"""What is added where a failure may be nobody's doing of this session."""


def may_touch(call: Known, names: frozenset[str]) -> bool:
    """Whether a failure may come of a change: where a command made it, nobody knows of what."""
    return not call.path or bool(_stem(call.path) & names)


def _stem(path: str) -> frozenset[str]:
    """The name of a file without folders, endings and what makes it one of tests."""
    stem = path.replace("\\", "/").rpartition("/")[2].split(".", 1)[0].casefold()
    return frozenset({stem.removeprefix("test_").removesuffix("_test")})


def says_not_yet(call: Known, failure: Failure) -> bool:
    """Whether a tool says that what it was asked for is not done yet: asking again is how one waits.

    Example:
        >>> from loki.decision.tool_call import ToolCall, known
        >>> said = Failure.of("build 7 is still running")
        >>> says_not_yet(known(ToolCall("wait_for_build", {"id": 7})), said)
        True
    """
    if call.command or call.effect is Effect.WRITE:
        return False
    if call.effect is Effect.RUN and (failure.tests or failure.error_type or failure.frames):
        return False  # it ran, and says so of what it found
    return knowledge().not_yet.search(failure.message) is not None


def says_whence(failure: Failure) -> bool:
    """Whether it names a file of the project beside its tests: else any change may have to do with it."""
    tests = {test.split("::", 1)[0] for test in failure.tests}
    files = {failure.path or "", *(f.path for f in failure.frames if f.in_project)}
    return bool(tests and files - tests - {""})


def names_of(failure: Failure) -> frozenset[str]:
    """The stems of the files that a failure names: its place, its stack in the project, its tests."""
    files = {failure.path or "", *(f.path for f in failure.frames if f.in_project)}
    files |= {test.split("::", 1)[0] for test in failure.tests}
    return frozenset().union(*(_stem(file) for file in files if file))


def covers(call: Known, look: Look, failure: Failure | None) -> bool:
    """Whether a call that went well shows that what another had shown is mended."""
    if call.key in look.keys:
        return True
    if not call.is_check:
        return False
    named = _about(failure) if failure else frozenset()
    for program, *words in call.programs:
        for other, *others in look.calls:
            if program == other and (set(words) <= set(others) or named & set(words)):
                return True
    return False


def _about(failure: Failure) -> frozenset[str]:
    """Files and tests that a failure names."""
    files = {test.split("::", 1)[0] for test in failure.tests}
    return frozenset({*failure.tests, *files, *([failure.path] if failure.path else [])})
