"""What came of a tool's call: whether it failed, and with what; whether it is about the project at all.

Under test: ``tests/py/monitoring/test_monitor.py``.
"""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from loki.base.secret import mask_output, mask_secrets
from loki.decision.extent import extent, failures_told, passes_told
from loki.decision.monitor import Failed
from loki.decision.tool_call import (
    Effect,
    Known,
    exit_code_in,
    says_failed,
    shows_failure,
    went_well,
)
from loki.memory.tool_failure import bounded
from loki.recognition.failure import recognize

if TYPE_CHECKING:
    from loki.workspace import Workspace

LOOKED_AT = 4_000
"""Characters at either end of a tool's text that are looked at for whether it failed. Chosen."""


def failed_call(
    workspace: Workspace,
    call: Known,
    output: str | bytes | BaseException,
    ok: bool | None,
    exit_code: int | None,
) -> Failed | None:
    """What failed in a call; None: nothing.

    Args:
        workspace: the project.
        call: the call.
        output: what it gave, or what it raised.
        ok: whether it went well, as its caller says; None: nobody says.
        exit_code: of its command, where it is known.
    """
    ok = went_well(call, ok, exit_code)
    if isinstance(output, BaseException):
        output, ok = "".join(traceback.format_exception(output)), bool(ok)
    if ok is None:
        said = says_failed(call, _ends(output))
        ok = None if said is None and call.is_check else not said
    if ok:
        return None
    text = _text(mask_output(output) if isinstance(output, bytes) else mask_secrets(output))
    failure = recognize(
        text,
        command=call.command or None,
        exit_code=exit_code_in(_ends(text)) if exit_code is None else exit_code,
        root=str(workspace.root),
        patterns=workspace.patterns,
    )
    if ok is None and not shows_failure(call, failure, failures_told(text)):
        return None
    return Failed(call, bounded(failure), extent(text), passes_told(text))


def is_outside(call: Known, root: Path) -> bool:
    """Whether a call changes a file that is not the project's: no check reads it, and it is no try.

    Args:
        call: the call.
        root: the project's folder.
    """
    if call.effect is not Effect.WRITE or not os.path.isabs(call.path):
        return False
    if "\0" in call.path:  # no file has such a name
        return False
    path, folder = os.path.realpath(call.path), os.path.realpath(root)
    return os.path.commonpath((path, folder)) != folder


def _ends(text: str | bytes) -> str:
    """Both ends of a text."""
    if len(text) > 2 * LOOKED_AT:
        begin, end = text[:LOOKED_AT], text[-LOOKED_AT:]
        return f"{_text(begin)}\n{_text(end)}"
    return _text(text)


def _text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "replace")
