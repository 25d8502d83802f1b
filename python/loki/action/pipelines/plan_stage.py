"""The world of a stage that plans: its agent writes documents, and the project stays as it is.

The loop is the same: what an agent answers is validated (documents and nothing else), kept
(EXECUTE), and looked at (EVALUATE); what is missing or refused is the failure of an attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loki.action.checks.check import Check, CheckResult, Report
from loki.action.gates.gate import BLOCKING, Validation, Violation
from loki.action.loop.loop_events import (
    Checked,
    Event,
    Execute,
    Executed,
    RunChecks,
    RunStrategy,
    StrategyResult,
    Validate,
    Validated,
)
from loki.action.loop.performer import Performer
from loki.action.pipelines.pipeline_record import output_document
from loki.action.pipelines.pipeline_stage import document_path
from loki.recognition.failure import Failure

GATE = "plan_check"

MAX_DOCUMENT = 1_000_000
"""Bytes of a document. Chosen, not measured."""


@dataclass
class Planner(Performer):
    """Performs the loop's effects for a stage that plans.

    Args:
        run: id of the pipeline's run.
        documents: names of what is to be written.
    """

    run: str = ""
    documents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take over the phases that would touch the project."""
        super().__post_init__()
        self._kept: set[str] = set()
        self._performs = {
            **self._performs,
            RunChecks: self._look,
            Validate: self._refuse_edits,
            Execute: self._keep,
            RunStrategy: self._hint,
        }

    @property
    def _paths(self) -> dict[str, str]:
        return {document_path(name): name for name in self.documents}

    def _refuse_edits(self, effect: Validate) -> Event:
        change = effect.proposal.change
        edits = (
            (edit.path, self._wrong(edit.path, edit.after, edit.size)) for edit in change.edits
        )
        commands = (
            (None, f"this stage plans and runs nothing, but proposed `{' '.join(command)}`")
            for command in change.commands
        )
        found = (Violation(GATE, BLOCKING, path, why) for path, why in (*edits, *commands) if why)
        return Validated(Validation((GATE,), tuple(found)))

    def _wrong(self, path: str, content: bytes | None, size: int) -> str:
        expected = f"expected nothing but {', '.join(self._paths)}"
        if path not in self._paths:
            return f"this stage plans and changes nothing in the project, {expected}"
        if content is None:
            return f"this stage plans, but its document was deleted, {expected}"
        if size > MAX_DOCUMENT:
            return f"a document of {size} bytes, expected at most {MAX_DOCUMENT}"
        try:
            is_empty = not content.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            return f"a document that is no UTF-8 at byte {error.start}, expected text"
        return "an empty document, expected what its name says" if is_empty else ""

    def _keep(self, effect: Execute) -> Event:
        paths = []
        for edit in effect.proposal.change.edits:
            name = self._paths[edit.path]
            text = (edit.after or b"").decode("utf-8")
            self.recorder.store.put(output_document(self.run, name), text)
            self._kept.add(name)
            paths.append(edit.path)
        return Executed(tuple(paths))

    def _look(self, _effect: RunChecks) -> Event:
        return Checked(Report(tuple(self._looked_at(name) for name in self.documents)))

    def _looked_at(self, name: str) -> CheckResult:
        check = Check(("document", name), "command", f"document {name}")
        if name in self._kept:
            return CheckResult(check, True, 0, 0.0)
        path = document_path(name)
        failure = Failure.of(
            f"the document {name} is missing: expected it in {path}",
            tool="loki",
            error_code="document-missing",
            path=path,
        )
        return CheckResult(check, False, 1, 0.0, failure.message, failure)

    def _hint(self, effect: RunStrategy) -> Event:
        return StrategyResult(effect.strategy)


def planner(performer: Performer, run: str, documents: tuple[str, ...]) -> Planner:
    """The same performer for a stage that plans."""
    given: dict[str, Any] = {
        name: getattr(performer, name) for name in Performer.__dataclass_fields__
    }
    return Planner(**given, run=run, documents=documents)
