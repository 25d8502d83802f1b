"""Whether a failure may come of a change, or of waiting, and whether a check shows that it is gone. Pure.

A test that was red before an agent began is often not its task; ``docs/design/monitor.md`` says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from loki.decision.monitor.monitor_state import Inspection, MadeChange
from loki.decision.monitor.tool_call import Effect, Known
from loki.decision.monitor.tool_knowledge import knowledge
from loki.recognition.failure import Failure

NOT_YOURS = (
    "It was there before your first change, and none of your changes is in a file that it names. If it "
    "is not your task, leave it as it is, go on, and say so at the end."
)
"""What is added where a failure may be nobody's doing of this session."""


TRIED = 2
"""What `attempted` says where something was changed that could have mended a failure."""


def changes_of_call(call: Known, number: int) -> MadeChange:
    """What is kept of a change.

    Args:
        call: what made it.
        number: the how many-th it is.
    """
    file = call.path.replace("\\", "/").rpartition("/")[2]
    return MadeChange(number, file, _stem(file), call.is_test or call.is_scratch)


def attempts_to_fix(
    made: Sequence[MadeChange], since: int, call: Known, failure: Failure | None = None
) -> int:
    """Whether anything was changed since that could have mended what a call shows: `TRIED`; 0: nothing.

    1: only a test that fails, or a script that is there to show the failure, was changed. What a command
    runs is no such script where the failure is in it.

    Args:
        made: changes, the newest last.
        since: the number of the last change that was known before.
        call: what shows it.
        failure: what it shows; None: it only printed something.
    """
    words = {word.rpartition("/")[2] for program in call.programs for word in program[1:]} - {""}
    place = (failure.path or "").rpartition("/")[2] if failure else ""
    is_unread = failure is not None and failure.kind == "syntax-error"
    found = 0
    for one in reversed(made):
        if one.number <= since:
            break
        is_own = one.is_test or one.file in words
        if not is_own or (one.file == place and (is_unread or not one.is_test)):
            return TRIED
        found = 1
    return found


def is_touched(made: Sequence[MadeChange], names: frozenset[str]) -> bool:
    """Whether any change may be in a file that a failure names; where it names none, or nobody knows what
    was changed, it may be."""
    return not names or any(not one.file or one.stem in names for one in made)


def _stem(path: str) -> str:
    """The name of a file without folders, endings and what makes it one of tests."""
    stem = path.replace("\\", "/").rpartition("/")[2].split(".", 1)[0].casefold()
    return stem.removeprefix("test_").removesuffix("_test").removesuffix("_tests")


def is_waiting_for_service(call: Known, failure: Failure) -> bool:
    """Whether a tool says that what it was asked for is not done yet: asking again is how one waits.

    Example:
        >>> from loki.decision.monitor.tool_call import ToolCall, known
        >>> said = Failure.of("build 7 is still running")
        >>> is_waiting_for_service(known(ToolCall("wait_for_build", {"id": 7})), said)
        True
    """
    if call.command or call.effect is Effect.WRITE:
        return False
    if call.effect is Effect.RUN and (failure.tests or failure.error_type or failure.frames):
        return False  # it ran, and says so of what it found
    return knowledge().not_yet.search(failure.message) is not None


def names_in_failure(failure: Failure) -> frozenset[str]:
    """The stems of the files that a failure names: its place, its stack in the project, its tests."""
    files = {failure.path or "", *(f.path for f in failure.frames if f.in_project)}
    files |= {test.split("::", 1)[0] for test in failure.tests}
    return frozenset(_stem(file) for file in files if file and not file.startswith("<"))


def covers(call: Known, look: Inspection, failure: Failure | None) -> bool:
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
