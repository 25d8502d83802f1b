"""What came of a tool's call: whether it failed, with what, and whether it is about the project at all."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loki.adapters.monitor.path_mapping import as_here
from loki.base.path_exists import path_exists
from loki.base.secret import mask_output, mask_secrets
from loki.decision.monitor.monitor_policy import Failed, Passed
from loki.decision.monitor.output_outcome import (
    Outcome,
    ends,
    error_in,
    exit_code_in,
    extent,
    is_wrong_form,
    outcome,
    says_failed,
    unframed,
)
from loki.decision.monitor.tool_call import Effect, Known, ToolCall, in_file, known
from loki.decision.monitor.tool_knowledge import knowledge
from loki.decision.monitor.value_text import short
from loki.memory.tool_failure import bounded
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import HIGH

if TYPE_CHECKING:
    from loki.workspace import Workspace

_TAG = re.compile(r"</?[a-z_]+>")
_SENTENCE = re.compile(r".{1,299}?(?:[.!?](?=\s|$)|$)")
_COMPLAINS = re.compile(
    r"(?i)error|fail|exception|invalid|n't |not |cannot|could ?not|unable|denied|refused|missing"
    r"|unknown|must |exactly|no "
)
_BLAMES = re.compile(r"(?i)^(?:error|exception)(?:\s+executing\s+\w+)?:\s+")

NAME, WORD, PATH = 200, 300, 1_000
"""Characters of a tool's name, of a word of what its command runs, and of a path, that are kept of a call.
Of longer ones both ends are, and a hash. Chosen, not measured."""


def known_call(call: ToolCall) -> Known:
    """What is known of a call, of a bounded size but for its command: a session's file has much of it."""
    if len(call.name) > NAME:
        call = replace(call, name=short(call.name, NAME))
    found = known(call)
    programs = tuple(tuple(short(word, WORD) for word in one) for one in found.programs)
    return replace(found, path=short(found.path, PATH), programs=programs)


def received_call(
    workspace: Workspace,
    call: Known,
    output: str | bytes | BaseException,
    ok: bool | None,
    exit_code: int | None,
    mapped: Mapping[str, str] | None = None,
) -> Passed | Failed:
    """What a call is to the monitor.

    Args:
        workspace: the project.
        call: the call.
        output: what it gave, or what it raised.
        ok: whether it went well, as its caller says; None: nobody says.
        exit_code: of its command, where it is known.
        mapped: folders of the place where the agent works, and those of the project that they are.
    """
    is_raised = isinstance(output, BaseException)
    if isinstance(output, BaseException):
        output, ok = "".join(traceback.format_exception(output)), bool(ok)
    if isinstance(output, str):
        output, file = unframed(output)
        call = in_file(call, file)
    text = ends(output if isinstance(output, str) else output.decode("utf-8", "replace"))
    runs = call.effect is Effect.RUN or call.is_check or call.also_runs
    if exit_code is None and runs:
        exit_code = exit_code_in(text)
    if ok is None and exit_code is None and call.effect is not Effect.READ and is_wrong_form(text):
        return Failed(replace(call, fits=False, talks=True), Failure.of(_refusal(text)))
    said = outcome(text, exit_code)
    if not call.is_check and knowledge().not_yet.search(text[:2000]):
        call = replace(call, waits=call.waits or (ok is not False and not is_raised))
    if call.stashes and "No local changes" in text:
        call = replace(call, stashes=False)
    ok = _went_well(call, said, text, ok, exit_code)
    said = said.of(runs_tests=call.runs_tests)
    if ok:
        return Passed(call, said)
    whole = mask_output(output) if isinstance(output, bytes) else mask_secrets(output)
    text = whole if isinstance(whole, str) else whole.decode("utf-8", "replace")
    failure = _failure(workspace, call, text, exit_code, mapped or {})
    if ok is None and not _shows_failure(failure, said):
        return Passed(call, said)
    return Failed(call, bounded(failure), extent(text), said)


def _went_well(
    call: Known, said: Outcome, text: str, ok: bool | None, exit_code: int | None
) -> bool | None:
    """Whether a call went well, as far as that is told; None: what is recognized decides.

    What a shell tells of `pytest | tail` is tail's: there the output decides, and so it does where nobody
    tells anything.
    """
    if exit_code == 1 and call.asks:
        return True
    if ok is None and exit_code is not None:
        ok = exit_code == 0
    if ok and call.is_hidden:
        ok = None
    if ok is not None:
        return ok
    if said.is_red and (call.is_check or call.effect is Effect.RUN):
        return False
    if said.is_green:
        return True
    runs = call.effect is Effect.RUN or call.also_runs
    changes = call.effect is Effect.WRITE and not call.also_runs
    if exit_code is None and says_failed(
        text, changes=changes, runs=runs, reads=call.effect is Effect.READ
    ):
        return False
    return None if call.is_check else True


def _shows_failure(failure: Failure, said: Outcome) -> bool:
    """Whether what was recognized in a check's output says that it failed, where nobody else does."""
    if not said.has_begun:
        return True
    known = bool(failure.error_type or failure.error_code or failure.path)
    return bool(failure.tests) or (failure.is_specific and failure.confidence >= HIGH and known)


def _failure(
    workspace: Workspace,
    call: Known,
    text: str,
    exit_code: int | None,
    mapped: Mapping[str, str],
) -> Failure:
    """What failed. Of a tool that refuses what it is given it is what it says first."""
    text = as_here(text, mapped)
    failure = recognize(
        text,
        command=call.command or None,
        exit_code=exit_code,
        root=str(workspace.root),
        patterns=workspace.patterns,
        exists=path_exists(workspace.root),
    )
    is_known = failure.error_type or failure.error_code or failure.tool or failure.path
    is_program = call.effect is Effect.RUN or call.also_runs or call.is_check
    if is_program or is_known or (failure.match and failure.match.is_infrastructure):
        return failure
    said = error_in(text) or _refusal(text)
    return failure if not said or said == failure.message else Failure.of(said)


def _refusal(text: str) -> str:
    """What a tool says first of what is wrong; without such words its first line that has any."""
    lines = [_BLAMES.sub("", _TAG.sub("", line).strip()) for line in text.splitlines()[:40]]
    told = [line for line in lines if any(c.isalpha() for c in line) and not line.endswith(":")]
    said = next(filter(_COMPLAINS.search, told), told[0] if told else "")
    found = _SENTENCE.match(said)
    return found[0] if found else said[:300]


def is_outside(call: Known, root: Path, mapped: Mapping[str, str] | None = None) -> bool:
    """Whether a call changes a file that is not the project's: no check reads it, and it is no try.

    Args:
        call: the call.
        root: the project's folder.
        mapped: folders of the place where the agent works, and those of the project that they are. A
            folder that this machine has not is taken for one of such a place.
    """
    if call.effect is not Effect.WRITE or not os.path.isabs(call.path):
        return False
    if any(_is_in(call.path, there) for there in mapped or ()):
        return False
    try:
        path, folder = os.path.realpath(call.path), os.path.realpath(root)
    except (OSError, ValueError):  # no file has such a name: NUL, half of a character
        return False
    if _is_in(path, folder):
        return False
    top = "/" + path.split("/", 2)[1]
    return os.path.exists(top)


def _is_in(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == os.path.normpath(folder)
