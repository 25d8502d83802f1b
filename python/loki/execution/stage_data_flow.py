"""What flows from stage to stage: documents, summaries of changes, files, parameters."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from loki.action.pipelines.pipeline_record import output_document
from loki.action.pipelines.pipeline_stage import Input, summary
from loki.action.pipelines.pipeline_state import SETTLED, RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loki.workspace import Workspace

logger = logging.getLogger("loki")

MAX_FILE = 1_000_000
"""Bytes of a file that is handed on. Chosen, not measured."""


def hand_on(workspace: Workspace, state: RunState, files: Sequence[str]) -> tuple[str, ...]:
    """Keep what the stage that it stands at hands on; a plan's documents are kept already.

    Args:
        workspace: the project.
        state: the run.
        files: paths that the stage has changed.

    Returns:
        The names.
    """
    stage, id_ = state.here, state.task_id(state.here.id)
    for output in stage.outputs if stage.mode == "agent" else ():
        if output.file:
            text = _read(workspace, output.file)
        else:
            passed = [a for a in workspace.history(id_).attempts() if a.result == "success"]
            diff = workspace.journal(id_).diff()
            text = summary(output.name, stage, files, [a.action for a in passed], diff)
        workspace.store.put(output_document(state.run, output.name), text)
    return tuple(output.name for output in stage.outputs)


def _read(workspace: Workspace, path: str) -> str:
    try:
        found = (workspace.root / path).resolve(strict=True)
        if not found.is_relative_to(workspace.root):
            logger.warning("%s is not handed on: it leads out of the project", path)
            return ""
        with found.open("rb") as file:
            return file.read(MAX_FILE).decode("utf-8", "replace")
    except OSError as error:
        logger.warning("%s cannot be handed on: %s", path, error.strerror or error)
        return ""


def outputs(workspace: Workspace, state: RunState) -> dict[str, dict[str, str]]:
    """The texts that stages which are done have handed on: stage to name to text."""
    return {
        id_: {name: _output(workspace, state, name) for name in stage.outputs}
        for id_, stage in state.stages.items()
        if stage.status in SETTLED
    }


def _output(workspace: Workspace, state: RunState, name: str) -> str:
    return workspace.store.get(output_document(state.run, name)) or ""


def inputs(workspace: Workspace, state: RunState) -> list[Input]:
    """What the stage is given that the run stands at."""
    return [_input(workspace, state, name) for name in state.here.inputs]


def _input(workspace: Workspace, state: RunState, name: str) -> Input:
    makers = [s.id for s in state.spec.stages if name in {output.name for output in s.outputs}]
    if not makers:
        return Input(name, "a parameter", state.parameters.get(name, ""))
    maker = makers[0]
    if state.of(maker).status == "skipped":
        return Input(name, f"of stage {maker}", "(nothing: this stage was skipped)")
    file = workspace.folder / output_document(state.run, name)
    return Input(name, f"of stage {maker}", _output(workspace, state, name), str(file))
